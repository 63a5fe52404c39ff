"""The search for recipes: its trials, their parts, and mistakes found before the first trial."""

import argparse
import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import search_recipe

from conekg.errors import ConfigError
from conekg.graph.store import save_graph
from conekg.sampling.query_set import save_query_set
from conekg.training.recipe_change import change_recipe
from conekg.training.recipe_file import dump_recipe
from conekg.training.recipes import find_recipe
from tiny import CONFIGS, tiny_graph, tiny_queries

TRIAL_FILES = sorted((BENCHMARKS / "recipe_trials").glob("*.toml"))
SHARED = ["training.steps=2", "training.batch_size=16", "training.negatives=3"]


def write_trials(path, *trials, shared=tuple(SHARED)):
    lines = [f"shared = {json.dumps(shared)}"]
    for name, settings in trials:
        lines += ["[[trial]]", f"name = {json.dumps(name)}", f"set = {json.dumps(settings)}"]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """A function that runs a file of trials and returns (exit code, rows written, messages)."""
    save_graph(tiny_graph(), tmp_path / "graph")
    (tmp_path / "queries").mkdir()
    for split, queries in tiny_queries().items():
        save_query_set(tmp_path / "queries" / f"{split}.arrow", queries)
    out = tmp_path / "found.jsonl"

    def search(trials, *options, out=out):
        command = ["search_recipe.py", str(tmp_path / "graph"), "--queries"]
        command += [str(tmp_path / "queries"), "--trials", str(trials), "--out", str(out)]
        monkeypatch.setattr(sys, "argv", [*command, "--recipe", "small", *options])
        try:
            code = search_recipe.main()
        except SystemExit as ended:
            code = ended.code
        rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
        return code, rows, capsys.readouterr().err

    return search


@pytest.mark.parametrize("model", ["gqe", "emql"])
def test_every_trial_writes_a_row(tmp_path, run, model):
    settings = [f"model.dim={CONFIGS[model]['dim']}"]
    shared = SHARED if model == "gqe" else SHARED[:2]
    trials = write_trials(
        tmp_path / "t.toml",
        ("plain", settings),
        ("linear", [*settings, "training.decay=linear", "training.drops_at=[]"]),
        shared=shared,
    )
    code, rows, _ = run(trials, "--model", model, "--max-queries", "2")
    assert code == 0
    assert [row["trial"] for row in rows] == ["plain", "linear"]
    assert all(row["steps"] == 2 and row["avg_p"] > 0 for row in rows)


def test_every_trial_is_in_exactly_one_part():
    trials = list(range(7))
    for count in (1, 2, 3, 9):
        parts = [trials[search_recipe.part(f"{i + 1}/{count}")] for i in range(count)]
        assert sorted(trial for each in parts for trial in each) == trials


@pytest.mark.parametrize("text", ["", "2", "0/2", "3/2", "1/0", "-1/2", "a/b", "1/2/3", "1.5/2"])
def test_other_texts_than_parts_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="i/n"):
        search_recipe.part(text)


def test_a_bad_setting_of_a_late_trial_is_refused_before_the_first(tmp_path, run):
    trials = write_trials(tmp_path / "t.toml", ("good", []), ("bad", ["training.stepz=3"]))
    code, rows, messages = run(trials, "--model", "gqe")
    assert (code, rows) == (2, [])
    assert "training.stepz" in messages


def test_missing_files_and_folders_are_named(tmp_path, run):
    trials = write_trials(tmp_path / "t.toml", ("good", []))
    assert run(tmp_path / "nowhere.toml")[0] == 2
    code, _, messages = run(trials, out=tmp_path / "no folder" / "found.jsonl")
    assert code == 2
    assert "no folder" in messages
    code, _, messages = run(trials, "--part", "3/2")
    assert code == 2
    assert "3/2" in messages
    trials.write_text('[[trial]]\nname = "four times"\nqueries = "x4"\n')
    code, rows, messages = run(trials, "--model", "gqe")
    assert (code, rows) == (2, [])
    assert "x4.arrow" in messages


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("shared = []", "no \\[\\[trial\\]\\]"),
        ("[[trial]]\nset = []", "no name"),
        ('[[trial]]\nname = "a"\nsets = []', "sets"),
        ('trials = [{name = "a"}]', "trials"),
        ("[[trial", "not TOML"),
        ("trial = [3]", "3 is no"),
        ('[[trial]]\nname = "a"\nset = [3]', "no list of settings"),
        ('shared = "training.steps=3"\n[[trial]]\nname = "a"', "no list of settings"),
    ],
)
def test_a_file_that_does_not_list_trials_is_refused(tmp_path, text, complaint):
    path = tmp_path / "t.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint):
        search_recipe.read_trials(path)


@pytest.mark.parametrize("path", TRIAL_FILES, ids=lambda path: path.name)
def test_the_files_of_trials_still_change_the_recipe(path):
    recipes = [
        change_recipe(find_recipe("paper", "cone", "FB15k-237"), {}, trial.settings)
        for trial in search_recipe.read_trials(path)
    ]
    assert len(set(map(dump_recipe, recipes))) >= len(recipes) / 2, "trials differ"
