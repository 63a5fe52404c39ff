"""Puts relations into plain words: from a name such as `^uses_currency` to a noun and a clause.

Relation names follow no grammar, so words are guessed by patterns: a verb ("borders"), a state
("is located in"), either with or without the kind of thing it leads to ("uses currency"), or a noun
("capital"). A name that fits no pattern is quoted.
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
"""Past and participle of irregular verbs, and of regular ones that double their last letter."""

_USUALLY_NOUNS = frozenset(
    {"associate", "attack", "coach", "cover", "deal", "design", "edit", "feature", "graduate"}
    | {"influence", "neighbor", "play", "present", "purchase", "report", "result", "sponsor"}
    | {"star", "study", "supply", "work"}
)
"""Verbs whose base form is usually a noun in a relation's name, such as `star`."""
_USUALLY_PLURALS = frozenset({"deals", "edits", "features", "reports", "results"})
"""Forms that are verbs only before a preposition ("reports to"), and otherwise plural nouns."""


_ARTICLES = frozenset({"a", "an", "the"})
_COPULAS = frozenset({"is", "are", "was"})
_HAVING = frozenset({"has", "have"})
_PREDICATES = _ARTICLES | _COPULAS | {"than"}
"""Words that are no relation on their own."""
_UNREAD = frozenset(
    {"also", "cannot", "never", "no", "not", "without"}
    | {"can", "could", "may", "might", "must", "shall", "should", "will", "would"}
)
"""Negations and modal verbs, which no pattern here can read: names with them are quoted."""


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
"""Past and participle of the verbs that relation names are often made of, by base form."""
_FORMS = {
    form: (base, form == past)
    for base, (past, _) in _VERBS.items()
    for form in {base, _with_s(base), past} - _USUALLY_NOUNS
} | {"featuring": ("feature", False), "starring": ("star", False)}
"""For each verb form that a relation's name may have: its base form, and whether it is past."""
_COMPLETED_ACTIONS = """
    acquire build buy compose create design develop direct discover edit found illustrate invent
    make paint perform produce publish purchase sell sing translate win write
"""
_PAST_OF_ACTION = {
    participle: past for past, participle in map(_VERBS.__getitem__, _COMPLETED_ACTIONS.split())
}
"""The past of verbs for completed actions, by their participle: what a film is "directed by" are
"things that directed" it. Verbs for states, such as "employed by", are left out: a state may last,
so the past could be wrong."""
_PARTICIPLES = frozenset(participle for _, participle in _VERBS.values()) | {
    "based",
    "born",
    "found",
}
_INTRANSITIVE_VERBS = frozenset(
    {"act", "appear", "belong", "collaborate", "compete", "consist", "depend", "die", "flow"}
    | {"happen", "interact", "lie", "live", "occur", "participate", "reside", "result", "sit"}
    | {"work"}
)
"""Verbs without a direct object: they link two entities only with a preposition ("died in")."""
_ACTIVE_PASTS = frozenset(
    {_VERBS[verb][0] for verb in _INTRANSITIVE_VERBS}
    | {"graduated", "invested", "led", "played", "starred", "studied", "taught"}
)
"""Past forms that are active before a preposition: somebody *acted in* a film. Other past forms
are passive there: somebody *is located in* a town."""
_PARTS = re.compile(r"[^\W_]+")
_IRREGULAR_PLURALS = {
    "alumnus": "alumni",
    "child": "children",
    "genus": "genera",
    "man": "men",
    "person": "people",
    "taxon": "taxa",
    "wife": "wives",
    "woman": "women",
}
_SINGULARS = frozenset(
    {"alias", "atlas", "bias", "canvas", "gas", "headquarters", "lens", "means", "news"}
    | {"series", "species"}
)
"""Singular nouns that end like plurals."""
_LATIN_END = re.compile("[A-Za-z\u00df-\u024f]$")
"""The last letter of a word that an English plural fits."""
_PREFIX = re.compile(r"^[\w-]+:(?=[A-Za-z])")
_JOINT = re.compile(r"[/:&|]")
"""A sign that joins several names into one."""
_PAST_END = re.compile(r"[^e]ed$")
"""The end of a past form, which has no plural."""
_CODE = re.compile(r"(?!.*[a-z]{3})(?=.*(?:[0-9]|[a-z>][A-Z]))[A-Z][A-Za-z0-9<>]{0,8}[A-Z0-9]")
"""A code instead of a word, such as Hetionet's `CtD` or Wikidata's `P57`."""
_LONGEST_WORD = 14
"""The most letters of a single word; longer ones are several run together, such as
`athleteplaysforteam`."""


