"""`conekg evaluate`: filtered MRR and Hits@k of a run, per query structure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from conekg.cli.console import print_json, print_text, print_whole, progress
from conekg.cli.options import CheckpointOption, JsonOption, RunArgument, UnionOption
from conekg.cli.output_file import check_files, write_file
from conekg.cli.rank_csv import rank_csv
from conekg.errors import ConfigError, DataError
from conekg.version import VERSION

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from conekg.graph.knowledge_graph import Split
    from conekg.sampling.query_set import QueryBlock, QuerySet
    from conekg.training.run import Run


def evaluate(
    run: RunArgument,
    queries: Annotated[
        Path | None,
        typer.Option(
            help="Another query set: a file from `conekg sample`, or a BetaE or Query2Box folder. "
            "By default the run's own."
        ),
    ] = None,
    split: Annotated[
        Literal["train", "valid", "test"] | None,
        typer.Option(help="Which queries of the set; by default test.", show_default=False),
    ] = None,
    which: CheckpointOption = "best",
    ties: Annotated[
        Literal["mean", "optimistic", "pessimistic"],
        typer.Option(
            help="The rank of an answer among others with the same score: their mean rank, the "
            "best, or the worst."
        ),
    ] = "mean",
    union: UnionOption = "dnf",
    max_queries: Annotated[
        int | None, typer.Option(min=1, help="Rank at most this many queries per structure.")
    ] = None,
    recompute: Annotated[
        bool,
        typer.Option(
            "--recompute",
            help="For a benchmark folder: compute the answers from the graph instead of reading "
            "them.",
        ),
    ] = False,
    baseline: Annotated[
        bool,
        typer.Option(
            "--baseline",
            help="For comparison, also rank by how often entities answer the query's last "
            "relation.",
        ),
    ] = False,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the tables to this Markdown file.")
    ] = None,
    ranks: Annotated[
        Path | None, typer.Option(help="Also write the rank of every hard answer to this CSV file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Rank the held-out answers of a query set and print the metrics per structure."""
    from conekg.evaluation.evaluate import evaluate as rank
    from conekg.evaluation.frequency import FrequencyScorer
    from conekg.experiments.experiment import describe, run_facts
    from conekg.training.loop import pick_device
    from conekg.training.run import open_run

    check_files([markdown, ranks], [] if queries is None else [queries])
    opened = open_run(run)
    query_set = _queries(opened, queries, split, recompute)
    model = opened.load_model(which, pick_device())
    num_entities = opened.graph.num_entities
    of_each: list[tuple[QueryBlock, NDArray[np.float64]]] = []
    with progress("evaluating", len(query_set), unit="queries") as bar:
        report = rank(
            model,
            query_set,
            num_entities=num_entities,
            ties=ties,
            union=union,
            max_queries=max_queries,
            progress=bar.update,
            ranked=lambda block, its_ranks: of_each.append((block, its_ranks)),
        )
    about = [describe(opened, which)]
    if queries is not None:
        answers = ", their answers computed from the graph" if recompute else ""
        about.append(f"The queries are those of {queries}{answers}.")
    if max_queries is not None:
        about.append(f"Of each structure at most {max_queries:,} of its queries, evenly spaced.")
    beside, content = {}, report.to_json()
    content |= {
        "conekg": VERSION,
        "run": run_facts(opened, which),
        "queries": None if queries is None else str(queries),
        "recompute": recompute,
        "max_queries": max_queries,
    }
    if baseline:
        about.append(
            "frequency: the MRR of ranking entities by how often they answer the query's last "
            "relation in the training facts."
        )
        scorer = FrequencyScorer(opened.graph.adjacency("train"))
        frequency = rank(
            scorer, query_set, num_entities=num_entities, ties=ties, max_queries=max_queries
        )
        beside = {"frequency": frequency.row()}
        content["baseline"] = frequency.to_json()
    if as_json:
        print_json(content)
    else:
        print_whole(report.to_table(beside))
        for sentence in about:
            print_text(f"- {sentence}")
    if markdown is not None:
        write_file(markdown, report.to_markdown(beside, about))
    if ranks is not None:
        write_file(ranks, rank_csv(of_each, opened.graph.vocabulary))


def _queries(run: Run, queries: Path | None, split: Split | None, recompute: bool) -> QuerySet:
    """The queries to rank: the run's own, or those of a file or folder; an error if there are none.

    `recompute` computes the answers of a benchmark folder from the graph.
    """
    from conekg.sampling.source import open_queries

    if queries is not None:
        query_set = open_queries(queries, split, run.graph, recompute=recompute)
    elif recompute:
        raise ConfigError(
            "--recompute needs --queries: the run's own queries already have their answers"
        )
    else:
        query_set = run.queries(split or "test")
    if not len(query_set):
        share = "--valid-share" if query_set.split == "valid" else "--test-share"
        raise DataError(
            f"there are no {query_set.split} queries to rank",
            path=str(queries or run.folder),
            hint=f"queries need held-out facts; `conekg graph build {share}` holds some out, "
            "--split chooses other queries",
        )
    return query_set
