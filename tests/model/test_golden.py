"""Logits, loss and gradients against numbers of the authors' implementations, in float64.

The folder is `tests/golden`, or what the environment variable CONEKG_GOLDEN names; sizes,
queries and parameters all come from the files, so other seeds can be checked as well.
"""

from __future__ import annotations

import ast
import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from conekg.model.catalog import MODELS, build_model
from conekg.model.embed import best_over_branches, embed
from conekg.model.interface import QueryModel
from conekg.query.plan import plan_shapes
from conekg.query.shape import shape_of, slots_of
from conekg.query.tree import And, Not, Or, Project, Query
from conekg.query.tuples import query_from_tuple
from conekg.training.loss import negative_sampling_loss
from small_models import score_queries

GOLDEN = Path(os.environ.get("CONEKG_GOLDEN") or Path(__file__).parents[1] / "golden")
TOLERANCE = 1e-9

NAMES = {"cone": "cone", "vec": "gqe", "box": "box", "beta": "beta"}
"""Published name to name in the catalog."""

_PROJECTION = {"layer1": "projection.0", "layer2": "projection.2", "layer0": "projection.4"}
_CENTER = {"center_net.layer1": "attention.0", "center_net.layer2": "attention.2"}
PARAMETERS: dict[str, dict[str, str]] = {
    "cone": {
        "entity_embedding": "entity",
        "axis_embedding": "relation_axis",
        "arg_embedding": "relation_aperture",
        "modulus": "scale",
        "cone_intersection.layer_axis1": "attention.0",
        "cone_intersection.layer_axis2": "attention.2",
        "cone_intersection.layer_arg1": "gate.inner",
        "cone_intersection.layer_arg2": "gate.outer",
        **{f"cone_proj.{theirs}": ours for theirs, ours in _PROJECTION.items()},
    },
    "vec": {"entity_embedding": "entity", "relation_embedding": "relation", **_CENTER},
    "box": {
        "entity_embedding": "entity",
        "relation_embedding": "relation_center",
        "offset_embedding": "relation_offset",
        "offset_net.layer1": "gate.inner",
        "offset_net.layer2": "gate.outer",
        **_CENTER,
    },
    "beta": {
        "entity_embedding": "entity",
        "relation_embedding": "relation",
        **{f"projection_net.{theirs}": ours for theirs, ours in _PROJECTION.items()},
        **_CENTER,
    },
}


@dataclass(frozen=True)
class Golden:
    """One model's reference numbers and our model with the same parameters."""

    model: QueryModel
    structures: dict[str, list[Query]]
    batch: list[Query]
    arrays: dict[str, np.ndarray]
    gradients: dict[str, Tensor]
    train: dict[str, Tensor]


@cache
def load(name: str) -> Golden:
    facts = json.loads((GOLDEN / f"{name}.json").read_text())
    with np.load(GOLDEN / f"{name}.npz") as stored:
        arrays = dict(stored)
    options = {"dim": facts["dim"], "gamma": facts["gamma"]}
    if name in ("cone", "beta"):
        options["hidden"] = facts["hidden"]
    if name == "cone":
        options |= {"projection": "published", "arctangent": "published", "dropout": 0.0}
    model = build_model(NAMES[name], facts["entities"], facts["relations"], options).double()
    model.load_state_dict(
        {
            ours: torch.from_numpy(arrays[f"param.{theirs}"])
            for theirs, ours in parameter_names(name, arrays)
        }
    )
    batch = [read_query(text) for _, text in facts["train_batch"]]
    train, gradients = run_training_batch(model, batch, arrays)
    structures = {
        structure: [read_query(text) for text in entry["queries"]]
        for structure, entry in facts["structures"].items()
    }
    return Golden(model, structures, batch, arrays, gradients, train)


def parameter_names(name: str, arrays: dict[str, np.ndarray]) -> list[tuple[str, str]]:
    """(published, ours) for every learnt parameter in the file."""
    pairs = []
    for key in arrays:
        if not key.startswith("param.") or key in ("param.gamma", "param.embedding_range"):
            continue
        theirs = key.removeprefix("param.")
        if theirs in PARAMETERS[name]:
            pairs.append((theirs, PARAMETERS[name][theirs]))
        else:
            layer, kind = theirs.rsplit(".", 1)
            pairs.append((theirs, f"{PARAMETERS[name][layer]}.{kind}"))
    return pairs


