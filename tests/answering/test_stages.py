"""Each stage of a fit: what it chooses, what it reports, and what it writes to the run."""

import json
import tomllib
from dataclasses import replace
from functools import partial

import pytest
import torch

from conekg.answering import stages
from conekg.answering.calibrate import fit_calibration
from conekg.answering.engine import Answerer
from conekg.answering.fit import fit
from conekg.answering.stages import (
    FitEvents,
    calibrate_run,
    check_choices,
    choose_recipe,
    read_graph,
    sample_queries,
    start_run,
    train_run,
)
from conekg.errors import ConfigError, StoreError, UnsupportedOperatorError
from conekg.graph.benchmarks import BENCHMARKS
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.query.shape import STRUCTURES
from conekg.sampling.protocol import PRESETS
from conekg.sampling.sample import sample_query_set
from conekg.training.checkpoint import load_checkpoint, save_checkpoint
from conekg.training.recipe import Pool
from conekg.training.recipe_file import dump_recipe
from conekg.training.recipes import find_recipe
from tiny import FEW, SETTINGS, tiny_graph, tiny_queries, tiny_recipe

CPU = torch.device("cpu")


class Heard(FitEvents):
    def __init__(self):
        self.choices = []

    def chose(self, what, why):
        self.choices.append((what, why))


def test_another_recipe_beside_a_whole_one_is_refused():
    whole = tomllib.loads(dump_recipe(find_recipe("small", "gqe")))
    chosen = choose_recipe(tiny_graph(), None, "small", whole, [], CPU, FitEvents())
    assert chosen == find_recipe("small", "gqe")
    told = r"'paper' was chosen, but the configuration is a whole recipe 'small'; leave one of"
    for refuse in (
        partial(choose_recipe, tiny_graph(), None, "paper", whole, [], CPU, FitEvents()),
        partial(check_choices, None, "paper", whole),
    ):
        with pytest.raises(ConfigError, match=told) as caught:
            refuse()
        assert caught.value.key == "recipe"


def test_choices_that_no_graph_makes_right_are_refused_without_one():
    whole = tomllib.loads(dump_recipe(find_recipe("small", "gqe")))
    for model, recipe, told in (
        ("con", None, "unknown model 'con'; there are cone"),
        (None, "fastt", "unknown recipe 'fastt'; there are paper"),
        ("con", "small", "unknown model 'con'"),
    ):
        with pytest.raises(ConfigError, match=told):
            check_choices(model, recipe, {})
    for model, recipe, config in (
        (None, None, {}),
        *((name, None, whole) for name in ("gqe", "cone")),
        *(("gqe", name, {"training": {"steps": 3}}) for name in ("small", "paper")),
        (None, "small", whole),
        (None, "of my own", {**whole, "recipe": "of my own"}),
    ):
        check_choices(model, recipe, config)


@pytest.mark.parametrize(("model", "recipe"), [("", None), (None, ""), ("", "small")])
def test_an_empty_name_is_not_the_default(model, recipe):
    """Such as that of a variable of the shell which is not set."""
    with pytest.raises(ConfigError, match=r"unknown (model|recipe) ''; there are"):
        choose_recipe(tiny_graph(), model, recipe, {}, [], CPU, FitEvents())


def test_a_run_without_validation_queries_is_not_calibrated(tmp_path):
    train = {"train": tiny_queries()["train"]}
    run = start_run(tmp_path / "run", tiny_graph(), tiny_recipe(), train, FitEvents())
    with pytest.raises(ConfigError, match="no validation queries to calibrate on; train it with"):
        calibrate_run(run)
    assert not (tmp_path / "run" / "calibration.json").exists()


def test_notes_on_the_facts_are_logged_by_default(tmp_path, caplog):
    path = tmp_path / "facts.tsv"
    path.write_text("a\tr\tb\n" * 3)
    read_graph(path, FitEvents())
    assert caplog.messages == [f"{path}: 2 repeated triples merged"]


