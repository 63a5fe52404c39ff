"""`conekg graph`: build a graph, and look at what is in one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from conekg.cli.console import (
    listed,
    print_json,
    print_table,
    print_text,
    say,
)
from conekg.cli.graph_source import hint_if_swapped, open_and_report, read_and_report
from conekg.cli.options import JsonOption
from conekg.cli.output_file import refuse_part_of_run
from conekg.errors import ConfigError
from conekg.graph.benchmarks import BENCHMARKS
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph, Split
from conekg.graph.namesakes import told_apart
from conekg.graph.rdf import RdfOptions
from conekg.graph.source import RUN_FILE, ReadOptions
from conekg.graph.split import HoldOut
from conekg.graph.store import check_replaceable, is_store, load_graph, save_graph
from conekg.graph.vocabulary import Vocabulary
from conekg.lines import one_line
from conekg.query.tokens import is_bare_name

app = typer.Typer(help="Build graphs and look into them.", no_args_is_help=True)

GraphArgument = Annotated[
    str,
    typer.Argument(
        help="geography, a benchmark's name, a graph or run folder, or a file of triples.",
        show_default=True,
    ),
]
SearchOption = Annotated[
    str | None,
    typer.Option(
        "--search",
        "-s",
        help="Only names or labels that contain this, ignoring case; accents may be left out.",
    ),
]
LimitOption = Annotated[int, typer.Option("--limit", "-n", min=1, help="List at most this many.")]


@app.command()
def build(
    source: Annotated[
        str,
        typer.Argument(
            help="A file of triples (TSV, CSV, Parquet, RDF; also compressed), a "
            "benchmark folder, a benchmark's name, or geography."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The graph folder to write.")],
    valid: Annotated[
        Path | None,
        typer.Option(help="A file of validation triples; SOURCE then has the training triples."),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="A file of test triples; SOURCE then has the training triples."),
    ] = None,
    valid_share: Annotated[
        float, typer.Option(help="Share of a single file held out for validation.")
    ] = 0.05,
    test_share: Annotated[
        float, typer.Option(help="Share of a single file held out for test.")
    ] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of the split of a single file.")] = 0,
    entity_labels: Annotated[
        Path | None,
        typer.Option(help="Readable names of entities: lines of `name<TAB>label`, or CSV."),
    ] = None,
    relation_labels: Annotated[
        Path | None, typer.Option(help="Readable names of relations, in the same form.")
    ] = None,
    drop_unseen: Annotated[
        bool,
        typer.Option(
            "--drop-unseen",
            help="Drop held-out triples with names that the training triples lack, instead of "
            "failing.",
        ),
    ] = False,
    language: Annotated[
        str,
        typer.Option(
            help="For RDF: the language of labels, as a tag such as de, if there is a choice."
        ),
    ] = RdfOptions.language,
    literals: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RELATION",
            help="For RDF: keep the literals of this relation (its IRI or the IRI's last part) as "
            "entities; may be repeated. Other literals, but for labels, are left out.",
        ),
    ] = None,
    from_folder: Annotated[
        Path | None,
        typer.Option("--from", help="Read a benchmark from this folder; nothing is downloaded."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Read facts and write them as a graph folder that other commands open quickly.

    A single file is split for you, by --seed, so that every entity and relation of the
    held-out facts also occurs in training. Examples:

    `conekg graph build facts.tsv --out my-graph`

    `conekg graph build train.tsv --valid valid.tsv --test test.tsv --out my-graph`

    `conekg graph build films.ttl --language de --literals year --out my-graph`

    `conekg graph build nell995 --out nell`
    """
    options = ReadOptions(
        hold_out=HoldOut(valid_share, test_share, seed),
        unseen="drop" if drop_unseen else "error",
        valid=valid,
        test=test,
        entity_labels=entity_labels,
        relation_labels=relation_labels,
        rdf=RdfOptions(language, tuple(literals or ())),
    )
    refuse_part_of_run(out)
    check_replaceable(out)
    built = read_and_report(source, options, from_folder)
    save_graph(built.graph, out)
    say(f"wrote {out}")
    if as_json:
        print_json({**_facts_about(built.graph), "folder": str(out), "notes": list(built.notes)})
    else:
        _print_facts(built.graph)


