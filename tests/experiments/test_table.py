from dataclasses import replace
from io import StringIO

from rich.console import Console

from conekg.experiments.table import Row, Table, common_notes, difference, tables_markdown

TABLE = Table(
    title="Numbers",
    columns=("1p", "AVG"),
    rows=(
        Row("ours", {"1p": 3.14159, "AVG": 2.0}),
        Row("theirs", {"1p": 2.5}, "paper"),
        Row("near", {"1p": False, "AVG": True}, "comparison"),
    ),
    paper="table:epfo_results",
    unit="percent",
    notes=("Measured by hand.",),
)


def test_markdown_has_every_cell_and_note():
    assert TABLE.to_markdown().splitlines() == [
        "## Numbers",
        "",
        "percent; the paper's Table 1 (`table:epfo_results`).",
        "",
        "| | 1p | AVG |",
        "|---|---|---|",
        "| ours | 3.1 | 2.0 |",
        "| theirs | 2.5 | – |",
        "| near | no | yes |",
        "",
        "- Measured by hand.",
    ]
    assert tables_markdown("page", [TABLE, TABLE]).count("## Numbers") == 2


def test_shared_notes_are_shown_once():
    first = replace(TABLE, notes=("Shared.", "Of the first.", "Also shared."))
    second = replace(TABLE, title="Others", notes=("Shared.", "Also shared.", "Of the second."))
    assert common_notes([first, second]) == ("Shared.", "Also shared.")
    assert common_notes([first]) == (), "a single table has its own notes"
    page = tables_markdown("page", [first, second])
    assert [line for line in page.splitlines() if line.startswith(("-", "Both", "## "))] == [
        "## Numbers",
        "- Of the first.",
        "## Others",
        "- Of the second.",
        "Both tables:",
        "- Shared.",
        "- Also shared.",
    ]
    third = replace(first, notes=("Shared.",))
    assert common_notes([first, second, third]) == ("Shared.",)
    assert not first.to_markdown(first.notes).endswith("\n\n"), "no list where nothing is left"
    assert "All tables:\n\n- Shared.\n" in tables_markdown("page", [first, second, third])


def test_counts_and_small_numbers_stay_what_they_are():
    table = replace(
        TABLE, columns=("a", "b", "c"), rows=(Row("x", {"a": 12345, "b": 4e-5, "c": 0.0}),)
    )
    assert "| x | 12,345 | 4e-05 | 0.0 |" in table.to_markdown()
    near = replace(table, rows=(Row("x", {"a": 0.049, "b": 0.051, "c": -0.049}),))
    assert "| x | 0.049 | 0.1 | -0.049 |" in near.to_markdown()
    apart = Row("x − paper", {"a": -4e-5, "b": 4e-5, "c": -0.06}, "comparison")
    assert "| x − paper | 0.0 | 0.0 | -0.1 |" in replace(table, rows=(apart,)).to_markdown()


def test_json_is_unrounded():
    content = TABLE.to_json()
    assert content["rows"][0] == {
        "label": "ours",
        "kind": "ours",
        "values": {"1p": 3.14159, "AVG": 2.0},
    }
    assert content["notes"] == ["Measured by hand."]
    assert (content["paper"], content["place"]) == ("table:epfo_results", "Table 1")
    several = replace(TABLE, paper="subfig:cones, fig:models")
    assert several.to_json()["place"] == "Figure 1b, Figure 2"


def test_terminal_shows_the_same():
    shown = StringIO()
    Console(width=80, file=shown).print(TABLE.to_rich())
    text = " ".join(shown.getvalue().split())
    for part in ("Numbers (percent; the paper's Table 1)", "3.1", "–", "yes"):
        assert part in text
    again = replace(TABLE, rows=(TABLE.rows[0], *TABLE.rows))
    assert [row.end_section for row in again.to_rich().rows] == [False, True, True, False]


def test_a_row_is_found_by_its_label():
    assert TABLE.row("theirs") is TABLE.rows[1]


def test_names_are_shown_as_they_are():
    """A folder's name is no terminal markup, and no column of a Markdown table."""
    table = replace(TABLE, title="of run[b]", rows=(Row("ConE (a[red]|b)", {"1p": 1.0}),))
    shown = StringIO()
    Console(width=80, file=shown).print(table.to_rich())
    assert "of run[b] (percent; the paper's Table 1)" in " ".join(shown.getvalue().split())
    assert "ConE (a[red]|b)" in shown.getvalue()
    assert r"| ConE (a[red]\|b) | 1.0 | – |" in table.to_markdown()


def test_differences_are_of_common_columns():
    assert difference({"1p": 3.0, "2p": 1.0}, {"1p": 2.5, "3p": 9.0}) == {"1p": 0.5}
