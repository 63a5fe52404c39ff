import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch

from conekg.answering.calibrate import fit_calibration
from conekg.answering.engine import Answerer
from conekg.answering.fit import (
    FitEvents,
    FitResult,
    below_baseline,
    calibrate_run,
    choose_recipe,
    fit,
    sample_queries,
    start_run,
)
from conekg.errors import CheckpointError, ConfigError, UnsupportedOperatorError
from conekg.evaluation.metrics import Metrics
from conekg.evaluation.report import Report, StructureResult
from conekg.graph.benchmarks import BENCHMARKS
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.sampling.protocol import PRESETS
from conekg.training.checkpoint import load_checkpoint, save_checkpoint
from conekg.training.recipe import Pool
from tiny import tiny_graph, tiny_queries, tiny_recipe

CPU = torch.device("cpu")
SETTINGS = [
    "training.steps=3",
    "training.batch_size=16",
    "training.negatives=4",
    "model.dim=8",
    "model.hidden=8",
]
FEW = replace(
    PRESETS["small"],
    train_count=20,
    train_negation_count=5,
    evaluation_count=5,
    patience=2048,
    min_yield=0.01,
)


class Heard(FitEvents):
    def __init__(self):
        self.choices, self.stages = [], []

    def chose(self, what, why):
        self.choices.append((what, why))

    def sampling(self, split, shape, found, wanted):
        self.stages.append(f"sampling {split}")

    def training(self, progress):
        self.stages.append("training")

    def evaluating(self, done, total):
        self.stages.append("evaluating")


def test_a_fit_ends_in_a_run_that_can_be_asked(tmp_path):
    heard = Heard()
    result = fit(
        tiny_graph(), tmp_path / "run", settings=SETTINGS, protocol=FEW, device=CPU, events=heard
    )
    assert result.outcome.finished
    assert result.report.measured["1p"].mrr > 0
    steps = f"{result.outcome.step:,} steps, finished"
    assert repr(result).startswith(f"<FitResult in {str(tmp_path / 'run')!r}: {steps}")
    assert result.baseline.model == "frequency"
    stages = list(dict.fromkeys(heard.stages))
    assert stages == [
        "sampling train",
        "sampling valid",
        "sampling test",
        "training",
        "evaluating",
    ]
    assert any(what == "the recipe 'small'" for what, _ in heard.choices)
    assert not any("test queries of a shape" in what for what, _ in heard.choices)
    for name in ("evaluation.json", "calibration.json", "recipe.toml", "metrics.jsonl"):
        assert (tmp_path / "run" / name).exists()
    answer = Answerer.open(tmp_path / "run", device="cpu").ask("person0.lives_in", top_k=3)
    assert len(answer.answers) == 3
    assert answer.answers[0].probability is not None


def report_of(model, **percent):
    """A report with the MRR of each structure; None where there is none."""
    structures = tuple(
        StructureResult(name, 7, 9, None, "no such operator")
        if mrr is None
        else StructureResult(name, 7, 9, Metrics(mrr / 100, 0.0, 0.0, 0.0))
        for name, mrr in percent.items()
    )
    return Report(model, "test", "mean", "dnf", 1.0, structures)


def test_a_model_below_the_baseline_is_told_with_numbers_and_a_remedy():
    baseline = report_of("frequency", **{"1p": 20.0, "2p": 5.04, "2i": 9.0, "2in": 4.0})
    model = report_of("cone", **{"1p": 12.3, "2p": 5.01, "2i": 8.76, "2in": None})
    assert below_baseline(model, baseline) == ["1p", "2i"], "2p is 5.0 in the table, as is theirs"
    assert below_baseline(baseline, baseline) == []

    def warning(recipe, report=model):
        run = SimpleNamespace(recipe=replace(tiny_recipe(), name=recipe))
        return FitResult(run, None, report, baseline).warning

    steps = 2 * tiny_recipe().training.steps
    assert warning("small") == (
        "the model ranks worse than frequency alone on 2 of 3 structures, by MRR: 1p (12.3 "
        "against 20.0), 2i (8.8 against 9.0); start a new run with more training, "
        f"`--set training.steps={steps}` or `--recipe medium`"
    )
    assert warning("medium").endswith("or `--recipe fast`")
    assert warning("paper").endswith(f"`--set training.steps={steps}`")
    assert warning("small", baseline) is None
    assert FitResult(None, None).warning is None, "an interrupted fit has no report"


