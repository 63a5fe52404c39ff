from __future__ import annotations

import subprocess
import sys
import time

from extras import need

need("countryinfo")

import numpy as np
import pytest
from countryinfo import CountryInfo

from conekg.graph.geography import RELATIONS, build_geography, load_geography
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph


@pytest.fixture(scope="module")
def world() -> KnowledgeGraph:
    return load_geography()


def told(world: KnowledgeGraph, entity: str, relation: str) -> set[str]:
    head, by = world.vocabulary.entities.id_of(entity), world.vocabulary.relation_id(relation)
    tails = world.adjacency("test").neighbors(head, by)
    return {world.vocabulary.entities.name(tail) for tail in tails.tolist()}


@pytest.mark.parametrize(
    ("entity", "relation", "expected"),
    [
        ("France", "capital", {"Paris"}),
        ("Switzerland", "borders", {"Austria", "France", "Germany", "Italy", "Liechtenstein"}),
        ("Portugal", "borders", {"Spain"}),
        ("Vatican City", "borders", {"Italy"}),
        ("Switzerland", "uses_currency", {"Swiss Franc"}),
        ("Brazil", "speaks", {"Portuguese"}),
        ("Japan", "in_region", {"Asia"}),
        ("Kenya", "in_subregion", {"Eastern Africa", "Sub-Saharan Africa"}),
        ("Bavaria", "^has_province", set()),
        ("Bayern", "^has_province", {"Germany"}),
        ("Paris", "located_in", {"Western Europe"}),
        ("India", "in_timezone", {"UTC+05:30"}),
        ("Austria", "has_province", None),
        ("Western Europe", "in_region", {"Europe"}),
        ("Kazakhstan", "capital", {"Astana"}),
    ],
)
def test_well_known_facts_are_in_the_graph(
    world: KnowledgeGraph, entity: str, relation: str, expected: set[str] | None
) -> None:
    if expected == set():
        assert world.vocabulary.entities.find(entity) is None
    elif expected is None:
        assert len(told(world, entity, relation)) == 9
    else:
        assert told(world, entity, relation) == expected


def test_it_is_as_large_as_it_should_be(world: KnowledgeGraph) -> None:
    assert 5_000 <= world.num_entities <= 5_500
    assert list(world.vocabulary.relations) == list(RELATIONS)
    total = sum(len(world.triples(split)) for split in SPLITS)
    for split in ("valid", "test"):
        assert 0.04 < len(world.triples(split)) / total < 0.06


def test_borders_are_mutual_and_both_halves_in_one_split(world: KnowledgeGraph) -> None:
    borders = world.vocabulary.relation_id("borders")
    for split in SPLITS:
        triples = world.triples(split)
        pairs = {(h, t) for h, r, t in triples.tolist() if r == borders}
        assert pairs
        assert pairs == {(t, h) for h, t in pairs}


def test_everything_held_out_occurs_in_training(world: KnowledgeGraph) -> None:
    train = world.triples("train")
    for split in ("valid", "test"):
        held_out = world.triples(split)
        assert set(held_out[:, 1]) <= set(train[:, 1])
        assert set(held_out[:, [0, 2]].ravel()) <= set(train[:, [0, 2]].ravel())
    assert len(np.unique(train[:, [0, 2]])) == world.num_entities


def test_no_fact_occurs_twice(world: KnowledgeGraph) -> None:
    everything = np.concatenate([world.triples(split) for split in SPLITS])
    assert len(np.unique(everything, axis=0)) == len(everything)


@pytest.mark.parametrize(
    "name",
    [
        "Luxembourg",
        "Luxembourg (city)",
        "Luxembourg (Belgium)",
        "Luxembourg (province, Luxembourg)",
        "Georgia (United States)",
        "Madrid (province)",
        "Kingston (Jamaica)",
        "UTC-04:00",
        "Euro",
    ],
)
def test_shared_names_get_a_country_or_kind_in_brackets(world: KnowledgeGraph, name: str) -> None:
    assert world.vocabulary.entities.find(name) is not None


def test_names_are_clean(world: KnowledgeGraph) -> None:
    for name in world.vocabulary.entities:
        assert name == " ".join(name.split())
        assert "/" not in name or name.startswith("Zanzibar")
        assert "−" not in name


@pytest.mark.parametrize(
    ("entity", "relation", "wrong"),
    [
        ("South Sudan", "has_province", "Madrid (province)"),
        ("Angola", "has_province", "Canillo"),
        ("Kuwait", "borders", "Iran"),
        ("Suriname", "borders", "France"),
    ],
)
def test_defects_of_the_source_are_gone(
    world: KnowledgeGraph, entity: str, relation: str, wrong: str
) -> None:
    assert world.vocabulary.entities.find(wrong) is not None
    assert wrong not in told(world, entity, relation)


def test_defects_are_counted() -> None:
    _, defects = build_geography(CountryInfo.all())
    assert defects["province of another country"] == 34
    assert defects["false border"] > 0
    assert all(count > 0 for count in defects.values())
    assert len(defects) >= 10


def test_rules_are_applied_to_any_records() -> None:
    records = {
        "here": {
            "name": "Here",
            "ISO": {"alpha3": "AAA"},
            "capital": ["Town"],
            "provinces": ["Town", "North ", "North"],
            "borders": ["BBB", "XXX"],
            "languages": ["en", "qq"],
            "timezones": ["UTC", "UTC−04"],
        },
        "there": {"name": "There", "ISO": {"alpha3": "BBB"}, "provinces": ["North"]},
        "nowhere": {"name": "Nowhere", "ISO": {}},
    }
    graph, defects = build_geography(records)
    assert set(graph.vocabulary.entities) == {
        *("Here", "There", "Town", "Town (province)", "North (Here)", "North (There)"),
        *("English", "UTC+00:00", "UTC-04:00"),
    }
    assert told(graph, "There", "borders") == {"Here"}
    assert defects == {
        "country that no longer exists or has no code": 1,
        "capital given as a list": 1,
        "province listed twice": 1,
        "border with an unknown country": 1,
        "language code that names none": 1,
        "border told by one side only, made mutual": 1,
    }


def test_it_is_quick_and_the_same_in_another_process(world: KnowledgeGraph) -> None:
    code = "from conekg.graph.geography import load_geography as load; print(load().fingerprint)"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == world.fingerprint
    started = time.process_time()
    build_geography(CountryInfo.all())
    assert time.process_time() - started < 2
