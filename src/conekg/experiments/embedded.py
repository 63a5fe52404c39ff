"""The regions and the exact answers of a run's queries, batch by batch, in bounded memory.

What experiments share about choosing queries, and the notes on them, is here too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from conekg.experiments.experiment import title_of
from conekg.experiments.options import Options
from conekg.graph.adjacency import IntArray, LongArray
from conekg.graph.knowledge_graph import KnowledgeGraph, Split
from conekg.graph.ragged import Ragged
from conekg.model.embed import embed_shape
from conekg.model.interface import QueryModel, Region
from conekg.query.branches import union_free_branches
from conekg.query.plan import Plan
from conekg.query.shape import Shape
from conekg.sampling.query_set import QueryBlock, QuerySet
from conekg.symbolic.engine import answer_batch
from conekg.training.run import Run

ROWS_AT_ONCE = 1024
"""How many queries are embedded at a time."""


@dataclass(frozen=True)
class EmbeddedBatch:
    """Some queries of one structure with their regions and their answers."""

    plan: Plan
    region: Region
    """Components [branches × queries, dim], one branch of all queries after the other."""
    answers: Ragged
    """[queries] all answers on the split's graph, easy and hard."""


def embedded_batches(
    model: QueryModel,
    graph: KnowledgeGraph,
    split: Split,
    block: QueryBlock,
    rows_at_once: int = ROWS_AT_ONCE,
) -> Iterator[EmbeddedBatch]:
    """The queries of a block in order, embedded by DNF and answered exactly.

    Answers are those on the split's graph, which includes the edges of the splits before it. An
    easy answer that a negation makes false on that graph is not among them.
    """
    adjacency = graph.adjacency(split)
    for start in range(0, len(block), rows_at_once):
        rows = np.arange(start, min(start + rows_at_once, len(block)))
        batch = block.take(rows)
        plan, region = embed_shape(model, block.shape, batch.anchors, batch.relations)
        answers = answer_batch(adjacency, block.shape, batch.anchors, batch.relations)
        yield EmbeddedBatch(plan, region, answers)


def only_structures(query_set: QuerySet, names: Sequence[str]) -> QuerySet:
    """The query set with the blocks of those structures only, in the order of `names`."""
    by_name = {block.shape.name: block for block in query_set}
    return replace(query_set, blocks=tuple(by_name[name] for name in names if name in by_name))


def chosen_blocks(
    run: Run, options: Options, names: Sequence[str], split: Split | None = None
) -> Iterator[QueryBlock]:
    """The run's queries of those structures, at most `max_queries` of each, evenly spaced.

    Reports progress after each block, once the next one is requested.
    """
    query_set = only_structures(run.queries(split or options.split), names)
    blocks = [block.evenly_spaced(options.max_queries) for block in query_set if len(block)]
    done, total = 0, sum(map(len, blocks))
    for block in blocks:
        yield block
        done += len(block)
        options.progress(done, total)


def counts_note(counts: Mapping[str, int], what: str = "Queries measured") -> tuple[str, ...]:
    """A note on how many queries of each structure were measured; none without any.

    >>> counts_note({"1p": 60, "2p": 60}), counts_note({"1p": 1200, "2p": 60})
    (('Queries measured: 60 of each structure.',), ('Queries measured: 1,200 of 1p, 60 of 2p.',))
    """
    if not counts:
        return ()
    if len(counts) > 1 and len(set(counts.values())) == 1:
        return (f"{what}: {next(iter(counts.values())):,} of each structure.",)
    listed = ", ".join(f"{count:,} of {name}" for name, count in counts.items())
    return (f"{what}: {listed}.",)


def no_queries_note(run: Run, split: Split, names: Sequence[str]) -> tuple[str, ...]:
    """A note on the structures that a run has no queries of; none if it has all."""
    there = {block.shape.name for block in run.queries(split) if len(block)}
    absent = ", ".join(name for name in names if name not in there)
    return (f"{title_of(run)} has no {split} queries of {absent}.",) if absent else ()


def other_queries_note(
    runs: Sequence[Run], names: Sequence[str], split: Split, remedy: str = ""
) -> tuple[str, ...]:
    """A note if the runs' own queries of those structures differ; none if they are the same.

    `conekg train` samples queries by the seed of the training, so runs of several seeds have the
    same queries only if these were given to them. The note ends with `remedy`.
    """
    first, *others = (only_structures(run.queries(split), names) for run in runs)
    different = [
        title_of(run)
        for run, own in zip(runs[1:], others, strict=True)
        if not _are_the_same(first, own)
    ]
    if not different:
        return ()
    return (
        f"Each run is measured on its own {split} queries, and those of {', '.join(different)} are "
        f"not those of {title_of(runs[0])}: a part of the differences comes from the "
        f"queries.{remedy}",
    )


def _are_the_same(first: QuerySet, second: QuerySet) -> bool:
    """Whether two query sets have the same queries with the same easy and hard answers."""
    return [block.shape for block in first] == [block.shape for block in second] and all(
        np.array_equal(one, other)
        for block, twin in zip(first, second, strict=True)
        for one, other in zip(_arrays(block), _arrays(twin), strict=True)
    )


def _arrays(block: QueryBlock) -> tuple[IntArray | LongArray, ...]:
    """All arrays of a block: the ids of its queries, and their answers."""
    answers = (block.easy.lengths, block.easy.values, block.hard.lengths, block.hard.values)
    return block.anchors, block.relations, *answers


def has_one_branch(shape: Shape) -> bool:
    """Whether a query of this shape is a single region; a union has several by DNF."""
    return len(union_free_branches(shape.template)) == 1
