"""What is asked and what comes back: a question with its options, and its ranked answers.

Plain frozen values without tensors, so that they can be printed, sent as JSON and
compared; `engine` makes them, the command line and the server show them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from conekg.answering.answer_table import html_table, text_table
from conekg.graph.knowledge_graph import Split
from conekg.query.rewrite import UnionForm
from conekg.query.tree import Query

Only = Literal["known", "predicted"]
Standing = Literal["known", "predicted", "contradicted"]


@dataclass(frozen=True, slots=True)
class Question:
    """A query, as a tree or as text, and how its answers are wanted."""

    query: Query | str
    top_k: int = 10
    """How many answers at most; 1 or more."""
    only: Only | None = None
    """Keep only answers that the graph already holds, or only those it does not."""
    exclude: Sequence[str | int] = ()
    """Entities that must not be answered, by name, label or id."""
    known_graph: Split = "train"
    """Which nested graph counts as known; `train` is what the model has seen."""
    union: UnionForm = "dnf"
    """How unions are embedded: best of the union-free branches, or by De Morgan's law."""
    keep_contradicted: bool = False
    """Also rank entities that known facts rule out, as negations do; left out otherwise."""


@dataclass(frozen=True, slots=True)
class RankedAnswer:
    """One entity of an answer list."""

    rank: int
    """1 is the best. Equal scores rank by entity id."""
    entity_id: int
    name: str
    label: str
    score: float
    """The model's logit: margin minus scaled distance; larger is better."""
    probability: float | None
    """How likely the entity is an answer, fitted on validation queries, all of which had an
    answer missing: too high where none is. 0 where facts rule it out, 1 where it is known and no
    further fact can undo that, None if not fitted."""
    known: bool
    """Whether the answer follows from the facts of the known graph alone."""
    contradicted: bool
    """Whether those facts rule it out; such an entity is listed only where that was asked for."""
    member: bool | None
    """Whether at least 5/8 of its dimensions lie inside the query's region (ConE, Appendix E);
    None for models whose regions have no inside."""

    @property
    def standing(self) -> Standing:
        """What the facts say of it, in one word."""
        if self.contradicted:
            return "contradicted"
        return "known" if self.known else "predicted"


@dataclass(frozen=True, slots=True)
class Answer:
    """The ranked answers of one question and what they are worth."""

    query: str
    """The query in canonical text."""
    reading: str
    """The query in plain words."""
    answers: tuple[RankedAnswer, ...]
    num_known: int
    """How many answers the known graph holds, listed here or not."""
    num_contradicted: int
    """How many entities its facts rule out."""
    estimated_count: float | None
    """How many answers there are likely to be: those known (a share of those that rest on a
    negation) and those missing from the facts, by the size of the query's region; no more than
    are not ruled out. None if the model has no size or was not calibrated."""
    estimated_count_factor: float | None
    """Half of such estimates are within this factor, by unseen validation queries: those of the
    same shape where it has a curve of its own. All of those had an answer missing."""
    calibration_error: float | None
    """Expected calibration error of the probabilities on unseen validation queries: those of the
    same shape, or the mean over shapes where it has no curve of its own."""
    known_graph: Split
    recall: float
    """The share of the true best answers that the search finds: 1 where all entities are scored,
    measured where a shortlist is taken first (millions of entities)."""
    model: str
    seconds: float
    """Wall time of the batch this question was answered in."""

    def __str__(self) -> str:
        return text_table(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return html_table(self)

    def to_json(self) -> dict[str, object]:
        """The same as plain dictionaries, tuples, strings and numbers, for `json.dumps`."""
        return asdict(self)
