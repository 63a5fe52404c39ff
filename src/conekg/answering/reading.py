"""Puts queries of any shape into plain words, for people who do not know the notation.

Every node is worded both as a noun phrase and as a clause that narrows another phrase, so that
an intersection reads "films that won X, but that are not produced by Y". The words of relations
are left to `relation_phrase`; precise notations are in `query.render`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import assert_never

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
                return _entity(vocabulary.entities.label(entity_id))
            case Universe():
                return Phrase(ANYTHING, "that are anything", "that are nothing", named=True)
            case Project(operand, relation_id):
                single = isinstance(operand, Anchor)
                inner = parts[0].noun
                if isinstance(operand, And | Or):
                    inner = f"({inner})"
                return one_hop(vocabulary, relation_id, inner, single=single)
            case Not(Universe()):
                return Phrase("nothing", "that are nothing", "that are anything", named=True)
            case Not():
                return _negation(parts[0])
            case And(operands):
                return _intersection(operands, parts)
            case Or():
                return _union(parts)
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


def _entity(label: str) -> Phrase:
    return Phrase(label, f"that are {label}", f"that are not {label}", named=True)


def _negation(operand: Phrase) -> Phrase:
    return Phrase(f"things {operand.negated}", operand.negated, operand.clause)


def _union(parts: Sequence[Phrase]) -> Phrase:
    if any(part.named for part in parts):
        nouns = " or ".join(part.noun for part in parts)
    else:
        # All begin with "things": say it once.
        nouns = "things " + " or ".join(part.noun.removeprefix("things ") for part in parts)
    return Phrase(nouns, f"that are ({nouns})", f"that are not ({nouns})")


def _intersection(operands: Sequence[Query], parts: Sequence[Phrase]) -> Phrase:
    pairs = list(zip(operands, parts, strict=True))
    wanted = [(node, part) for node, part in pairs if not isinstance(node, Not)]
    unwanted = [part for node, part in pairs if isinstance(node, Not)]
    # Parts with a noun of their own come first, then those that need no brackets, unions last.
    wanted.sort(
        key=lambda pair: (isinstance(pair[0], Or), not pair[1].named, not _is_simple(*pair))
    )
    if wanted:
        first, leader = wanted[0]
        noun = leader.noun if _is_simple(first, leader) else f"({leader.noun})"
        if narrowing := " and ".join(part.clause for _, part in wanted[1:]):
            # "things that France borders and that ...": a leader that ends in a clause needs "and".
            is_open = leader.named and not leader.noun.endswith(leader.clause)
            noun += f" {narrowing}" if is_open else f" and {narrowing}"
        if unwanted:
            noun += ", but " + " and ".join(part.clause for part in unwanted)
    else:
        noun = "things " + " and ".join(part.clause for part in unwanted)
    return Phrase(noun, f"that are ({noun})", f"that are not ({noun})")


def _is_simple(node: Query, words: Phrase) -> bool:
    """Whether a clause after the node's words is unambiguous, so that they need no brackets."""
    if isinstance(node, Anchor | Universe):
        return True
    # "things bordered by (France or Spain)": the ambiguous part is in brackets already.
    return isinstance(node, Project) and (
        isinstance(node.operand, Anchor) or words.noun.endswith(")")
    )
