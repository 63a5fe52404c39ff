"""Names as IRIs and back, for SPARQL.

A name that is itself a web address or URN stands for itself, as it came from RDF.
Every other name becomes `urn:conekg:` followed by the name, percent-encoded where
needed, so that `PREFIX : <urn:conekg:>` lets one write `:France`.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

NAMESPACE = "urn:conekg:"
"""Where names live that are no IRIs; SPARQL's empty prefix unless a query declares it."""

_OWN_IRI = re.compile(r"(https?://|urn:)[^\x00-\x20<>\"{}|\\^`]+")
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