def test_choices_and_progress_are_logged_by_default(tmp_path, caplog, monkeypatch):
    options = {"settings": SETTINGS, "protocol": FEW, "device": CPU}
    fit(tiny_graph(), tmp_path / "unheard", **options)
    assert not caplog.messages, "nothing is wrong with the facts"
    monkeypatch.setattr(stages, "LOG_INTERVAL_S", 1e9)
    with caplog.at_level("INFO", logger="conekg"):
        fit(tiny_graph(), tmp_path / "run", **options)
    assert {record.levelname for record in caplog.records} == {"INFO"}
    assert any(text.startswith("chose the recipe 'small': ") for text in caplog.messages)
    logged = [text.partition(": ")[0] for text in caplog.messages]
    for stage in ("sampling train queries", "evaluating", "calibrating"):
        assert logged.count(stage) == 1, "at its beginning"
    assert 1 <= logged.count("training") <= 2, "at its first report and at its end"
    steps = next(line.partition("=")[2] for line in SETTINGS if "training.steps" in line)
    last = [text for text in caplog.messages if text.startswith("training: ")][-1]
    assert last.startswith(f"training: {steps} of {steps} steps, loss ")
    monkeypatch.setattr(stages, "LOG_INTERVAL_S", 0.0)
    with caplog.at_level("INFO", logger="conekg"):
        caplog.clear()
        events = FitEvents()
        for done in (1, 2, 2_000):
            events.evaluating(done, 2_000)
    assert caplog.messages == [
        f"evaluating: {done} of 2,000 queries" for done in ("1", "2", "2,000")
    ]


def test_the_recipe_fits_graph_and_machine(monkeypatch):
    gpu = torch.device("cuda")
    graph = tiny_graph()
    edges = len(graph.edges("train"))

    def chosen(device: torch.device, small: int, medium: int) -> tuple[str, str]:
        monkeypatch.setattr("conekg.answering.stages.SMALL_GRAPH_EDGES", small)
        monkeypatch.setattr("conekg.answering.stages.MEDIUM_GRAPH_EDGES", medium)
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


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("paper", "the paper's hyper-parameters for FB15k-237"),
        ("fast", "'fast' as for any other graph"),
        ("small", None),
    ],
)
def test_a_graph_that_is_only_called_like_a_benchmark_has_no_recipe_of_its_own(
    monkeypatch, name, what
):
    graph = KnowledgeGraph(
        "nell995", tiny_graph().vocabulary, {s: tiny_graph().edges(s) for s in SPLITS}
    )
    told = "the graph is called 'nell995' but has 31 entities and 3 relations, not 63,361 and 200"
    heard = Heard()
    assert choose_recipe(graph, None, name, {}, (), CPU, heard) == find_recipe(name, "cone")
    assert heard.choices == ([(what, told)] if what else [])
    monkeypatch.setitem(BENCHMARKS, "nell995", replace(BENCHMARKS["nell995"], size=(31, 3)))
    heard = Heard()
    itself = choose_recipe(graph, None, name, {}, (), CPU, heard)
    assert itself == find_recipe(name, "cone", "nell995")
    assert not heard.choices


def test_a_recipe_may_want_more_training_queries(monkeypatch):
    monkeypatch.setitem(PRESETS, "small", FEW)  # faster
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
        "7 training queries per shape (5 with negation) and 5 for validation and test",
        "these are the published counts",
    )


def test_shapes_that_only_a_pool_has_are_sampled(tmp_path, monkeypatch):
    monkeypatch.setitem(PRESETS, "small", FEW)
    pool = {"1p": 1.0, "2i": 1.0, "(e.r & e.r).r": 1.0, "e.r.r.r.r": 2.0}
    config = {"training": {"cycle": ["mine"], "pools": {"mine": pool}}}
    heard = Heard()
    fitting = partial(fit, tiny_graph(), config=config, settings=SETTINGS, device=CPU)
    run = fitting(tmp_path / "run", events=heard).run
    assert run.recipe.training.trained_shapes() == ("1p", "2i", "ip", "e.r.r.r.r")
    assert ("to sample training queries of ip, e.r.r.r.r too", "a pool has them") in heard.choices
    assert len(run.queries("train").block("ip")) == len(run.queries("train").block("2i")) > 0
    assert not any("to train without" in what for what, _ in heard.choices)
    usual = sample_queries(tiny_graph(), None, 0, Heard())
    for split in SPLITS:
        for block in usual[split]:
            sampled = run.queries(split).block(block.shape.name)
            assert sampled.anchors.tolist() == block.anchors.tolist()
    # A protocol that is given is used unchanged.
    given = fitting(tmp_path / "given", protocol=FEW).run
    assert given.recipe.training.trained_shapes() == ("1p", "2i")