_LONGEST_ACRONYM = 3
"""The most letters of a name in capitals that is taken for an acronym; longer ones are words."""
_CAPITALS = re.compile("[A-Z]{2}")
_EXPECTED = _PREPOSITIONS | _PREDICATES | _UNREAD | _HAVING | {"isa", *_FORMS}
"""Words that the patterns here look for; they are never acronyms."""


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


@dataclass(frozen=True, slots=True)
class _Relation:
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


def one_hop(vocabulary: Vocabulary, relation_id: int, operand: str, *, single: bool) -> Phrase:
    """The words for the entities that one relation leads to from `operand`, a noun phrase.

    `single` says that the operand is one entity, so that verbs are in the singular. If it is
    False, the operand may be `ANYTHING`, the set of all entities.
    """
    name = vocabulary.relations.name(relation_id >> 1)
    label = vocabulary.relations.label(relation_id >> 1)
    relation = _understand(name if _repeats(label, name) else label)
    backwards = bool(relation_id & 1)
    things = _head_type(name) if backwards else "things"
    if not backwards and relation.preposition == "by" and relation.words in _PAST_OF_ACTION:
        # "things that directed X" reads better than "things that X is directed by".
        agents = _plural(relation.target) if relation.target else "things"
        action = _Relation("verb", _PAST_OF_ACTION[relation.words])
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


@lru_cache(maxsize=4096)
def _repeats(label: str, name: str) -> bool:
    """Whether a label only repeats all parts of a path; the path's last part reads better."""
    return "/" in name and _PARTS.findall(label) == _PARTS.findall(name)


@lru_cache(maxsize=4096)
def _understand(name: str) -> _Relation:
    """The parts of a relation's name, by the first pattern that fits."""
    words = _without_article(_words(name))
    last = _last_part(name)
    # A label, which has spaces, is quoted as it is; a name as the words it is made of.
    in_quotes = _Relation("quoted", last if re.search(r"\s", last) else " ".join(words))
    if _UNREAD.intersection(words) or (len(words) == 1 and words[0] in _PREDICATES):
        return in_quotes
    if _CODE.fullmatch(last) and words != ["is", "a"]:
        return _Relation("quoted", last)
    if words in (["isa"], ["is", "a"], ["is", "an"]):
        return _Relation("noun", "instance", reversed=True)
    has_copula = words[0] in _COPULAS
    if has_copula:
        words = _without_article(words[1:])
    if words[0] in _HAVING and len(words) > 1 and _is_past(words[1]):
        words = words[1:]  # "has won" says what "won" does
    if state := _state_in(words, has_copula):
        return state
    lead, rest = words[0], words[1:]
    if lead in _HAVING and rest not in ([], ["a"], ["an"]):
        words = _without_article(rest)
    elif lead in _FORMS and not _is_compound(lead, rest):
        preposition, target = _led_to(rest)
        lacks_preposition = _FORMS[lead][0] in _INTRANSITIVE_VERBS and not preposition
        return in_quotes if lacks_preposition else _Relation("verb", lead, preposition, target)
    if _JOINT.search(last):
        return _Relation("quoted", last)
    return _noun_in(words) or in_quotes


def _state_in(words: list[str], has_copula: bool) -> _Relation | None:
    """The state that words name, such as "located in"; the copula before them is left out."""
    lead, rest = words[0], words[1:]
    if lead in _PREPOSITIONS and (rest or has_copula):
        return _Relation("state", "", *_led_to(words))
    if rest[:1] == ["than"]:
        return _Relation("state", lead, "than", " ".join(rest[1:]))
    is_participle = lead in _PARTICIPLES or lead.endswith("ed")
    if is_participle and rest and rest[0] in _PREPOSITIONS and not _is_active(lead, rest[0]):
        return _Relation("state", lead, *_led_to(rest))
    return None


def _noun_in(words: list[str]) -> _Relation | None:
    """The noun or the role that words name; None if their end has no plural."""
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
        return None
    return _Relation("noun", " ".join(words))