def test_what_is_below_the_baseline_is_kept_with_the_run(tmp_path):
    options = {"settings": SETTINGS, "protocol": FEW, "device": CPU}
    result = fit(tiny_graph(), tmp_path / "run", **options)
    below = json.loads((tmp_path / "run" / "evaluation.json").read_text())["below_baseline"]
    assert below, "three steps teach too little"
    mrr = {name: metrics.mrr for name, metrics in result.report.measured.items()}
    frequency = {name: metrics.mrr for name, metrics in result.baseline.measured.items()}
    assert all(mrr[name] < frequency[name] for name in below)
    assert all(mrr[name] > frequency[name] - 0.001 for name in mrr if name not in below)


def test_a_graph_too_small_to_hold_queries_out_can_be_asked_all_the_same(tmp_path):
    facts = tmp_path / "three.tsv"
    facts.write_text("a\tr\tb\nb\tr\tc\nc\tr\ta\n")
    heard = Heard()
    result = fit(facts, tmp_path / "run", settings=SETTINGS, protocol=FEW, device=CPU, events=heard)
    assert result.outcome.finished
    assert result.calibration is None
    assert any(what == "to give answers no probabilities" for what, _ in heard.choices)
    short = [what for what, _ in heard.choices if what.startswith("fewer ")]
    assert len(short) == 1, "one line a split, not one a shape"
    assert "3i (0 of 20), 2in (0 of 5)" in short[0]
    assert ("no valid queries", "the graph has no valid facts") in heard.choices
    answer = Answerer.open(tmp_path / "run", device="cpu").ask("a.r", top_k=1)
    assert answer.answers[0].probability is None


def test_an_interrupted_fit_is_continued(tmp_path):
    options = {"settings": SETTINGS, "protocol": FEW, "device": CPU}
    stopped = fit(tiny_graph(), tmp_path / "run", max_minutes=0.0, **options)
    assert not stopped.outcome.finished
    assert stopped.report is None
    assert not (tmp_path / "run" / "evaluation.json").exists()
    with pytest.raises(CheckpointError, match="already exists"):
        fit(tiny_graph(), tmp_path / "run", **options)
    finished = fit("not looked at", tmp_path / "run", resume=True, device=CPU)
    assert finished.outcome.finished
    assert finished.report is not None


def test_an_interrupted_fit_keeps_its_model(tmp_path):
    options = {"model": "gqe", "settings": ["training.steps=3", "model.dim=8"], "protocol": FEW}
    fit(tiny_graph(), tmp_path / "run", max_minutes=0.0, device=CPU, **options)
    with pytest.raises(ConfigError, match="started with the model 'gqe'"):
        fit(tiny_graph(), tmp_path / "run", model="cone", resume=True, device=CPU)
    finished = fit(tiny_graph(), tmp_path / "run", model="gqe", resume=True, device=CPU)
    assert finished.outcome.finished


def test_an_interrupted_fit_keeps_its_queries(tmp_path):
    """The same protocol again is no mistake, and it is told that nothing is sampled by it."""
    folder, heard = tmp_path / "run", Heard()
    fit(tiny_graph(), folder, settings=SETTINGS, protocol=FEW, max_minutes=0.0, device=CPU)
    for other in (
        replace(FEW, name="mine"),
        replace(FEW, train_negation_count=1),
        replace(FEW, evaluation_count=1),
        replace(FEW, trained=FEW.trained[1:]),
        PRESETS["nell995"],
    ):
        with pytest.raises(ConfigError, match=f"than the protocol {other.name!r} makes") as caught:
            fit(tiny_graph(), folder, protocol=other, resume=True, device=CPU)
        assert caught.value.key == "protocol"
    options = {"protocol": FEW, "resume": True, "device": CPU}
    assert fit(tiny_graph(), folder, events=heard, **options).outcome.finished
    assert any(what == "the queries that the run has" for what, _ in heard.choices)


def test_a_cpu_ranks_some_test_queries_and_that_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr("conekg.answering.fit.REPORTED_QUERIES", 2)
    heard = Heard()
    options = {"protocol": FEW, "settings": SETTINGS, "device": CPU, "events": heard}
    result = fit(tiny_graph(), tmp_path / "run", **options)
    for report in (result.report, result.baseline):
        assert {result.structure: result.num_queries for result in report.structures}["1p"] == 2
    assert any(what == "to rank 2 test queries of a shape at most" for what, _ in heard.choices)


