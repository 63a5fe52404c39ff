"""Relations in plain words: from a name such as `^uses_currency` to noun and clause.

Names follow no grammar, so this is a best guess by pattern: a verb ("borders"), a
state ("is located in"), either perhaps with the kind of thing it leads to ("uses
currency"), or a noun ("capital"). What fits no pattern is quoted rather than bent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from conekg.graph.vocabulary import Vocabulary

_PREPOSITIONS = frozenset(
    {"about", "after", "against", "among", "as", "at", "before", "between", "by", "during", "for"}
    | {"from", "in", "into", "near", "of", "on", "over", "through", "to", "under", "upon", "via"}
    | {"with", "within"}
)

_REGULAR_VERBS = """
    acquire act activate affect alleviate appear appoint associate attack attend belong border
    cause cite coach collaborate compete compose connect consist contain cover create cross deal
    defeat depend derive design develop die direct discover downregulate edit employ encode export
    express feature flow follow found govern graduate happen hate illustrate import include induce
    influence inhibit interact invent invest join like live localize love manage marry modulate need
    neighbor originate own paint palliate participate perform play precede present prevent produce
    provide publish purchase receive recommend regulate replace report represent require resemble
    reside result rule serve share sponsor stimulate study supervise supply support target touch
    translate treat upregulate use visit work
"""
_IRREGULAR_VERBS = {
    "bind": ("bound", "bound"),
    "build": ("built", "built"),
    "buy": ("bought", "bought"),
    "control": ("controlled", "controlled"),
    "drive": ("drove", "driven"),
    "eat": ("ate", "eaten"),
    "give": ("gave", "given"),
    "grow": ("grew", "grown"),
    "have": ("had", "had"),
    "hold": ("held", "held"),
    "know": ("knew", "known"),
    "lead": ("led", "led"),
    "lie": ("lay", "lain"),
    "make": ("made", "made"),
    "occur": ("occurred", "occurred"),
    "refer": ("referred", "referred"),
    "see": ("saw", "seen"),
    "sell": ("sold", "sold"),
    "send": ("sent", "sent"),
    "sing": ("sang", "sung"),
    "sit": ("sat", "sat"),
    "speak": ("spoke", "spoken"),
    "star": ("starred", "starred"),
    "teach": ("taught", "taught"),
    "wear": ("wore", "worn"),
    "win": ("won", "won"),
    "write": ("wrote", "written"),
}
"""Past and participle, also of those that double their last letter."""

_OFTENER_NOUNS = frozenset(
    {"associate", "attack", "coach", "cover", "deal", "design", "edit", "feature", "graduate"}
    | {"influence", "neighbor", "play", "present", "purchase", "report", "result", "sponsor"}
    | {"star", "study", "supply", "work"}
)
"""Verbs whose base form, as a relation's name, is a noun: the stars of a film."""
_OFTENER_PLURALS = frozenset({"deals", "edits", "features", "reports", "results"})
"""Forms that are verbs only before a preposition: somebody reports to somebody, of a firm's
reports there are many."""


_ARTICLES = frozenset({"a", "an", "the"})
_COPULAS = frozenset({"is", "are", "was"})
_PREDICATES = _ARTICLES | _COPULAS | {"than"}
"""Words that say nothing alone."""
_UNREAD = frozenset(
    {"also", "cannot", "never", "no", "not", "without"}
    | {"can", "could", "may", "might", "must", "shall", "should", "will", "would"}
)
"""Words that no pattern here expects: many turn a relation into its opposite, or doubt it."""


def _with_s(word: str) -> str:
    """The plural of a regular noun, or the third person of a verb: they are spelled alike."""
    if word == "have":
        return "has"
    if re.search(r"(s|x|z|ch|sh)$", word):
        return f"{word}es"
    return f"{word[:-1]}ies" if re.search(r"[^aeiou]y$", word) else f"{word}s"


