"""The comparison of models: which kept runs it uses again, and what its page says of the rows."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import compare_models

from conekg.errors import ConfigError
from conekg.evaluation.metrics import Metrics
from conekg.evaluation.report import Report, StructureResult
from tiny import tiny_graph, tiny_queries


@pytest.fixture(scope="module")
def queries():
    return tiny_queries()


def report(mrr):
    """A report with these values of MRR, by structure; 0 for the other metrics."""
    structures = tuple(
        StructureResult(name, 10, 20, Metrics(value, 0.0, 0.0, 0.0)) for name, value in mrr.items()
    )
    return Report("any", "test", "mean", "dnf", 1.0, structures)


def test_a_run_is_used_again_only_with_the_same_recipe_and_queries(tmp_path, queries):
    def opened(entrant=compare_models.ENTRANTS["gqe"], seed=0, queries=queries):
        return compare_models.open_or_start(tmp_path / "run", tiny_graph(), queries, entrant, seed)

    assert opened().recipe.model == "gqe"
    assert opened().folder == tmp_path / "run"
    others = {split: replace(own, seed=7) for split, own in queries.items()}
    settings = replace(compare_models.ENTRANTS["gqe"], settings=("model.dim=16",))
    for change in ({"queries": others}, {"seed": 3}, {"entrant": settings}):
        with pytest.raises(ConfigError, match="give --out another folder"):
            opened(**change)


def test_the_page_names_the_rows_that_are_not_ahead_of_the_baseline():
    baseline = report({"1p": 0.2, "2p": 0.1, "2in": 0.1})
    mrr = {
        "cone": [{"1p": 0.5, "2p": 0.4, "2in": 0.3}, {"1p": 0.5, "2p": 0.1, "2in": 0.3}],
        "gqe": [{"1p": 0.3, "2p": 0.3}],
        "beta": [{"1p": 0.9, "2p": 0.9, "2in": 0.1}],
    }
    results = {
        name: compare_models.Result("dim = 8", [report(row) for row in rows], [1.0] * len(rows))
        for name, rows in mrr.items()
    }
    assert compare_models.behind_baseline(results["cone"], baseline) == ["2p"]
    seeds = {name: range(len(rows)) for name, rows in mrr.items()}
    page = compare_models.describe(results, baseline, seeds, 7)
    assert "Not ahead of *frequency* on every structure: ConE; BetaE.\n" in page
    assert "published projection" not in page, "there is no row of it"
    page = compare_models.describe({"gqe": results["gqe"]}, baseline, {"gqe": [0]}, 7)
    assert "Not ahead of *frequency* on every structure: none.\n" in page


def test_the_text_of_the_page_is_that_of_the_script():
    page = compare_models.PAGE.read_text(encoding="utf-8")
    told = {
        name: report({"1p": 0.1 if name in ("cone-published", "beta") else 0.3})
        for name in compare_models.ENTRANTS
    }
    results = {name: compare_models.Result("", [own], [1.0]) for name, own in told.items()}
    seeds = {name: [0, 1, 2] if name == "cone" else [0] for name in told}
    made = compare_models.describe(results, report({"1p": 0.2}), seeds, compare_models.QUERY_SEED)
    assert page.partition("\nMRR:\n")[0] == made.partition("\nMRR:\n")[0]


def test_a_folder_of_other_runs_ends_the_command(tmp_path, queries, monkeypatch, capsys):
    monkeypatch.setattr(compare_models, "load_geography", tiny_graph)
    monkeypatch.setattr(compare_models, "sample_queries", lambda *_: queries)
    entrant = compare_models.ENTRANTS["gqe"]
    others = {split: replace(own, seed=7) for split, own in queries.items()}
    compare_models.open_or_start(tmp_path / "gqe-0", tiny_graph(), others, entrant, 0)
    page = tmp_path / "page.md"
    command = ["compare_models.py", "--models", "gqe", "--out", str(tmp_path), "--page", str(page)]
    monkeypatch.setattr(sys, "argv", command)
    assert compare_models.main() == 2
    assert "queries of another seed" in capsys.readouterr().err
    assert not page.exists()
