"""The first signal sets a flag, the second interrupts, and afterwards the old handlers are back."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from conekg.training.interrupt import StopRequest, stop_signals

pytestmark = pytest.mark.usefixtures("usual_ctrl_c")


def test_the_first_is_noted_and_the_second_interrupts() -> None:
    with StopRequest() as stop:
        assert not stop.requested
        signal.raise_signal(signal.SIGINT)
        assert stop.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_sigterm_sets_the_flag_too() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with StopRequest() as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.requested
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.fixture
def own_terminal() -> Iterator[None]:
    """SIGHUP has its default handler, even if these tests are run by nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("own_terminal")
def test_a_second_sighup_does_not_interrupt() -> None:
    with StopRequest() as stop:
        signal.raise_signal(signal.SIGHUP)
        assert stop.requested
        signal.raise_signal(signal.SIGHUP)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


@pytest.mark.usefixtures("own_terminal")
def test_a_process_started_by_nohup_ignores_sighup() -> None:
    assert set(stop_signals()) == {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert set(stop_signals()) == {signal.SIGINT, signal.SIGTERM}
    with StopRequest() as stop:
        signal.raise_signal(signal.SIGHUP)
        assert not stop.requested


def test_a_handler_of_the_host_program_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program in C that runs Python may handle a signal itself, which Python shows as None."""
    real = signal.getsignal
    monkeypatch.setattr(
        signal, "getsignal", lambda number: None if number == signal.SIGTERM else real(number)
    )
    with StopRequest():
        assert real(signal.SIGTERM) is signal.SIG_DFL
        assert real(signal.SIGINT) is not signal.default_int_handler


def test_in_another_thread_it_does_nothing() -> None:
    seen: list[object] = []

    def open_one() -> None:
        with StopRequest():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=open_one)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