def _with_ed(verb: str) -> str:
    """The past and the participle of a regular verb."""
    if verb.endswith("e"):
        return f"{verb}d"
    return f"{verb[:-1]}ied" if re.search(r"[^aeiou]y$", verb) else f"{verb}ed"


_VERBS = {verb: (_with_ed(verb),) * 2 for verb in _REGULAR_VERBS.split()} | _IRREGULAR_VERBS
"""Past and participle of verbs that relation names are often made of, by their base form."""
_FORMS = {
    form: (base, form == past)
    for base, (past, _) in _VERBS.items()
    for form in {base, _with_s(base), past} - _OFTENER_NOUNS
} | {"featuring": ("feature", False), "starring": ("star", False)}
"""Base form, and whether it is past, of each form in which a relation is likely to be named."""
_DEEDS_OF_SOMEBODY = """
    acquire build buy compose create design develop direct discover edit found illustrate invent
    make paint perform produce publish purchase sell sing translate win write
"""
_DONE = {
    participle: past for past, participle in map(_VERBS.__getitem__, _DEEDS_OF_SOMEBODY.split())
}
"""The past of deeds, by the participle. What lasts is none: who is employed by X still may be."""
_PARTICIPLES = frozenset(participle for _, participle in _VERBS.values()) | {
    "based",
    "born",
    "found",
}
_DEEDS = frozenset(
    {"acted", "appeared", "belonged", "collaborated", "competed", "depended", "died", "flowed"}
    | {
        "graduated",
        "happened",
        "interacted",
        "invested",
        "led",
        "lived",
        "occurred",
        "participated",
        "played",
    }
    | {"starred", "studied", "taught", "worked"}
)
"""Past forms that no "is" is missing from: somebody acted in a film, but is located in a town."""
_PARTS = re.compile(r"[^\W_]+")
_IRREGULAR_PLURALS = {
    "alumni": "alumni",
    "alumnus": "alumni",
    "child": "children",
    "genus": "genera",
    "people": "people",
    "person": "people",
    "taxon": "taxa",
}
_SINGULARS = frozenset(
    {"alias", "atlas", "bias", "canvas", "gas", "headquarters", "lens", "means", "news"}
    | {"series", "species"}
)
"""Nouns that end like plurals."""
_LATIN_END = re.compile("[A-Za-z\u00df-\u024f]$")
"""The last letter of a word that an English plural fits."""
_PREFIX = re.compile(r"^[\w-]+:(?=[A-Za-z])")
_JOINT = re.compile(r"[/:&|]")
"""A sign between names that are several in one."""
_PAST_END = re.compile(r"[^e]ed$")
"""The end of a verb's past form, of which there is no plural."""
_CODE = re.compile(r"(?!.*[a-z]{3})(?=.*(?:[0-9]|[a-z>][A-Z]))[A-Z][A-Za-z0-9<>]{0,8}[A-Z0-9]")
"""A sign for a relation that is no word: Hetionet's `CtD`, Wikidata's `P57`."""
_LONGEST_WORD = 14
"""Longer single words are several words run together, such as `athleteplaysforteam`."""


_LONGEST_ACRONYM = 3
"""Letters of a name all in capitals that is taken for an acronym, as long ones are words."""
_CAPITALS = re.compile("[A-Z]{2}")
_EXPECTED = _PREPOSITIONS | _PREDICATES | _UNREAD | {"has", "have", "isa", *_FORMS}
"""Words that patterns here look for."""


ANYTHING = "anything"
"""The words for the set of all entities."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A set of entities in words, as a noun phrase and as clauses that narrow another one.

    `noun` is "things that France borders"; `clause` is "that France borders" and
    `negated` "that France does not border". `named` tells a noun phrase with a noun of
    its own ("capitals of Spain") from one that starts with "things".
    """

    noun: str
    clause: str
    negated: str
    named: bool = False


