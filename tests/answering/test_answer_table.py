"""What `print` and notebooks show for answers and explanations."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest

from conekg.answering.answer import Answer, RankedAnswer
from conekg.answering.explanation import Edge, EntityName, Explanation, Part, Witness

FIRST = RankedAnswer(1, 4, "/m/4", "Euro", 2.754, 0.6129, False, False, True)
SECOND = RankedAnswer(2, 12, "/m/12", "Swiss Franc", -11.5, None, True, False, None)
ANSWER = Answer(
    query="Bonn.r",
    reading="currencies <& more> of Bonn",
    answers=(FIRST, SECOND),
    num_known=1,
    num_contradicted=0,
    estimated_count=None,
    estimated_count_factor=None,
    calibration_error=None,
    known_graph="train",
    recall=1.0,
    model="cone",
    seconds=0.1,
)


def test_an_answer_prints_as_a_table() -> None:
    assert str(ANSWER) == (
        "currencies <& more> of Bonn\n"
        "  rank  name          score  probability  known or predicted  inside\n"
        "     1  Euro           2.75        61.3%  predicted           yes\n"
        "     2  Swiss Franc  -11.50            –  known               –"
    )


def test_answers_with_the_same_label_show_their_names() -> None:
    shown = str(replace(ANSWER, answers=(FIRST, replace(SECOND, label="Euro"))))
    assert "Euro (/m/4)" in shown
    assert "Euro (/m/12)" in shown


def test_a_name_stays_on_its_line() -> None:
    shown = str(replace(ANSWER, answers=(replace(FIRST, label="a\nb\x1b[2J\u2028c"),)))
    assert len(shown.splitlines()) == 3
    assert r"a\nb\x1b[2J\u2028c" in shown


def test_a_table_without_answers_says_so() -> None:
    nothing = replace(ANSWER, answers=())
    assert str(nothing).endswith("\n  no entity is left to answer with")
    _, row = ElementTree.fromstring(nothing._repr_html_()).iter("tr")
    assert [(cell.text, cell.get("colspan")) for cell in row] == [
        ("no entity is left to answer with", "6")
    ]


def test_a_notebook_gets_the_same_cells_as_html() -> None:
    answers = (replace(FIRST, label="<b>&co"), SECOND)
    table = ElementTree.fromstring(replace(ANSWER, answers=answers)._repr_html_())
    assert table.findtext("caption") == "currencies <& more> of Bonn"
    heading, first, second = ([cell.text for cell in row] for row in table.iter("tr"))
    assert heading == ["rank", "name", "score", "probability", "known or predicted", "inside"]
    assert first == ["1", "<b>&co", "2.75", "61.3%", "predicted", "yes"]
    assert second == ["2", "Swiss Franc", "-11.50", "–", "known", "–"]


@pytest.mark.parametrize(
    ("known", "contradicted", "standing"),
    [(True, False, "known"), (False, False, "predicted"), (False, True, "contradicted")],
)
def test_an_answer_has_one_standing(known: bool, contradicted: bool, standing: str) -> None:
    assert replace(FIRST, known=known, contradicted=contradicted).standing == standing


def test_an_explanation_prints_its_paths() -> None:
    bonn, euro = EntityName(0, "/m/0", "Bonn"), EntityName(4, "/m/4", "Euro")
    edge = Edge(bonn, "^p", "^used in", euro, "guess", 0.871, None, "answer")
    hop = Part("Bonn.^p", "used in Bonn", "guess", 0.871)
    denied = Part("!a", "not a", "absent", 1.0)
    ruled_out = Part("!b", "not b", "contradicted", -2.0)
    witness = Witness(FIRST, (edge,), {}, (hop, denied, ruled_out), hop, False)
    assert str(Explanation("Bonn.^p", "things used in Bonn", (), (witness,))) == (
        "things used in Bonn\n"
        "1. Euro\n"
        "  guess  Bonn –^used in→ Euro  (0.87)\n"
        "  no fact against: not a  (1.00)\n"
        "  a fact against: not b  (-2.00)"
    )
