"""Ctrl-C: asked once it is noted, asked twice it interrupts, and afterwards all is as before."""

from __future__ import annotations

import signal
import threading

import pytest

from conekg.training.interrupt import StopRequest

pytestmark = pytest.mark.usefixtures("usual_ctrl_c")


def test_the_first_is_noted_and_the_second_interrupts() -> None:
    with StopRequest() as stop:
        assert not stop.requested
        signal.raise_signal(signal.SIGINT)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_request_to_end_is_noted_too() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopRequest() as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.requested
    assert signal.getsignal(signal.SIGTERM) is before


def test_in_another_thread_it_does_nothing() -> None:
    seen: list[object] = []

    def open_one() -> None:
        with StopRequest():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=open_one)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