@dataclass(frozen=True, slots=True)
class _Relation:
    """The parts of a relation's name."""

    kind: Literal["verb", "state", "role", "noun", "quoted"]
    words: str
    """The verb as named, the state ("located"), the role ("member"), the noun, or all words."""
    preposition: str = ""
    target: str = ""
    """What kind of thing a verb, a state or a role leads to: "currency"."""
    reversed: bool = False
    """A noun that the name turns around: `capital_of`."""


def one_hop(vocabulary: Vocabulary, relation_id: int, operand: str, *, single: bool) -> Phrase:
    """The entities one relation away from `operand`, the words for an entity or for a set.

    `single` says that the operand is one entity, of which a verb takes the singular; where it is
    not, `ANYTHING` is the set of all.
    """
    name = vocabulary.relations.name(relation_id >> 1)
    label = vocabulary.relations.label(relation_id >> 1)
    relation = _understand(name if _repeats(label, name) else label)
    backwards = bool(relation_id & 1)
    things = _head_type(name) if backwards else "things"
    if not backwards and relation.preposition == "by" and relation.words in _DONE:
        doers = _plural(relation.target) if relation.target else "things"
        deed = _Relation("verb", _DONE[relation.words])  # "that directed X" is read at once
        return _verb(deed, True, operand, single, doers)
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


@lru_cache(maxsize=4096)
def _repeats(label: str, name: str) -> bool:
    """Whether a label is all parts of a path-like name, of which the last one reads better."""
    return "/" in name and _PARTS.findall(label) == _PARTS.findall(name)


@lru_cache(maxsize=4096)
def _understand(name: str) -> _Relation:
    words = _without_article(_words(name))
    last = _last_part(name)
    # A label as it is; a name as the words that it is made of.
    in_quotes = _Relation("quoted", last if re.search(r"\s", last) else " ".join(words))
    if _UNREAD.intersection(words) or (len(words) == 1 and words[0] in _PREDICATES):
        return in_quotes
    if _CODE.fullmatch(last) and words != ["is", "a"]:
        return _Relation("quoted", last)
    lead, rest = words[0], words[1:]
    if words == ["isa"] or (lead == "is" and rest in (["a"], ["an"])):
        return _Relation("noun", "instance", reversed=True)
    if lead in _COPULAS:
        words = _without_article(rest)
        lead, rest = words[0], words[1:]
        if lead in _PREPOSITIONS:
            return _Relation("state", "", *_led_to([lead, *rest]))
    if lead in ("has", "have") and rest and _is_past(rest[0]):  # "has won" says what "won" does
        lead, rest = rest[0], rest[1:]
    if rest and rest[0] == "than":
        return _Relation("state", lead, "than", " ".join(rest[1:]))
    is_participle = lead in _PARTICIPLES or lead.endswith("ed")
    if is_participle and rest and rest[0] in _PREPOSITIONS and not _is_deed(lead, rest[0]):
        return _Relation("state", lead, *_led_to(rest))
    if lead in ("has", "have") and rest not in ([], ["a"], ["an"]):
        words = _without_article(rest)
    elif lead in _FORMS and not _is_compound(lead, rest):
        return _Relation("verb", lead, *_led_to(rest))
    if lead in _PREPOSITIONS and rest:
        return _Relation("state", "", *_led_to([lead, *rest]))
    if _JOINT.search(last):
        return _Relation("quoted", last)
    if words[:2] == ["member", "of"] and len(words) > 2:
        return _Relation("role", "member", "of", " ".join(_without_article(words[2:])))
    if words[-1] == "of" and len(words) > 1:
        # "capital of" read backwards is the noun "capital".
        return _Relation("noun", " ".join(words[:-1]), reversed=True)
    is_run_together = len(words) == 1 and len(words[0]) > _LONGEST_WORD
    has_no_plural = (
        _PAST_END.search(words[-1])
        or words[-1] in _PARTICIPLES - {"bound"}
        or not _LATIN_END.search(words[-1])
    )
    if words[-1] in _PREPOSITIONS or is_run_together or has_no_plural:
        return in_quotes
    return _Relation("noun", " ".join(words))


