"""A fit as a whole: from a graph to a run that answers questions, also after an interruption."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from conekg.answering.engine import Answerer
from conekg.answering.fit import FitResult, fit
from conekg.answering.stages import FitEvents, below_baseline
from conekg.errors import CheckpointError, ConfigError
from conekg.evaluation.metrics import Metrics
from conekg.evaluation.report import Report, StructureResult
from conekg.sampling.protocol import PRESETS
from conekg.training.checkpoint import load_checkpoint
from tiny import FEW, SETTINGS, tiny_graph, tiny_recipe

CPU = torch.device("cpu")


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

    def calibrating(self, done, total):
        self.stages.append("calibrating")


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
        "calibrating",
    ]
    assert any(what == "the recipe 'small'" for what, _ in heard.choices)
    assert not any("test queries per shape" in what for what, _ in heard.choices)
    for name in ("evaluation.json", "calibration.json", "recipe.toml", "metrics.jsonl"):
        assert (tmp_path / "run" / name).exists()
    answer = Answerer.open(tmp_path / "run", device="cpu").ask("person0.lives_in", top_k=3)
    assert len(answer.answers) == 3
    assert answer.answers[0].probability is not None


def report_of(model, **percent):
    """A report with the given MRR of each structure; None for one that was not measured."""
    structures = tuple(
        StructureResult(name, 7, 9, None, "no such operator")
        if mrr is None
        else StructureResult(name, 7, 9, Metrics(mrr / 100, 0.0, 0.0, 0.0))
        for name, mrr in percent.items()
    )
    return Report(model, "test", "mean", "dnf", 1.0, structures)


def test_a_model_below_the_baseline_is_warned_of_with_a_remedy(monkeypatch):
    baseline = report_of("frequency", **{"1p": 20.0, "2p": 5.04, "2i": 9.0, "2in": 4.0})
    model = report_of("cone", **{"1p": 12.3, "2p": 5.01, "2i": 8.76, "2in": None})
    assert below_baseline(model, baseline) == ["1p", "2i"], "2p is 5.0 in the table, as is theirs"
    assert below_baseline(baseline, baseline) == []

    def warning(recipe, report=model, num_facts=20):
        facts = {"test": [(0, 0, 0)] * num_facts}
        graph = SimpleNamespace(triples=facts.__getitem__)
        run = SimpleNamespace(recipe=replace(tiny_recipe(), name=recipe), graph=graph)
        return FitResult(run, None, report, baseline).warning

    steps = 2 * tiny_recipe().training.steps
    assert warning("small") == (
        "the model ranks worse than frequency alone on 2 of 3 structures, by MRR: 1p (12.3 "
        "against 20.0), 2i (8.8 against 9.0); start a new run with more training, "
        f"`--set training.steps={steps}` or `--recipe medium`"
    )
    monkeypatch.setattr("conekg.answering.fit.pick_device", lambda: torch.device("cuda"))
    assert warning("medium").endswith("or `--recipe fast`")
    monkeypatch.setattr("conekg.answering.fit.pick_device", lambda: CPU)
    assert warning("medium").endswith(f"`--set training.steps={steps}`"), "fast is for a GPU"
    assert warning("small").endswith("or `--recipe medium`")
    assert warning("paper").endswith(f"`--set training.steps={steps}`")
    assert warning("small", baseline) is None
    few = "`--recipe medium`; with only 19 test facts it may be chance"
    assert warning("small", num_facts=19).endswith(few)
    assert warning("small", num_facts=1).endswith("; with only 1 test fact it may be chance")
    assert FitResult(None, None).warning is None, "an interrupted fit has no report"


def test_a_graph_too_small_to_hold_queries_out_can_be_asked_all_the_same(tmp_path):
    facts = tmp_path / "three.tsv"
    facts.write_text("a\tr\tb\nb\tr\tc\nc\tr\ta\n")
    heard = Heard()
    result = fit(facts, tmp_path / "run", settings=SETTINGS, protocol=FEW, device=CPU, events=heard)
    assert result.outcome.finished
    assert result.calibration is None
    assert any(what == "to answer without probabilities" for what, _ in heard.choices)
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


def test_an_interrupted_fit_is_continued_by_the_same_call(tmp_path):
    """The run's recipe lacks the shapes without queries; that of the call still has them."""
    facts = tmp_path / "three.tsv"
    facts.write_text("a\tr\tb\nb\tr\tc\nc\tr\td\n")
    pools = {"mine": {"1p": 2.0, "3i": 1.0}, "none": {"3in": 1.0}}
    config = {"training": {"cycle": ["mine", "none"], "pools": pools}}
    options = {"config": config, "settings": [*SETTINGS, "training.pools.mine.3i=4"]}
    run = fit(facts, tmp_path / "run", max_minutes=0.0, device=CPU, protocol=FEW, **options).run
    assert run.recipe.training.trained_shapes() == ("1p",)
    other = options | {"settings": [*SETTINGS, "training.pools.mine.2p=4"]}
    for mistaken in (other, options | {"settings": ["training.steps=4"]}):
        with pytest.raises(ConfigError, match="another recipe than these settings make"):
            fit(facts, tmp_path / "run", resume=True, device=CPU, **mistaken)
    assert fit(facts, tmp_path / "run", resume=True, device=CPU, **options).outcome.finished


def test_an_interrupted_fit_keeps_its_queries(tmp_path):
    """The same protocol is accepted, with a message that no queries are sampled by it."""
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


def test_shapes_that_all_entities_answer_are_left_out(tmp_path):
    """Among three that all know each other, two hops lead from each to all."""
    facts = tmp_path / "friends.tsv"
    facts.write_text("".join(f"{a}\tknows\t{b}\n" for a in "xyz" for b in "xyz" if a != b))
    heard = Heard()
    settings = [*SETTINGS, "training.validate_every=2"]
    result = fit(facts, tmp_path / "run", settings=settings, device=CPU, events=heard)
    assert result.outcome.finished
    shapes = result.run.recipe.training.trained_shapes()
    assert "1p" in shapes
    left_out, why = next(told for told in heard.choices if told[0].startswith("to train without"))
    assert "has both an answer and an entity that is none" in why
    assert any(len(block) for block in result.run.queries("train") if block.shape.name in left_out)
    assert load_checkpoint(result.run.checkpoint_folder("best")).step == 3


def test_an_output_that_is_not_a_path_is_refused():
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
