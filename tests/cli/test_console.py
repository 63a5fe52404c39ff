from __future__ import annotations

import json

import pytest

from conekg.cli import console
from conekg.errors import ConeKGError


def test_results_and_messages_go_separate_ways(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_text("[bold]answer[/bold]")
    console.say("[status]")
    console.warn("careful")
    out, err = capsys.readouterr()
    assert out == "[bold]answer[/bold]\n"
    assert err == "[status]\nwarning: careful\n"


def test_errors_show_message_and_hint(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_error(ConeKGError("bad [value]", hint="do this"))
    assert capsys.readouterr().err == "error: bad [value]\ndo this\n"
    console.print_error(ConeKGError("bad"))
    assert capsys.readouterr().err == "error: bad\n"


def test_long_messages_are_not_cut_into_lines(capsys: pytest.CaptureFixture[str]) -> None:
    console.say("word " * 100)
    assert capsys.readouterr().err.count("\n") == 1


def test_json_keeps_names_readable(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"name": "Åland"})
    out = capsys.readouterr().out
    assert "Åland" in out
    assert json.loads(out) == {"name": "Åland"}


def test_tables_align_numbers_and_show_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_table("title", ["name", "count"], [["[b]", "1,000"], ["c", "7"]])
    out = capsys.readouterr().out
    assert "title" in out
    assert "[b]" in out
    assert "│     7 │" in out


def test_names_stay_on_their_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert console.one_line("a\nb\tc\x1b[1m\u2028 日本 👩\u200d🚀") == (
        "a\\nb\\tc\\x1b[1m\\u2028 日本 👩\u200d🚀"
    )
    assert console.listed(["Bonn", "Dover, Kent"]) == 'Bonn, "Dover, Kent"'
    console.print_table("", ["name"], [["two\nlines"]])
    assert "two\\nlines" in capsys.readouterr().out


def test_progress_off_a_terminal_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: clock[0])
    with console.progress("sample", total=100, unit="queries") as report:
        for second in range(1, 21):
            clock[0] = float(second)
            report.advance(5)
        assert capsys.readouterr().err.splitlines() == [
            "sample: 50 of 100 (50%), 5 queries/s, 0:10 left",
            "sample: 100 of 100 (100%), 5 queries/s, 0:20 elapsed",
        ]
    assert capsys.readouterr().err == "sample: 100 of 100 (100%), 5 queries/s, 0:20 elapsed\n"


def test_progress_learns_its_total_and_shows_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("fetch", unit="bytes") as report:
        report.update(50, 200, "archive")
    assert "fetch: 50 of 200 (25%)" in (err := capsys.readouterr().err)
    assert err.rstrip().endswith("archive")


def test_work_that_reports_nothing_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("nothing"):
        pass
    assert capsys.readouterr().err == ""


def test_progress_on_a_terminal_is_a_bar_with_rate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = console.messages
    monkeypatch.setattr(
        console, "messages", lambda: console.Console(stderr=True, force_terminal=True, width=120)
    )
    with console.progress("train", total=10, unit="steps") as report:
        report.update(5)
        report.advance(5)
    err = capsys.readouterr().err
    assert "10/10" in err
    assert "steps/s" in err
    assert real().is_terminal is False


@pytest.mark.parametrize(("seconds", "told"), [(5, "0:05"), (65, "1:05"), (3665, "1:01:05")])
def test_durations(seconds: float, told: str) -> None:
    assert console._duration(seconds) == told
