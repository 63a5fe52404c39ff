"""The regions and the true answers of a run's queries, batch by batch, in bounded memory."""

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
from conekg.query.plan import Plan
from conekg.query.rewrite import union_free_branches
from conekg.query.shape import Shape
from conekg.sampling.query_set import QueryBlock, QuerySet
from conekg.symbolic.engine import answer_batch
from conekg.training.run import Run

ROWS_AT_ONCE = 1024
"""How many queries are embedded at a time."""


@dataclass(frozen=True)
class EmbeddedBatch:
    """A few queries of one structure with their regions and their answers."""

    plan: Plan
    region: Region
    """Branch by branch, as `embed` puts them out."""
    answers: Ragged
    """All answers on the split's graph, known and predicted alike."""


def embedded_batches(
    model: QueryModel,
    graph: KnowledgeGraph,
    split: Split,
    block: QueryBlock,
    rows_at_once: int = ROWS_AT_ONCE,
) -> Iterator[EmbeddedBatch]:
    """The queries of a block in order, embedded by DNF and answered exactly.

    Answers are those on the split's graph, which has the edges of the splits before it too;
    an easy answer that negation makes false there is none.
    """
    adjacency = graph.adjacency(split)
    for start in range(0, len(block), rows_at_once):
        rows = np.arange(start, min(start + rows_at_once, len(block)))
        batch = block.take(rows)
        plan, region = embed_shape(model, block.shape, batch.anchors, batch.relations)
        answers = answer_batch(adjacency, block.shape, batch.anchors, batch.relations)
        yield EmbeddedBatch(plan, region, answers)


def only_structures(query_set: QuerySet, names: Sequence[str]) -> QuerySet:
    """The set with the blocks of those structures alone, in the order of `names`."""
    by_name = {block.shape.name: block for block in query_set}
    return replace(query_set, blocks=tuple(by_name[name] for name in names if name in by_name))


def chosen_blocks(
    run: Run, options: Options, names: Sequence[str], split: Split | None = None
) -> Iterator[QueryBlock]:
    """The run's queries of those structures, at most `max_queries` of each, evenly spaced.

    Tells how many queries are done whenever the next block is asked for.
    """
    query_set = only_structures(run.queries(split or options.split), names)
    blocks = [block.evenly_spaced(options.max_queries) for block in query_set if len(block)]
    done, total = 0, sum(map(len, blocks))
    for block in blocks:
        yield block
        done += len(block)
        options.progress(done, total)


def counts_note(counts: Mapping[str, int], what: str = "Queries measured") -> tuple[str, ...]:
    """How many queries of each structure the numbers are of; nothing where there are none.

    >>> counts_note({"1p": 60, "2p": 60}), counts_note({"1p": 1200, "2p": 60})
    (('Queries measured: 60 of each structure.',), ('Queries measured: 1,200 of 1p, 60 of 2p.',))
    """
    if not counts:
        return ()
    if len(counts) > 1 and len(set(counts.values())) == 1:
        return (f"{what}: {next(iter(counts.values())):,} of each structure.",)
    told = ", ".join(f"{count:,} of {name}" for name, count in counts.items())
    return (f"{what}: {told}.",)


def no_queries_note(run: Run, split: Split, names: Sequence[str]) -> tuple[str, ...]:
    """A note of the structures that a run has no queries of, which are not measured."""
    there = {block.shape.name for block in run.queries(split) if len(block)}
    absent = ", ".join(name for name in names if name not in there)
    return (f"{title_of(run)} has no {split} queries of {absent}.",) if absent else ()


def other_queries_note(
    runs: Sequence[Run], names: Sequence[str], split: Split, remedy: str = ""
) -> tuple[str, ...]:
    """A note where runs are measured on queries of their own that differ.

    `conekg train` samples queries by the seed of the training, so that runs of several seeds
    have the same ones only if they were given them.
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
    """Whether two sets ask the same queries and take the same entities for answers."""
    return [block.shape for block in first] == [block.shape for block in second] and all(
        np.array_equal(one, other)
        for block, twin in zip(first, second, strict=True)
        for one, other in zip(_arrays(block), _arrays(twin), strict=True)
    )


def _arrays(block: QueryBlock) -> tuple[IntArray | LongArray, ...]:
    answers = (block.easy.lengths, block.easy.values, block.hard.lengths, block.hard.values)
    return block.anchors, block.relations, *answers


def has_one_branch(shape: Shape) -> bool:
    """Whether a query of this shape is one region; a union is several."""
    return len(union_free_branches(shape.template)) == 1
