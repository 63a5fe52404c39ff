"""Names as IRIs and back, for SPARQL.

A name that is itself an IRI stands for itself, as it came from RDF. That a name begins
with a word and a colon is not enough, for `concept:team` does so too: what follows must
be `//`, or the word one of `SCHEMES`. Every other name becomes `urn:conekg:` followed by
the name, percent-encoded where needed, so that `PREFIX : <urn:conekg:>` lets one write
`:France`.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

NAMESPACE = "urn:conekg:"
"""Where names live that are no IRIs; SPARQL's empty prefix unless a query declares it."""

SCHEMES = ("urn", "mailto", "tag", "doi", "info", "tel", "did", "ark")
"""What may stand before the colon of a name that is an IRI, where no `//` follows it."""

# What RFC 3987 allows: letters of all scripts and signs, percent signs before two digits, a host
# without brackets. Engines refuse to read an IRI with anything else in it.
_SIGNS = (
    r"%A-Za-z0-9._~!$&'()*+,;=\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef"
    r"\U00010000-\U0001fffd\U00020000-\U0002fffd\U00030000-\U0003fffd-"
)
_OWN_IRI = re.compile(
    rf"""(?! .* %(?![0-9a-f]{{2}}) )
        ( [a-z][a-z0-9+.-]* :// ([:{_SIGNS}]*@)? [{_SIGNS}]* (:[0-9]*)? (?=[/?\#]|\Z)
        | ({"|".join(SCHEMES)}) : (?!//|\Z) )
        [:@/{_SIGNS}]* (\?[:@/?{_SIGNS}]*)? (\#[:@/?{_SIGNS}]*)?""",
    re.VERBOSE | re.IGNORECASE | re.ASCII | re.DOTALL,
)
_PLAIN_LOCAL = re.compile(r"[A-Za-z0-9_%][A-Za-z0-9_%-]*")


def iri_of(name: str) -> str:
    """The IRI of a name; different names have different IRIs.

    >>> iri_of("United States")
    'urn:conekg:United%20States'
    """
    if _OWN_IRI.fullmatch(name) and not name.startswith(NAMESPACE):
        return name
    return NAMESPACE + quote(name, safe="")


def name_of_iri(iri: str) -> str:
    """The name an IRI stands for; inverse of `iri_of`."""
    return unquote(iri.removeprefix(NAMESPACE)) if iri.startswith(NAMESPACE) else iri


def written_iri(name: str) -> str:
    """The IRI of a name as a query spells it: `:France` where that is possible."""
    iri = iri_of(name)
    local = iri.removeprefix(NAMESPACE)
    if iri.startswith(NAMESPACE) and _PLAIN_LOCAL.fullmatch(local):
        return f":{local}"
    return f"<{iri}>"
