"""Ctrl-C, the system's polite request to end and the end of the terminal, as a flag to look at."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


def stop_signals() -> tuple[signal.Signals, ...]:
    """The signals to end on; the end of the terminal only where nobody said to outlive it."""
    hang_up = getattr(signal, "SIGHUP", None)  # not everywhere
    if hang_up is None or signal.getsignal(hang_up) is signal.SIG_IGN:  # by nohup
        return (signal.SIGINT, signal.SIGTERM)
    return (signal.SIGINT, signal.SIGTERM, hang_up)


class StopRequest:
    """While open, the first of `stop_signals` sets `requested`; a second one interrupts.

    Only the end of the terminal never does: both the shell and the system may tell of it.
    Signal handlers belong to the main thread; in any other this does nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            for number in stop_signals():
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore(*self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        # Whoever asks twice does not want to wait for the step to end.
        self._restore(signal.SIGINT, signal.SIGTERM)

    def _restore(self, *numbers: signal.Signals) -> None:
        for number in numbers:
            if number in self._before:
                signal.signal(number, self._before.pop(number))
