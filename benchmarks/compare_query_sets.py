"""Whether query sets come from the same distribution: statistics of one set against others.

For each shape that all sets have, these are compared: the logarithms of the numbers of easy and
hard answers, how often two of a query's relations are the same or each other's inverse, how often
two anchors are the same, and how often each relation occurs in each place. A difference of means is
given in standard errors, z. If the sets come from the same distribution, z² is 1 on average, and
so is chi² divided by its degrees of freedom.

    conekg queries import NELL --recompute --out official.arrow
    conekg sample NELL --split test --preset nell995 --out ours.arrow
    python benchmarks/compare_query_sets.py official.arrow ours.arrow [MORE ...]
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy import stats

from conekg.errors import ConeKGError, QueryError
from conekg.sampling.query_set import QueryBlock, QuerySet, concatenate_blocks, load_query_set

FEWEST = 20
"""Relations that occur in a place less often than this, in both sets together, are left out."""


def statistics_of(block: QueryBlock) -> Iterator[tuple[str, np.ndarray]]:
    """The name of each statistic, and its value for each query of the block."""
    yield "easy answers", np.log1p(block.easy.lengths)
    yield "hard answers", np.log1p(block.hard.lengths)
    for one, other in itertools.combinations(range(block.relations.shape[1]), 2):
        left, right = block.relations[:, one], block.relations[:, other]
        yield f"relations {one} and {other} the same", left == right
        yield f"relations {one} and {other} inverse", left == right ^ 1
    for one, other in itertools.combinations(range(block.anchors.shape[1]), 2):
        yield (
            f"anchors {one} and {other} the same",
            block.anchors[:, one] == block.anchors[:, other],
        )


def differences(block: QueryBlock, others: QueryBlock) -> dict[str, float]:
    """z of each statistic by name, without statistics that are constant in both blocks."""
    found = {}
    for (name, left), (_, right) in zip(statistics_of(block), statistics_of(others), strict=True):
        error = np.sqrt(left.var() / len(left) + right.var() / len(right))
        if error > 0:
            found[name] = float((left.mean() - right.mean()) / error)
    return found


def relation_chi2(block: QueryBlock, others: QueryBlock) -> list[float]:
    """Chi² divided by its degrees of freedom, for each place where several relations occur."""
    ratios = []
    for left, right in zip(block.relations.T, others.relations.T, strict=True):
        length = int(max(left.max(), right.max())) + 1
        counts = np.stack([np.bincount(part, minlength=length) for part in (left, right)])
        counts = counts[:, counts.sum(axis=0) >= FEWEST]
        if counts.shape[1] > 1:
            test = stats.chi2_contingency(counts, correction=False)
            ratios.append(float(test.statistic / test.dof))
    return ratios


def compare(one: QuerySet, others: list[QuerySet]) -> list[str]:
    """A line for each shape that all sets have, and one for all shapes together."""
    lines, all_z, all_ratios = [], [], []
    for block in one:
        rest = [found for other in others for found in other if found.shape == block.shape]
        if len(rest) < len(others) or not len(block) or not all(map(len, rest)):
            continue
        joined = concatenate_blocks(block.shape, rest)
        z, ratios = differences(block, joined), relation_chi2(block, joined)
        largest = max(z, key=lambda name: abs(z[name]), default="none")
        lines.append(
            f"{block.shape.name}: {len(block):,} against {len(joined):,} queries, "
            f"mean z² {np.mean(np.square(list(z.values()))):.2f}, largest z {z[largest]:+.1f} "
            f"({largest}), relations' chi² {' '.join(f'{ratio:.2f}' for ratio in ratios)}"
        )
        all_z += z.values()
        all_ratios += ratios
    if not lines:
        raise QueryError("the sets have no shape in common")
    beyond = int(np.sum(np.abs(all_z) > 3))
    lines.append(
        f"all: {len(all_z)} statistics, mean z² {np.mean(np.square(all_z)):.2f}, "
        f"{beyond} beyond 3; relations' chi² {np.mean(all_ratios):.2f} on average"
    )
    return lines


def main() -> int:
    """Read the sets, compare them and print the lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("one", type=Path, help="a query set, as `conekg sample` writes it")
    parser.add_argument("others", type=Path, nargs="+", help="sets to compare it with, as one")
    arguments = parser.parse_args()
    try:
        one, *others = (load_query_set(path) for path in (arguments.one, *arguments.others))
        print("\n".join(compare(one, others)))
    except ConeKGError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
