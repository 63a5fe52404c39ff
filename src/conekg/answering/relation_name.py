"""Understands relation names: their words, and which of them are a verb, a state, a role or a noun.

Names follow no grammar, so their parts are guessed by patterns: a verb ("borders"), a state ("is
located in"), either with or without the kind of thing it leads to ("uses currency"), or a noun
("capital"). A name that fits none is to be quoted. The words themselves are in `english`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from conekg.answering.english import (
    ADJECTIVES,
    ARTICLES,
    COPULAS,
    INTRANSITIVE_VERBS,
    LONG_NOUNS,
    PARTICIPLES,
    PREPOSITIONS,
    USUALLY_PLURALS,
    VERB_FORMS,
    VERBS,
    has_plural,
    is_active,
    is_past,
    plural,
)

_HAVING = frozenset({"has", "have"})
_PREDICATES = ARTICLES | COPULAS | {"than"}
"""Words that are no relation on their own."""
_UNREAD = frozenset(
    {"also", "cannot", "never", "no", "not", "without"}
    | {"can", "could", "may", "might", "must", "shall", "should", "will", "would"}
)
"""Negations and modal verbs, which no pattern here can read: names with them are quoted."""
_PARTS = re.compile(r"[^\W_]+")
_PREFIX = re.compile(r"^[\w-]+:(?=[A-Za-z])")
_JOINT = re.compile(r"[/:&|]")
"""A sign that joins several names into one."""
_CODE = re.compile(r"(?!.*[a-z]{3})(?=.*(?:[0-9]|[a-z>][A-Z]))[A-Z][A-Za-z0-9<>]{0,8}[A-Z0-9]")
"""A code instead of a word, such as Hetionet's `CtD` or Wikidata's `P57`."""
_LONGEST_WORD = 14
"""The most letters of a single word, but for a few nouns; longer ones are several run together,
such as `athleteplaysforteam`."""
_LONGEST_ACRONYM = 3
"""The most letters of a name in capitals that is taken for an acronym; longer ones are words."""
_CAPITALS = re.compile("[A-Z]{2}")
_EXPECTED = PREPOSITIONS | _PREDICATES | _UNREAD | _HAVING | {"isa", *VERB_FORMS}
"""Words that the patterns here look for; they are never acronyms."""


@dataclass(frozen=True, slots=True)
class RelationName:
    """The parts of a relation's name."""

    kind: Literal["verb", "state", "role", "noun", "quoted"]
    words: str
    """The verb in the form of the name, the state ("located"), the role ("member"), the noun, or
    all words to be quoted."""
    preposition: str = ""
    target: str = ""
    """The kind of thing that a verb, a state or a role leads to, such as "currency"."""
    reversed: bool = False
    """Whether the head is the noun of the tail, as in `capital_of`, rather than the reverse."""


@lru_cache(maxsize=4096)
def repeats_path(label: str, name: str) -> bool:
    """Whether a label only repeats all parts of a path; the path's last part reads better."""
    return "/" in name and _PARTS.findall(label) == _PARTS.findall(name)


@lru_cache(maxsize=4096)
def understand_name(name: str) -> RelationName:
    """The parts of a relation's name, by the first pattern that fits."""
    words = _without_article(_words(name))
    last = _last_part(name)
    # A label, which has spaces, is quoted as it is; a name as the words it is made of.
    in_quotes = RelationName("quoted", last if re.search(r"\s", last) else " ".join(words))
    if _UNREAD.intersection(words) or (len(words) == 1 and words[0] in _PREDICATES):
        return in_quotes
    if _CODE.fullmatch(last) and words != ["is", "a"]:
        return RelationName("quoted", last)
    if words in (["isa"], ["is", "a"], ["is", "an"]):
        return RelationName("noun", "instance", reversed=True)
    has_copula = words[0] in COPULAS
    if has_copula:
        words = _without_article(words[1:])
    if words[0] in _HAVING and len(words) > 1 and is_past(words[1]):
        words = words[1:]  # "has won" says what "won" does
    if state := _state_in(words, has_copula):
        return state
    lead, rest = words[0], words[1:]
    if lead in _HAVING and rest not in ([], ["a"], ["an"]):
        words = _without_article(rest)
    elif lead in VERB_FORMS and not _is_compound(lead, rest):
        preposition, target = _led_to(rest)
        lacks_preposition = VERB_FORMS[lead][0] in INTRANSITIVE_VERBS and not preposition
        return in_quotes if lacks_preposition else RelationName("verb", lead, preposition, target)
    if _JOINT.search(last):
        return RelationName("quoted", last)
    return _noun_in(words) or in_quotes


