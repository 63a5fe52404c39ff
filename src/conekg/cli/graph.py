"""`conekg graph`: build a graph, and look at what is in one."""

from __future__ import annotations

from typing import Annotated

import typer

from conekg.cli.console import JsonOption, print_json, print_table
from conekg.graph.knowledge_graph import SPLITS
from conekg.graph.source import open_graph

app = typer.Typer(help="Build graphs and look into them.", no_args_is_help=True)

GraphArgument = Annotated[
    str,
    typer.Argument(
        help="A graph: geography, a benchmark's name, a graph folder, or a file of triples."
    ),
]


@app.command()
def info(graph: GraphArgument = "geography", as_json: JsonOption = False) -> None:
    """Say how large a graph is and how its facts are split."""
    opened = open_graph(graph)
    facts = {split: len(opened.edges(split)) // 2 for split in SPLITS}
    if as_json:
        print_json(
            {
                "name": opened.name,
                "entities": opened.num_entities,
                "relations": len(opened.vocabulary.relations),
                "facts": facts,
                "fingerprint": opened.fingerprint,
            }
        )
        return
    rows = [["entities", f"{opened.num_entities:,}"]]
    rows += [["relations", f"{len(opened.vocabulary.relations):,}"]]
    rows += [[f"{split} facts", f"{count:,}"] for split, count in facts.items()]
    rows += [["fingerprint", opened.fingerprint[:16]]]
    print_table(opened.name, ["what", "value"], rows)
