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
    """A set of entities in words: as a noun phrase, as clauses that narrow another, as sentences.

    `noun` is "things that France borders"; `clause` is "that France borders" and
    `negated` "that France does not border". `holds` is "France borders it" and `fails` "France does
    not border it", where "it" is one entity. `named` is True if the noun phrase has a noun of its
    own ("capitals of Spain") rather than starting with "things".
    """

    noun: str
    clause: str
    negated: str
    holds: str
    fails: str
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
    plain, singular = (relation.words,) * 2 if past else (base, with_s(base))
    do, does = ("did", "did") if past else ("do", "does")
    is_active = relation.preposition or base == "star"  # nobody is "starred by" a film
    if backwards:
        target = _target(relation, operand, single)
        return _things(
            things,
            f"that {plain}{tail} {target}",
            f"that {do} not {base}{tail} {target}",
            f"it {singular}{tail} {target}",
            f"it {does} not {base}{tail} {target}",
        )
    if single:
        said, denied = f"{operand} {singular}{tail}", f"{operand} {does} not {base}{tail}"
        return _objects(relation, said, denied)
    if is_active and operand == ANYTHING:
        return _objects(relation, *(f"{some} {singular}{tail}" for some in (ANYTHING, "nothing")))
    if is_active:
        said, denied = (f"{some} of {operand} {plain}{tail}" for some in ("any", "none"))
        return _objects(relation, said, denied)
    kind = plural(relation.target) if relation.target else "things"
    return _being(kind, f"{VERBS[base][1]} by {operand}")


def _state(
    relation: RelationName, backwards: bool, operand: str, single: bool, things: str
) -> Phrase:
    state = f"{relation.words} {relation.preposition}".strip()
    if backwards:
        return _being(things, f"{state} {_target(relation, operand, single)}")
    return _objects(relation, *_said_to_be(operand, single, state, state))


def _role(relation: RelationName, backwards: bool, operand: str, single: bool) -> Phrase:
    role, roles = f"a {relation.words} of", f"{plural(relation.words)} of"
    if backwards:
        target = _target(relation, operand, single)
        return _members(f"{roles} {target}", f"{role} {target}")
    return _objects(relation, *_said_to_be(operand, single, role, roles))


def _said_to_be(operand: str, single: bool, what: str, several: str) -> tuple[str, str]:
    """The words that say of an operand that it is something, and that it is not."""
    if single:
        return f"{operand} is {what}", f"{operand} is not {what}"
    if operand == ANYTHING:
        return f"{ANYTHING} is {what}", f"nothing is {what}"
    return f"any of {operand} are {several}", f"none of {operand} are {several}"


def _noun(noun: str, backwards: bool, operand: str, single: bool, things: str) -> Phrase:
    if not backwards:
        several = f"{plural(noun)} of {operand}"
        return _members(several, f"among the {several}")
    if operand == ANYTHING and not single:
        some, none = f"any {noun}", f"no {noun}"
        return _things(
            things, f"that have {some}", f"that have {none}", f"it has {some}", f"it has {none}"
        )
    if is_plural(noun):
        some = operand if single else f"any of {operand}"
        said, denied = f"{noun} include {some}", f"{noun} do not include {some}"
    else:
        among = operand if single else f"among {operand}"
        said, denied = f"{noun} is {among}", f"{noun} is not {among}"
    return _things(things, f"whose {said}", f"whose {denied}", f"its {said}", f"its {denied}")


def _quoted(words: str, backwards: bool, operand: str, things: str) -> Phrase:
    if backwards:
        goal = f"'{words}' leading to {operand}"
        return _things(
            things, f"with {goal}", f"without {goal}", f"it has {goal}", f"it has no {goal}"
        )
    clause = f"reached by '{words}' from {operand}"
    return _things("things", clause, f"not {clause}", f"it is {clause}", f"it is not {clause}")


def _things(things: str, clause: str, negated: str, holds: str, fails: str) -> Phrase:
    return Phrase(f"{things} {clause}", clause, negated, holds, fails, named=things != "things")


def _objects(relation: RelationName, said: str, denied: str) -> Phrase:
    """What something is said of, as words that lack their object: "currencies that X uses"."""
    things = plural(relation.target) if relation.target else "things"
    return _things(things, f"that {said}", f"that {denied}", f"{said} it", f"{denied} it")


def _being(things: str, state: str) -> Phrase:
    """The things in a state, such as "located in X"."""
    return Phrase(
        f"{things} {state}",
        f"that are {state}",
        f"that are not {state}",
        f"it is {state}",
        f"it is not {state}",
        named=things != "things",
    )


def _members(several: str, one: str) -> Phrase:
    """The entities that a plural names, such as "capitals of X"; `one` says that it is one."""
    return Phrase(
        several,
        f"that are {several}",
        f"that are not {several}",
        f"it is {one}",
        f"it is not {one}",
        named=True,
    )


def _target(relation: RelationName, operand: str, single: bool) -> str:
    """The operand with the kind of thing it is, if the name tells: "the currency X"."""
    if not relation.target:
        return operand
    if single:
        return f"the {relation.target} {operand}"
    any_target = f"any {relation.target}"
    return any_target if operand == ANYTHING else f"{any_target} of {operand}"
