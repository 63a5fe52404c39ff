from __future__ import annotations

import json
from dataclasses import replace

from typer.testing import CliRunner

from conekg.answering import stages
from conekg.cli.demo import ASKED, QUESTIONS
from conekg.cli.main import app
from conekg.graph.geography import load_geography
from conekg.model.cone import ConeConfig
from conekg.query.parse import parse_query
from conekg.query.shape import STRUCTURES
from conekg.query.tree import has_negation, has_union
from conekg.sampling.protocol import PRESETS
from conekg.symbolic.engine import answer
from conekg.training import recipes
from conekg.training.loop import Outcome
from conekg.training.recipe import TrainingRecipe

TINY = ConeConfig(dim=4, gamma=8.0, hidden=4)
FEW = replace(
    PRESETS["small"],
    train_count=20,
    train_negation_count=10,
    evaluation_count=5,
    trained=tuple(STRUCTURES[name] for name in ("1p", "2i", "2in")),
    evaluated=tuple(STRUCTURES[name] for name in ("2p", "2in")),
)
ONE_STEP = TrainingRecipe(steps=1, batch_size=16, negatives=2, validate_queries=1)


def test_the_demo_answers_its_questions() -> None:
    result = CliRunner().invoke(app, ["demo", "--exact", "--json"])
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
    result = CliRunner().invoke(app, ["demo", "--exact"])
    assert result.exit_code == 0, result.output
    for words, text in QUESTIONS:
        assert words in result.stdout
        assert text in result.stdout
    assert "(held out: to be predicted)" in result.stdout
    assert "entities" in result.stderr


def test_exact_answers_write_no_run() -> None:
    result = CliRunner().invoke(app, ["demo", "--exact", "--out", "somewhere"])
    assert result.exit_code == 2
    assert "--exact trains nothing" in " ".join(result.stderr.split())


def test_json_is_for_exact_answers_only() -> None:
    result = CliRunner().invoke(app, ["demo", "--json"])
    assert result.exit_code == 2
    assert "--exact" in result.stderr


def test_what_the_model_is_asked_can_be_answered() -> None:
    """Each question parses, and one has a negation, one a union."""
    graph = load_geography()
    queries = [parse_query(text, graph.vocabulary) for _, text in ASKED]
    assert all(len(answer(graph.adjacency("test"), query)) for query in queries)
    assert any(map(has_negation, queries))
    assert any(map(has_union, queries))


def test_the_demo_fits_once_and_asks_three_questions(tmp_path, monkeypatch) -> None:
    run = tmp_path / "demo run"
    monkeypatch.setattr(recipes, "_small", lambda model: (TINY, ONE_STEP))
    monkeypatch.setitem(PRESETS, "small", FEW)
    first = CliRunner().invoke(app, ["demo", "--out", str(run)])
    assert first.exit_code == 0, first.output
    for words, text in ASKED:
        assert words in first.stdout
        assert f"$ conekg ask '{run}' '{text}' --top-k" in first.stdout
    assert first.stdout.count("known or predicted") == 3
    weights = next((run / "checkpoints" / "last").glob("parameters-*")).stat().st_mtime_ns
    second = CliRunner().invoke(app, ["demo", "--out", str(run)])
    assert second.exit_code == 0, second.output
    assert "already exists and is used; remove it to train again" in second.stderr
    assert next((run / "checkpoints" / "last").glob("parameters-*")).stat().st_mtime_ns == weights


def test_the_demo_refuses_a_run_of_another_graph(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(recipes, "_small", lambda model: (TINY, ONE_STEP))
    monkeypatch.setitem(PRESETS, "small", FEW)
    facts, run = tmp_path / "facts.tsv", tmp_path / "run"
    facts.write_text("".join(f"a{i}\tr\ta{j}\n" for i in range(6) for j in range(6)))
    assert CliRunner().invoke(app, ["fit", str(facts), "--out", str(run)]).exit_code == 0
    refused = CliRunner().invoke(app, ["demo", "--out", str(run)])
    assert refused.exit_code == 2
    assert "was started on another graph than geography" in refused.stderr
    assert "remove it" not in refused.stderr


def test_an_interrupted_demo_asks_nothing(tmp_path, monkeypatch) -> None:
    def stop(*_: object, **__: object) -> Outcome:
        return Outcome(3, False, "interrupted", 1.0, None)

    monkeypatch.setattr(recipes, "_small", lambda model: (TINY, ONE_STEP))
    monkeypatch.setitem(PRESETS, "small", FEW)
    monkeypatch.setattr(stages, "train", stop)
    stopped = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "run")])
    assert stopped.exit_code == 130
    assert "stopped after 3 steps" in stopped.stderr
    assert stopped.stdout == ""
