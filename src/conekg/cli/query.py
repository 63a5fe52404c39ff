"""`conekg explain-query`: how a question is understood, and how it will be computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from conekg.cli.console import print_json, print_text
from conekg.cli.graph_source import hint_if_swapped, open_and_report
from conekg.cli.options import JsonOption
from conekg.cli.output_file import check_files, write_file
from conekg.errors import QueryError, QueryTooLargeError
from conekg.graph.namesakes import told_apart
from conekg.graph.vocabulary import Vocabulary
from conekg.query.branches import DEFAULT_BRANCH_CAP, to_de_morgan, to_dnf, union_free_branches
from conekg.query.parse import parse_query
from conekg.query.picture import draw_svg, draw_tree
from conekg.query.plan import describe, plan_shapes
from conekg.query.render import render_formula, render_query
from conekg.query.render_sparql import render_sparql
from conekg.query.rewrite import settle
from conekg.query.shape import shape_of
from conekg.query.tree import Query
from conekg.query.tuples import query_to_tuple


def explain_query(
    graph: Annotated[
        str,
        typer.Argument(
            help="geography, a benchmark's name, a graph or run folder, or a file of triples."
        ),
    ],
    query: Annotated[
        str, typer.Argument(help="The question: a path, a first-order formula or SPARQL.")
    ],
    cap: Annotated[
        int, typer.Option(min=1, help="Largest number of union-free branches of the normal form.")
    ] = DEFAULT_BRANCH_CAP,
    svg: Annotated[
        Path | None, typer.Option(help="Also draw the computation graph into this file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show how a question is understood: its tree, other notations, normal form and plan."""
    check_files([svg], [graph])
    with hint_if_swapped(graph, query, "conekg explain-query {place} {other}"):
        opened = open_and_report(graph)
    vocabulary = opened.vocabulary
    with told_apart(opened):
        tree = parse_query(query, vocabulary)
    explained = explain(tree, vocabulary, cap)
    if svg is not None:
        write_file(svg, draw_svg(tree, vocabulary), "drew")
    if as_json:
        print_json(explained)
        return
    for heading, value in explained.items():
        lines = value if isinstance(value, list) else str(value).split("\n")
        print_text(f"{heading.replace('_', ' ')}:")
        for line in lines:
            print_text(f"  {line}")


def explain(query: Query, vocabulary: Vocabulary, cap: int) -> dict[str, Any]:
    """All notations, forms and the plan of a query, by heading.

    The normal form, the branches and the plan are those of the settled query, which is computed.
    """
    settled = settle(query)
    return {
        "tree": draw_tree(query, vocabulary),
        "path": render_query(query, vocabulary, labels=True),
        "formula": render_formula(query, vocabulary, labels=True),
        "sparql": render_sparql(query, vocabulary),
        "tuple": _tuple(query),
        "shape": shape_of(query).name,
        "normal_form": _within_cap(
            lambda: render_query(to_dnf(settled, cap), vocabulary, labels=True)
        ),
        "de_morgan_form": render_query(to_de_morgan(settled), vocabulary, labels=True),
        "branches": _within_cap(
            lambda: [
                render_query(branch, vocabulary, labels=True)
                for branch in union_free_branches(settled, cap=cap)
            ]
        ),
        "plan": _within_cap(lambda: describe(plan_shapes([(shape_of(settled), 1)], cap=cap))),
    }


def _tuple(query: Query) -> str:
    """The nested tuple of the benchmark files, or in brackets the reason why there is none."""
    try:
        return repr(query_to_tuple(query))
    except QueryError as error:
        return f"({error.message})"


def _within_cap(compute: Callable[[], Any]) -> Any:
    """The computed value, or in brackets the message that it would be too large."""
    try:
        return compute()
    except QueryTooLargeError as error:
        return f"({error.message})"
