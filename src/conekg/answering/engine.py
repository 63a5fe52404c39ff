"""Asking: a query in, ranked answers out, each known or predicted, with its probability.

`Answerer` joins the two readings of a query: `symbolic` says what the facts already
hold, the model ranks all entities. Questions are answered in batches, mixed shapes
together; one question is a batch of one.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np
import torch

from conekg.answering.answer import Answer, Only, Question, RankedAnswer, Union
from conekg.answering.calibration import Calibration, load_calibration
from conekg.answering.index import EntityIndex, Ranking, merge_rankings
from conekg.answering.reading import read_query
from conekg.errors import ConfigError, QueryError, UnsupportedOperatorError
from conekg.evaluation.membership import inside_share
from conekg.graph.adjacency import IntArray
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.model.embed import embed
from conekg.model.interface import QueryModel, Region
from conekg.query.parse import parse_query
from conekg.query.plan import plan_shapes
from conekg.query.render import render_query
from conekg.query.rewrite import union_free_branches
from conekg.query.shape import Shape, shape_of, slots_of
from conekg.query.tree import Query, Universe, has_negation, subtrees
from conekg.symbolic.engine import answer as symbolic_answer
from conekg.training.run import open_run

MEMBER_SHARE = 5 / 8
"""The majority of cones that makes a member: 500 of 800 (ConE, Appendix E)."""


@dataclass(frozen=True, slots=True)
class Understood:
    """A question whose text, names and options have been checked, ready to be answered."""

    question: Question
    query: Query
    text: str
    reading: str
    exclude: IntArray
    """Sorted ids."""


class Answerer:
    """Answers questions over one graph with one model."""

    def __init__(
        self,
        graph: KnowledgeGraph,
        model: QueryModel,
        calibration: Calibration | None = None,
        *,
        max_branches: int = 64,
    ) -> None:
        self.graph = graph
        self.model = model.eval()
        self.calibration = calibration
        self.max_branches = max_branches
        self.index = EntityIndex(self.model)

    @classmethod
    def open(cls, folder: str | Path, *, which: str = "best", device: str = "auto") -> Answerer:
        """The answerer of a run folder, with its checkpoint `best` or `last`."""

    def understand(self, question: Question) -> Understood:
        """The question with its query parsed and everything checked that can be wrong with it.

        Cheap and safe to call from any thread.
        """

    def ask(
        self,
        query: Query | str,
        *,
        top_k: int = 10,
        only: Only | None = None,
        exclude: Sequence[str | int] = (),
        known_graph: Split = "train",
        union: Union = "dnf",
    ) -> Answer:
        """The ranked answers of one query."""
        question = Question(query, top_k, only, tuple(exclude), known_graph, union)
        return self.ask_batch([question])[0]

    def ask_batch(self, questions: Sequence[Question | Understood]) -> list[Answer]:
        """The answers of many questions, embedded and scored together, in the order asked.

        Raises the first error found; hand in `Understood` questions to keep a bad one
        from failing the others.
        """
