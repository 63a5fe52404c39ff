"""Ctrl-C in a callback of compiled code, where Python prints the exception and goes on."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from conekg.cli import lost_interrupt


@ctypes.CFUNCTYPE(None)
def interrupted() -> None:
    raise KeyboardInterrupt


def interrupted_and_waiting() -> None:
    interrupted()
    time.sleep(30)


@ctypes.CFUNCTYPE(None)
def failed() -> None:
    raise ValueError("of another kind")


@pytest.fixture
def heeded() -> Iterator[None]:
    """Handle SIGINT, even if the tests run in the background, where shells ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded")
def test_an_interrupt_in_a_callback_is_raised_after_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    lost_interrupt.raise_lost_interrupts()
    with pytest.raises(KeyboardInterrupt):
        interrupted_and_waiting()
    assert not capsys.readouterr().err


def test_other_unraisable_exceptions_are_printed_as_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
    lost_interrupt.raise_lost_interrupts()
    failed()
    assert "ValueError: of another kind" in capsys.readouterr().err


def test_the_command_line_raises_lost_interrupts() -> None:
    program = """
import ctypes, signal, time
from conekg.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)

@ctypes.CFUNCTYPE(None)
def interrupted():
    raise KeyboardInterrupt

def work():
    interrupted()
    time.sleep(60)

main.app = work
try:
    main.main()
except KeyboardInterrupt:
    print("stopped")
"""
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=50, check=True
    )
    assert (found.stdout, found.stderr) == ("stopped\n", "")
