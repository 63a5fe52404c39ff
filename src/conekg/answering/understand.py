"""Parses and checks a question before any scoring: its text, its names and its options.

Every error a question can cause is raised here, so that a bad question fails alone rather than
with the batch it would be answered in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple, TypeGuard, get_args

import numpy as np

from conekg.answering.answer import Only, Question
from conekg.answering.named import RankedBy, ranked_by
from conekg.answering.reading import read_query
from conekg.errors import ConfigError, UnknownNameError
from conekg.graph.adjacency import IntArray
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.graph.namesakes import told_apart
from conekg.model.interface import QueryModel
from conekg.model.support import check_supported, missing_operators
from conekg.query.branches import UnionForm, capped
from conekg.query.parse import parse_query
from conekg.query.render import render_query
from conekg.query.rewrite import NOTHING, settle
from conekg.query.shape import Grounded, Shape, grounded
from conekg.query.tree import Query, Universe, subtrees


class Words(NamedTuple):
    """A query in words."""

    text: str
    """In canonical text."""
    reading: str
    """In plain words."""


@dataclass(frozen=True, slots=True)
class Understood:
    """A question whose text, names and options have been checked, ready to be answered."""

    question: Question
    query: Query
    """The query as it was asked, or without the parts that known facts leave empty."""
    grounded: Grounded
    """The shape and ids of the settled query, which has the same answers and may be shorter."""
    ranked_by: RankedBy
    """The query that the model ranks by."""
    text: str
    """The query in canonical text."""
    reading: str
    """The query in plain words."""
    exclude: IntArray
    """The sorted ids of the entities that are left out of the answers."""


def understand(
    question: Question, graph: KnowledgeGraph, model: QueryModel, max_branches: int
) -> Understood:
    """The question, parsed and checked; raises an error if it is bad or the model cannot answer."""
    exclude = excluded_by(question, graph)
    vocabulary = graph.vocabulary
    query = question.query
    if isinstance(query, str):
        with told_apart(graph):
            query = parse_query(query, vocabulary)
    asked = grounded(query)
    check_ids(asked, graph)
    shorter = settled(query, asked)
    return Understood(
        question=question,
        query=query,
        grounded=shorter,
        ranked_by=_checked_form(asked, shorter, question.union, model, max_branches),
        text=render_query(query, vocabulary),
        reading=read_query(query, vocabulary),
        exclude=exclude,
    )


def understand_part(
    question: Question, part: Query, words: Words, model: QueryModel, max_branches: int, *,
    is_settled: bool,
) -> Understood:  # fmt: skip
    """The same as `understand`, for a question about a part of a query that was understood before.

    The part is not checked again, and its `words` are given. `is_settled` says that `settle` leaves
    the whole query unchanged, and so its parts too. A part with its negations pushed inward may
    have more branches than allowed: it is then embedded by De Morgan's law.
    """
    form = capped(part, question.union, max_branches)
    asked = grounded(form)
    shorter = asked if is_settled else settled(form, asked)
    return Understood(
        question=question,
        query=part,
        grounded=shorter,
        ranked_by=_checked_form(asked, shorter, question.union, model, max_branches),
        text=words.text,
        reading=words.reading,
        exclude=np.empty(0, dtype=np.int32),
    )


def shortened(item: Understood, query: Grounded, model: QueryModel, cap: int) -> Understood:
    """The question, answered by another settled query that is known to have the same answers.

    Its words stay those of the question. It is ranked and explained as before if that query is
    `!*`, which says nothing of what was asked, or if the model cannot embed it.
    """
    if query is item.grounded:
        return item
    union = item.question.union
    if query.shape.template == NOTHING or missing_operators(model, query.shape, union, cap):
        return replace(item, grounded=query)
    return replace(
        item,
        query=query.shape.ground(query.entity_ids, query.relation_ids),
        grounded=query,
        ranked_by=_ranked_by(query, union, cap),
    )


def _checked_form(
    asked: Grounded, shorter: Grounded, union: UnionForm, model: QueryModel, cap: int
) -> RankedBy:
    """What a model ranks a query by: its settled form if the model supports that, else itself."""
    form = shorter
    if missing_operators(model, shorter.shape, union, cap):
        # The settled form may be the set of all entities, which not all models can embed.
        check_supported(model, [asked.shape], union, cap)
        form = asked
    return _ranked_by(form, union, cap)


def settled(query: Query, asked: Grounded) -> Grounded:
    """The shape and ids of `settle(query)`; `asked` are those of `query` itself.

    Branches are counted and embedded in this form, so that repeated parts count once.
    """
    ids = asked.entity_ids
    if len(set(ids)) == len(ids) and _is_settled(asked.shape):
        return asked
    return grounded(settle(query))


@lru_cache(maxsize=1024)
def _is_settled(shape: Shape) -> bool:
    """Whether `settle` leaves all queries of a shape unchanged that name no entity twice."""
    template = shape.template
    # Parts of such a query can only be equal if they name no entity at all, that is, contain `*`.
    if any(isinstance(node, Universe) for node in subtrees(template)):
        return False
    return settle(template) == template


def _ranked_by(form: Grounded, union: UnionForm, cap: int) -> RankedBy:
    """What a model ranks a query by: without the entities that its branches name."""
    if _names_answers(form.shape, union, cap):
        return ranked_by(form.shape.ground(form.entity_ids, form.relation_ids), union, cap)
    return RankedBy(form, ())


@lru_cache(maxsize=1024)
def _names_answers(shape: Shape, union: UnionForm, cap: int) -> bool:
    """Whether a branch of queries of a shape names entities as its answers."""
    return bool(ranked_by(shape.template, union, cap).limits)


def excluded_by(question: Question, graph: KnowledgeGraph) -> IntArray:
    """The sorted ids of a question's `exclude`; raises `ConfigError` if any of its options is bad.

    The question's query is not parsed.
    """
    _check_options(question)
    ids = [entity_id_of(entity, graph) for entity in question.exclude]
    return np.unique(np.array(ids, dtype=np.int32))


def entity_id_of(entity: str | int, graph: KnowledgeGraph) -> int:
    """The id of an entity by its name, label or id; UnknownNameError if there is none."""
    if isinstance(entity, str):
        with told_apart(graph):
            return graph.vocabulary.entities.id_of(entity)
    check_entity_id(entity, graph)
    return entity


def check_ids(query: Grounded, graph: KnowledgeGraph) -> None:
    """Raise UnknownNameError if a query has ids that the graph does not have."""
    for entity_id in query.entity_ids:
        check_entity_id(entity_id, graph)
    for relation_id in query.relation_ids:
        _check_id("relation", relation_id, graph.num_relations)


def check_entity_id(entity_id: int, graph: KnowledgeGraph) -> None:
    """Raise UnknownNameError if the graph has no such entity."""
    _check_id("entity", entity_id, graph.num_entities)


def _check_id(kind: str, value: int, number: int) -> None:
    """Raise an error unless `value` is one of a graph's `number` ids of a kind."""
    if not is_whole(value):
        raise ConfigError(
            f"{value!r} is no {kind} id; ids are whole numbers, names are texts",
            key=kind,
        )
    if not 0 <= value < number:
        raise UnknownNameError(
            f"{kind} id", str(value), hint=f"the graph has {kind} ids 0 to {number - 1}"
        )


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; truth values are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def check_count(key: str, value: object) -> None:
    """Raise ConfigError unless a value is a whole number, 1 or more."""
    if not is_whole(value) or value < 1:
        raise ConfigError(f"{key} is {value!r}; it must be a whole number, 1 or more", key=key)