def _state_in(words: list[str], has_copula: bool) -> RelationName | None:
    """The state that words name, such as "located in"; the copula before them is left out."""
    lead, rest = words[0], words[1:]
    if lead in PREPOSITIONS and (rest or has_copula):
        return RelationName("state", "", *_led_to(words))
    if rest[:1] == ["than"]:
        return RelationName("state", lead, "than", " ".join(rest[1:]))
    is_state = lead in PARTICIPLES or lead in ADJECTIVES or lead.endswith("ed")
    if is_state and rest and rest[0] in PREPOSITIONS and not is_active(lead, rest[0]):
        return RelationName("state", lead, *_led_to(rest))
    return None


def _noun_in(words: list[str]) -> RelationName | None:
    """The noun or the role that words name; None if their end has no plural."""
    if words[:2] == ["member", "of"] and len(words) > 2:
        return RelationName("role", "member", "of", " ".join(_without_article(words[2:])))
    if words[-1] == "of" and len(words) > 1:
        # "capital of" read backwards is the noun "capital".
        return RelationName("noun", " ".join(words[:-1]), reversed=True)
    is_run_together = (
        len(words) == 1 and len(words[0]) > _LONGEST_WORD and words[0] not in LONG_NOUNS
    )
    if words[-1] in PREPOSITIONS or is_run_together or not has_plural(words[-1]):
        return None
    return RelationName("noun", " ".join(words))


def _led_to(rest: list[str]) -> tuple[str, str]:
    """The preposition and the kind of thing in the words after a verb or a state."""
    if rest and rest[-1] in PREPOSITIONS:  # may be several words: "shares border with"
        return " ".join(rest), ""
    preposition, kind = ([rest[0]], rest[1:]) if rest and rest[0] in PREPOSITIONS else ([], rest)
    kind = [] if kind in (["a"], ["an"]) else _without_article(kind)
    return " ".join(preposition), " ".join(kind)


def _without_article(words: list[str]) -> list[str]:
    return words[1:] if len(words) > 1 and words[0] in ARTICLES else words


def _is_compound(lead: str, rest: list[str]) -> bool:
    """Whether a verb form and the words after it are a noun ("support group"), not a verb."""
    if lead in USUALLY_PLURALS:
        return not rest or rest[0] not in PREPOSITIONS
    return lead in VERBS and bool(rest) and rest[0] not in PREPOSITIONS | ARTICLES


def _words(name: str) -> list[str]:
    """The words of a name: `/film/film/produced_by` is ["produced", "by"]."""
    last = _last_part(name)
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", re.sub(r"[_\-\s.+]+", " ", last))
    parts = spaced.split()
    all_capitals = not any(map(str.islower, last))
    if len(parts) == 1 and len(last) <= _LONGEST_ACRONYM:
        all_capitals = False
    return [word if _is_acronym(word, all_capitals) else word.lower() for word in parts] or [name]


def _is_acronym(word: str, all_capitals: bool) -> bool:
    """Whether a word keeps its capitals ("CEO"); none does in a name written in capitals."""
    return not all_capitals and bool(_CAPITALS.search(word)) and word.lower() not in _EXPECTED


def _last_part(name: str) -> str:
    """A name without the path or the prefix before it."""
    if _is_path(name):
        name = re.split(r"[/#]", name.rstrip("/#"))[-1]
    return _PREFIX.sub("", name)


def _is_path(name: str) -> bool:
    """Whether a name is a path or an IRI, as those of Freebase are."""
    has_parts = name.startswith("/") or name.count("/") > 1 or "#" in name
    return has_parts and not re.search(r"\s", name)


def head_type(name: str) -> str:
    """The plural of what a relation's heads are, if its path tells: "films" for `/film/film/genre`.

    "things" otherwise.
    """
    if "://" in name or not _is_path(name):
        return "things"
    segments = [segment for segment in name.split("./")[0].split("/") if segment not in ("", "+")]
    return plural(segments[-2].replace("_", " ")) if len(segments) >= 3 else "things"
