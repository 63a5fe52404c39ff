from __future__ import annotations

from pathlib import Path

import pytest

from conekg.errors import UnknownNameError
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.namesakes import told_apart
from conekg.graph.source import ReadOptions, read_source
from conekg.graph.split import HoldOut

FACTS = """Q1 is Q9
Q2 is Q9
Q3 is Q9
Q1 born_in Cork
Q2 born_in Cork
Q2 born_in Delft
Q8 directed_by Q3
Q4 is Q9
Q1 knows Q1
"""
LABELS = "Q1\tJane Doe\nQ2\tJane Doe\nQ3\tJane Doe\nQ4\tJo Roe\nQ8\tA Film\nQ9\thuman\n"


@pytest.fixture
def graph(tmp_path: Path) -> KnowledgeGraph:
    facts, labels = tmp_path / "facts.tsv", tmp_path / "labels.tsv"
    facts.write_text(FACTS.replace(" ", "\t"))
    labels.write_text(LABELS)
    options = ReadOptions(hold_out=HoldOut(0, 0), entity_labels=labels)
    return read_source(str(facts), options).graph


def refused(graph: KnowledgeGraph, name: str) -> UnknownNameError:
    with pytest.raises(UnknownNameError) as caught, told_apart(graph):
        graph.vocabulary.entities.id_of(name)
    return caught.value


def test_entities_that_share_a_label_are_described_by_a_fact_of_their_own(
    graph: KnowledgeGraph,
) -> None:
    error = refused(graph, "Jane Doe")
    assert error.suggestions == ("Q1", "Q2", "Q3")
    # Q1's type and birthplace are shared with others; Q3 has only an inverse fact of its own.
    assert error.about == ("knows: Jane Doe", "born_in: Delft", "^directed_by: A Film")
    assert error.hint == (
        "did you mean 'Q1' (knows: Jane Doe) or 'Q2' (born_in: Delft) or "
        "'Q3' (^directed_by: A Film)? use the unique name"
    )
    assert str(error) == f"{error.message}\n{error.hint}"


def test_a_suggested_bare_id_is_described_by_its_label(graph: KnowledgeGraph) -> None:
    error = refused(graph, "Jane Dow")
    assert dict(zip(error.suggestions, error.about, strict=True)) == {
        "Q1": "Jane Doe, knows: Jane Doe",
        "Q2": "Jane Doe, born_in: Delft",
        "Q3": "Jane Doe, ^directed_by: A Film",
    }


def test_suggestions_with_readable_names_get_no_description(graph: KnowledgeGraph) -> None:
    for name, meant in (("Jo Row", "Jo Roe"), ("Delfd", "Delft")):
        error = refused(graph, name)
        assert (error.suggestions, error.about) == ((meant,), ("",))
        assert error.guess == f"did you mean {meant!r}?"


def test_entities_without_a_fact_of_their_own_get_no_description(tmp_path: Path) -> None:
    facts, labels = tmp_path / "facts.tsv", tmp_path / "labels.tsv"
    facts.write_text("a\tis\tx\nb\tis\tx\n")
    labels.write_text("a\tJane\nb\tJane\n")
    options = ReadOptions(hold_out=HoldOut(0, 0), entity_labels=labels)
    error = refused(read_source(str(facts), options).graph, "Jane")
    assert error.hint == "did you mean 'a' or 'b'? use the unique name"


def test_other_errors_are_not_changed(graph: KnowledgeGraph) -> None:
    with pytest.raises(UnknownNameError) as caught, told_apart(graph):
        graph.vocabulary.relation_id("born_on")
    assert caught.value.about == ("",)
    with pytest.raises(ZeroDivisionError), told_apart(graph):
        raise ZeroDivisionError
