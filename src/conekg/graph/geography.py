"""Geography: the built-in graph, built from the package `countryinfo`.

It holds countries with their capitals, provinces, regions, borders, languages, currencies and
time zones: facts that anybody can check. The source has defects; obvious ones are repaired or
dropped here, one named rule each, and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from conekg.graph.adjacency import IntArray
from conekg.graph.geography_names import CURRENCIES, LANGUAGES
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, with_inverses
from conekg.graph.split import HoldOut, split_triples
from conekg.graph.vocabulary import NameTable, Vocabulary

RELATIONS = {
    "capital": "has capital",
    "has_province": "has province",
    "located_in": "is located in subregion",
    "in_subregion": "belongs to subregion",
    "in_region": "belongs to region",
    "borders": "borders",
    "speaks": "has official language",
    "uses_currency": "uses currency",
    "in_timezone": "is in time zone",
}
"""Labels by relation name. Countries have `in_region` and `in_subregion`; capitals and provinces
have `located_in`, which leads to the smallest subregion of their country."""

HOLD_OUT = HoldOut(valid=0.05, test=0.05, seed=0)
"""The split is part of the graph: the same facts are held out on every machine."""

_RENAMED = {
    "Holy See (Vatican City State)": "Vatican City",
    "Vatican City State": "Vatican City",
    "Republic of Macedonia": "North Macedonia",
    "Swaziland": "Eswatini",
    "Virgin Islands, British": "British Virgin Islands",
    "Virgin Islands, U.S.": "United States Virgin Islands",
    "The Bahamas": "Bahamas",
    "The Gambia": "Gambia",
    "Nur-Sultan": "Astana",
}
_DISSOLVED = {"Antilles néerlandaises", "Serbia and Montenegro"}
_PART_OF = {"Scotland": "GBR"}
"""Records without a country code, with the code of the country they are a part of; only their
provinces are used."""
_COUNTRY_CODES = {"IT": "ITA"}
_LANGUAGE_CODES = {"rs": "sr"}
_FALSE_BORDERS = {
    frozenset(pair.split("-"))
    for pair in (
        "TCD-SSD",  # Chad borders Sudan
        "CYP-GBR",  # the British bases on Cyprus are not a country in this graph
        "IND-AFG",
        "KWT-IRN",
        "MMR-BTN",
        "SRB-ALB",  # Kosovo, which the source lacks, lies between
        "SUR-FRA",  # French Guiana is a country of its own in this graph
    )
}
_FOREIGN_PROVINCES: dict[str, frozenset[str] | None] = {
    # Provinces that the source lists under the wrong country; None means the whole list.
    "SSD": None,  # Spain's communities
    "IOT": None,  # the British Virgin Islands'
    "TLS": None,  # Tobago
    "AGO": frozenset(  # Andorra's parishes
        {"Andorra la Vella", "Canillo", "Encamp", "Escaldes-Engordany"}
        | {"La Massana", "Ordino", "Sant Julia de Loria"}
    ),
}


@dataclass(frozen=True)
class Thing:
    """What becomes an entity: a country, a province of a country, a language, ..."""

    kind: str
    text: str
    country: str = ""
    """The name of the country a capital or province belongs to."""


@dataclass(frozen=True)
class Fact:
    """A fact between two things, before each thing has a unique name."""

    head: Thing
    relation: str
    tail: Thing


@cache
def load_geography() -> KnowledgeGraph:
    """The built-in graph; the same on every machine that has the same `countryinfo`."""
    # Imported here, so that machines that only train on other graphs do not load the data.
    from countryinfo import CountryInfo

    return build_geography(CountryInfo.all())[0]


def build_geography(
    records: Mapping[str, Mapping[str, Any]],
) -> tuple[KnowledgeGraph, Counter[str]]:
    """The graph of country records, and how often each rule repaired or dropped something."""
    defects: Counter[str] = Counter()
    countries = _merge_records(records, defects)
    facts = list(dict.fromkeys(_all_facts(countries, defects)))
    things = list(dict.fromkeys(thing for fact in facts for thing in (fact.head, fact.tail)))
    names = _unique_names(things)
    things.sort(key=lambda thing: (_KIND_ORDER.index(thing.kind), names[thing]))
    vocabulary = Vocabulary(
        NameTable("entity", [names[thing] for thing in things]),
        NameTable("relation", list(RELATIONS), list(RELATIONS.values())),
    )
    entity_ids = {thing: index for index, thing in enumerate(things)}
    relation_numbers = {name: index for index, name in enumerate(RELATIONS)}
    triples = np.array(
        sorted(
            (entity_ids[fact.head], relation_numbers[fact.relation], entity_ids[fact.tail])
            for fact in facts
        ),
        dtype=np.int32,
    )
    parts = split_triples(triples, len(things), len(RELATIONS), HOLD_OUT)
    edges = {
        split: with_inverses(_both_ways(parts[split], relation_numbers["borders"]))
        for split in SPLITS
    }
    return KnowledgeGraph("geography", vocabulary, edges), defects


_KIND_ORDER = (
    "country",
    "region",
    "subregion",
    "language",
    "currency",
    "timezone",
    "city",
    "province",
)


def _merge_records(
    records: Mapping[str, Mapping[str, Any]], defects: Counter[str]
) -> dict[str, dict[str, Any]]:
    """One record per country code.

    Provinces of records with the same code are joined; every other field is taken from the first
    record that has it.
    """
    merged: dict[str, dict[str, Any]] = {}
    for record in records.values():
        code = _PART_OF.get(record["name"]) or (record.get("ISO") or {}).get("alpha3")
        if record["name"] in _DISSOLVED or not code:
            defects["country that no longer exists or has no code"] += 1
            continue
        if record["name"] in _PART_OF:
            record = {"provinces": record["provinces"]}
        country = merged.setdefault(code, {"provinces": []})
        if "name" in country and "name" in record:
            defects["second record of a country merged"] += 1
        country["provinces"] = [*country["provinces"], *(record.get("provinces") or ())]
        for field, value in record.items():
            if value and not country.get(field):
                country[field] = value
    for country in merged.values():
        country["name"] = _RENAMED.get(country["name"], country["name"])
    return merged


def _all_facts(countries: Mapping[str, Mapping[str, Any]], defects: Counter[str]) -> Iterator[Fact]:
    """Every fact of the graph; each border once, from the smaller country code to the larger."""
    for code in sorted(countries):
        record = countries[code]
        country = Thing("country", record["name"])
        yield from _region_facts(country, record)
        places = [("capital", place) for place in _capital(country, record, defects)]
        places += [("has_province", p) for p in _provinces(code, country, record, defects)]
        subregion = record.get("intermediateregion") or record.get("subregion")
        for relation, place in places:
            yield Fact(country, relation, place)
            if subregion:
                yield Fact(place, "located_in", Thing("subregion", subregion))
        yield from _coded_facts(country, record, defects)
        for zone in record.get("timezones") or ():
            yield Fact(country, "in_timezone", Thing("timezone", _time_zone(zone)))
    for first, second in _borders(countries, defects):
        yield Fact(
            Thing("country", countries[first]["name"]),
            "borders",
            Thing("country", countries[second]["name"]),
        )


def _region_facts(country: Thing, record: Mapping[str, Any]) -> Iterator[Fact]:
    """The region and the subregions of a country, and the region of each subregion."""
    if not record.get("region"):
        return
    region = Thing("region", record["region"])
    yield Fact(country, "in_region", region)
    for field in ("subregion", "intermediateregion"):
        if record.get(field):
            subregion = Thing("subregion", record[field])
            yield Fact(country, "in_subregion", subregion)
            yield Fact(subregion, "in_region", region)


def _coded_facts(
    country: Thing, record: Mapping[str, Any], defects: Counter[str]
) -> Iterator[Fact]:
    """The languages and currencies of a country, which the source gives as codes."""
    for field, relation, kind, table in (
        ("languages", "speaks", "language", LANGUAGES),
        ("currencies", "uses_currency", "currency", CURRENCIES),
    ):
        for code in record.get(field) or ():
            name = table.get(_LANGUAGE_CODES.get(code, code))
            if name is None:
                defects[f"{kind} code that names none"] += 1
            else:
                yield Fact(country, relation, Thing(kind, name))


def _capital(country: Thing, record: Mapping[str, Any], defects: Counter[str]) -> Iterator[Thing]:
    """The capital of a country: of a list the first one, and none of several in one name."""
    capital = record.get("capital") or ""
    if isinstance(capital, list):
        defects["capital given as a list"] += 1
        capital = capital[0]
    if "/" in capital:
        defects["several capitals in one name"] += 1
    elif capital:
        capital = capital.strip()
        yield Thing("city", _RENAMED.get(capital, capital), country.text)


def _provinces(
    code: str, country: Thing, record: Mapping[str, Any], defects: Counter[str]
) -> Iterator[Thing]:
    """The provinces of a country, without repetitions and without those of other countries.

    A country that the source lists as its own only province has none.
    """
    foreign = _FOREIGN_PROVINCES.get(code, frozenset())
    seen: set[str] = set()
    for listed in record["provinces"]:
        name = " ".join(listed.split())
        if foreign is None or name in foreign:
            defects["province of another country"] += 1
        elif len(record["provinces"]) == 1 and country.text in name:
            defects["country listed as its only province"] += 1
        elif name in seen:
            defects["province listed twice"] += 1
        else:
            seen.add(name)
            yield Thing("province", name, country.text)


def _borders(
    countries: Mapping[str, Mapping[str, Any]], defects: Counter[str]
) -> list[tuple[str, str]]:
    """Pairs of country codes, smaller first, of borders that either country lists.

    Borders in `_FALSE_BORDERS` are left out.
    """
    listings: Counter[frozenset[str]] = Counter()
    for code, record in countries.items():
        for listed in record.get("borders") or ():
            neighbor = _COUNTRY_CODES.get(listed, listed)
            if neighbor not in countries:
                defects["border with an unknown country"] += 1
            elif frozenset((code, neighbor)) in _FALSE_BORDERS:
                defects["false border"] += 1
            else:
                listings[frozenset((code, neighbor))] += 1
    one_sided = sum(count == 1 for count in listings.values())
    defects["border told by one side only, made mutual"] += one_sided
    return sorted((min(pair), max(pair)) for pair in listings)


def _time_zone(text: str) -> str:
    """A time zone as `UTC-04:00`, however the source spells the offset."""
    offset = text.removeprefix("UTC").replace("−", "-") or "+00"
    return f"UTC{offset}" if ":" in offset else f"UTC{offset}:00"


def _unique_names(things: list[Thing]) -> dict[Thing, str]:
    """A unique name for each thing: its text, with country or kind added where texts clash."""
    sharing: dict[str, list[Thing]] = {}
    for thing in things:
        sharing.setdefault(thing.text, []).append(thing)
    return {thing: _name(thing, sharing[thing.text]) for thing in things}


def _name(thing: Thing, sharing: list[Thing]) -> str:
    """The name of a thing whose text is shared by the things in `sharing`, itself included.

    The thing whose kind comes first in `_KIND_ORDER` keeps the bare text, unless two have that
    kind; the others get their country or kind in brackets.
    """
    if len(sharing) == 1:
        return thing.text
    ranks = Counter(_KIND_ORDER.index(other.kind) for other in sharing)
    rank = _KIND_ORDER.index(thing.kind)
    if rank == min(ranks) and ranks[rank] == 1:
        return thing.text
    if thing.kind == "city":
        return f"{thing.text} ({'city' if ranks[rank] == 1 else thing.country})"
    if thing.kind != "province":
        return f"{thing.text} ({thing.kind})"
    same_country = [(other.country or other.text) == thing.country for other in sharing]
    if all(same_country):
        return f"{thing.text} (province)"
    return f"{thing.text} ({'province, ' if sum(same_country) > 1 else ''}{thing.country})"


def _both_ways(triples: IntArray, relation: int) -> IntArray:
    """The triples, followed by those of the symmetric `relation` with head and tail swapped.

    This is done after the split, so that both directions of a border are in the same split: a
    training edge must not reveal a held-out one.
    """
    mirrored = triples[triples[:, 1] == relation][:, [2, 1, 0]]
    return np.concatenate([triples, mirrored])