def _led_to(rest: list[str]) -> tuple[str, str]:
    """What follows a verb or a state: its preposition, and the kind of thing it leads to."""
    if rest and rest[-1] in _PREPOSITIONS:  # also of several words: "shares border with"
        return " ".join(rest), ""
    preposition, kind = ([rest[0]], rest[1:]) if rest and rest[0] in _PREPOSITIONS else ([], rest)
    kind = [] if kind in (["a"], ["an"]) else _without_article(kind)
    return " ".join(preposition), " ".join(kind)


def _without_article(words: list[str]) -> list[str]:
    return words[1:] if len(words) > 1 and words[0] in _ARTICLES else words


def _is_compound(lead: str, rest: list[str]) -> bool:
    """Whether a form of a verb and what follows are one noun: a support group, or results."""
    if lead in _OFTENER_PLURALS:
        return not rest or rest[0] not in _PREPOSITIONS
    return lead in _VERBS and bool(rest) and rest[0] not in _PREPOSITIONS | _ARTICLES


def _is_past(word: str) -> bool:
    _, past = _FORMS.get(word, ("", False))
    return past


def _is_deed(lead: str, preposition: str) -> bool:
    return lead in _DEEDS and preposition != "by"


def _verb(relation: _Relation, backwards: bool, operand: str, single: bool, things: str) -> Phrase:
    base, past = _FORMS[relation.words]
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
        clause = f"that {operand} {plain if past else _with_s(base)}{tail}"
        negated = f"that {operand} {auxiliary} not {base}{tail}"
    elif is_active and operand == ANYTHING:
        verb = plain if past else _with_s(base)
        clause, negated = (f"that {who} {verb}{tail}" for who in (ANYTHING, "nothing"))
    elif is_active:
        clause, negated = (f"that {who} of {operand} {plain}{tail}" for who in ("any", "none"))
    else:
        participle = f"{_VERBS[base][1]} by {operand}"
        clause, negated = f"that are {participle}", f"that are not {participle}"
        kind = _plural(relation.target) if relation.target else "things"
        return Phrase(f"{kind} {participle}", clause, negated, named=kind != "things")
    return _kind_of(relation.target, clause, negated)


def _state(relation: _Relation, backwards: bool, operand: str, single: bool, things: str) -> Phrase:
    state = f"{relation.words} {relation.preposition}".strip()
    if backwards:
        state = f"{state} {_target(relation, operand, single)}"
        return Phrase(
            f"{things} {state}", f"that are {state}", f"that are not {state}", things != "things"
        )
    if single:
        clause, negated = f"that {operand} is {state}", f"that {operand} is not {state}"
    elif operand == ANYTHING:
        clause, negated = (f"that {who} is {state}" for who in (ANYTHING, "nothing"))
    else:
        clause, negated = (f"that {who} of {operand} are {state}" for who in ("any", "none"))
    return _kind_of(relation.target, clause, negated)


def _role(relation: _Relation, backwards: bool, operand: str, single: bool) -> Phrase:
    role, roles = f"a {relation.words} of", f"{_plural(relation.words)} of"
    if backwards:
        noun = f"{roles} {_target(relation, operand, single)}"
        return Phrase(noun, f"that are {noun}", f"that are not {noun}", named=True)
    if single:
        clause, negated = f"that {operand} is {role}", f"that {operand} is not {role}"
    elif operand == ANYTHING:
        clause, negated = (f"that {who} is {role}" for who in (ANYTHING, "nothing"))
    else:
        clause, negated = (f"that {who} of {operand} are {roles}" for who in ("any", "none"))
    return _kind_of(relation.target, clause, negated)


