from __future__ import annotations

import json

from typer.testing import CliRunner

from conekg.cli.demo import QUESTIONS
from conekg.cli.main import app


def test_the_demo_answers_its_questions() -> None:
    result = CliRunner().invoke(app, ["demo", "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert [question["query"] for question in told] == [text for _, text in QUESTIONS]
    by_query = {q["query"]: {a["name"] for a in q["answers"]} for q in told}
    assert by_query["Germany.borders & Italy.borders"] == {"Austria", "France", "Switzerland"}
    swiss = by_query["(France.borders & !Euro.^uses_currency).has_province"]
    assert {"Ticino", "Vaud"} <= swiss
    assert len(swiss) == 26
    assert any(not answer["known"] for question in told for answer in question["answers"])


def test_the_demo_reads_well() -> None:
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 0, result.output
    for words, text in QUESTIONS:
        assert words in result.stdout
        assert text in result.stdout
    assert "(held out: to be predicted)" in result.stdout
    assert "entities" in result.stderr