def _led_to(rest: list[str]) -> tuple[str, str]:
    """The preposition and the kind of thing in the words after a verb or a state."""
    if rest and rest[-1] in _PREPOSITIONS:  # may be several words: "shares border with"
        return " ".join(rest), ""
    preposition, kind = ([rest[0]], rest[1:]) if rest and rest[0] in _PREPOSITIONS else ([], rest)
    kind = [] if kind in (["a"], ["an"]) else _without_article(kind)
    return " ".join(preposition), " ".join(kind)


def _without_article(words: list[str]) -> list[str]:
    return words[1:] if len(words) > 1 and words[0] in _ARTICLES else words


def _is_compound(lead: str, rest: list[str]) -> bool:
    """Whether a verb form and the words after it are a noun ("support group"), not a verb."""
    if lead in _USUALLY_PLURALS:
        return not rest or rest[0] not in _PREPOSITIONS
    return lead in _VERBS and bool(rest) and rest[0] not in _PREPOSITIONS | _ARTICLES


def _is_past(word: str) -> bool:
    _, past = _FORMS.get(word, ("", False))
    return past


def _is_active(past: str, preposition: str) -> bool:
    """Whether a past form before a preposition is active; before "by" it is always passive."""
    return past in _ACTIVE_PASTS and preposition != "by"


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
        clause, negated = (f"that {some} {verb}{tail}" for some in (ANYTHING, "nothing"))
    elif is_active:
        clause, negated = (f"that {some} of {operand} {plain}{tail}" for some in ("any", "none"))
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
    return _kind_of(relation.target, *_being(operand, single, state, state))


def _role(relation: _Relation, backwards: bool, operand: str, single: bool) -> Phrase:
    role, roles = f"a {relation.words} of", f"{_plural(relation.words)} of"
    if backwards:
        noun = f"{roles} {_target(relation, operand, single)}"
        return Phrase(noun, f"that are {noun}", f"that are not {noun}", named=True)
    return _kind_of(relation.target, *_being(operand, single, role, roles))


def _being(operand: str, single: bool, what: str, plural: str) -> tuple[str, str]:
    """The clauses that say of an operand that it is something, and that it is not."""
    if single:
        return f"that {operand} is {what}", f"that {operand} is not {what}"
    if operand == ANYTHING:
        return f"that {ANYTHING} is {what}", f"that nothing is {what}"
    return f"that any of {operand} are {plural}", f"that none of {operand} are {plural}"


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
    """A clause as a phrase about a kind of thing ("currencies that X uses"), or about things."""
    return _things(_plural(target) if target else "things", clause, negated)


def _target(relation: _Relation, operand: str, single: bool) -> str:
    """The operand with the kind of thing it is, if the name tells: "the currency X"."""
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


def _head_type(name: str) -> str:
    """The plural of what a relation's heads are, if its path tells: "films" for `/film/film/genre`.

    "things" otherwise.
    """
    if "://" in name or not _is_path(name):
        return "things"
    segments = [segment for segment in name.split("./")[0].split("/") if segment not in ("", "+")]
    return _plural(segments[-2].replace("_", " ")) if len(segments) >= 3 else "things"


def _is_plural(noun: str) -> bool:
    """Whether a noun is a plural already, as "actors" is and "status" is not.

    Only the last word counts, or the one before "of".
    """
    last = noun.partition(" of ")[0].rpartition(" ")[2]
    if last in _IRREGULAR_PLURALS.values():
        return True
    return bool(re.search("[^isu]s$", last)) and last not in _SINGULARS


@lru_cache(maxsize=4096)
def _plural(noun: str) -> str:
    """The plural of a noun; "places of birth" for "place of birth"."""
    head, of, tail = noun.partition(" of ")
    first, space, last = head.rpartition(" ")
    if last in _IRREGULAR_PLURALS:
        last = _IRREGULAR_PLURALS[last]
    elif (
        last in _IRREGULAR_PLURALS.values()
        or not _LATIN_END.search(last)
        or (last.endswith("s") and not last.endswith("ss"))
    ):
        pass  # a word of another script, or one that is most likely a plural already
    else:
        last = _with_s(last)
    return f"{first}{space}{last}{of}{tail}"
