"""Example questions: chosen ones for the built-in graph, one sampled per shape for others."""

from __future__ import annotations

from dataclasses import replace

from extras import need

need("fastapi", "countryinfo")

import numpy as np

from conekg.graph.geography import load_geography
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.graph.vocabulary import NameTable, Vocabulary
from conekg.query.parse import parse_query
from conekg.serving.examples import GEOGRAPHY, SHAPES, examples_of
from conekg.symbolic.engine import answer
from tiny import tiny_graph, tiny_queries


def test_the_chosen_questions_have_answers_in_the_embedded_graph():
    graph = load_geography()
    examples = examples_of(graph)
    assert [example.query for example in examples] == list(GEOGRAPHY)
    assert examples_of(graph, tiny_queries()["test"]) == examples
    for example in examples:
        query = parse_query(example.query, graph.vocabulary)
        assert 0 < len(answer(graph.adjacency("train"), query)) < 100
        assert example.reading


def test_a_model_without_negation_gets_no_examples_with_it():
    examples = examples_of(load_geography(), can_negate=False)
    assert examples
    assert not any("!" in example.query for example in examples)


def test_a_name_with_an_exclamation_mark_is_no_negation():
    tiny, queries = tiny_graph(), tiny_queries()["test"]
    loud = Vocabulary(
        NameTable("entity", [f"{name}!" for name in tiny.vocabulary.entities]),
        NameTable("relation", list(tiny.vocabulary.relations)),
    )
    edges = {split: tiny.edges(split) for split in SPLITS}
    shapes = [example.shape for example in examples_of(tiny, queries)]
    positive = [
        example.shape
        for example in examples_of(KnowledgeGraph("loud", loud, edges), queries, can_negate=False)
    ]
    assert positive == [name for name in shapes if "n" not in name] != []
    assert positive != shapes


def test_other_graphs_get_one_sampled_question_a_shape():
    graph, queries = tiny_graph(), tiny_queries()["test"]
    examples = examples_of(graph, queries)
    shapes = [example.shape for example in examples]
    present = [name for name in SHAPES if any(b.shape.name == name and len(b) for b in queries)]
    assert shapes == present != []
    for example in examples:
        block = queries.block(example.shape)
        sizes = (block.easy.lengths + block.hard.lengths).tolist()
        assert min(sizes) < max(sizes)
        query = parse_query(example.query, graph.vocabulary)
        places = [row for row in range(len(block)) if block.query(row) == query]
        assert [sizes[row] for row in places] == [min(sizes)]


def test_without_queries_there_are_no_examples():
    assert examples_of(tiny_graph()) == ()
    queries = tiny_queries()["test"]
    assert examples_of(tiny_graph(), replace(queries, blocks=())) == ()
    none_of_each = tuple(block.take(np.arange(0)) for block in queries)
    assert len(none_of_each) > 0
    assert examples_of(tiny_graph(), replace(queries, blocks=none_of_each)) == ()


def test_another_graph_named_geography_gets_no_questions_about_france():
    tiny = tiny_graph()
    edges = {split: tiny.edges(split) for split in SPLITS}
    stranger = KnowledgeGraph("geography", tiny.vocabulary, edges)
    assert examples_of(stranger) == ()
    assert examples_of(stranger, tiny_queries()["test"])
