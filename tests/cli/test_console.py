from __future__ import annotations

import io
import json
import sys

import pytest
from rich.cells import cell_len

from conekg.cli import console
from conekg.errors import ConeKGError


def test_results_go_to_stdout_and_messages_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
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
    console.print_table("facts[v2]", ["name", "count"], [["[b]", "1,000"], ["c", "7"]])
    out = capsys.readouterr().out
    assert "facts[v2]" in out
    assert "[b]" in out
    assert "│     7 │" in out


def test_names_with_line_breaks_stay_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert console.listed(["Bonn", "Dover, Kent", "1,000"]) == 'Bonn, "Dover, Kent", 1,000'
    assert console.listed(['a, "b"', 'Ann "Nan" Lee', "c,\nd, e", "f\ng"]) == (
        r'"a, \"b\"", Ann "Nan" Lee, "c,\nd, e", f\ng'
    )
    told = console.listed(["Bonn", "Dover, Kent", "Kiel"], ["", "valid", "test"])
    assert told == 'Bonn, "Dover, Kent" (valid), Kiel (test)'
    console.print_table("", ["name"], [["two\nlines"]])
    assert "two\\nlines" in capsys.readouterr().out


def test_progress_without_a_terminal_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: clock[0])
    with console.progress("sample", total=100, unit="queries") as report:
        for second in range(1, 21):
            clock[0] = float(second)
            report.update(5 * second)
        assert capsys.readouterr().err.splitlines() == [
            "sample: 50 of 100 (50%), 5 queries/s, 0:10 left",
            "sample: 100 of 100 (100%), 5 queries/s, 0:20 elapsed",
        ]
    assert capsys.readouterr().err == "", "what was told is not told again"


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
        report.update(10)
    err = capsys.readouterr().err
    assert "10/10" in err
    assert "steps/s" in err
    assert real().is_terminal is False


@pytest.mark.parametrize(("seconds", "told"), [(5, "0:05"), (65, "1:05"), (3665, "1:01:05")])
def test_durations(seconds: float, told: str) -> None:
    assert console._duration(seconds) == told


def test_the_rate_of_resumed_work_leaves_out_what_was_done_before(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: clock[0])
    with console.progress("train", total=1000, unit="steps") as report:
        for second in range(1, 12):
            clock[0] = float(second)
            report.update(500 + 10 * second)
        told = capsys.readouterr().err
        assert told == "train: 600 of 1,000 (60%), 10 steps/s, 0:40 left\n"


def test_a_single_report_has_no_rate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console.time, "monotonic", lambda: 7.0)
    with console.progress("evaluate", total=15, unit="queries") as report:
        report.update(15)
    assert capsys.readouterr().err == "evaluate: 15 of 15 (100%), 0:00 elapsed\n"


def test_tables_outside_a_terminal_keep_names_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    long = "a name " * 20
    console.print_table("", ["name", "another"], [[long, long]])
    assert f"│ {long} │ {long} │" in capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "60")
    console.print_table("", ["name", "another"], [[long, long]])
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 60


@pytest.mark.parametrize(("width", "heading"), [(43, "known or predicted"), (34, "predicted")])
def test_headings_are_folded_before_names(
    width: int,
    heading: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [["1", "a long name", "known"], ["2", "日本", "known"]]
    console.print_table("", ["rank", "name", "known or predicted"], rows)
    out = capsys.readouterr().out
    assert f"┃ {heading} ┃" in out
    assert "│ a long name │" in out
    assert {cell_len(line) for line in out.splitlines()} == {width}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_characters_that_the_output_encoding_lacks_are_escaped(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, encoding=encoding))
    console.escape_what_cannot_be_printed()
    name = "8½ 宮崎 ã 🚀"
    console.print_table("", ["name"], [[name]])
    table = content.getvalue().decode(encoding)
    assert "\\u5bae\\u5d0e" in table
    console.print_json({"name": name}, indent=None)
    assert json.loads(content.getvalue().decode(encoding)[len(table) :]) == {"name": name}
    console.print_text(name)


@pytest.mark.parametrize(
    ("rate", "told"), [(37251.4, "37,251"), (1000.4, "1,000"), (21.456, "21.46"), (0.5, "0.5")]
)
def test_rates_are_plain_numbers(rate: float, told: str) -> None:
    assert console._number(rate) == told