@app.command()
def info(
    graph: GraphArgument = "geography",
    verify: Annotated[
        bool, typer.Option("--verify", help="Also check every byte of a graph or run folder.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show how large a graph is and how its facts are split."""
    opened = load_graph(_store_of(graph), verify=True) if verify else open_and_report(graph)
    if as_json:
        print_json(_facts_about(opened))
    else:
        _print_facts(opened)


@app.command()
def relations(
    graph: GraphArgument = "geography",
    search: SearchOption = None,
    limit: LimitOption = 1000,
    as_json: JsonOption = False,
) -> None:
    """List relations with their labels and how many facts use them.

    In a query, `^name` follows a relation backwards.
    """
    opened = open_and_report(graph)
    table = opened.vocabulary.relations
    counts = sum(
        np.bincount(opened.triples(split)[:, 1] >> 1, minlength=len(table)) for split in SPLITS
    )
    ids = range(len(table)) if search is None else table.containing(search)
    rows = [(table.name(i), table.label(i), int(np.asarray(counts)[i])) for i in ids]
    rows.sort(key=lambda row: (-row[2], row[0]))
    shown = rows[:limit]
    if as_json:
        keys = ("name", "label", "facts")
        print_json([dict(zip(keys, row, strict=True)) for row in shown])
    else:
        print_table(
            f"{opened.name}: {len(table):,} relations",
            ["relation", "label", "facts"],
            [[name, label if label != name else "", f"{count:,}"] for name, label, count in shown],
        )
    _say_rest(len(rows), len(shown))


@app.command()
def entities(
    graph: GraphArgument = "geography",
    search: SearchOption = None,
    limit: LimitOption = 20,
    as_json: JsonOption = False,
) -> None:
    """List all entities, or those whose name or label contains a text."""
    table = open_and_report(graph).vocabulary.entities
    found = range(len(table)) if search is None else table.containing(search)
    shown = [(table.name(i), table.label(i)) for i in found[:limit]]
    if as_json:
        print_json([{"name": name, "label": label} for name, label in shown])
    else:
        for name, label in shown:
            own = [] if label == name else [label]
            print_text("\t".join(map(one_line, [name, *own])))
    _say_rest(len(found), len(shown))


@app.command()
def neighbors(
    entity: Annotated[str, typer.Argument(help="An entity's name, or its label if unique.")],
    graph: GraphArgument = "geography",
    relation: Annotated[
        str | None, typer.Option("--relation", "-r", help="Only this relation; ^name: backwards.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, help="List at most this many per relation.")
    ] = 10,
    as_json: JsonOption = False,
) -> None:
    """List the facts about an entity, in both directions, and which of them are held out."""
    with hint_if_swapped(graph, entity, "conekg graph neighbors {other} {place}"):
        opened = open_and_report(graph)
    vocabulary = opened.vocabulary
    with told_apart(opened):
        entity_id = vocabulary.entities.id_of(entity)
    everything = opened.adjacency("test")
    wanted = (
        everything.relations_of(entity_id).tolist()
        if relation is None
        else [vocabulary.relation_id(relation)]
    )
    written = vocabulary.relation_name if as_json else partial(_relation, vocabulary)
    found = {written(relation_id): _tails(opened, entity_id, relation_id) for relation_id in wanted}
    table = vocabulary.entities
    if as_json:
        print_json(
            {
                name: [
                    {"name": table.name(tail), "label": table.label(tail), "split": split}
                    for tail, split in tails[:limit]
                ]
                for name, tails in found.items()
            }
        )
        for name, tails in found.items():
            if len(tails) > limit:
                say(f"{name}: {limit:,} of {len(tails):,} shown; --limit shows more")
        return
    for name, tails in found.items():
        shown = listed(
            [table.title(tail) for tail, _ in tails[:limit]],
            ["" if split == "train" else split for _, split in tails[:limit]],
        )
        rest = f", and {len(tails) - limit:,} more" if len(tails) > limit else ""
        if tails:
            print_text(f"{one_line(name)}: {shown}{rest}")
    if not any(found.values()):
        say(f"no facts about {entity!r}" + ("" if relation is None else f" with {relation!r}"))


def _store_of(graph: str) -> Path:
    """The folder of a stored graph, given itself or as a run; ConfigError if it is neither."""
    folder = Path(graph)
    if (folder / RUN_FILE).is_file():
        folder /= "graph"
    if graph in ("geography", *BENCHMARKS) or not is_store(folder):
        raise ConfigError(f"--verify needs a graph folder or a run, not {graph!r}", key="verify")
    return folder


def _relation(vocabulary: Vocabulary, relation_id: int) -> str:
    """A relation as it is easiest to type: its name, or its label if the name is, say, an IRI."""
    if is_bare_name(vocabulary.relations.name(relation_id >> 1)):
        return vocabulary.relation_name(relation_id)
    return vocabulary.relation_title(relation_id)


def _tails(graph: KnowledgeGraph, head_id: int, relation_id: int) -> list[tuple[int, Split]]:
    """All tails, each with the smallest of the nested graphs that has the fact."""
    split_of: dict[int, Split] = {}
    for split in SPLITS:
        for tail in graph.adjacency(split).neighbors(head_id, relation_id).tolist():
            split_of.setdefault(tail, split)
    return sorted(split_of.items())


def _facts_about(graph: KnowledgeGraph) -> dict[str, Any]:
    return {
        "name": graph.name,
        "entities": graph.num_entities,
        "relations": len(graph.vocabulary.relations),
        "facts": {split: len(graph.edges(split)) // 2 for split in SPLITS},
        "fingerprint": graph.fingerprint,
    }


def _print_facts(graph: KnowledgeGraph) -> None:
    about = _facts_about(graph)
    print_text(f"{'graph':<13}{about['name']}")
    for key in ("entities", "relations"):
        print_text(f"{key:<13}{about[key]:,}")
    for split, count in about["facts"].items():
        print_text(f"{split + ' facts':<13}{count:,}")
    print_text(f"{'fingerprint':<13}{about['fingerprint']}")


def _say_rest(found: int, shown: int) -> None:
    if found > shown:
        say(f"{shown:,} of {found:,} shown; --limit shows more, --search narrows")
    elif not found:
        say("none found")
