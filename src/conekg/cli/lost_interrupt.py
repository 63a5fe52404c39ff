"""Ctrl-C where Python cannot raise it: in a callback from numba's compiler, or in a destructor.

Python only prints such a KeyboardInterrupt and goes on. The first run compiles for a while, so that
users often press Ctrl-C just then. This module raises the interrupt again a moment later.
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
"""Seconds until a lost interrupt is raised again; the callback has usually returned by then."""


def raise_lost_interrupts() -> None:
    """From now on, raise interrupts again that Python could not raise where they arrived."""
    sys.unraisablehook = _raise_later


def _raise_later(lost: UnraisableHookArgs) -> None:
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    timer = threading.Timer(_AGAIN_AFTER_S, _interrupt)
    timer.daemon = True
    timer.start()


def _interrupt() -> None:
    """Interrupt the main thread as Ctrl-C does; a real signal also ends its waiting."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()
