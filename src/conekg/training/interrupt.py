"""Ctrl-C, the system's request to terminate and the end of the terminal, as a flag to poll."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any


def stop_signals() -> tuple[signal.Signals, ...]:
    """The signals that end a run: SIGINT, SIGTERM, and SIGHUP unless nohup made it ignored."""
    hang_up = getattr(signal, "SIGHUP", None)  # Windows has none
    if hang_up is None or signal.getsignal(hang_up) is signal.SIG_IGN:
        return (signal.SIGINT, signal.SIGTERM)
    return (signal.SIGINT, signal.SIGTERM, hang_up)


class StopRequest:
    """While open, the first of `stop_signals` sets `requested`; a second one interrupts as usual.

    A second SIGHUP does not interrupt, since both the shell and the system may send one when the
    terminal ends. Only the main thread can handle signals; in any other this does nothing.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is threading.main_thread():
            for number in stop_signals():
                # None is a handler of a program in C that runs Python, which could not be restored.
                if signal.getsignal(number) is not None:
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore(*self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        # A second request means that the user does not want to wait for the end of the step.
        self._restore(signal.SIGINT, signal.SIGTERM)

    def _restore(self, *numbers: signal.Signals) -> None:
        for number in numbers:
            if number in self._before:
                signal.signal(number, self._before.pop(number))
