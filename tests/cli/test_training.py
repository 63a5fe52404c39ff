"""`conekg train`, `evaluate` and `fit`, from the outside."""

import csv
import json
import re
import shlex
import shutil
import signal
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from conekg.answering import fit, stages
from conekg.answering.calibration import Calibration, CountCurve, ScoreCurve, joined, outlines
from conekg.answering.curves import Curve
from conekg.cli.fit import report_split
from conekg.cli.main import app
from conekg.cli.output_file import _RUN_FILES, _RUN_FOLDERS
from conekg.cli.training_report import printed_events, report_calibration
from conekg.graph.knowledge_graph import KnowledgeGraph, with_inverses
from conekg.graph.store import save_graph
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.shape import STRUCTURES, shape_of
from conekg.query.tree import Anchor
from conekg.sampling.protocol import PRESETS
from conekg.sampling.query_set import load_query_set, save_query_set
from conekg.training.loop import Progress
from tiny import tiny_graph, tiny_queries

SMALL = [
    "--set=training.steps=4",
    "--set=training.batch_size=16",
    "--set=training.negatives=4",
    "--set=model.dim=8",
    "--set=model.hidden=8",
]


def conekg(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return save_graph(tiny_graph(), tmp_path_factory.mktemp("graphs") / "tiny")


@pytest.fixture(autouse=True, scope="module")
def few_queries():
    """Sampling stops early, since the graph does not hold as many queries as are wanted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "small", replace(PRESETS["small"], patience=2048, min_yield=0.1))
        yield


@pytest.fixture(scope="module")
def run(graph, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    result = conekg("fit", graph, "--out", folder, *SMALL)
    assert result.exit_code == 0, result.output
    assert "chose the recipe 'small'" in result.stderr
    assert re.search(r"trained 4 steps in \d+\.\d minutes; best valid MRR \d", result.stderr)
    assert re.search(r"learnt from \d+ facts; \d+ validation and \d+ test facts", result.stderr)
    assert "1p" in result.stdout
    assert "frequency" in result.stdout
    below = json.loads((folder / "evaluation.json").read_text())["below_baseline"]
    assert below, "four steps teach too little"
    assert "warning: the model ranks worse than frequency alone" in result.stderr
    assert f"{below[0]} (" in result.stderr
    assert "`--set training.steps=8` or `--recipe medium`" in result.stderr
    return folder


@pytest.mark.parametrize(("held_out", "warned"), [(0, False), (19, True), (20, False)])
def test_few_held_out_facts_give_a_warning_about_metrics(held_out, warned, capsys):
    vocabulary = Vocabulary(NameTable("entity", ["a", "b"]), NameTable("relation", ["r"]))
    edges = with_inverses(np.array([[0, 0, 1]] * 40, dtype=np.int32))
    parts = {"train": edges, "valid": edges, "test": edges[: 2 * held_out]}
    report_split(KnowledgeGraph("few", vocabulary, parts))
    told = capsys.readouterr().err
    assert f"learnt from 40 facts; 40 validation and {held_out} test facts" in told
    assert ("so few held-out facts" in told) == warned


def test_single_facts_and_queries_are_in_the_singular(capsys):
    vocabulary = Vocabulary(NameTable("entity", ["a", "b"]), NameTable("relation", ["r"]))
    edges = with_inverses(np.array([[0, 0, 1]], dtype=np.int32))
    report_split(KnowledgeGraph("one", vocabulary, {"train": edges, "valid": edges, "test": edges}))
    told = capsys.readouterr().err
    assert "learnt from 1 fact; 1 validation and 1 test fact were held out" in told
    curve = ScoreCurve(Curve((0.0,), (0.5,)), relative=False, error=0.25)
    report_calibration(
        Calibration(predicted=curve, count=None, error=0.1, known_kept=1.0, num_queries=1)
    )
    assert "calibrated on 1 validation query: " in capsys.readouterr().err


def test_sampling_is_reported_before_training_begins(graph, tmp_path, monkeypatch):
    def sample_queries(graph, protocol, seed, events, times, trained):
        events.sampling("test", STRUCTURES["1p"], 5, 5)
        return tiny_queries()

    monkeypatch.setattr(stages, "sample_queries", sample_queries)
    result = conekg("train", graph, "--recipe", "small", "--out", tmp_path / "run", *SMALL)
    assert result.exit_code == 0, result.output
    told = [line.split(maxsplit=1)[0] for line in result.stderr.splitlines()]
    assert told[:3] == ["sampling", "training", "training:"], result.stderr


def test_a_graph_without_held_out_facts_is_learnt_and_not_evaluated(tmp_path):
    lines = [f"a{n}\tknows\ta{(n * 7 + 3) % 20}\na{n}\tlikes\tb{n % 4}" for n in range(20)]
    (tmp_path / "facts.tsv").write_text("\n".join(lines))
    words = ("--out", tmp_path / "graph", "--valid-share", 0, "--test-share", 0)
    assert conekg("graph", "build", tmp_path / "facts.tsv", *words).exit_code == 0
    result = conekg("fit", tmp_path / "graph", "--out", tmp_path / "run", *SMALL)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "chose no valid queries: the graph has no valid facts\n" in result.stderr
    assert "fewer valid queries" not in result.stderr
    assert (
        "not evaluated: there are no test queries, which need held-out test facts" in result.stderr
    )
    for split in ("test", "valid"):
        evaluated = conekg("evaluate", tmp_path / "run", "--split", split)
        assert evaluated.exit_code == 2
        assert f"there are no {split} queries to rank" in evaluated.stderr
        assert f"graph build --{split}-share` holds some out" in evaluated.stderr
    assert "best valid" not in result.stderr
    assert "held out" not in result.stderr


def test_the_loss_is_shown_once_there_is_one(capsys):
    for losses, told in (({}, r"0:0\d elapsed\n"), ({"all": 0.5}, r"loss 0\.5000\n")):
        with printed_events() as events:
            events.training(Progress(1, 10, losses))
        assert re.search(rf"{told}\Z", capsys.readouterr().err)


def test_a_model_above_the_baseline_is_not_warned_about(graph, tmp_path, monkeypatch):
    monkeypatch.setattr(fit, "below_baseline", lambda report, baseline: [])
    result = conekg("fit", graph, "--out", tmp_path / "run", *SMALL)
    assert result.exit_code == 0, result.output
    assert "warning" not in result.stderr


@pytest.mark.usefixtures("usual_ctrl_c")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("stage", ["sample_queries", "evaluate_run"])
def test_a_fit_stopped_outside_training_says_whether_there_is_a_run(
    graph, tmp_path, monkeypatch, number, stage
):
    def stop(*_, **__):
        signal.raise_signal(number)
        raise AssertionError("a signal ends it")

    # As in a terminal, also where these tests are run by nohup.
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL), signal.getsignal(signal.SIGTERM)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(fit, stage, stop)
            stopped = conekg("fit", graph, "--out", tmp_path / "run", *SMALL)
        after = signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, before[0])
    assert stopped.exit_code == 130
    assert after == (signal.SIG_DFL, before[1])
    if stage == "sample_queries":
        assert "stopped before there was a run; nothing was written" in stopped.stderr
        assert not (tmp_path / "run").exists()
        return
    command = f"conekg fit {graph} --resume --out {tmp_path / 'run'}"
    assert f"keeps what was trained; continue with `{command}`" in stopped.stderr
    assert conekg(*shlex.split(command)[1:]).exit_code == 0
    assert (tmp_path / "run" / "evaluation.json").is_file()


def test_every_file_of_a_run_is_protected_from_being_overwritten(run, tmp_path):
    whole = tmp_path / "run"
    shutil.copytree(run, whole)
    assert conekg("calibrate", whole, "--checkpoint", "last").exit_code == 0
    assert {path.name for path in whole.iterdir()} == {*_RUN_FILES, *_RUN_FOLDERS}


def test_evaluate_prints_the_table_json_and_markdown(run, tmp_path):
    table = conekg("evaluate", run, "--baseline")
    assert table.exit_code == 0, table.output
    assert "MRR" in table.stdout
    described = "- ConE (run): cone with d = "
    assert table.stdout.count(described) == 1
    assert "- frequency: the MRR of ranking entities by how often" in table.stdout
    markdown = tmp_path / "table.md"
    result = conekg("evaluate", run, "--json", "--markdown", markdown, "--ties", "pessimistic")
    content = json.loads(result.stdout)
    assert "baseline" not in content
    assert content["ties"] == "pessimistic"
    assert content["structures"]["1p"]["queries"] > 0
    info = json.loads((run / "run.json").read_text())
    assert content["run"]["graph"] == info["graph"]
    assert content["run"]["seed"] == info["seed"]
    assert (content["queries"], content["max_queries"]) == (None, None)
    assert "pessimistic rank" in markdown.read_text()
    assert f"cone with d = {content['run']['dim']} on " in markdown.read_text()
    both = json.loads(conekg("evaluate", run, "--json", "--baseline").stdout)
    kept = json.loads((run / "evaluation.json").read_text())
    assert both["baseline"]["structures"] == kept["baseline"]["structures"]


def test_metrics_follow_from_the_ranks_in_the_csv_file(run, tmp_path):
    file = tmp_path / "ranks.csv"
    result = conekg("evaluate", run, "--json", "--max-queries", 20, "--ranks", file)
    content = json.loads(result.stdout)
    of_queries = dict[tuple[str, str], list[float]]()
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            assert row["question"]
            of_queries.setdefault((row["structure"], row["query"]), []).append(float(row["rank"]))
    measured = {name: of for name, of in content["structures"].items() if "mrr" in of}
    assert len(measured) > 5
    for name, of in measured.items():
        ranks = [ranks for (structure, _), ranks in of_queries.items() if structure == name]
        assert (len(ranks), sum(map(len, ranks))) == (of["queries"], of["hard_answers"])
        mrr = np.mean([np.mean([1 / rank for rank in each]) for each in ranks])
        assert of["mrr"] == pytest.approx(mrr)
        assert of["hits_at_3"] == pytest.approx(np.mean([np.mean(np.array(r) <= 3) for r in ranks]))


def test_numbers_are_not_cut_on_a_narrow_terminal(run, monkeypatch):
    wide = conekg("evaluate", run, "--baseline").stdout
    monkeypatch.setenv("COLUMNS", "40")
    assert conekg("evaluate", run, "--baseline").stdout == wide
    assert "…" not in wide


def test_the_loss_of_one_pool_needs_no_name(capsys):
    from conekg.cli.training_report import printed_events
    from conekg.training.loop import Progress

    with printed_events() as events:
        events.training(Progress(1, 2, {"everything": 0.25}))
    assert capsys.readouterr().err.endswith("loss 0.2500\n")
    with printed_events() as events:
        events.training(Progress(1, 2, {"paths": 0.25, "rest": 0.5}, {"score": 0.125}))
    assert capsys.readouterr().err.endswith("loss paths 0.2500 rest 0.5000 · valid MRR 12.5\n")


def test_evaluate_takes_other_queries(run, tmp_path):
    own = conekg("evaluate", run, "--json", "--split", "valid")
    given = conekg("evaluate", run, "--json", "--queries", run / "queries" / "valid.arrow")
    assert json.loads(own.stdout)["structures"] == json.loads(given.stdout)["structures"]
    assert json.loads(given.stdout)["queries"].endswith("valid.arrow")
    folder = conekg("evaluate", run, "--json", "--split", "valid", "--queries", run / "queries")
    assert json.loads(folder.stdout)["structures"] == json.loads(own.stdout)["structures"]


def test_training_stops_and_resumes(graph, tmp_path):
    folder = tmp_path / "run"
    stopped = conekg("train", graph, "--out", folder, "--max-minutes", 0, *SMALL)
    assert stopped.exit_code == 0, stopped.output
    assert "time is up" in stopped.stderr
    assert "--resume" in stopped.stderr
    finished = conekg("train", "--resume", "--out", folder)
    assert finished.exit_code == 0, finished.output
    assert "trained 4 steps" in finished.stderr


def test_training_ends_with_the_papers_tables_when_asked(graph, run, tmp_path):
    """What it prints is what `reproduce` prints, also after it was stopped and resumed."""
    folder, queries = tmp_path / "run", run / "queries"
    options = ["--queries", queries, "--tables", "--max-minutes", 0, *SMALL]
    stopped = conekg("train", graph, "--out", folder, *options)
    assert stopped.stdout == ""
    command = re.search(r"continue with `conekg (.+?)`", stopped.stderr.replace("\n", " "))
    finished = conekg(*shlex.split(command[1]))
    assert finished.exit_code == 0, finished.output
    tables = [conekg("reproduce", name, folder).stdout for name in ("main-epfo", "main-negation")]
    assert finished.stdout == "".join(tables)
    assert "Queries without negation, tiny, test queries" in tables[0]
    no_test = tmp_path / "queries"
    no_test.mkdir()
    (no_test / "train.arrow").symlink_to(queries / "train.arrow")
    refused = conekg("train", graph, "--out", tmp_path / "other", "--queries", no_test, "--tables")
    assert refused.exit_code == 2
    assert "no test queries" in refused.stderr


def test_a_model_without_negation_has_one_table(graph, run, tmp_path):
    options = ["--model", "gqe", "--set=training.steps=2", "--set=model.dim=8", "--tables"]
    result = conekg(
        "train", graph, "--out", tmp_path / "run", "--queries", run / "queries", *options
    )
    assert result.exit_code == 0, result.output
    assert "without negation" in result.stdout
    assert "Queries with negation" not in result.stdout


def test_a_fit_that_was_stopped_is_continued_as_a_fit(graph, tmp_path):
    folder = tmp_path / "the run"
    stopped = conekg("fit", graph, "--out", folder, "--max-minutes", 0, *SMALL)
    command = re.search(r"continue with `conekg (.+?)`", stopped.stderr.replace("\n", " "))
    assert command is not None, stopped.stderr
    finished = conekg(*shlex.split(command[1]), *SMALL)
    assert finished.exit_code == 0, finished.output
    assert (folder / "calibration.json").exists()


@pytest.mark.parametrize("command", ["fit", "train"])
def test_notes_about_the_facts_are_printed(command, tmp_path):
    facts = [f"e{i}\tr{k}\te{(i + k) % 12}\n" for i in range(12) for k in range(1, 5)]
    (tmp_path / "facts.tsv").write_text("".join([*facts, facts[0], facts[1]]))
    result = conekg(command, tmp_path / "facts.tsv", "--out", tmp_path / "run", *SMALL)
    assert result.exit_code == 0, result.output
    assert "facts.tsv: 2 repeated triples merged" in result.stderr


def test_a_fit_is_not_continued_on_another_graph(graph, tmp_path):
    folder = tmp_path / "run"
    conekg("fit", graph, "--out", folder, "--max-minutes", 0, *SMALL)
    refused = conekg("fit", "geography", "--resume", "--out", folder)
    assert refused.exit_code == 2
    assert "started on another graph than geography" in " ".join(refused.stderr.split())


def test_a_trained_run_is_calibrated_afterwards(graph, run, tmp_path):
    folder = tmp_path / "run"
    trained = conekg("train", graph, "--out", folder, "--queries", run / "queries", *SMALL)
    assert f"conekg calibrate {folder}" in trained.stderr.replace("\n", "")
    before = json.loads(conekg("ask", folder, "job0.^works_as", "--json").stdout)
    assert before["calibration_error"] is None
    told = conekg("calibrate", folder)
    assert told.exit_code == 0, told.output
    assert "calibrated on" in told.stderr
    assert "calibrating: " in told.stderr
    after = json.loads(conekg("ask", folder, "job0.^works_as", "--json").stdout)
    content = json.loads(conekg("calibrate", folder, "--json").stdout)
    assert 0 <= content["error"] < 1
    own = content["shapes"].get("1p", {}).get("error")
    assert after["calibration_error"] == (content["general_error"] if own is None else own)
    assert 0 < content["queries"] <= 200 * 14
    assert all(0 <= each["probability"] <= 1 for each in after["answers"])


def test_calibrated_shapes_have_the_usual_names(monkeypatch, run):
    """Shapes with curves of their own have the names that `sample` and `evaluate` use."""
    scores = ScoreCurve(Curve((0.0,), (0.5,)), relative=False, error=0.25)
    count = CountCurve(Curve((0.0,), (0.5,)), 1.5)
    spelled = shape_of((Anchor(0) & Anchor(1).project(0)).project(1))
    keys = {name: joined(outlines(shape, "dnf", 64)) for name, shape in STRUCTURES.items()}
    unnamed = joined(outlines(spelled, "dnf", 64))
    calibration = Calibration(
        predicted=scores,
        count=None,
        error=0.1,
        known_kept=1.0,
        num_queries=9,
        predicted_of=dict.fromkeys([unnamed, *keys.values()], scores),
        count_of={keys["1p"]: count},
    )
    monkeypatch.setattr("conekg.answering.stages.calibrate_run", lambda *_, **__: calibration)
    told = json.loads(conekg("calibrate", run, "--json").stdout)["shapes"]
    assert set(told) == {*STRUCTURES, unnamed}
    assert told["1p"] == {"error": 0.25, "estimated_count_factor": 1.5}
    assert unnamed == "(e & e.r).r"
    assert told["up"] == told[unnamed] == {"error": 0.25, "estimated_count_factor": None}


def test_training_takes_queries_and_a_configuration(graph, run, tmp_path):
    config = tmp_path / "mine.toml"
    config.write_text("[training]\nsteps = 2\nseed = 5\n")
    folder = tmp_path / "run"
    result = conekg(
        "train", graph, "--out", folder, "--model", "box", "--queries", run / "queries",
        "--config", config, "--set", "model.dim=8", "--set", "training.batch_size=16",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    recipe = (folder / "recipe.toml").read_text()
    assert "steps = 2" in recipe
    assert "seed = 5" in recipe
    assert 'name = "box"' in recipe
    told = "".join(result.stderr.split())  # lines end where the terminal does
    assert f"`conekgevaluate{folder}`ranks" in told
    assert f"`conekgcalibrate{folder}`gives" in told


def test_a_run_with_only_training_queries_suggests_no_command_that_would_fail(graph, run, tmp_path):
    (tmp_path / "queries").mkdir()
    shutil.copy(run / "queries" / "train.arrow", tmp_path / "queries")
    folder = tmp_path / "run"
    result = conekg("train", graph, "--out", folder, "--queries", tmp_path / "queries", *SMALL)
    assert result.exit_code == 0, result.output
    told = "".join(result.stderr.split())
    assert f"therunisin{folder}" in told
    assert "withoutvalidation" in told
    assert "conekgcalibrate" not in told
    assert "conekgevaluate" not in told


def test_a_graph_too_small_for_held_out_queries_suggests_no_command_that_would_fail(tmp_path):
    facts = tmp_path / "facts.tsv"
    facts.write_text("a\tlikes\tb\nb\tlikes\tc\n")
    result = conekg("train", facts, "--out", tmp_path / "run", *SMALL)
    assert result.exit_code == 0, result.output
    told = "".join(result.stderr.split())
    assert "conekgcalibrate" not in told
    assert "conekgevaluate" not in told


def test_the_recipe_can_be_seen_before_anything_happens(graph, tmp_path):
    result = conekg("train", graph, "--out", tmp_path / "run", "--recipe", "paper", "--show-recipe")
    assert result.exit_code == 0, result.output
    assert "steps = 300001" in result.stdout
    assert not (tmp_path / "run").exists()


def test_a_recipe_is_shown_without_a_run_folder_or_beside_the_run_that_is_there(graph, run):
    words = ("train", graph, "--recipe", "small", "--set", "training.steps=7", "--show-recipe")
    shown = conekg(*words)
    assert shown.exit_code == 0, shown.output
    assert "steps = 7\n" in shown.stdout
    before = (run / "recipe.toml").read_bytes()
    assert conekg(*words, "--out", run).stdout == shown.stdout
    assert (run / "recipe.toml").read_bytes() == before


@pytest.mark.parametrize("options", [(), ("--recipe", "small"), ("--model", "gqe")])
def test_the_recipe_of_a_run_can_be_given_again(graph, tmp_path, options):
    """The file names the model and the recipe, so that nothing is chosen automatically."""
    recorded = conekg(
        "train", graph, "--out", tmp_path / "run", "--model", "gqe", "--recipe", "small",
        "--set", "training.steps=7", "--show-recipe",
    )  # fmt: skip
    (tmp_path / "recipe.toml").write_text(recorded.stdout)
    again = ("train", graph, "--out", tmp_path / "run", "--config", tmp_path / "recipe.toml")
    result = conekg(*again, *options, "--show-recipe")
    assert result.exit_code == 0, result.output
    assert result.stdout == recorded.stdout
    assert "chose the recipe" not in result.stderr


@pytest.mark.parametrize("name", ["[1]", "3", '"cube"'])
def test_a_whole_recipe_without_a_known_model_is_refused(graph, tmp_path, name):
    (tmp_path / "recipe.toml").write_text(f'recipe = "small"\n[model]\nname = {name}\n')
    config = ("--config", tmp_path / "recipe.toml")
    result = conekg("train", graph, "--out", tmp_path / "run", *config)
    assert result.exit_code == 2, result.output
    assert "model" in result.stderr


@pytest.mark.parametrize("options", [("--recipe", "fast"), ("--model", "box")])
def test_a_whole_recipe_and_a_second_recipe_are_refused(graph, run, tmp_path, options):
    config = ("--config", run / "recipe.toml")
    result = conekg("train", graph, "--out", tmp_path / "run", *config, *options)
    assert result.exit_code == 2
    assert options[1] in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train", "GRAPH", "--out", "OUT", "--set", "training.stepz=1"], "training.steps"),
        (["train", "GRAPH", "--out", "OUT", "--set", "training.steps=0"], "above 0"),
        (["train", "GRAPH", "--out", "OUT", "--recipe", "papper"], "paper"),
        (["train", "GRAPH", "--out", "OUT", "--model", "coin"], "cone"),
        (["train", "GRAPH", "--out", "RUN"], "already exists"),
        (["train", "GRAPH", "--out", "RUN", "--resume"], "as it was started"),
        (["train", "--out", "RUN", "--resume", "--model", "box"], "as it was started"),
        (["train", "--out", "RUN", "--resume", "--model", "cone"], "as it was started"),
        (["train", "--out", "RUN", "--resume", "--recipe", "fast"], "as it was started"),
        (["train", "--out", "RUN", "--resume", "--show-recipe"], "as it was started"),
        (["train", "--out", "OUT"], "give a GRAPH"),
        (["train", "--out", "OUT", "--show-recipe"], "give a GRAPH"),
        (["train", "GRAPH"], "give --out FOLDER"),
        (["train", "--resume"], "give --out FOLDER"),
        (["train", "--out", "OUT", "--resume"], "does not exist"),
        (["train", "GRAPH", "--out", "OUT", "--config", "OUT/no.toml"], "cannot read"),
        (["train", "OUT/no.tsv", "--out", "OUT", "--config", "OUT/no.toml"], "cannot read"),
        (["train", "GRAPH", "--out", "OUT", "--model", "emql", "--set", "training.query_times=2"],
         "would change nothing"),
        (["train", "GRAPH", "--out", "OUT", "--queries", "OUT"], "no such folder"),
        (["evaluate", "OUT"], "does not exist"),
        (["evaluate", "RUN", "--queries", "OUT/no.arrow"], "no such file"),
        (["evaluate", "RUN", "--recompute"], "needs --queries: the run's own queries already have"),
        (["evaluate", "RUN", "--queries", "RUN/queries/valid.arrow", "--split", "test"],
         "holds valid queries, not test queries"),
        (["evaluate", "RUN", "--queries", "RUN/queries/valid.arrow", "--recompute"],
         "has its answers"),
        (["evaluate", "RUN", "--queries", "RUN/queries", "--recompute"], "has its answers"),
        (["fit", "OUT/no.tsv", "--out", "OUT"], "no.tsv"),
        (["fit", "OUT/no.tsv", "--out", "RUN/run.json/run"], "run.json is a file"),
        (["train", "OUT/no.tsv", "--out", "RUN/run.json/run"], "run.json is a file"),
        (["fit", "GRAPH", "--out", "RUN", "--resume", "--recipe", "fast"], "recipe 'small'"),
        (["fit", "GRAPH", "--out", "RUN", "--resume", "--model", "gqe"], "the model 'cone'"),
        (["fit", "GRAPH", "--out", "RUN", "--resume", "--set=training.steps=9"], "another recipe"),
        (["fit", "GRAPH", "--out", "OUT", "--resume"], "does not exist"),
        (["calibrate", "OUT"], "does not exist"),
    ],
)  # fmt: skip
def test_mistakes_are_one_message_and_exit_code_2(graph, run, tmp_path, arguments, words):
    places = {"GRAPH": str(graph), "RUN": str(run), "OUT": str(tmp_path / "out")}
    for name, place in places.items():
        arguments = [argument.replace(name, place) for argument in arguments]
    result = conekg(*arguments)
    assert result.exit_code == 2, result.output
    assert words in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("file", "words"), [("no/x.md", "there is no folder"), ("", "it is a folder")]
)
def test_a_file_that_cannot_be_written_is_refused_before_ranking(run, tmp_path, file, words):
    result = conekg("evaluate", run, "--markdown", tmp_path / file)
    assert result.exit_code == 2
    assert f"cannot write {tmp_path / file}: {words}" in result.stderr.replace("\n", " ")
    assert "evaluating" not in result.stderr


def test_a_folder_without_the_queries_that_are_needed_is_refused(graph, tmp_path):
    queries = tmp_path / "q"
    assert conekg("sample", graph, "--out", queries, "--count", 8).exit_code == 0
    begun = ["train", graph, "--queries", queries, "--out", tmp_path / "run", *SMALL]
    (queries / "test.arrow").unlink()
    result = conekg(*begun, "--tables")
    assert result.exit_code == 2
    told = " ".join(result.stderr.split())
    assert "holds no test queries, which --tables ranks; add some, or leave --tables out" in told
    assert "chose" not in told, "refused before the graph is read"
    (queries / "train.arrow").rename(queries / "none.arrow")
    result = conekg(*begun)
    assert result.exit_code == 2
    told = "".join(result.stderr.split("\n"))
    assert f"{queries}: holds no training queries" in told
    assert (
        f"`conekg sample GRAPH --split train --out {queries / 'train.arrow'}` writes some" in told
    )
    assert "chose" not in told
    assert not (tmp_path / "run").exists()
    (queries / "none.arrow").rename(queries / "train.arrow")
    result = conekg(*begun, "--set", "training.query_times=2")
    assert result.exit_code == 0, result.output
    told = " ".join(result.stderr.split())
    assert f"chose the training queries in {queries} as they are: training.query_times only" in told


def test_a_set_without_any_test_queries_has_no_tables(graph, run, tmp_path):
    queries = tmp_path / "q"
    queries.mkdir()
    (queries / "train.arrow").symlink_to(run / "queries" / "train.arrow")
    of_run = load_query_set(run / "queries" / "test.arrow")
    save_query_set(queries / "test.arrow", replace(of_run, blocks=()))
    words = ("--queries", queries, "--tables", *SMALL)
    refused = conekg("train", graph, "--out", tmp_path / "run", *words)
    assert refused.exit_code == 2
    assert f"{queries} holds no test queries, which --tables ranks" in " ".join(
        refused.stderr.split()
    )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("command", ["fit", "train"])
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--model", "con"), "unknown model 'con'; there are"),
        (("--recipe", "fastt"), "unknown recipe 'fastt'; there are"),
        (("--resume",), "does not exist"),
    ],
)
def test_options_that_no_graph_makes_right_are_refused_before_it_is_read(
    tmp_path, command, words, told
):
    """Reading it may take long, and a benchmark is downloaded first."""
    graph = () if (command, words) == ("train", ("--resume",)) else (tmp_path / "missing.tsv",)
    refused = conekg(command, *graph, "--out", tmp_path / "run", *words)
    assert refused.exit_code == 2
    assert told in " ".join(refused.stderr.split())


@pytest.fixture
def without_test_facts(tmp_path):
    """A graph of which no test facts are held out."""
    facts = [f"a{n}\tknows\ta{(n * 7 + 3) % 20}\na{n}\tlikes\tb{n % 4}" for n in range(20)]
    (tmp_path / "facts.tsv").write_text("\n".join(facts))
    folder = tmp_path / "without test facts"
    words = ("--out", folder, "--valid-share", 0.2, "--test-share", 0)
    assert conekg("graph", "build", tmp_path / "facts.tsv", *words).exit_code == 0
    return folder


def test_a_graph_without_test_queries_is_trained_without_tables(without_test_facts, tmp_path):
    """Ranking nothing would print tables of dashes after a long training."""
    begun = ("train", without_test_facts, "--out", tmp_path / "run")
    refused = conekg(*begun, "--tables", *SMALL)
    assert refused.exit_code == 2
    told = " ".join(refused.stderr.split())
    assert f"{without_test_facts} yields no test queries, which --tables ranks" in told
    assert "`conekg graph build --test-share` holds more out, or leave --tables out" in told
    assert "sampling" not in told
    assert not (tmp_path / "run").exists()
    assert conekg(*begun, "--max-minutes", 0, *SMALL).exit_code == 0
    resumed = conekg("train", "--resume", "--out", tmp_path / "run", "--tables")
    assert resumed.exit_code == 2
    told = " ".join(resumed.stderr.split())
    assert f"{tmp_path / 'run'} has no test queries, which --tables ranks" in told


def test_a_resumed_run_without_test_queries_has_no_tables(graph, tmp_path):
    assert conekg("sample", graph, "--out", tmp_path / "q", "--count", 8).exit_code == 0
    (tmp_path / "q" / "test.arrow").unlink()
    begun = ["train", graph, "--queries", tmp_path / "q", "--out", tmp_path / "run", *SMALL]
    assert conekg(*begun, "--max-minutes", 0).exit_code == 0
    result = conekg("train", "--resume", "--out", tmp_path / "run", "--tables")
    assert result.exit_code == 2
    assert "has no test queries, which --tables ranks" in result.stderr.replace("\n", " ")
    assert "training cone" not in result.stderr
