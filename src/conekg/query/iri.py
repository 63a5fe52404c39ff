"""Converts names to IRIs and back, for SPARQL.

A name that is an IRI, such as one from an RDF file, stays as it is. It counts as an IRI if it
begins with a scheme and `://`, or with one of `SCHEMES` and a colon; so `concept:team` is not an
IRI. Every other name becomes `urn:conekg:` followed by the percent-encoded name, so that with
`PREFIX : <urn:conekg:>` a query can say `:France`.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

NAMESPACE = "urn:conekg:"
"""The start of the IRIs of names that are not IRIs; also SPARQL's empty prefix by default."""

SCHEMES = ("urn", "mailto", "tag", "doi", "info", "tel", "did", "ark")
"""Schemes of IRIs that have no `//` after the colon."""

# What RFC 3987 allows: letters of all scripts, some punctuation, percent signs before two
# hexadecimal digits, a host without brackets. SPARQL engines refuse IRIs with other characters.
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
    """The IRI of a name; different names always have different IRIs.

    >>> iri_of("United States")
    'urn:conekg:United%20States'
    """
    if _OWN_IRI.fullmatch(name) and not name.startswith(NAMESPACE):
        return name
    return NAMESPACE + quote(name, safe="")


def name_of_iri(iri: str) -> str:
    """The name that an IRI stands for; the inverse of `iri_of`.

    >>> name_of_iri("urn:conekg:United%20States"), name_of_iri("http://example.org/a")
    ('United States', 'http://example.org/a')
    """
    return unquote(iri.removeprefix(NAMESPACE)) if iri.startswith(NAMESPACE) else iri


def written_iri(name: str) -> str:
    """The IRI of a name as written in a query: `:France` if possible, else `<...>`.

    >>> written_iri("France"), written_iri("http://example.org/a")
    (':France', '<http://example.org/a>')
    """
    iri = iri_of(name)
    local = iri.removeprefix(NAMESPACE)
    if iri.startswith(NAMESPACE) and _PLAIN_LOCAL.fullmatch(local):
        return f":{local}"
    return f"<{iri}>"
