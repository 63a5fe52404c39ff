import json

from rich.console import Console

from conekg.evaluation.metrics import AVERAGES, Metrics
from conekg.evaluation.report import Report, StructureResult, column_order, comparison_markdown


def report(**changes):
    structures = (
        StructureResult("2in", 3, 0, None, "box has no negation"),
        StructureResult("2p", 20, 50, Metrics(0.25, 0.1, 0.3, 0.5)),
        StructureResult("1p", 10, 15, Metrics(0.5, 0.4, 0.6, 0.8)),
        StructureResult("(e.r & e.r).r.r", 5, 9, Metrics(0.1, 0.0, 0.1, 0.2)),
    )
    values = {
        "model": "box",
        "split": "test",
        "ties": "mean",
        "union": "dnf",
        "seconds": 1.0,
        "structures": structures,
    }
    return Report(**values | changes)


def test_averages_and_order_are_the_papers():
    assert list(report().measured) == ["1p", "2p", "(e.r & e.r).r.r"]
    assert report().averages["avg_p"].mrr == 0.375
    assert "avg_n" not in report().averages
    assert report().mean("mrr") == (0.5 + 0.25 + 0.1) / 3
    assert report().row("hits_at_10")["2p"] == 50.0
    assert report(structures=()).mean() == 0.0


def test_a_de_morgan_form_does_not_count_beside_its_union():
    link, union, form = (
        StructureResult(name, 4, 6, Metrics(mrr, 0.0, 0.1, 0.2))
        for name, mrr in (("1p", 0.5), ("2u", 0.25), ("2u-DM", 0.1))
    )
    assert report(structures=(link, union, form)).mean() == (0.5 + 0.25) / 2
    assert report(structures=(link, form)).mean() == (0.5 + 0.1) / 2


def test_json_holds_every_number_and_the_reasons():
    content = json.loads(json.dumps(report().to_json()))
    assert content["ties"] == "mean"
    assert content["structures"]["1p"] == {
        "queries": 10,
        "hard_answers": 15,
        "mrr": 0.5,
        "hits_at_1": 0.4,
        "hits_at_3": 0.6,
        "hits_at_10": 0.8,
    }
    assert content["structures"]["2in"]["reason"] == "box has no negation"
    assert content["averages"]["avg_p"]["structures"] == ["1p", "2p"]


def test_markdown_can_stand_beside_the_papers_rows():
    text = report().to_markdown({"paper": {"avg_p": 40.0, "1p": 55.5, "avg_n": 5.0, "2in": 7.0}})
    assert "| MRR, percent | avg_p | 1p | 2p | avg_n | 2in | (e.r & e.r).r.r |" in text
    assert "| box, percent | avg_p |" in text
    assert "| MRR |" not in text
    assert "| Hits@1 | 25.0 | 40.0 | 10.0 | 0.0 |" in text
    assert "| Hits@10 | 65.0 | 80.0 | 50.0 | 20.0 |" in text
    assert "| number | 1p |" in text
    assert "| box | 37.5 | 50.0 | 25.0 | – | – | 10.0 |" in text
    assert "| paper | 40.0 | 55.5 | – | 5.0 | 7.0 | – |" in text
    assert "| queries | 10 | 20 | 3 | 5 |" in text
    assert "mean rank" in text
    assert "avg_p is over 2 of 9 structures" in text
    assert "Not answered: 2in (box has no negation)" in text


def test_notes_about_the_run_are_at_the_end():
    about = ("Of the run a[b].", "Of one graph.")
    text = report().to_markdown(about=about)
    assert text.endswith("- Of the run a[b].\n- Of one graph.\n")


def test_an_average_without_one_of_its_structures_says_so():
    names = AVERAGES["avg_p"]
    results = [StructureResult(name, 1, 1, Metrics(0.5, 0.5, 0.5, 0.5)) for name in names]
    assert not any("avg_p" in note for note in report(structures=tuple(results)).notes())
    assert "avg_p is over 8 of 9 structures." in report(structures=tuple(results[1:])).notes()


def test_bars_of_unions_are_escaped_in_cells():
    text = comparison_markdown({"a|b": {"1p": 2.0, "(e.r | e.r).r.r": 1.0}})
    heading, rule, row = text.splitlines()
    assert heading == r"| | 1p | (e.r \| e.r).r.r |"
    assert rule == "|---|---|---|"
    assert row == r"| a\|b | 2.0 | 1.0 |"


def test_the_table_shows_counts_policy_and_what_was_not_answered():
    console = Console(width=160, record=True)
    with console.capture() as capture:
        console.print(report().to_table({"paper": {"1p": 55.5}}))
    text = capture.get()
    for part in ("mean rank", "box has no negation", "avg_p is over 2 of 9 structures"):
        assert part in " ".join(text.split())
    rows = [line.replace("│", " ").replace("┃", " ").split() for line in text.splitlines()]
    rows = [row for row in rows if len(row) >= 6]
    assert ["structure", "queries", "hard", "MRR", "Hits@1", "Hits@3", "Hits@10", "paper"] in rows
    assert ["1p", "10", "15", "50.0", "40.0", "60.0", "80.0", "55.5"] in rows
    assert ["2in", "3", "0", "–", "–", "–", "–", "–"] in rows
    assert ["avg_p", "37.5", "25.0", "45.0", "65.0", "–"] in rows
    assert "box on test queries (filtered, percent)" in text
    assert text.index("1p") < text.index("2p") < text.index("2in") < text.index("avg_p")


def test_a_table_without_other_rows_has_no_other_columns():
    titles = [column.header for column in report().to_table().columns]
    assert titles == ["structure", "queries", "hard", "MRR", "Hits@1", "Hits@3", "Hits@10"]


def test_columns_are_in_the_order_of_the_paper_and_others_last():
    assert column_order(["up-DM", "2u-DM", "pni"]) == ["pni", "2u-DM", "up-DM"]
    assert column_order(["pni", "x", "1p", "avg_n", "avg_p"]) == [
        "avg_p",
        "1p",
        "avg_n",
        "pni",
        "x",
    ]
    assert comparison_markdown({"a": {"1p": 1.25}}, digits=2).endswith("| a | 1.25 |")
