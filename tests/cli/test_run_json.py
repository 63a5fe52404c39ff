"""`conekg fit --json` and `conekg train --json`: one document, however the command ends."""

import json
import shlex
import signal

import pytest
from typer.testing import CliRunner

from conekg.answering import fit
from conekg.cli.main import app
from conekg.experiments.experiment import Experiment
from conekg.graph.store import save_graph
from conekg.sampling.protocol import PRESETS
from conekg.training import loop
from conekg.training.run import open_run
from conekg.training.tracking import read_metrics
from conekg.version import VERSION
from tiny import FEW, SETTINGS, tiny_graph

SMALL = [f"--set={each}" for each in SETTINGS]
STEPS = 3


def conekg(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return save_graph(tiny_graph(), tmp_path_factory.mktemp("graphs") / "tiny")


@pytest.fixture(autouse=True, scope="module")
def few_queries():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "small", FEW)
        yield


@pytest.fixture(scope="module")
def fitted(graph, tmp_path_factory):
    """A finished fit: its folder and the document."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    result = conekg("fit", graph, "--out", folder, "--json", *SMALL)
    assert result.exit_code == 0, result.output
    assert "trained 3 steps" in result.stderr
    return folder, json.loads(result.stdout)


def validations(folder):
    """By step, what the validations after it measured."""
    lines = [line for line in read_metrics(folder) if line.pop("kind") == "valid"]
    return {line.pop("step"): line for line in lines}


def test_a_fit_tells_a_script_what_it_made(fitted):
    folder, told = fitted
    assert (told["conekg"], told["folder"]) == (VERSION, str(folder))
    assert (told["finished"], told["reason"], told["step"]) == (True, "finished", STEPS)
    assert told["continue_with"] is None
    assert told["device"] in ("cpu", "cuda")
    assert 0 < told["seconds"] < 600
    info = json.loads((folder / "run.json").read_text())
    for key in ("model", "recipe", "seed", "graph"):
        assert told["run"][key] == info[key]
    assert told["run"]["steps"] == STEPS
    assert told["run"]["settings"]["training"]["batch_size"] == 16
    for which, told_of in told["checkpoints"].items():
        manifest = json.loads((folder / "checkpoints" / which / "checkpoint.json").read_text())
        assert told_of["step"] == manifest["step"]
        assert told_of["seconds"] == pytest.approx(manifest["seconds"], abs=1e-3)
        assert told_of["validation"] == validations(folder)[manifest["step"]]
    assert told["checkpoints"]["best"]["validation"]["mrr_1p"] > 0


def test_a_checkpoint_is_told_with_the_validation_after_its_own_step(graph, tmp_path):
    """Where several were: the best checkpoint is not the last."""
    often = ["--set=training.validate_every=1", "--set=training.checkpoint_every=1"]
    folder = tmp_path / "run"
    result = conekg("train", graph, "--out", folder, "--json", *SMALL, *often)
    told = json.loads(result.stdout)["checkpoints"]
    assert len(validations(folder)) == STEPS
    assert len({json.dumps(each) for each in validations(folder).values()}) == STEPS
    for which in ("best", "last"):
        assert told[which]["validation"] == validations(folder)[told[which]["step"]]


def test_the_measurements_of_a_fit_are_those_of_its_files(fitted):
    folder, told = fitted
    kept = json.loads((folder / "evaluation.json").read_text())
    assert told["test"] == kept["model"]
    assert told["baseline"] == kept["baseline"]
    assert told["below_baseline"] == kept["below_baseline"] != []
    again = json.loads(conekg("calibrate", folder, "--json").stdout)
    assert told["calibration"] == again
    assert again["queries"] > 0


def test_a_fit_without_held_out_facts_measures_nothing(tmp_path):
    facts = [f"a{n}\tknows\ta{(n * 7 + 3) % 20}\na{n}\tlikes\tb{n % 4}" for n in range(20)]
    (tmp_path / "facts.tsv").write_text("\n".join(facts))
    words = ("--out", tmp_path / "graph", "--valid-share", 0, "--test-share", 0)
    assert conekg("graph", "build", tmp_path / "facts.tsv", *words).exit_code == 0
    result = conekg("fit", tmp_path / "graph", "--out", tmp_path / "run", "--json", *SMALL)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["finished"]
    assert told["test"]["averages"] == {}
    assert told["below_baseline"] == []
    assert told["calibration"] is None


@pytest.mark.parametrize("command", ["fit", "train"])
def test_a_limited_training_says_how_far_it_is_and_is_continued(graph, tmp_path, command):
    limited = conekg(
        command, graph, "--out", tmp_path / "the run", "--json", "--max-minutes", 0, *SMALL
    )
    assert limited.exit_code == 0, limited.output
    told = json.loads(limited.stdout)
    assert (told["finished"], told["reason"], told["step"]) == (False, "time is up", 1)
    assert told["checkpoints"]["best"] is None
    assert told["checkpoints"]["last"]["step"] == 1
    assert told["checkpoints"]["last"]["validation"] is None
    assert told["continue_with"] in " ".join(limited.stderr.split())
    if command == "fit":
        for key in ("test", "baseline", "below_baseline", "calibration"):
            assert told[key] is None
    continued = conekg(*shlex.split(told["continue_with"])[1:])
    assert continued.exit_code == 0, continued.output
    after = json.loads(continued.stdout)
    assert (after["finished"], after["step"], after["continue_with"]) == (True, STEPS, None)
    assert after["seconds"] > told["seconds"]


def interrupt(*_, **__):
    signal.raise_signal(signal.SIGINT)
    raise AssertionError("a signal ends it")


@pytest.mark.usefixtures("usual_ctrl_c")
@pytest.mark.parametrize("command", ["fit", "train"])
def test_an_interrupted_training_gives_the_document_and_exit_code_130(
    graph, tmp_path, monkeypatch, command
):
    """Ctrl-C during training steps: the training loop itself saves and stops."""

    def learning_rate(recipe, at, usual=loop.learning_rate_at):
        if at == 1:
            signal.raise_signal(signal.SIGINT)
        return usual(recipe, at)

    monkeypatch.setattr(loop, "learning_rate_at", learning_rate)
    stopped = conekg(command, graph, "--out", tmp_path / "run", "--json", *SMALL)
    assert stopped.exit_code == 130
    told = json.loads(stopped.stdout)
    assert (told["finished"], told["reason"], told["step"]) == (False, "interrupted", 2)
    assert told["continue_with"].endswith(f"--resume --out {tmp_path / 'run'} --json")


@pytest.mark.usefixtures("usual_ctrl_c")
@pytest.mark.parametrize("stage", ["sample_queries", "evaluate_run"])
def test_a_fit_interrupted_outside_training_gives_the_document(graph, tmp_path, monkeypatch, stage):
    monkeypatch.setattr(fit, stage, interrupt)
    stopped = conekg("fit", graph, "--out", tmp_path / "run", "--json", *SMALL)
    assert stopped.exit_code == 130
    told = json.loads(stopped.stdout)
    assert (told["finished"], told["reason"]) == (False, "interrupted")
    assert told["folder"] == str(tmp_path / "run")
    for key in ("test", "baseline", "below_baseline", "calibration"):
        assert told[key] is None
    if stage == "sample_queries":
        assert (told["run"], told["step"], told["seconds"]) == (None, 0, 0)
        assert told["checkpoints"] == {"best": None, "last": None}
        assert told["continue_with"] is None
    else:
        assert told["step"] == told["checkpoints"]["last"]["step"] == STEPS
        assert told["seconds"] == told["checkpoints"]["last"]["seconds"] > 0
        assert told["run"]["model"] == "cone"
        assert told["continue_with"] in " ".join(stopped.stderr.split())


@pytest.mark.usefixtures("usual_ctrl_c")
def test_a_fit_interrupted_while_it_reads_the_graph_again_can_be_continued(
    graph, fitted, monkeypatch
):
    folder, _ = fitted
    with monkeypatch.context() as patch:
        patch.setattr("conekg.cli.fit.check_same_graph", interrupt)
        stopped = conekg("fit", graph, "--resume", "--out", folder, "--json")
    assert stopped.exit_code == 130
    told = json.loads(stopped.stdout)
    assert (told["finished"], told["step"]) == (False, STEPS)
    assert told["continue_with"] == f"conekg fit {graph} --resume --out {folder} --json"


def test_a_training_gives_the_papers_tables_when_asked(graph, tmp_path):
    folder = tmp_path / "run"
    result = conekg("train", graph, "--out", folder, "--json", "--tables", *SMALL)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    for_files = []
    for name in ("main-epfo", "main-negation"):
        assert conekg("reproduce", name, folder, "--json", tmp_path / name).exit_code == 0
        for_files += json.loads((tmp_path / name).read_text())["tables"]
    assert told["tables"] == for_files != []
    assert told["run"]["label"] == "ConE (run)"
    without = json.loads(conekg("train", "--resume", "--out", folder, "--json").stdout)
    assert without["tables"] is None
    assert without["checkpoints"] == told["checkpoints"]


@pytest.mark.usefixtures("usual_ctrl_c")
def test_a_training_interrupted_while_it_ranks_for_tables_can_be_continued(
    graph, tmp_path, monkeypatch
):
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Experiment, "measure", interrupt)
        stopped = conekg("train", graph, "--out", folder, "--json", "--tables", *SMALL)
    assert stopped.exit_code == 130
    told = json.loads(stopped.stdout)
    assert (told["finished"], told["reason"], told["step"]) == (False, "interrupted", STEPS)
    assert told["tables"] is None
    continued = conekg(*shlex.split(told["continue_with"])[1:])
    assert continued.exit_code == 0, continued.output
    assert json.loads(continued.stdout)["tables"]


def test_the_recipe_is_shown_as_json(graph, tmp_path):
    words = ("train", graph, "--out", tmp_path / "run", "--show-recipe", "--json", *SMALL)
    told = json.loads(conekg(*words).stdout)
    assert told["model"] | {"name": "cone", "dim": 8} == told["model"]
    assert told["training"]["steps"] == STEPS
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["fit", "train"])
def test_mistakes_leave_standard_output_empty(graph, fitted, tmp_path, command):
    folder, _ = fitted
    refused = conekg(command, graph, "--out", folder, "--json")
    assert refused.exit_code == 2
    assert refused.stdout == ""
    assert "already exists and is not empty" in refused.stderr
    assert open_run(folder).weights_step("last") == STEPS
