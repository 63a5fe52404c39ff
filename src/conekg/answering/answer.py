"""Questions with their options, and their ranked answers, as plain values.

They are frozen and hold no tensors, so they can be printed, compared and sent as JSON. `engine`
makes them; the command line and the server show them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from conekg.answering.answer_table import html_table, text_table
from conekg.errors import ConfigError
from conekg.graph.knowledge_graph import Split
from conekg.query.branches import UnionForm
from conekg.query.tree import Query

Only = Literal["known", "predicted"]
Standing = Literal["known", "predicted", "contradicted"]


@dataclass(frozen=True, slots=True)
class Question:
    """A query, as a tree or as text, with options for its answers."""

    query: Query | str
    top_k: int = 10
    """How many answers at most; 1 or more."""
    only: Only | None = None
    """Return only known answers, or only predicted ones; by default both."""
    exclude: Sequence[str | int] = ()
    """Entities that are left out of the answers, by name, label or id."""
    known_graph: Split = "train"
    """Which nested graph's facts count as known; `train` is what the model has learnt from."""
    union: UnionForm = "dnf"
    """How unions are embedded: as the best of the union-free branches, or by De Morgan's law."""
    keep_contradicted: bool = False
    """Also rank entities that known facts rule out, as under a negation; by default left out."""


def question_of(query: Query | str | Question, options: Question) -> Question:
    """The query as a question with the options of another, or a question as it is.

    Raises `ConfigError` if a question, which has its own options, is given with others.
    """
    if not isinstance(query, Question):
        return replace(options, query=query)
    # Excluded entities may be an array, which cannot be compared with a tuple.
    excludes = not isinstance(options.exclude, Sequence) or len(options.exclude) > 0
    if excludes or replace(options, query="", exclude=()) != Question(""):
        raise ConfigError(
            "a Question has its own options, and others are given beside it; change them in "
            "the Question, as dataclasses.replace(question, top_k=3) does"
        )
    return query


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
    """The probability that the entity is an answer; None without a calibration. 0 if facts rule it
    out, 1 if it is known and no further fact can undo that. Fitted on validation queries, each of
    which lacked an answer, so it is too high for queries whose answers are all known."""
    known: bool
    """Whether the answer follows from the facts of the known graph alone."""
    contradicted: bool
    """Whether those facts rule it out; listed only if `keep_contradicted` was set."""
    member: bool | None
    """Whether at least 5/8 of its dimensions are inside the query's region (ConE, Appendix E);
    None for models whose regions have no inside."""

    @property
    def standing(self) -> Standing:
        """What the facts say about it, in one word."""
        if self.contradicted:
            return "contradicted"
        return "known" if self.known else "predicted"


@dataclass(frozen=True, slots=True)
class Answer:
    """The ranked answers of one question, with their number and how reliable they are."""

    query: str
    """The query in canonical text."""
    reading: str
    """The query in plain words."""
    answers: tuple[RankedAnswer, ...]
    num_known: int
    """How many answers the known graph gives, listed here or not."""
    num_contradicted: int
    """How many entities the known facts rule out."""
    estimated_count: float | None
    """The estimated number of answers: the known ones (of those that a negation can make false,
    the share that usually stays true) plus the missing ones, estimated from the size of the query's
    region; at most the number of entities that are not ruled out. None if the model has no size or
    was not calibrated, and if all entities are ruled out: then there is nothing to estimate."""
    estimated_count_factor: float | None
    """Half of such estimates are within this factor of the truth, measured on unseen validation
    queries, each of which lacked an answer: on those of the same shape if it has a curve of its
    own, else on all. None where it was not measured: for several branches, whose estimates are
    added, and where a negation can make known answers false."""
    calibration_error: float | None
    """Expected calibration error of the probabilities on unseen validation queries: on those of the
    same shape if it has a curve of its own, else the mean over all shapes."""
    known_graph: Split
    recall: float
    """The share of the true best answers that the search finds: 1 for exact searches, measured for
    a shortlist (ConE models of a million entities and more)."""
    model: str
    """The name of the model, such as `cone`."""
    seconds: float
    """Wall time from the start of the batch until this question was answered."""

    def __str__(self) -> str:
        return text_table(self)

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows."""
        return html_table(self)

    def to_json(self) -> dict[str, object]:
        """The answer as plain dictionaries, tuples, strings and numbers, for `json.dumps`."""
        return asdict(self)