def check_names(key: str, value: object) -> None:
    """Raise ConfigError unless a value can be a list of entities."""
    # A string is a sequence too, of one-letter names.
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"{key} is {value!r}; it must be a list of names and ids", key=key)


def _not_a_query(value: object) -> ConfigError:
    """The error for a query that is neither text nor a tree."""
    many = "; ask_batch takes several" if isinstance(value, list | tuple) else ""
    return ConfigError(
        f"the query is {value!r}; it must be text or a tree, as parse_query gives it{many}",
        key="query",
    )


def _check_options(question: Question) -> None:
    if not isinstance(question, Question):
        raise ConfigError(
            f"{question!r} is asked; it must be a Question, such as Question('France.borders')"
        )
    if not isinstance(question.query, str | Query):
        raise _not_a_query(question.query)
    check_count("top_k", question.top_k)
    check_names("exclude", question.exclude)
    if not isinstance(question.keep_contradicted, bool):  # any non-empty text would be true
        raise ConfigError(
            f"keep_contradicted is {question.keep_contradicted!r}; it must be True or False",
            key="keep_contradicted",
        )
    for key, value, accepted in (
        ("only", question.only, (None, *get_args(Only))),
        ("known_graph", question.known_graph, SPLITS),
        ("union", question.union, get_args(UnionForm)),
    ):
        if value not in accepted:
            words = ", ".join(repr(choice) for choice in accepted)
            raise ConfigError(f"{key} is {value!r}; it must be one of {words}", key=key)