def read_query(text: str) -> Query:
    """The tree of a published nested tuple."""
    return query_from_tuple(ast.literal_eval(text))


def run_training_batch(
    model: QueryModel, batch: list[Query], arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    candidates = np.concatenate([arrays["train.positive"][:, None], arrays["train.negative"]], 1)
    logits = score_queries(model, batch, torch.from_numpy(candidates))
    positive, negative = logits[:, :1], logits[:, 1:]
    loss = negative_sampling_loss(positive, negative, torch.from_numpy(arrays["train.weight"]))
    names, parameters = zip(*model.named_parameters(), strict=True)
    gradients = dict(zip(names, torch.autograd.grad(loss, parameters), strict=True))
    values = {"positive_logit": positive, "negative_logit": negative, "loss": loss}
    return {key: value.detach() for key, value in values.items()}, gradients


def assert_close(ours: Tensor, theirs: np.ndarray, scale: float | None = None) -> None:
    """Agreement to 1e-9 of the largest expected value (or of `scale`)."""
    assert tuple(ours.shape) == theirs.shape
    largest = float(np.abs(theirs).max()) if scale is None else scale
    assert largest > 0
    error = float(np.abs(ours.numpy() - theirs).max())
    assert error <= TOLERANCE * largest, f"off by {error:.3e} where the largest is {largest:.3e}"


def structure_cases() -> list[tuple[str, str]]:
    return [
        (name, structure)
        for name in NAMES
        for structure in json.loads((GOLDEN / f"{name}.json").read_text())["structures"]
    ]


@pytest.mark.parametrize(("name", "structure"), structure_cases())
def test_logits(name: str, structure: str) -> None:
    golden = load(name)
    with torch.no_grad():
        logits = score_queries(golden.model, golden.structures[structure])
    assert_close(logits, golden.arrays[f"logits.{structure}"])


@pytest.mark.parametrize("name", ["cone", "beta"])
@pytest.mark.parametrize("structure", ["2u", "up"])
def test_de_morgan_rewriting_gives_the_published_form(name: str, structure: str) -> None:
    golden = load(name)
    queries = golden.structures[f"{structure}-DM"]
    positive = [undo_de_morgan(query) for query in queries]
    assert {shape_of(query).name for query in positive} == {structure}
    plan = plan_shapes([(shape_of(positive[0]), len(positive))], union="demorgan")
    slots = [slots_of(query) for query in positive]
    region = embed(
        golden.model,
        plan,
        [torch.tensor([entities for entities, _ in slots])],
        [torch.tensor([relations for _, relations in slots])],
    )
    with torch.no_grad():
        logits = best_over_branches(plan, golden.model.logits_of_all(region))
    assert_close(logits, golden.arrays[f"logits.{structure}-DM"])


def undo_de_morgan(query: Query) -> Query:
    """!(!a & !b) as a | b, also below a projection."""
    match query:
        case Project(operand, relation_id):
            return Project(undo_de_morgan(operand), relation_id)
        case Not(And(operands)):
            return Or(tuple(part.operand for part in operands if isinstance(part, Not)))
    raise AssertionError(query)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", ["positive_logit", "negative_logit", "loss"])
def test_training_batch(name: str, value: str) -> None:
    golden = load(name)
    assert_close(golden.train[value], golden.arrays[f"train.{value}"])


@pytest.mark.parametrize("name", NAMES)
def test_gradients(name: str) -> None:
    golden = load(name)
    largest = max(float(gradient.abs().max()) for gradient in golden.gradients.values())
    checked = set()
    for theirs, ours in parameter_names(name, golden.arrays):
        expected = golden.arrays[f"grad.{theirs}"]
        # A softmax ignores what all operands share: the last bias has no gradient but rounding.
        # In a very small model another parameter may have none either, behind ReLUs that are off.
        is_rounding = ours == "attention.2.bias" or np.abs(expected).max() < 1e-12 * largest
        assert_close(golden.gradients[ours], expected, largest if is_rounding else None)
        checked.add(ours)
    assert checked == set(dict(golden.model.named_parameters()))


def test_every_published_name_is_a_model() -> None:
    assert set(NAMES.values()) <= set(MODELS)
