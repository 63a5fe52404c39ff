"""Section 5.4: can intersections without answers be recognised by their small apertures?

The mean apertures of queries with more than five answers and with none, and the area under the
ROC curve. Queries are drawn from all facts of the run's graph, held-out ones too, so that "no
answer" means that no fact of any split gives one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from conekg.errors import DataError
from conekg.experiments.beside_paper import compare, graph_note, paper_rows
from conekg.experiments.cardinality import check_sizes
from conekg.experiments.embedded import ROWS_AT_ONCE
from conekg.experiments.experiment import (
    Experiment,
    Tables,
    common_data_set,
    describe,
    title_of,
)
from conekg.experiments.options import Options
from conekg.experiments.plot import Plot, Series
from conekg.experiments.published import published
from conekg.experiments.statistics import Floats, roc_auc, roc_curve
from conekg.experiments.table import Row, Table
from conekg.graph.adjacency import Adjacency, IntArray
from conekg.graph.knowledge_graph import SPLITS, KnowledgeGraph
from conekg.model.embed import embed_shape
from conekg.model.interface import QueryModel
from conekg.query.shape import STRUCTURES
from conekg.sampling.protocol import PRESETS
from conekg.sampling.stream import ShapeStream
from conekg.symbolic.engine import answer_batch
from conekg.training.run import Run

QUERIES = 10_000
"""How many queries of each kind the paper draws."""

MANY = 5
"""Queries with answers have more than this; one or more if the graph has no such query."""

_MANY_ANSWERS = f"more than {MANY} answers"

_INTERSECTION = STRUCTURES["2i"]
_BINS = 40
"""Bins of the histograms."""
_ROUNDS = 20
"""After how many draws, each of twice as many queries as wanted, the search is given up."""
_LEAST_DRAWN = 1000
"""The least number of queries in a draw, so that rare kinds are found if few are wanted."""

Queries = tuple[IntArray, IntArray]
"""Anchors and relations, each [queries, 2]."""

_NOTE = (
    "Queries of structure 2i over all facts of the graph, training, validation and test. More than "
    f"five: drawn as training queries are, kept when they have more than {MANY} answers, each "
    "query once, so that on a small graph the rarer ones weigh more the more are wanted. None: two "
    "distinct links (head, relation), each with answers, drawn uniformly, kept when they have no "
    "answer in common. The aperture of a query is the mean over its dimensions."
)


def empty_intersection(runs: Sequence[Run], options: Options) -> Tables:
    """The mean apertures of both kinds of queries, and how well apertures separate them."""
    data_set = common_data_set(runs)
    check_sizes(runs)
    paper = published("sec:empty_intersection", data_set)
    wanted = options.pairs or QUERIES
    graph = runs[0].graph
    some, with_answers = intersections_with_answers(graph, wanted, options.seed), _MANY_ANSWERS
    if not len(some[0]):
        some = intersections_with_answers(graph, wanted, options.seed, more_than=0)
        with_answers = "one answer or more"
    none = intersections_without_answers(graph.adjacency("test"), wanted, options.seed)
    if not len(some[0]) or not len(none[0]):
        kind = "an answer" if not len(some[0]) else "no answer"
        raise DataError(
            f"the graph {graph.name!r} has no intersection of two links with {kind}",
            hint="give a run of a larger graph, such as geography",
        )
    rows, comparisons, notes = list[Row](), list[Row](), [_NOTE]
    if with_answers != _MANY_ANSWERS:
        notes.append(
            f"No intersection has {_MANY_ANSWERS} here: those with {with_answers} stand in their "
            "place."
        )
    plots = list[Plot]()
    for run in runs:
        model = run.load_model(options.checkpoint, options.device)
        sizes = mean_apertures(model, some), mean_apertures(model, none)
        what = "aperture, radians" if model.name == "cone" else "size of a region, a dimension"
        plots += [
            histograms(title_of(run), what, with_answers, *sizes),
            roc_plot(title_of(run), *sizes),
        ]
        area = roc_auc(*sizes)
        assert area is not None, "there are queries of both kinds"
        values = [float(sizes[0].mean()), float(sizes[1].mean()), area]
        ours = dict(zip(paper.columns, values, strict=True))
        rows.append(Row(title_of(run), ours))
        comparisons += compare(title_of(run), ours, paper.row(run.recipe.model))
        if model.name != "cone":
            notes.append(f"{title_of(run)} has no aperture: its own measure of size is shown.")
        notes.append(describe(run, options.checkpoint))
    notes += [
        f"Only {len(found[0]):,} queries with {kind} were found, of {wanted:,} wanted."
        for found, kind in ((some, with_answers), (none, "no answer"))
        if len(found[0]) < wanted
    ]
    counts = f"{len(some[0]):,} queries of each kind"
    if len(some[0]) != len(none[0]):
        counts = f"{len(some[0]):,} queries with answers and {len(none[0]):,} without"
    table = Table(
        title=f"Empty intersections, {graph.name}, {counts}",
        columns=paper.columns,
        rows=(*rows, *paper_rows(paper), *comparisons),
        paper=paper.label,
        unit=paper.unit,
        notes=(*dict.fromkeys(notes), *graph_note(paper, graph)),
        digits=4,
        plots=tuple(plots),
    )
    return (table,)


def intersections_with_answers(
    graph: KnowledgeGraph, wanted: int, seed: int, more_than: int = MANY
) -> Queries:
    """At most `wanted` 2i queries with more than `more_than` answers on the whole graph."""
    # Training queries are drawn to have answers and to meet no other condition. So all facts are
    # made training facts here, and queries are drawn as training queries.
    edges = np.concatenate([graph.edges(split) for split in SPLITS])
    whole = KnowledgeGraph(graph.name, graph.vocabulary, {"train": edges})
    stream = ShapeStream(whole, _INTERSECTION, PRESETS["small"], seed, workers=None)
    found: dict[tuple[int, ...], None] = {}  # each query once, in the order of the stream
    for _ in range(_ROUNDS):
        block = stream.take(max(2 * wanted, _LEAST_DRAWN))
        rows = np.flatnonzero(block.hard.lengths > more_than)
        ids = np.concatenate([block.anchors[rows], block.relations[rows]], axis=1)
        found |= dict.fromkeys(map(tuple, ids.tolist()))
        if len(found) >= wanted:
            break
    queries = np.array(list(found)[:wanted], dtype=np.int32).reshape(-1, 4)
    return queries[:, :2], queries[:, 2:]


def intersections_without_answers(adjacency: Adjacency, wanted: int, seed: int) -> Queries:
    """At most `wanted` 2i queries of two links that have no answer in common."""
    random = np.random.default_rng(seed)
    heads, relations = adjacency.pair_heads, adjacency.pair_relations
    anchors, kinds = np.zeros((0, 2), np.int32), np.zeros((0, 2), np.int32)
    for _ in range(_ROUNDS):
        links = random.integers(0, len(heads), size=(max(2 * wanted, _LEAST_DRAWN), 2))
        # A pair of the same link is never kept: it has the link's answers.
        answers = answer_batch(adjacency, _INTERSECTION, heads[links], relations[links])
        empty = links[answers.lengths == 0]
        anchors = np.concatenate([anchors, heads[empty]])
        kinds = np.concatenate([kinds, relations[empty]])
        if len(anchors) >= wanted:
            break
    return anchors[:wanted], kinds[:wanted]


@torch.inference_mode()
def mean_apertures(model: QueryModel, queries: Queries) -> Floats:
    """[queries] the size of each query's region, divided by the number of dimensions."""
    (anchors, relations), sizes = queries, [np.zeros(0)]
    for start in range(0, len(anchors), ROWS_AT_ONCE):
        piece = slice(start, start + ROWS_AT_ONCE)
        _, region = embed_shape(model, _INTERSECTION, anchors[piece], relations[piece])
        sizes.append((model.size(region) / model.dim).double().cpu().numpy())
    return np.concatenate(sizes)


