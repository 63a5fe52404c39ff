import json
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from conekg.cli.main import app

QUESTION = '("South America".^in_subregion & !(Spanish.^speaks | Euro.^uses_currency)).capital'


def run(*arguments):
    return CliRunner().invoke(app, ["explain-query", *arguments])


def explained(question, *options):
    result = run("geography", question, "--json", *options)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_every_notation_of_a_question():
    told = explained(QUESTION)
    assert told["path"] == QUESTION
    assert told["formula"] == (
        '?x: exists y. in_subregion(y, "South America") & !(speaks(y, "Spanish") | '
        'uses_currency(y, "Euro")) & capital(y, ?x)'
    )
    assert ":South%20America" in told["sparql"]
    assert told["tuple"].startswith("(((")
    assert told["shape"] == "(e.r & (!(e.r | e.r))).r"
    assert told["normal_form"] == (
        '("South America".^in_subregion & !Spanish.^speaks & !Euro.^uses_currency).capital'
    )
    assert told["branches"] == [told["normal_form"]]
    assert told["plan"] == [
        "embed 3 entities",
        "project 3 sets",
        "complement 2 sets",
        "intersect 3 sets",
        "project 1 set",
    ]
    assert told["tree"].splitlines()[0] == "via has capital"


@pytest.mark.parametrize("notation", ["path", "formula", "sparql"])
def test_any_notation_may_be_asked_about(notation):
    told = explained("(France.borders & !Euro.^uses_currency).has_province")
    assert explained(told[notation]) == told


def test_text_output_has_all_headings():
    result = run("geography", "France.borders | Spain.borders")
    assert result.exit_code == 0
    headings = [line for line in result.stdout.splitlines() if not line.startswith(" ")]
    assert headings == ["tree:", "path:", "formula:", "sparql:", "tuple:", "shape:",
                        "normal form:", "de morgan form:", "branches:", "plan:"]  # fmt: skip


def test_parts_that_are_too_large_or_have_no_notation_say_why():
    told = explained("(France | Spain.borders) & (Italy | Norway.borders)", "--cap", "3")
    assert told["branches"] == "(this query has 4 union-free branches; at most 3 are allowed)"
    assert told["plan"] == told["branches"]
    assert "no notation" in told["tuple"]
    assert told["path"] == "(France | Spain.borders) & (Italy | Norway.borders)"


def test_repeated_parts_are_computed_once():
    twice = "(France.borders | Spain.borders) & (France.borders | Spain.borders)"
    told, once = explained(twice, "--cap", "2"), explained("France.borders | Spain.borders")
    assert told["path"] == twice
    for heading in ("normal_form", "de_morgan_form", "branches", "plan"):
        assert told[heading] == once[heading]


def test_the_picture_is_written(tmp_path):
    target = tmp_path / "query.svg"
    assert run("geography", QUESTION, "--svg", str(target)).exit_code == 0
    assert ElementTree.parse(target).getroot().tag.endswith("svg")
    failed = run("geography", QUESTION, "--svg", str(tmp_path / "no" / "such.svg"))
    assert failed.exit_code == 2
    assert "cannot write" in failed.stderr


def test_a_misspelt_name_is_shown_with_a_guess():
    result = run("geography", "Frnce.borders")
    assert result.exit_code == 2
    assert "unknown entity 'Frnce' at column 1" in result.stderr
    assert "did you mean 'France'" in result.stderr


def test_a_swapped_graph_and_question_are_pointed_out():
    result = run("France.borders", "geography")
    assert result.exit_code == 2
    assert "no graph, folder or file named 'France.borders'" in result.stderr
    assert (
        "the two arguments are swapped: `conekg explain-query geography France.borders`"
        in result.stderr
    )
    assert "swapped" not in run("Frnce.tsv", "France.borders").stderr
