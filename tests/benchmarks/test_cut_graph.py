"""A cut has the facts of its domain, without entities and relations that are not in training."""

import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import cut_graph

from conekg.graph.knowledge_graph import KnowledgeGraph, with_inverses
from conekg.graph.source import open_graph
from conekg.graph.store import save_graph
from conekg.graph.vocabulary import NameTable, Vocabulary

RELATIONS = ["/film/director", "/music/label", "/music/genre", "/musical"]
FACTS = {
    "train": [(0, 0, 1), (1, 1, 2), (2, 1, 4), (4, 3, 0), (1, 1, 4)],
    "valid": [(2, 1, 1), (0, 1, 2), (4, 0, 1), (1, 2, 2)],
    "test": [(4, 1, 1), (4, 1, 2), (3, 1, 4)],
}


@pytest.fixture
def whole():
    vocabulary = Vocabulary(NameTable("entity", list("abcde")), NameTable("relation", RELATIONS))
    edges = {split: with_inverses(np.array(facts, np.int32)) for split, facts in FACTS.items()}
    return KnowledgeGraph("whole", vocabulary, edges)


def named(graph, *splits):
    """The forward facts of some splits, as names."""
    entities, relations = (list(t) for t in (graph.vocabulary.entities, graph.vocabulary.relations))
    return {
        (entities[head], relations[relation], entities[tail])
        for split in splits
        for head, relation, tail in graph.triples(split).tolist()
    }


def test_a_cut_has_the_facts_of_its_domain(whole):
    small = cut_graph.cut(whole, "music")
    assert small.name == "whole-music"
    assert list(small.vocabulary.entities) == ["b", "c", "e"]
    assert list(small.vocabulary.relations) == ["/music/label"]
    label = "/music/label"
    assert named(small, "train") == {("b", label, "c"), ("c", label, "e"), ("b", label, "e")}
    # Left out: facts of a, d and /music/genre, which are not in the domain's training facts.
    assert named(small, "valid") == {("c", label, "b")}
    assert named(small, "test") == {("e", label, "b"), ("e", label, "c")}


def test_the_script_writes_a_graph_and_lists_the_domains_if_it_is_unknown(
    whole, tmp_path, monkeypatch, capsys
):
    save_graph(whole, tmp_path / "whole")
    for domain, code in (("music", 0), ("musik", 2)):
        command = [
            "cut_graph.py",
            tmp_path / "whole",
            "--domain",
            domain,
            "--out",
            tmp_path / "cut",
        ]
        monkeypatch.setattr(sys, "argv", [str(word) for word in command])
        assert cut_graph.main() == code
    out, err = capsys.readouterr()
    assert out == "3 entities, 3 training facts, 3 held out\n"
    assert "/musik/" in err
    assert "'film', 'music'" in err
    assert open_graph(tmp_path / "cut").num_entities == 3
