"""Puts queries of any shape into plain words, for people who do not know the notation.

Every node is worded as a noun phrase and as a clause that narrows another phrase, so that an
intersection reads "films that won X, but that are not produced by Y"; and as a sentence, for a
question about an entity by name: "Japan, if France borders it". The words of relations are left to
`relation_phrase`; precise notations are in `query.render`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias, assert_never

from conekg.answering.relation_phrase import ANYTHING, Phrase, one_hop
from conekg.graph.vocabulary import Vocabulary
from conekg.query.rewrite import push_negation, simplify
from conekg.query.shape import Shape, shape_of, slots_of
from conekg.query.tree import (
    Anchor,
    And,
    Not,
    Or,
    Project,
    Query,
    Universe,
    fold,
    fold_each,
    subtrees,
)


def read_query(query: Query, vocabulary: Vocabulary) -> str:
    """The query in plain words, without a full stop."""
    return fold(_as_read(query), _reader(vocabulary)).noun


def read_parts(query: Query, vocabulary: Vocabulary) -> list[str]:
    """The plain words of every node, in the order of `subtrees`, found by one walk.

    The query must be simplified, with its negations pushed inward, as `explain` has it.
    """
    return [phrase.noun for phrase in fold_each(query, _reader(vocabulary))]


def _reader(vocabulary: Vocabulary) -> Callable[[Query, tuple[Phrase, ...]], Phrase]:
    """The visitor that puts a node into words, given the words of its operands."""

    def read(node: Query, parts: tuple[Phrase, ...]) -> Phrase:
        match node:
            case Anchor(entity_id):
                label = vocabulary.entities.label(entity_id)
                return _entity(label, f"not {label}")
            case Universe():
                return _entity(ANYTHING, "nothing")
            case Project(operand, relation_id):
                single = isinstance(operand, Anchor)
                inner = parts[0].noun
                if isinstance(operand, And | Or):
                    inner = f"({inner})"
                return one_hop(vocabulary, relation_id, inner, single=single)
            case Not(Universe()):
                return _entity("nothing", ANYTHING)
            case Not():
                return _negation(parts[0])
            case And(operands):
                return _intersection(list(zip(operands, parts, strict=True)), vocabulary)
            case Or(operands):
                return _union(list(zip(operands, parts, strict=True)))
        assert_never(node)

    return read


def _as_read(query: Query) -> Query:
    """The query simplified, with its negations pushed inward.

    "not a and not b" is easier to read than "not (a or b)".
    """
    entity_ids, _ = slots_of(query)
    if _is_simplest(shape_of(query)) and len(set(entity_ids)) == len(entity_ids):
        return query
    return simplify(push_negation(query))


@lru_cache(maxsize=1024)
def _is_simplest(shape: Shape) -> bool:
    """Whether `_as_read` leaves queries of a shape unchanged, if they name no entity twice."""
    template = shape.template
    # Parts made of `*` may be equal although no entity is named twice.
    return Universe() not in subtrees(template) and simplify(push_negation(template)) == template


def _entity(label: str, others: str) -> Phrase:
    clauses = f"that are {label}", f"that are {others}"
    return Phrase(label, *clauses, f"it is {label}", f"it is {others}", named=True)


def _negation(operand: Phrase) -> Phrase:
    noun = f"things {operand.negated}"
    return Phrase(noun, operand.negated, operand.clause, operand.fails, operand.holds)


_Pairs: TypeAlias = Sequence[tuple[Query, Phrase]]
"""Operands, each with its words."""


def _union(pairs: _Pairs) -> Phrase:
    if any(part.named or isinstance(node, And) for node, part in pairs):
        nouns = " or ".join(_bracketed(part.noun, isinstance(node, And)) for node, part in pairs)
    else:
        # All begin with "things": say it once.
        nouns = "things " + " or ".join(part.noun.removeprefix("things ") for _, part in pairs)
    holds = " or ".join(_bracketed(part.holds, isinstance(node, And)) for node, part in pairs)
    if all(isinstance(node, Anchor) for node, _ in pairs):
        holds = f"it is {nouns}"
    return _combined(nouns, holds)


def _intersection(pairs: _Pairs, vocabulary: Vocabulary) -> Phrase:
    names = [place for place, (node, _) in enumerate(pairs) if _is_name(node)]
    if not names:
        return _combined(_narrowed(pairs, vocabulary), _all_hold(pairs))
    # A clause would say which Poland is meant; the question is whether it is an answer.
    leader = min(names, key=lambda place: isinstance(pairs[place][0], Or))
    rest = [pair for place, pair in enumerate(pairs) if place != leader]
    return _combined(f"{pairs[leader][1].noun}, if {_all_hold(rest)}", _all_hold(pairs))


def _all_hold(pairs: _Pairs) -> str:
    """The sentences that say of one entity that it is in every operand."""
    if len(pairs) == 1:
        return pairs[0][1].holds
    return " and ".join(_bracketed(part.holds, isinstance(node, Or)) for node, part in pairs)


def _narrowed(pairs: _Pairs, vocabulary: Vocabulary) -> str:
    """An intersection that no entity is a part of: a noun phrase, narrowed by clauses."""
    wanted = [(node, part) for node, part in pairs if not isinstance(node, Not)]
    unwanted = [(node, part) for node, part in pairs if isinstance(node, Not)]
    if not wanted:
        return "things " + " and ".join(part.clause for _, part in unwanted)
    # Parts with a noun of their own come first, then those that need no brackets, unions last.
    wanted.sort(
        key=lambda pair: (isinstance(pair[0], Or), not pair[1].named, not _is_simple(*pair))
    )
    first, leader = wanted[0]
    noun = _bracketed(leader.noun, not _is_simple(first, leader))
    if narrowing := " and ".join(part.clause for _, part in wanted[1:]):
        # "things that France borders and that ...": a leader that ends in a clause needs "and".
        is_open = leader.named and not leader.noun.endswith(leader.clause)
        noun += f" {narrowing}" if is_open else f" and {narrowing}"
    labels = [
        vocabulary.entities.label(node.operand.entity_id)
        for node, _ in unwanted
        if isinstance(node.operand, Anchor)
    ]
    if unwanted and len(labels) == len(unwanted):
        return f"{noun}, except {_listed(labels)}"
    if unwanted:
        noun += ", but " + " and ".join(part.clause for _, part in unwanted)
    return noun


def _combined(noun: str, holds: str) -> Phrase:
    """The words of a union or an intersection, which is never negated itself."""
    return Phrase(noun, f"that are ({noun})", f"that are not ({noun})", holds, f"not ({holds})")


def _bracketed(words: str, is_ambiguous: bool) -> str:
    return f"({words})" if is_ambiguous else words


def _listed(labels: Sequence[str]) -> str:
    """Some names in a row: "Spain, Italy and France"."""
    *others, last = labels
    return f"{', '.join(others)} and {last}" if others else last


def _is_name(node: Query) -> bool:
    """Whether a node is an entity or a union of entities."""
    names = node.operands if isinstance(node, Or) else (node,)
    return all(isinstance(name, Anchor) for name in names)


def _is_simple(node: Query, words: Phrase) -> bool:
    """Whether a clause after the node's words is unambiguous, so that they need no brackets."""
    if isinstance(node, Universe):
        return True
    # "things bordered by (France or Spain)": the ambiguous part is in brackets already.
    return isinstance(node, Project) and (
        isinstance(node.operand, Anchor) or words.noun.endswith(")")
    )