def test_the_recipe_fits_graph_and_machine(monkeypatch):
    gpu = torch.device("cuda")
    graph = tiny_graph()
    edges = len(graph.edges("train"))

    def chosen(device: torch.device, small: int, medium: int) -> tuple[str, str]:
        monkeypatch.setattr("conekg.answering.fit.SMALL_GRAPH_EDGES", small)
        monkeypatch.setattr("conekg.answering.fit.MEDIUM_GRAPH_EDGES", medium)
        heard = Heard()
        name = choose_recipe(graph, "cone", None, {}, (), device, heard).name
        ((what, why),) = heard.choices
        assert what == f"the recipe {name!r}"
        return name, why

    few, some = f"the graph has only {edges:,} training edges", f"{edges:,} training edges"
    for device in (CPU, gpu):
        assert chosen(device, edges, edges) == ("small", few)
        assert chosen(device, edges - 1, edges) == ("medium", f"the graph has {some}")
    assert chosen(CPU, 0, edges - 1) == ("medium", f"there is no GPU and {some}")
    assert chosen(gpu, 0, edges - 1) == ("fast", f"there is a GPU and {some}")
    heard = Heard()
    assert choose_recipe(graph, "cone", "fast", {}, (), CPU, heard).name == "fast"
    assert not heard.choices
    assert choose_recipe(graph, "cone", "paper", {}, (), CPU, heard).name == "paper"
    assert "FB15k-237" in heard.choices[-1][0]


def test_a_recipe_may_want_more_training_queries_and_that_is_told(monkeypatch):
    monkeypatch.setitem(PRESETS, "small", FEW)  # which takes less patience
    heard = Heard()
    graph = tiny_graph()
    usual = sample_queries(graph, FEW, 0, heard)
    more = sample_queries(graph, FEW.with_more_training(2), 0, heard)
    assert len(more["train"].block("1p")) == len(usual["train"].block("1p"))
    assert len(more["train"]) > len(usual["train"])
    assert len(more["valid"]) == len(usual["valid"])
    assert not any("query_times" in why for _, why in heard.choices)
    sample_queries(graph, FEW, 0, heard, times=2)
    assert any("query_times" in why for _, why in heard.choices)
    sample_queries(graph, None, 0, heard, times=2)
    assert any("2 times the training queries" in why for _, why in heard.choices)


@pytest.mark.parametrize("times", [None, 2])
def test_a_graph_that_is_only_called_like_a_benchmark_has_no_published_counts(monkeypatch, times):
    monkeypatch.setitem(PRESETS, "small", FEW)
    monkeypatch.setitem(PRESETS, "fb15k", replace(FEW, name="fb15k", train_count=7))
    graph = KnowledgeGraph(
        "fb15k", tiny_graph().vocabulary, {s: tiny_graph().edges(s) for s in SPLITS}
    )
    heard = Heard()
    sampled = sample_queries(graph, None, 0, heard, times)
    assert {queries.protocol for queries in sampled.values()} == {"small"}
    told = "the graph is called 'fb15k' but has 31 entities and 3 relations, not 14,951 and 1,345"
    assert heard.choices[0] == ("the preset 'small'", told)
    whys = [why for _, why in heard.choices]
    assert "these are the published counts" not in whys
    assert ("in proportion to the graph's links" in whys) is (times is None)
    heard = Heard()
    sample_queries(graph, FEW, 0, heard)
    assert not any("preset" in what for what, _ in heard.choices), "it was given"
    monkeypatch.setitem(BENCHMARKS, "fb15k", replace(BENCHMARKS["fb15k"], size=(31, 3)))
    heard = Heard()
    sampled = sample_queries(graph, None, 0, heard)
    assert {queries.protocol for queries in sampled.values()} == {"fb15k"}
    assert heard.choices[0] == (
        "7 training queries a shape (5 with negation) and 5 for validation and test",
        "these are the published counts",
    )


def test_shapes_without_queries_are_left_out_and_told(tmp_path):
    heard = Heard()
    links = tiny_queries()["train"]
    only = replace(links, blocks=tuple(b for b in links if b.shape.name in ("1p", "2i")))
    recipe = tiny_recipe()
    run = start_run(tmp_path / "run", tiny_graph(), recipe, {"train": only}, heard)
    assert run.recipe.training.trained_shapes() == ("1p", "2i")
    assert "2p" in heard.choices[0][0]
    assert not run.has_queries("valid")


