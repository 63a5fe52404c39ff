"""Puts relations into plain words: from a name such as `^uses_currency` to a noun and a clause.

Each kind of name that `relation_name` tells apart is worded in both directions, for one entity and
for many. A name that is understood as none of them is quoted.
"""

from __future__ import annotations

from dataclasses import dataclass

from conekg.answering.english import (
    PAST_OF_ACTION,
    VERB_FORMS,
    VERBS,
    is_plural,
    plural,
    with_s,
)
from conekg.answering.relation_name import (
    RelationName,
    head_type,
    repeats_path,
    understand_name,
)
from conekg.graph.vocabulary import Vocabulary

ANYTHING = "anything"
"""The words for the set of all entities."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A set of entities in words: as a noun phrase, and as clauses that narrow another phrase.

    `noun` is "things that France borders"; `clause` is "that France borders" and
    `negated` "that France does not border". `named` is True if the noun phrase has a noun of
    its own ("capitals of Spain") rather than starting with "things".
    """

    noun: str
    clause: str
    negated: str
    named: bool = False


def one_hop(vocabulary: Vocabulary, relation_id: int, operand: str, *, single: bool) -> Phrase:
    """The words for the entities that one relation leads to from `operand`, a noun phrase.

    `single` says that the operand is one entity, so that verbs are in the singular. If it is
    False, the operand may be `ANYTHING`, the set of all entities.
    """
    name = vocabulary.relations.name(relation_id >> 1)
    label = vocabulary.relations.label(relation_id >> 1)
    relation = understand_name(name if repeats_path(label, name) else label)
    backwards = bool(relation_id & 1)
    things = head_type(name) if backwards else "things"
    if not backwards and relation.preposition == "by" and relation.words in PAST_OF_ACTION:
        # "things that directed X" reads better than "things that X is directed by".
        agents = plural(relation.target) if relation.target else "things"
        action = RelationName("verb", PAST_OF_ACTION[relation.words])
        return _verb(action, True, operand, single, agents)
    match relation.kind:
        case "verb":
            return _verb(relation, backwards, operand, single, things)
        case "state":
            return _state(relation, backwards, operand, single, things)
        case "role":
            return _role(relation, backwards, operand, single)
        case "noun":
            return _noun(relation.words, backwards ^ relation.reversed, operand, single, things)
        case "quoted":
            return _quoted(relation.words, backwards, operand, things)


def _verb(
    relation: RelationName, backwards: bool, operand: str, single: bool, things: str
) -> Phrase:
    base, past = VERB_FORMS[relation.words]
    tail = f" {relation.preposition}" if relation.preposition else ""
    plain = relation.words if past else base
    auxiliary = "did" if past else "do"
    is_active = relation.preposition or base == "star"  # nobody is "starred by" a film
    if backwards:
        target = _target(relation, operand, single)
        return _things(
            things, f"that {plain}{tail} {target}", f"that {auxiliary} not {base}{tail} {target}"
        )
    if single:
        auxiliary = "did" if past else "does"
        clause = f"that {operand} {plain if past else with_s(base)}{tail}"
        negated = f"that {operand} {auxiliary} not {base}{tail}"
    elif is_active and operand == ANYTHING:
        verb = plain if past else with_s(base)
        clause, negated = (f"that {some} {verb}{tail}" for some in (ANYTHING, "nothing"))
    elif is_active:
        clause, negated = (f"that {some} of {operand} {plain}{tail}" for some in ("any", "none"))
    else:
        participle = f"{VERBS[base][1]} by {operand}"
        clause, negated = f"that are {participle}", f"that are not {participle}"
        kind = plural(relation.target) if relation.target else "things"
        return Phrase(f"{kind} {participle}", clause, negated, named=kind != "things")
    return _kind_of(relation.target, clause, negated)


def _state(
    relation: RelationName, backwards: bool, operand: str, single: bool, things: str
) -> Phrase:
    state = f"{relation.words} {relation.preposition}".strip()
    if backwards:
        state = f"{state} {_target(relation, operand, single)}"
        return Phrase(
            f"{things} {state}", f"that are {state}", f"that are not {state}", things != "things"
        )
    return _kind_of(relation.target, *_being(operand, single, state, state))


def _role(relation: RelationName, backwards: bool, operand: str, single: bool) -> Phrase:
    role, roles = f"a {relation.words} of", f"{plural(relation.words)} of"
    if backwards:
        noun = f"{roles} {_target(relation, operand, single)}"
        return Phrase(noun, f"that are {noun}", f"that are not {noun}", named=True)
    return _kind_of(relation.target, *_being(operand, single, role, roles))


def _being(operand: str, single: bool, what: str, several: str) -> tuple[str, str]:
    """The clauses that say of an operand that it is something, and that it is not."""
    if single:
        return f"that {operand} is {what}", f"that {operand} is not {what}"
    if operand == ANYTHING:
        return f"that {ANYTHING} is {what}", f"that nothing is {what}"
    return f"that any of {operand} are {several}", f"that none of {operand} are {several}"


def _noun(noun: str, backwards: bool, operand: str, single: bool, things: str) -> Phrase:
    if backwards and operand == ANYTHING and not single:
        return _things(things, f"that have any {noun}", f"that have no {noun}")
    if backwards and is_plural(noun):
        some = operand if single else f"any of {operand}"
        return _things(
            things, f"whose {noun} include {some}", f"whose {noun} do not include {some}"
        )
    if backwards:
        among = operand if single else f"among {operand}"
        return _things(things, f"whose {noun} is {among}", f"whose {noun} is not {among}")
    several = f"{plural(noun)} of {operand}"
    return Phrase(several, f"that are {several}", f"that are not {several}", named=True)


def _quoted(words: str, backwards: bool, operand: str, things: str) -> Phrase:
    if backwards:
        goal = f"'{words}' leading to {operand}"
        return _things(things, f"with {goal}", f"without {goal}")
    clause = f"reached by '{words}' from {operand}"
    return _things("things", clause, f"not {clause}")


def _things(things: str, clause: str, negated: str) -> Phrase:
    return Phrase(f"{things} {clause}", clause, negated, named=things != "things")


def _kind_of(target: str, clause: str, negated: str) -> Phrase:
    """A clause as a phrase about a kind of thing ("currencies that X uses"), or about things."""
    return _things(plural(target) if target else "things", clause, negated)


def _target(relation: RelationName, operand: str, single: bool) -> str:
    """The operand with the kind of thing it is, if the name tells: "the currency X"."""
    if not relation.target:
        return operand
    if single:
        return f"the {relation.target} {operand}"
    any_target = f"any {relation.target}"
    return any_target if operand == ANYTHING else f"{any_target} of {operand}"
