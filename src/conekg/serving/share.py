"""One of several processes of a server: its part of the limits, and metrics of all of them.

Whichever process a request for metrics meets answers for all. Each writes its own to a file
that the others read, a few times a second while anything changes.
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
    """Which process of how many; `folder` is where they tell each other their metrics."""

    index: int
    processes: int
    folder: Path

    def limits(self, limits: Limits) -> Limits:
        """The part of a server's limits that one process keeps, rounded up."""
        return replace(
            limits,
            concurrent_requests=-(-limits.concurrent_requests // self.processes),
            explanations=-(-limits.explanations // self.processes),
        )

    def cores(self, number: int) -> int:
        """The part of so many cores that one process uses."""
        return max(1, number // self.processes)


class SharedMetrics:
    """The metrics of this process, and with those of the others the whole server's."""

    def __init__(self, own: Metrics, share: Share) -> None:
        self._own = own
        self._share = share
        self._published = ""

    def total(self) -> Metrics:
        """This process's metrics as they are and the others' as they last told them."""
        total = Metrics()
        total.add(self._own.state())
        for index in range(self._share.processes):
            if index != self._share.index and (file := self._file(index)).is_file():
                total.add(json.loads(file.read_text(encoding="utf-8")))
        return total

    def publish(self) -> None:
        """Let the others know, if anything has changed."""
        state = json.dumps(self._own.state())
        if state != self._published:
            file = self._file(self._share.index)
            draft = file.with_suffix(".draft")
            # Temporary folders that nobody has used for days are tidied away on many machines.
            self._share.folder.mkdir(mode=0o700, exist_ok=True)
            draft.write_text(state, encoding="utf-8")
            draft.replace(file)  # readers find the old file or the new one, never a part
            self._published = state

    async def keep_publishing(self) -> None:
        """Publish again and again until cancelled; what cannot be written now may be later."""
        fault = ""
        while True:
            try:
                self.publish()
                fault = ""
            except OSError as error:  # a full disk
                if str(error) != fault:
                    log.warning("the metrics of this process reach no other: %s", error)
                fault = str(error)
            await asyncio.sleep(PUBLISH_EVERY_S)

    def _file(self, index: int) -> Path:
        return self._share.folder / f"{index}.json"