def _noun(noun: str, backwards: bool, operand: str, single: bool, things: str) -> Phrase:
    if backwards and operand == ANYTHING and not single:
        return _things(things, f"that have any {noun}", f"that have no {noun}")
    if backwards and _is_plural(noun):
        some = operand if single else f"any of {operand}"
        return _things(
            things, f"whose {noun} include {some}", f"whose {noun} do not include {some}"
        )
    if backwards:
        among = operand if single else f"among {operand}"
        return _things(things, f"whose {noun} is {among}", f"whose {noun} is not {among}")
    plural = f"{_plural(noun)} of {operand}"
    return Phrase(plural, f"that are {plural}", f"that are not {plural}", named=True)


def _quoted(words: str, backwards: bool, operand: str, things: str) -> Phrase:
    if backwards:
        goal = f"'{words}' leading to {operand}"
        return _things(things, f"with {goal}", f"without {goal}")
    clause = f"reached by '{words}' from {operand}"
    return _things("things", clause, f"not {clause}")


def _things(things: str, clause: str, negated: str) -> Phrase:
    return Phrase(f"{things} {clause}", clause, negated, named=things != "things")


def _kind_of(target: str, clause: str, negated: str) -> Phrase:
    """What a verb leads to; with its kind where the name tells: "currencies that ..."."""
    return _things(_plural(target) if target else "things", clause, negated)


def _target(relation: _Relation, operand: str, single: bool) -> str:
    if not relation.target:
        return operand
    if single:
        return f"the {relation.target} {operand}"
    any_target = f"any {relation.target}"
    return any_target if operand == ANYTHING else f"{any_target} of {operand}"


def _words(name: str) -> list[str]:
    """The words of a name: `/film/film/produced_by` is ["produced", "by"]."""
    last = _last_part(name)
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", re.sub(r"[_\-\s.+]+", " ", last))
    parts = spaced.split()
    shouted = not any(map(str.islower, last))
    if len(parts) == 1 and len(last) <= _LONGEST_ACRONYM:
        shouted = False
    return [word if _is_acronym(word, shouted) else word.lower() for word in parts] or [name]


def _is_acronym(word: str, shouted: bool) -> bool:
    """Whether a word keeps its capitals: those of a CEO, but not of a name that has no others."""
    return not shouted and bool(_CAPITALS.search(word)) and word.lower() not in _EXPECTED


def _last_part(name: str) -> str:
    """What a name says itself, without the path or the prefix before it."""
    if _is_path(name):
        name = re.split(r"[/#]", name.rstrip("/#"))[-1]
    return _PREFIX.sub("", name)


def _is_path(name: str) -> bool:
    """Whether a name leads from the general to the particular, as those of Freebase and IRIs do."""
    has_parts = name.startswith("/") or name.count("/") > 1 or "#" in name
    return has_parts and not re.search(r"\s", name)


def _head_type(name: str) -> str:
    """What the heads of a relation are, where its path tells: `/film/film/genre` has films."""
    if "://" in name or not _is_path(name):
        return "things"
    segments = [segment for segment in name.split("./")[0].split("/") if segment not in ("", "+")]
    return _plural(segments[-2].replace("_", " ")) if len(segments) >= 3 else "things"


def _is_plural(noun: str) -> bool:
    """Whether a noun is one already, by its last word: the actors of a film, but not its status."""
    last = noun.partition(" of ")[0].rpartition(" ")[2]
    if last in _IRREGULAR_PLURALS.values():
        return True
    return bool(re.search("[^isu]s$", last)) and last not in _SINGULARS


@lru_cache(maxsize=4096)
def _plural(noun: str) -> str:
    """The plural of a noun, of the word before "of" where there is one."""
    head, of, tail = noun.partition(" of ")
    first, space, last = head.rpartition(" ")
    if last in _IRREGULAR_PLURALS:
        last = _IRREGULAR_PLURALS[last]
    elif not _LATIN_END.search(last) or (last.endswith("s") and not last.endswith("ss")):
        pass  # of another script, or most often a plural already
    else:
        last = _with_s(last)
    return f"{first}{space}{last}{of}{tail}"