def test_shapes_without_queries_are_left_out(tmp_path):
    heard = Heard()
    links = tiny_queries()["train"]
    only = replace(links, blocks=tuple(b for b in links if b.shape.name in ("1p", "2i")))
    recipe = tiny_recipe()
    run = start_run(tmp_path / "run", tiny_graph(), recipe, {"train": only}, heard)
    assert run.recipe.training.trained_shapes() == ("1p", "2i")
    ((what, why),) = heard.choices
    assert "2p" in what
    assert why == "there are no training queries of that shape"
    assert not run.has_queries("valid")


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


def test_a_union_to_train_on_is_refused_before_there_is_a_run(tmp_path):
    recipe = tiny_recipe()
    pools = (Pool("mine", (("1p", 1.0), ("2u", 1.0))),)
    asked = replace(recipe, training=replace(recipe.training, pools=pools, cycle=("mine",)))
    shapes = [STRUCTURES["1p"], STRUCTURES["2u"]]
    queries = {"train": sample_query_set(tiny_graph(), "train", FEW, 0, shapes=shapes).query_set}
    with pytest.raises(ConfigError, match="2u, a union"):
        start_run(tmp_path / "run", tiny_graph(), asked, queries, FitEvents())
    assert not (tmp_path / "run").exists()


def test_a_cpu_ranks_only_some_test_queries(tmp_path, monkeypatch):
    monkeypatch.setattr("conekg.answering.stages.REPORTED_QUERIES", 2)
    heard = Heard()
    options = {"protocol": FEW, "settings": SETTINGS, "device": CPU, "events": heard}
    result = fit(tiny_graph(), tmp_path / "run", **options)
    for report in (result.report, result.baseline):
        assert {result.structure: result.num_queries for result in report.structures}["1p"] == 2
    assert any(what == "to rank at most 2 test queries per shape" for what, _ in heard.choices)


def test_structures_below_the_baseline_are_written_to_the_run(tmp_path):
    options = {"settings": SETTINGS, "protocol": FEW, "device": CPU}
    result = fit(tiny_graph(), tmp_path / "run", **options)
    below = json.loads((tmp_path / "run" / "evaluation.json").read_text())["below_baseline"]
    assert below, "three steps teach too little"
    mrr = {name: metrics.mrr for name, metrics in result.report.measured.items()}
    frequency = {name: metrics.mrr for name, metrics in result.baseline.measured.items()}
    assert all(mrr[name] < frequency[name] for name in below)
    assert all(mrr[name] > frequency[name] - 0.001 for name in mrr if name not in below)


@pytest.mark.parametrize("moment", ["loaded", "calibrated"])
def test_a_calibration_is_of_the_weights_it_was_fitted_for(tmp_path, monkeypatch, moment):
    """Also if a training process replaces the checkpoint meanwhile."""
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

    def calibrate_and_go_on(model, *rest, **options):
        fitted.append(model)
        go_on("calibrated")
        return calibrate(model, *rest, **options)

    fitted = []
    monkeypatch.setattr(type(run), "load_model", load_and_go_on)
    monkeypatch.setattr("conekg.answering.stages.fit_calibration", calibrate_and_go_on)
    calibration = calibrate_run(run, device=CPU)
    newest = load_model(run, "best", CPU)
    is_newest = torch.equal(fitted[0].entity, newest.entity)
    assert is_newest is (moment == "loaded")
    assert calibration.weights == (run.weights_name() if is_newest else before)
    assert (Answerer.open(run.folder, device="cpu").calibration is None) is not is_newest


def test_a_read_only_folder_is_refused_before_calibrating(tmp_path, monkeypatch, request):
    run = start_run(tmp_path / "run", tiny_graph(), tiny_recipe(), tiny_queries(), Heard())
    train_run(run, device=CPU, max_minutes=0)
    request.getfixturevalue("read_only")
    monkeypatch.setattr(stages, "fit_calibration", lambda *_, **__: pytest.fail("takes a while"))
    with pytest.raises(StoreError, match=f"Read-only file system in {run.folder}"):
        calibrate_run(run, device=CPU)
