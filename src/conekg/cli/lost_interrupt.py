"""Ctrl-C where Python cannot raise it: within a callback of the compiler, or of a destructor.

Python prints such an exception and goes on, as if nobody had asked to stop. The compiled loops
of a first run take a while to be made, so that this is where somebody is likely to ask.
"""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_AGAIN_AFTER_S = 0.05
"""Seconds until a lost interrupt is tried again; by then the callback has mostly returned."""


def raise_lost_interrupts() -> None:
    """Have an interrupt that cannot be raised where it arrives be raised a moment later."""
    sys.unraisablehook = _raise_later


def _raise_later(lost: UnraisableHookArgs) -> None:
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    timer = threading.Timer(_AGAIN_AFTER_S, _interrupt)
    timer.daemon = True
    timer.start()


def _interrupt() -> None:
    """Ctrl-C for the main thread, which a real signal also wakes where it waits."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()
