"""What a process of a multi-process server needs of the others: its share of limits, all metrics.

A request for metrics may reach any process, which has to answer for all of them. Each process
writes its own metrics to a file several times a second, if they changed, and reads the others'.
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path

from conekg.serving.limits import Limits
from conekg.serving.metrics import Metrics

log = logging.getLogger(__name__)

PUBLISH_EVERY_S = 0.2


@dataclass(frozen=True)
class Share:
    """Which process this is, and of how many; `folder` has the files of their metrics."""

    index: int
    processes: int
    folder: Path

    def limits(self, limits: Limits) -> Limits:
        """The limits of one process: its part of what all handle at once, rounded up."""
        return replace(
            limits,
            concurrent_requests=-(-limits.concurrent_requests // self.processes),
            explanations=-(-limits.explanations // self.processes),
        )

    def cores(self, number: int) -> int:
        """How many of the machine's `number` cores one process uses; at least one."""
        return max(1, number // self.processes)


class SharedMetrics:
    """The metrics of the whole server: this process's own and those the others published."""

    def __init__(self, own: Metrics, share: Share) -> None:
        self._own = own
        self._share = share
        self._published = ""

    def total(self) -> Metrics:
        """This process's current metrics plus what the others last published."""
        total = Metrics()
        total.add(self._own.state())
        for index in range(self._share.processes):
            if index != self._share.index and (file := self._file(index)).is_file():
                total.add(json.loads(file.read_text(encoding="utf-8")))
        return total

    def publish(self) -> None:
        """Write this process's metrics for the others to read, if anything has changed."""
        state = json.dumps(self._own.state())
        if state != self._published:
            file = self._file(self._share.index)
            draft = file.with_suffix(".draft")
            # Many systems delete temporary folders that have not been used for days.
            self._share.folder.mkdir(mode=0o700, exist_ok=True)
            draft.write_text(state, encoding="utf-8")
            draft.replace(file)  # readers find the old file or the new one, never a part
            self._published = state

    async def keep_publishing(self) -> None:
        """Publish again and again until cancelled; a write that fails is tried again later."""
        fault = ""
        while True:
            try:
                self.publish()
                fault = ""
            except OSError as error:  # a full disk
                if str(error) != fault:
                    log.warning("the other processes cannot see this one's metrics: %s", error)
                fault = str(error)
            await asyncio.sleep(PUBLISH_EVERY_S)

    def _file(self, index: int) -> Path:
        return self._share.folder / f"{index}.json"
