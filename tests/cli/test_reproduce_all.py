"""The command `conekg reproduce all`: the files it writes, and what it leaves out."""

import json
import re
import shutil
import sys

import pytest
from typer.testing import CliRunner

from conekg.cli.main import app
from conekg.experiments.catalog import EXPERIMENTS
from conekg.sampling.protocol import PRESETS
from conekg.sampling.query_set import save_query_set
from conekg.sampling.sample import sample_query_set
from conekg.training.run import open_run
from untrained_run import untrained_run

FEW = ["--pairs", 4, "--max-queries", 2, "--steps", 1, "--checkpoint", "last", "--seed", 3]
COMPARING = {"dimensions", "emql", "seeds"}


def conekg(*arguments):
    return CliRunner().invoke(app, ["reproduce", *map(str, arguments)])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a graph that has queries of every structure, hardly trained."""
    folder = tmp_path_factory.mktemp("all") / "run"
    small = ["--set=training.steps=1", "--set=model.dim=4", "--set=model.hidden=4"]
    made = CliRunner().invoke(
        app, ["train", "geography", "--recipe=small", f"--out={folder}", *small]
    )
    assert made.exit_code == 0, made.output
    return folder


def results(folder):
    """The result of each experiment, from the index page."""
    rows = re.findall(r"^\| ([a-z-]+) \|.*\| (.*) \|$", (folder / "index.md").read_text(), re.M)
    return {name: result for name, result in rows if name != "experiment"}


def test_every_experiment_of_one_run_is_what_its_own_command_gives(run, tmp_path):
    out = tmp_path / "new" / "all"
    done = conekg("all", run, *FEW, "--out", out)
    assert done.exit_code == 0, done.output
    found = results(out)
    assert list(found) == list(EXPERIMENTS)
    for name, result in found.items():
        if name in COMPARING:
            assert result == "left out: it compares runs, and only one is given"
            assert not list(out.glob(f"{name}*"))
            continue
        for link in re.findall(r"\((.*?)\)", result):
            assert (out / link).exists()
        assert (out / f"{name}.md").read_text().startswith(f"# conekg reproduce {name}\n")
        assert ((out / f"{name}.png").is_file()) == (name != "figures")
    assert len(list((out / "figures").glob("*.png"))) == 4
    for name in ("main-negation", "operators", "membership"):
        taken = {f"--{option.replace('_', '-')}" for option in EXPERIMENTS[name].options}
        own = [
            word
            for pair in zip(FEW[::2], FEW[1::2], strict=True)
            if pair[0] in taken
            for word in pair
        ]
        assert conekg(name, run, *own, "--json", tmp_path / "one.json").exit_code == 0
        assert json.loads((out / f"{name}.json").read_text()) == json.loads(
            (tmp_path / "one.json").read_text()
        )
        title = json.loads((out / f"{name}.json").read_text())["tables"][0]["title"]
        assert title in done.stdout


def test_experiments_that_do_not_apply_to_several_runs_are_left_out_with_a_reason(run, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(run, other)
    done = conekg("all", run, other, *FEW, "--out", tmp_path / "all")
    assert done.exit_code == 0, done.output
    found = results(tmp_path / "all")
    assert (
        found["speed"]
        == "left out: speed takes one RUN: it times every model on that run's queries"
    )
    assert (
        found["seeds"] == "left out: two runs have the same seed: 0, 0; give one run of each seed"
    )
    assert "seeds left out: two runs have the same seed" in done.stderr
    assert found["dimensions"].startswith("[tables]")


def test_results_of_an_earlier_call_do_not_stay_beside_those_of_other_runs(
    run, film_graph, tmp_path, monkeypatch
):
    """The films have no test queries, so most experiments are left out for them."""
    folder = tmp_path / "all"
    assert conekg("all", run, *FEW, "--out", folder).exit_code == 0
    own = {"notes.md": "my own", "seeds.json": "of `conekg reproduce seeds --json`"}
    for name, text in own.items():  # `seeds` compares runs, so the call above left it out
        (folder / name).write_text(text)
    films = untrained_run(tmp_path / "films", film_graph)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    done = conekg("all", films, "--pairs", 4, "--steps", 1, "--out", folder)
    assert done.exit_code == 0, done.output
    found = results(folder)
    linked = {link for result in found.values() for link in re.findall(r"\((.*?)\)", result)}
    assert "operators.md" in linked
    assert "main-epfo.md" not in linked
    assert {path.name for path in folder.iterdir()} == linked | {"index.md", "figures", *own}
    assert {name: (folder / name).read_text() for name in own} == own


def test_given_queries_go_to_the_experiments_that_use_them(run, tmp_path):
    graph = open_run(run).graph
    sampled = sample_query_set(graph, "valid", PRESETS["small"], seed=1, count=3).query_set
    save_query_set(tmp_path / "given.arrow", sampled)
    done = conekg(
        "all", run, *FEW, "--queries", tmp_path / "given.arrow", "--out", tmp_path / "all"
    )
    assert done.exit_code == 0, done.output
    taken = json.loads((tmp_path / "all" / "main-epfo.json").read_text())["options"]
    assert (taken["queries"], taken["split"]) == (str(tmp_path / "given.arrow"), "valid")


def test_without_matplotlib_the_numbers_are_written_anyway(film_graph, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    run = untrained_run(tmp_path / "run", film_graph)
    done = conekg("all", run, "--pairs", 4, "--steps", 1, "--out", tmp_path / "all")
    assert done.exit_code == 0, done.output
    assert "no pictures: pictures need matplotlib" in done.stderr
    found = results(tmp_path / "all")
    assert found["operators"] == "[tables](operators.md), [data](operators.json)"
    assert found["figures"].startswith("left out: pictures need matplotlib")
    assert "no test queries" in found["main-epfo"]


def test_an_interruption_loses_only_the_current_experiment(run, tmp_path, monkeypatch):
    def stop(runs, options):
        raise KeyboardInterrupt

    monkeypatch.setitem(vars(EXPERIMENTS["cardinality"]), "run", stop)
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "index.md").write_text("of an earlier call, which was about other runs")
    assert conekg("all", run, *FEW, "--out", tmp_path / "all").exit_code == 130
    assert (tmp_path / "all" / "main-negation.json").is_file()
    assert not (tmp_path / "all" / "index.md").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["RUN"], "all needs --out FOLDER"),
        (["--out", "OUT"], "all needs at least one RUN"),
        (["RUN", "--out", "OUT", "--markdown", "t.md"], "--markdown is for one experiment"),
        (["RUN", "--out", "RUN/queries/new"], "it is part of the run"),
        (["RUN", "--out", "RUN/run.json"], "cannot make the folder"),
        (["RUN", "--out", "OUT", "--queries", "nowhere"], "nowhere: no such file or folder"),
    ],
)
def test_mistakes_are_reported_before_anything_is_computed(arguments, message, run, tmp_path):
    places = {"RUN": str(run), "OUT": str(tmp_path / "all")}
    words = [re.sub("RUN|OUT", lambda place: places[place[0]], word) for word in arguments]
    done = conekg("all", *words)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert done.stdout == ""
    assert not (run / "queries" / "new").exists()


def test_a_damaged_graph_is_an_error_and_not_a_reason_to_leave_experiments_out(run, tmp_path):
    damaged = tmp_path / "damaged"
    shutil.copytree(run, damaged)
    (damaged / "graph" / "graph.json").write_text("{")
    done = conekg("all", damaged, *FEW, "--out", tmp_path / "all")
    assert done.exit_code == 2
    assert "left out" not in done.stderr
