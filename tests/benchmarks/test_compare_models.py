"""The comparison of models: runs that are kept are of what the page says they are."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import compare_models

from conekg.errors import ConfigError
from tiny import tiny_graph, tiny_queries


@pytest.fixture(scope="module")
def queries():
    return tiny_queries()


def test_a_run_is_used_again_only_for_what_it_was_made_of(tmp_path, queries):
    def opened(entrant=compare_models.ENTRANTS["gqe"], seed=0, queries=queries):
        return compare_models.open_or_start(tmp_path / "run", tiny_graph(), queries, entrant, seed)

    assert opened().recipe.model == "gqe"
    assert opened().folder == tmp_path / "run"
    others = {split: replace(own, seed=7) for split, own in queries.items()}
    settings = replace(compare_models.ENTRANTS["gqe"], settings=("model.dim=16",))
    for change in ({"queries": others}, {"seed": 3}, {"entrant": settings}):
        with pytest.raises(ConfigError, match="give --out another folder"):
            opened(**change)


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
    assert "of queries of another seed" in capsys.readouterr().err
    assert not page.exists()