def histograms(title: str, what: str, with_answers: str, some: Floats, none: Floats) -> Plot:
    """The histograms of the sizes of both kinds of queries, with the same bins."""
    edges = np.histogram_bin_edges(np.concatenate([some, none]), bins=_BINS)
    series = []
    for label, sizes in ((with_answers, some), ("no answer", none)):
        shares = np.histogram(sizes, edges)[0] / len(sizes)
        # A step at each edge: the last share is repeated up to the end of the last bin.
        series.append(Series.of(label, edges, [*shares, shares[-1]], "steps"))
    return Plot(title, f"mean {what}", "share of queries", tuple(series))


def roc_plot(title: str, some: Floats, none: Floats) -> Plot:
    """The ROC curve of telling queries with answers by their large apertures."""
    false, true = roc_curve(some, none)
    curve = Series.of("by size", false, true)
    chance = Series.of("chance", [0.0, 1.0], [0.0, 1.0], kind="comparison")
    axes = "empty ones taken for non-empty", "non-empty ones found"
    return Plot(title, *axes, (curve, chance))


EMPTY_INTERSECTION = Experiment(
    name="empty-intersection",
    paper=("sec:empty_intersection",),
    summary="apertures of intersections with many answers and with none",
    run=empty_intersection,
    options=("checkpoint", "pairs", "seed"),
)
