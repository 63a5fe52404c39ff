"""A question understood: its text parsed, its names looked up, and all checked that can be wrong.

What is found here costs no scoring and fails alone: a batch takes only understood questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from conekg.query.parse import parse_query
from conekg.query.render import render_query
from conekg.query.rewrite import UnionForm, capped, settle
from conekg.query.shape import Grounded, Shape, grounded
from conekg.query.tree import Query, Universe, subtrees


class Words(NamedTuple):
    """A query in both kinds of words."""

    text: str
    """Canonical."""
    reading: str
    """Plain."""


@dataclass(frozen=True, slots=True)
class Understood:
    """A question whose text, names and options have been checked, ready to be answered."""

    question: Question
    query: Query
    grounded: Grounded
    """The shape and ids of the query, or of a shorter one with the same answers."""
    ranked_by: RankedBy
    """What the model ranks by."""
    text: str
    """The query in canonical text."""
    reading: str
    """The query in plain words."""
    exclude: IntArray
    """Sorted ids."""


def understand(
    question: Question, graph: KnowledgeGraph, model: QueryModel, max_branches: int
) -> Understood:
    """The question with its query parsed, for a model that can answer it; raises what is wrong."""
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
    """What `understand` gives of a question that asks for a part of an understood query.

    Nothing is checked again and nothing put into words. `is_settled` where the whole query is
    as `settle` leaves it: then so are its parts. A part with its negations pushed inward may have
    more branches than the question had: it is asked by De Morgan's law then.
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


def _checked_form(
    asked: Grounded, shorter: Grounded, union: UnionForm, model: QueryModel, cap: int
) -> RankedBy:
    """What a model ranks a query by: the shorter form, if the model has the operators of that."""
    form = shorter
    if missing_operators(model, shorter.shape, union, cap):
        # What is left may be the set of all entities, which not all models can embed.
        check_supported(model, [asked.shape], union, cap)
        form = asked
    return _ranked_by(form, union, cap)


def settled(query: Query, asked: Grounded) -> Grounded:
    """The shape and ids of a query once it is settled; `asked` are those of the query as it is.

    Branches are counted and embedded of this form: what is said twice is not asked twice.
    """
    ids = asked.entity_ids
    if len(set(ids)) == len(ids) and _is_settled(asked.shape):
        return asked
    return grounded(settle(query))


@lru_cache(maxsize=1024)
def _is_settled(shape: Shape) -> bool:
    """Whether queries of a shape that name no entity twice are settled.

    Two parts of such a query can only be the same if they are made of `*` alone.
    """
    template = shape.template
    if any(isinstance(node, Universe) for node in subtrees(template)):
        return False
    return settle(template) == template


def _ranked_by(form: Grounded, union: UnionForm, cap: int) -> RankedBy:
    """What a model ranks a query of that form by."""
    if _names_answers(form.shape, union, cap):
        return ranked_by(form.shape.ground(form.entity_ids, form.relation_ids), union, cap)
    return RankedBy(form, ())


@lru_cache(maxsize=1024)
def _names_answers(shape: Shape, union: UnionForm, cap: int) -> bool:
    """Whether branches of queries of a shape name entities as their answers."""
    return bool(ranked_by(shape.template, union, cap).limits)


def excluded_by(question: Question, graph: KnowledgeGraph) -> IntArray:
    """The sorted ids of a question's `exclude`; raises what is wrong with any of its options.

    Its query is not read.
    """
    _check_options(question)
    ids = [entity_id_of(entity, graph) for entity in question.exclude]
    return np.unique(np.array(ids, dtype=np.int32))


def entity_id_of(entity: str | int, graph: KnowledgeGraph) -> int:
    """The id of an entity by its name, label or id; UnknownNameError where there is none."""
    if isinstance(entity, str):
        with told_apart(graph):
            return graph.vocabulary.entities.id_of(entity)
    check_entity_id(entity, graph)
    return entity


def check_ids(query: Grounded, graph: KnowledgeGraph) -> None:
    """Raise UnknownNameError where a query has ids that the graph does not have."""
    for entity_id in query.entity_ids:
        check_entity_id(entity_id, graph)
    for relation_id in query.relation_ids:
        _check_id("relation", relation_id, graph.num_relations)


def check_entity_id(entity_id: int, graph: KnowledgeGraph) -> None:
    """Raise UnknownNameError where the graph has no such entity."""
    _check_id("entity", entity_id, graph.num_entities)


def _check_id(kind: str, value: int, number: int) -> None:
    """Raise an error unless `value` is one of the `number` ids that a graph has of a kind."""
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
    # A text is a sequence of names too, of one letter each.
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ConfigError(f"{key} is {value!r}; it must be a list of names and ids", key=key)


def _no_query(value: object) -> ConfigError:
    """The error of what is neither text nor a tree."""
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
        raise _no_query(question.query)
    check_count("top_k", question.top_k)
    check_names("exclude", question.exclude)
    if not isinstance(question.keep_contradicted, bool):  # any text would count as yes
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
