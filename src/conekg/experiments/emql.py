"""Appendix C.4 (Table 14): average MRR of EmQL and the other models, without negation.

The paper compares them on the Query2Box release of FB15k; give its folder as `queries`. By default
the runs' own queries are used. The paper's numbers stand beside given queries and beside runs
trained on that release, never beside the BetaE release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from conekg.experiments.beside_paper import of_release, release_note
from conekg.experiments.experiment import Experiment, Tables, common_data_set
from conekg.experiments.mrr_table import average_note, mrr_table, queries_of_each, rank_row
from conekg.experiments.options import Options
from conekg.experiments.published import published
from conekg.query.shape import POSITIVE_STRUCTURES
from conekg.training.run import Run

_SAMPLED_NOTE = (
    "These are the runs' own queries. The paper's numbers are for the Query2Box release of "
    "FB15k: give its folder as --queries to compare with them."
)

_UNION_NOTE = (
    "EmQL's unions are ranked by DNF, as those of all models are: the best branch counts. Its own "
    "union, the sum of the branches' centroids, is part of its training alone; the paper does not "
    "say which of the two its number is of."
)


def emql(runs: Sequence[Run], options: Options) -> Tables:
    """Average MRR of the nine structures without negation (Table 14)."""
    data_set = common_data_set(runs)
    all_queries = queries_of_each(runs, options)
    paper = of_release(published("table:cmp_results", data_set), all_queries)
    releases = {queries.release for queries in all_queries}
    if options.queries is None and releases != {paper.release}:
        paper = replace(paper, rows={})
    measured = [
        rank_row(run, queries, options, POSITIVE_STRUCTURES, paper)
        for run, queries in zip(runs, all_queries, strict=True)
    ]
    sampled = options.queries is None and None in releases and releases <= {None, paper.release}
    if sampled and data_set in paper.data_sets:
        absence: tuple[str, ...] = (_SAMPLED_NOTE,)
    else:
        absence = release_note(paper, runs[0].graph, all_queries)
    own_union = (_UNION_NOTE,) if any(run.recipe.model == "emql" for run in runs) else ()
    closing = (*own_union, *absence, *average_note([each.row for each in measured]))
    title = "Comparison with EmQL"
    return (mrr_table(title, measured, options, POSITIVE_STRUCTURES, paper, closing=closing),)


EMQL = Experiment(
    name="emql",
    paper=("table:cmp_results",),
    summary="EmQL, ConE and the baselines by average MRR, on the Query2Box release",
    run=emql,
    options=("split", "checkpoint", "max_queries", "queries"),
    compares=True,
)
