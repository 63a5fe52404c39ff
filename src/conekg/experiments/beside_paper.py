"""Which of the paper's rows stand beside our numbers, the differences, and notes on both.

The paper's numbers are for one release of a graph's queries. They are left out beside queries of
another release, with which they cannot be compared. They are shown, with a note, beside sampled
queries and beside another graph of the same name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conekg.experiments.experiment import title_of
from conekg.experiments.published import MODEL_TITLES, Published
from conekg.experiments.table import Row, difference
from conekg.graph.benchmarks import misnomer_of
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.sampling.query_set import QuerySet
from conekg.training.recipes import data_set_of
from conekg.training.run import Run

GIVEN_HERE = "--queries"
"""The option that gives an experiment other queries, as notes name it."""

GIVEN_IN_TRAINING = "`conekg train --queries`"
"""The command that gives a run other queries, for experiments that only use the runs' own."""


def of_release(paper: Published, all_queries: Sequence[QuerySet]) -> Published:
    """The paper's table, without its rows if some of the queries are of another release.

    The releases of a graph have different queries, so their numbers cannot be compared.
    """
    return paper if _other_release(paper, all_queries) is None else replace(paper, rows={})


def _other_release(paper: Published, all_queries: Sequence[QuerySet]) -> str | None:
    """A release, other than the paper's, that some of the queries are of; None if there is none."""
    others = (queries.release for queries in all_queries)
    return next((other for other in others if other not in (None, paper.release)), None)


def release_note(
    paper: Published,
    graph: KnowledgeGraph,
    all_queries: Sequence[QuerySet],
    taken_by: str = GIVEN_HERE,
) -> tuple[str, ...]:
    """A note on why the paper's numbers are left out or are of another graph; else none."""
    other = _other_release(paper, all_queries)
    if other is None or data_set_of(graph.name) not in paper.data_sets:
        return graph_note(paper, graph)
    these = "These are" if all(each.release == other for each in all_queries) else "Some are"
    return (
        f"{these} queries in the form of the {other} release. The numbers of the paper's "
        f"{paper.place} are of the {paper.release} release, which has other queries, and are left "
        f"out: give its folder to {taken_by} to compare with them.",
    )


def graph_note(paper: Published, graph: KnowledgeGraph) -> tuple[str, ...]:
    """A note if the paper has no numbers for a graph, or has them for another of the same name."""
    if not paper.rows:
        there = ", ".join(paper.data_sets)
        return (f"The paper has no numbers for the graph {graph.name!r} here, only for {there}.",)
    misnomer = misnomer_of(graph)
    if misnomer is None:
        return ()
    return (
        f"{misnomer[0].upper()}{misnomer[1:]}: the paper's numbers are of another graph, and the "
        "differences are not those of the models alone.",
    )


def origin_note(
    run: Run, queries: QuerySet, paper: Published, taken_by: str = GIVEN_HERE
) -> tuple[str, ...]:
    """Notes if the paper's numbers stand beside those of a run on other queries than the paper's.

    These may be of another split, sampled here, or not say of which release they are.
    """
    notes = list[str]()
    if paper.rows and queries.split != "test":
        notes.append(
            f"The paper's numbers are of test queries, these of {queries.split} queries: the "
            "differences are not those of the models alone."
        )
    if paper.rows and queries.protocol is not None:
        notes.append(
            f"{title_of(run)}: these queries were sampled here (protocol {queries.protocol}, seed "
            f"{queries.seed}); the paper's are those of the {paper.release} release, which "
            f"{taken_by} takes."
        )
    elif paper.rows and queries.release is None:
        notes.append(
            f"{title_of(run)}: these queries do not say of which release they are; the paper's are "
            f"those of the {paper.release} release, which {taken_by} takes."
        )
    return tuple(notes)


def paper_rows(paper: Published, titles: dict[str, str] | None = None) -> tuple[Row, ...]:
    """The paper's rows; `titles` are their labels, by default those of the models."""
    titles = MODEL_TITLES if titles is None else titles
    return tuple(
        Row(f"{titles.get(name, name)}, {paper.place}", values, "paper")
        for name, values in paper.rows.items()
    )


def compare(title: str, ours: dict[str, float], theirs: dict[str, float]) -> list[Row]:
    """A row of our values minus the paper's; none if they have no column in common."""
    differences = difference(ours, theirs)
    return [Row(f"{title} − paper", differences, "comparison")] if differences else []
