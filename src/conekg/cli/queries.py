"""`conekg queries`: look into query sets, import them from benchmark files, and export them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from conekg.cli.console import print_json, print_table, say
from conekg.cli.graph_source import open_and_report
from conekg.cli.options import JsonOption
from conekg.cli.output_file import refuse_part_of_run
from conekg.errors import DataError
from conekg.graph.benchmark_folder import is_benchmark_folder
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.graph.place import check_place
from conekg.lines import counted
from conekg.sampling.query_set import (
    QuerySet,
    check_replaceable,
    load_query_set,
    save_query_set,
)

app = typer.Typer(help="Look into query sets; import and export them.", no_args_is_help=True)


@app.command()
def info(
    path: Annotated[Path, typer.Argument(help="A query set from `conekg sample`.")],
    as_json: JsonOption = False,
) -> None:
    """Show what a query set contains."""
    query_set = load_query_set(path)
    facts = _facts_about(query_set)
    if as_json:
        print_json(facts)
        return
    rows = [
        [
            str(fact["shape"]),
            f"{fact['queries']:,}",
            f"{fact['mean_easy']:.2f}",
            f"{fact['mean_hard']:.2f}",
        ]
        for fact in facts["shapes"]
    ]
    columns = ["shape", "queries", "easy per query", "hard per query"]
    origin = f", in the form of the {query_set.release} release" if query_set.release else ""
    if query_set.protocol is not None:
        origin = f", sampled by the protocol {query_set.protocol!r} with seed {query_set.seed}"
    if query_set.paths_from is not None:
        origin += f", paths from the {query_set.paths_from}"
    print_table(f"{path}: {query_set.split} queries{origin}", columns, rows)


def _facts_about(query_set: QuerySet) -> dict[str, Any]:
    """What a query set contains and where it comes from, as plain data."""
    return {
        "split": query_set.split,
        "graph": query_set.graph_fingerprint,
        "protocol": query_set.protocol,
        "seed": query_set.seed,
        "release": query_set.release,
        "paths_from": query_set.paths_from,
        "queries": len(query_set),
        "shapes": [
            {
                "shape": block.shape.name,
                "queries": len(block),
                "mean_easy": block.easy.mean_length,
                "mean_hard": block.hard.mean_length,
            }
            for block in query_set
        ],
    }


@app.command("import")
def import_queries(
    folder: Annotated[Path, typer.Argument(help="A BetaE or Query2Box folder.")],
    out: Annotated[Path, typer.Option(help="The Arrow file to write.")],
    graph: Annotated[
        str | None,
        typer.Option(help="The graph that the queries are about. By default that of the folder."),
    ] = None,
    split: Annotated[Split, typer.Option(help="Which of its query sets to import.")] = "test",
    recompute: Annotated[
        bool,
        typer.Option(
            "--recompute", help="Compute the answers from the graph instead of reading them."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Turn the query pickles of a public benchmark into a query set; no pickle is executed."""
    from conekg.sampling.benchmark_files import read_queries  # numba takes a while to load

    refuse_part_of_run(out)
    check_replaceable(out)
    opened = _graph_of(folder) if graph is None else open_and_report(graph)
    query_set = read_queries(folder, split, opened, recompute=recompute)
    save_query_set(out, query_set)
    say(f"wrote {out}: {counted(len(query_set), 'query')}")
    if as_json:
        print_json(
            {"path": str(out), "folder": str(folder), "recompute": recompute}
            | _facts_about(query_set)
        )


def _graph_of(folder: Path) -> KnowledgeGraph:
    """The graph in a folder of queries; if there is none, the error names the option to give it."""
    try:
        return open_and_report(str(folder))
    except DataError as error:
        if folder.is_dir() and not is_benchmark_folder(folder):
            error.hint = "give the graph that its queries are about by --graph"
        raise


@app.command("export")
def export_queries(
    path: Annotated[Path, typer.Argument(help="A query set from `conekg sample`.")],
    out: Annotated[Path, typer.Option(help="The folder to write pickles into.")],
    form: Annotated[
        Literal["betae", "query2box"], typer.Option(help="The release whose file format to write.")
    ] = "betae",
    as_json: JsonOption = False,
) -> None:
    """Write a query set as the pickles that published code reads.

    A small file beside them says where the queries come from, so that they are not taken for those
    of the release when they are read again, and that a later export replaces them.
    """
    from conekg.sampling.benchmark_files import write_queries

    refuse_part_of_run(out / "queries.pkl")
    check_place(out / "queries.pkl")
    query_set = load_query_set(path)
    files = write_queries(out, query_set, form)
    say(f"wrote {counted(len(query_set), f'{query_set.split} query')} to {out}")
    if as_json:
        print_json(
            {
                "path": str(path),
                "folder": str(out),
                "form": form,
                "files": [file.name for file in files],
            }
            | _facts_about(query_set)
        )