def test_shapes_that_all_entities_answer_are_left_out_and_told(tmp_path):
    """Of three that all know each other: two steps lead from anyone to everyone."""
    facts = tmp_path / "friends.tsv"
    facts.write_text("".join(f"{a}\tknows\t{b}\n" for a in "xyz" for b in "xyz" if a != b))
    heard = Heard()
    settings = [*SETTINGS, "training.validate_every=2"]
    result = fit(facts, tmp_path / "run", settings=settings, device=CPU, events=heard)
    assert result.outcome.finished
    shapes = result.run.recipe.training.trained_shapes()
    assert "1p" in shapes
    left_out = next(what for what, _ in heard.choices if what.startswith("to train without"))
    assert any(len(block) for block in result.run.queries("train") if block.shape.name in left_out)
    assert load_checkpoint(result.run.checkpoint_folder("best")).step == 3


@pytest.mark.parametrize(("model", "is_refused"), [("box", True), ("cone", False)])
def test_a_model_without_negation_says_so_before_there_is_a_run(tmp_path, model, is_refused):
    recipe = tiny_recipe(model)
    pools = (Pool("mine", (("1p", 1.0), ("2in", 1.0))),)
    asked = replace(recipe, training=replace(recipe.training, pools=pools, cycle=("mine",)))
    start = partial(start_run, tmp_path / "run", tiny_graph(), asked, tiny_queries(), FitEvents())
    if is_refused:
        with pytest.raises(UnsupportedOperatorError, match="'box' lacks negation"):
            start()
    else:
        start()
    assert (tmp_path / "run").exists() != is_refused


def test_a_place_that_is_no_path_is_told():
    with pytest.raises(ConfigError, match="out is None; it must be a path"):
        fit(tiny_graph(), None, device=CPU)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("device", "gpu", "unknown device 'gpu'"),
        ("max_minutes", "1", "a number of minutes is needed"),
        ("config", "x.toml", "config is 'x.toml'; it must be a Mapping"),
        ("protocol", "small", "protocol is 'small'; it must be a SamplingProtocol"),
        ("events", "x", "events is 'x'; it must be a FitEvents"),
        ("model", 3, "model is 3; it must be a str"),
        ("settings", "training.steps=5", r"must be a list of texts, as \['training\.steps=1000'\]"),
        ("settings", None, "settings is None; it must be a list of texts"),
        ("settings", [5], r"settings is \[5\]; it must be a list of texts"),
        ("settings", {"training.steps": 5}, "it must be a list of texts"),
    ],
)
def test_arguments_of_another_kind_are_refused_before_any_work(tmp_path, key, value, told):
    with pytest.raises(ConfigError, match=told):
        fit("geography", tmp_path / "run", **{key: value})
    assert not (tmp_path / "run").exists()


def test_a_device_can_be_named(tmp_path):
    result = fit(tiny_graph(), tmp_path / "run", settings=SETTINGS, protocol=FEW, device="cpu")
    assert result.outcome.finished


def test_a_bad_setting_fails_before_any_work(tmp_path):
    with pytest.raises(ConfigError, match="unknown key"):
        fit(tiny_graph(), tmp_path / "run", settings=["training.stpes=3"], device=CPU)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("moment", ["loaded", "calibrated"])
def test_a_calibration_is_of_the_weights_it_was_fitted_for(tmp_path, monkeypatch, moment):
    """Not of those that a training which goes on has put in their place meanwhile."""
    options = {"settings": SETTINGS, "protocol": FEW, "device": CPU}
    run = fit(tiny_graph(), tmp_path / "run", **options).run
    before, is_trained = run.weights_name(), []
    load_model, calibrate = type(run).load_model, fit_calibration

    def go_on(now):
        if now == moment and not is_trained:
            is_trained.append(True)
            older = load_checkpoint(run.checkpoint_folder("best"))
            parameters = {name: 2 * tensor for name, tensor in older.parameters.items()}
            newer = replace(older, step=older.step + 1, parameters=parameters)
            save_checkpoint(run.checkpoint_folder("best"), newer)

    def load_and_go_on(self, which, device):
        model = load_model(self, which, device)
        go_on("loaded")
        return model

    def calibrate_and_go_on(model, *rest):
        fitted.append(model)
        go_on("calibrated")
        return calibrate(model, *rest)

    fitted = []
    monkeypatch.setattr(type(run), "load_model", load_and_go_on)
    monkeypatch.setattr("conekg.answering.fit.fit_calibration", calibrate_and_go_on)
    calibration = calibrate_run(run, device=CPU)
    newest = load_model(run, "best", CPU)
    is_newest = torch.equal(fitted[0].entity, newest.entity)
    assert is_newest is (moment == "loaded")
    assert calibration.weights == (run.weights_name() if is_newest else before)
    assert (Answerer.open(run.folder, device="cpu").calibration is None) is not is_newest
