"""English words of the kinds that relation names are made of, and their forms.

Which words are verbs, prepositions or articles; how verbs are conjugated and nouns made plural.
"""

from __future__ import annotations

import re
from functools import lru_cache

PREPOSITIONS = frozenset(
    {"about", "after", "against", "among", "as", "at", "before", "between", "by", "during", "for"}
    | {"from", "in", "into", "near", "of", "on", "over", "through", "to", "under", "upon", "via"}
    | {"with", "within"}
)
"""Words that lead from a verb or a state to another entity."""

_REGULAR_VERBS = """
    acquire act activate affect alleviate appear appoint associate attack attend belong border cause
    cite coach collaborate compete compose connect consist contain cover create cross deal defeat
    depend derive design develop die direct discover downregulate edit employ encode export express
    feature flow follow found govern graduate happen hate illustrate import include induce influence
    inhibit interact invent invest join like link live localize love manage marry mention modulate
    need neighbor originate own paint palliate participate perform play precede present prevent
    produce provide publish purchase receive recommend regulate replace report represent require
    resemble reside result rule serve share sponsor stimulate study supervise supply support target
    touch translate treat upregulate use view visit work
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
    "take": ("took", "taken"),
    "teach": ("taught", "taught"),
    "wear": ("wore", "worn"),
    "win": ("won", "won"),
    "write": ("wrote", "written"),
}
"""Past and participle of irregular verbs, and of regular ones that double their last letter."""

_USUALLY_NOUNS = frozenset(
    {"associate", "attack", "coach", "cover", "deal", "design", "edit", "feature", "graduate"}
    | {"influence", "link", "mention", "neighbor", "play", "present", "purchase", "report"}
    | {"result", "sponsor", "star", "study", "supply", "view", "work"}
)
"""Verbs whose base form is usually a noun in a relation's name, such as `star`."""
USUALLY_PLURALS = frozenset({"deals", "edits", "features", "links", "reports", "results"})
"""Forms that are verbs only before a preposition ("reports to"), and otherwise plural nouns."""
ARTICLES = frozenset({"a", "an", "the"})
"""Words before a noun."""
COPULAS = frozenset({"is", "are", "was"})
"""Forms of "to be"."""


def with_s(word: str) -> str:
    """The plural of a regular noun, or the third person of a verb: they are spelled alike.

    >>> with_s("border"), with_s("match"), with_s("city"), with_s("have")
    ('borders', 'matches', 'cities', 'has')
    """
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


VERBS = {verb: (_with_ed(verb),) * 2 for verb in _REGULAR_VERBS.split()} | _IRREGULAR_VERBS
"""Past and participle of the verbs that relation names are often made of, by base form."""
VERB_FORMS = {
    form: (base, form == past)
    for base, (past, _) in VERBS.items()
    for form in {base, with_s(base), past} - _USUALLY_NOUNS
} | {"featuring": ("feature", False), "starring": ("star", False)}
"""For each verb form that a relation's name may have: its base form, and whether it is past."""
_COMPLETED_ACTIONS = """
    acquire build buy compose create design develop direct discover edit found illustrate invent
    make paint perform produce publish purchase sell sing translate win write
"""
PAST_OF_ACTION = {
    participle: past for past, participle in map(VERBS.__getitem__, _COMPLETED_ACTIONS.split())
}
"""The past of verbs for completed actions, by their participle: what a film is "directed by" are
"things that directed" it. Verbs for states, such as "employed by", are left out: a state may last,
so the past could be wrong."""
PARTICIPLES = frozenset(participle for _, participle in VERBS.values()) | {
    "based",
    "born",
    "found",
}
"""The participles of those verbs, and a few that occur as states alone."""
ADJECTIVES = frozenset(
    {"adjacent", "afraid", "aware", "capable", "close", "different", "famous", "identical"}
    | {"parallel", "relevant", "responsible", "set", "similar", "synonymous", "typical"}
)
"""Words that name a state before a preposition: one thing is *similar to* another."""
LONG_NOUNS = frozenset({"cinematographer", "instrumentation"})
"""Nouns of relations that are longer than a word usually is."""
INTRANSITIVE_VERBS = frozenset(
    {"act", "appear", "belong", "collaborate", "compete", "consist", "depend", "die", "flow"}
    | {"happen", "interact", "lie", "live", "occur", "participate", "reside", "result", "sit"}
    | {"work"}
)
"""Verbs without a direct object: they link two entities only with a preposition ("died in")."""
_ACTIVE_PASTS = frozenset(
    {VERBS[verb][0] for verb in INTRANSITIVE_VERBS}
    | {"graduated", "invested", "led", "played", "starred", "studied", "taught"}
)
"""Past forms that are active before a preposition: somebody *acted in* a film. Other past forms
are passive there: somebody *is located in* a town."""
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
_PAST_END = re.compile(r"[^e]ed$")
"""The end of a past form, which has no plural."""


def is_past(word: str) -> bool:
    """Whether a word is the past form of one of the verbs, and of no other form."""
    _, past = VERB_FORMS.get(word, ("", False))
    return past


def is_active(past: str, preposition: str) -> bool:
    """Whether a past form before a preposition is active; before "by" it is always passive."""
    return past in _ACTIVE_PASTS and preposition != "by"


def is_plural(noun: str) -> bool:
    """Whether a noun is a plural already, as "actors" is and "status" is not.

    Only the last word counts, or the one before "of".
    """
    last = noun.partition(" of ")[0].rpartition(" ")[2]
    if last in _IRREGULAR_PLURALS.values():
        return True
    return bool(re.search("[^isu]s$", last)) and last not in _SINGULARS


def has_plural(word: str) -> bool:
    """Whether a word can be a noun that has a plural: "capital", but not "held" or "導演"."""
    is_past_form = bool(_PAST_END.search(word)) or word in PARTICIPLES - {"bound"}
    return not is_past_form and bool(_LATIN_END.search(word))


@lru_cache(maxsize=4096)
def plural(noun: str) -> str:
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
        last = with_s(last)
    return f"{first}{space}{last}{of}{tail}"
