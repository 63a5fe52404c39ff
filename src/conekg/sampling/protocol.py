"""Sampling protocols: how many queries of which shapes, and the limits on their answers.

The published values are presets, named after their benchmark. The preset `small` is for any
other graph: it derives its counts from the size of the graph, in the published proportions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from conekg.errors import ConfigError
from conekg.graph.benchmarks import benchmark_of, misnomer_of, release_of
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.query.shape import (
    NEGATION_STRUCTURES,
    POSITIVE_STRUCTURES,
    STRUCTURES,
    TRAINED_STRUCTURES,
    Shape,
)
from conekg.query.tree import has_negation

LINK = STRUCTURES["1p"]
"""The only shape that is enumerated instead of sampled: every link of the split is a query."""

MOST_TRAINING_QUERIES = 600_000
"""The largest count per shape that is derived from a graph. A query of two hops has hundreds of
answers, so one query per link would not fit into memory on a graph of millions of links."""


PathEnd = Literal["answer", "anchor"]
"""The end from which a path is drawn."""


def _shapes(names: tuple[str, ...]) -> tuple[Shape, ...]:
    return tuple(STRUCTURES[name] for name in names)


_NUMBERS = (
    "cap",
    "train_count",
    "train_negation_count",
    "evaluation_count",
    "train_cap",
    "train_negation_cap",
    "relation_tries",
    "patience",
)
"""The fields of a protocol that are counts; none of them can be zero."""


def is_number_of_things(value: object) -> bool:
    """Whether a value is a whole number, 1 or more."""
    return isinstance(value, int | np.integer) and bool(value >= 1)


@dataclass(frozen=True)
class SamplingProtocol:
    """Counts, caps and limits; counts of `None` are derived from the graph by `for_graph`."""

    name: str
    cap: int | None
    """Validation and test queries with more hard or more retracted answers are rejected."""
    train_count: int | None = None
    """Training queries of each shape without negation."""
    train_negation_count: int | None = None
    """Training queries of each shape with negation."""
    evaluation_count: int | None = None
    """Validation queries of each shape, and as many test queries."""
    trained: tuple[Shape, ...] = _shapes(TRAINED_STRUCTURES)
    """The shapes of the training set."""
    evaluated: tuple[Shape, ...] = _shapes((*POSITIVE_STRUCTURES, *NEGATION_STRUCTURES))
    """The shapes of the validation and the test set."""
    train_cap: int | None = None
    """The most answers of a training query without negation. The release has no limit: its
    training counts are the numbers of all training links, and it took these queries from
    Query2Box, where they were not capped."""
    train_negation_cap: int | None = None
    """The most answers of a training query with negation, which the release sampled itself."""
    train_paths_from: PathEnd = "answer"
    """The end from which training paths are walked. If a path is walked from an answer, as all
    other queries are, it is drawn more often the more answers it has; if it is walked from its
    anchor, it is not. The release's training paths are those of Query2Box, whose test paths have
    as many answers as paths walked from the anchor (`benchmarks/compare_path_draws.py`)."""
    relation_tries: int = 40
    """Draws of a relation before a walk is given up as a dead end."""
    patience: int = 262_144
    """The yield of a shape is judged each time this many attempts have been made. A stream gives up
    after this many attempts in a row without a query."""
    min_yield: float = 1e-4
    """A shape is given up, and its shortfall reported, if a smaller share of its last `patience`
    attempts gave a new query."""

    def __post_init__(self) -> None:
        for key in _NUMBERS:
            value = getattr(self, key)
            if value is not None and not is_number_of_things(value):
                raise ConfigError(
                    f"{key} of the sampling protocol {self.name!r} is {value!r}; "
                    "it must be a whole number, 1 or more",
                    key=key,
                )
        if not 0 < self.min_yield <= 1:  # with 0, sampling an exhausted shape would never end
            raise ConfigError(
                f"min_yield of the sampling protocol {self.name!r} is {self.min_yield}; it is a "
                "share of the attempts, above 0 and at most 1",
                key="min_yield",
            )
        if self.train_paths_from not in get_args(PathEnd):
            raise ConfigError(
                f"train_paths_from of the sampling protocol {self.name!r} is "
                f"{self.train_paths_from!r}; it must be {' or '.join(get_args(PathEnd))}",
                key="train_paths_from",
            )

    def answer_cap(self, split: Split, shape: Shape) -> int | None:
        """The cap that applies to a shape's queries of a split."""
        if split != "train":
            return self.cap
        return self.train_negation_cap if has_negation(shape.template) else self.train_cap

    def walks_forwards(self, split: Split, shape: Shape) -> bool:
        """Whether a shape's queries of a split are drawn from their anchor."""
        return split == "train" and self.train_paths_from == "anchor" and shape.is_path

    def shapes(self, split: Split) -> tuple[Shape, ...]:
        """The shapes of a split's set."""
        return self.trained if split == "train" else self.evaluated

    def count(self, split: Split, shape: Shape) -> int | None:
        """How many queries of a shape a split's set holds; None for all that exist."""
        if shape == LINK:
            return None
        if split != "train":
            return self.evaluation_count
        return self.train_negation_count if has_negation(shape.template) else self.train_count

    def for_graph(self, graph: KnowledgeGraph) -> SamplingProtocol:
        """This protocol with every missing count derived from the size of the graph.

        The published training counts are the number of training links (pairs of head and
        relation), and a tenth of it for shapes with negation. The evaluation counts are about a
        quarter of the test links, 5,000 on FB15k-237. No shape gets more than
        `MOST_TRAINING_QUERIES`, except links, which are all trained on.
        """
        links = len(graph.adjacency("train").pair_heads)
        test_links = len(graph.adjacency("test").pair_heads) - links
        train_count = self.train_count or min(max(links, 1), MOST_TRAINING_QUERIES)
        return replace(
            self,
            train_count=train_count,
            train_negation_count=self.train_negation_count or max(train_count // 10, 1),
            evaluation_count=self.evaluation_count or min(max(test_links // 4, 100), 5000),
        )

    def with_more_training(self, times: int) -> SamplingProtocol:
        """This protocol with `times * train_count` training queries of every shape.

        The counts must be resolved by `for_graph`. Shapes with negation get as many queries as
        the others: a model overfits to the published tenth of them long before it has learnt the
        rest. The count is at most `MOST_TRAINING_QUERIES`, unless it was larger before. Paths are
        walked from an answer, as are the paths on which a model is evaluated.
        """
        assert self.train_count is not None, "for_graph comes first"
        count = max(self.train_count, min(times * self.train_count, MOST_TRAINING_QUERIES))
        return replace(
            self, train_count=count, train_negation_count=count, train_paths_from="answer"
        )


def _published(
    name: str, cap: int, train_count: int, train_negation_count: int, evaluation_count: int
) -> SamplingProtocol:
    return SamplingProtocol(
        name,
        cap,
        train_count,
        train_negation_count,
        evaluation_count,
        train_negation_cap=cap,
        train_paths_from="anchor",
    )


PRESETS: dict[str, SamplingProtocol] = {
    protocol.name: protocol
    for protocol in (
        _published("fb15k", 100, 273_710, 27_371, 8_000),
        _published("fb15k-237", 120, 149_689, 14_968, 5_000),
        _published("nell995", 80, 107_982, 10_798, 4_000),
        SamplingProtocol("small", 100),
    )
}
"""The protocols of the BetaE release by benchmark, and `small` for any other graph."""


def preset_of(graph: KnowledgeGraph) -> tuple[SamplingProtocol, str | None]:
    """The preset for a graph if the user names none.

    The second value explains why a graph that has the name of a benchmark does not get its
    preset; otherwise it is None.
    """
    own = release_of(graph)
    if own in PRESETS:
        return PRESETS[own], None
    is_called_so = benchmark_of(graph.name) in PRESETS
    return PRESETS["small"], misnomer_of(graph) if is_called_so else None
