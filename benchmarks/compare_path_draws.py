"""How Query2Box drew its queries: the mean number of answers by different ways to draw them.

The training queries without negation of the BetaE release are Query2Box's. Query2Box reports the
mean number of answers for its test queries only. So this script draws as many test queries as
Query2Box has, each with an answer that the smaller graphs lack and without a limit on its answers.
Paths of two and three hops are walked from an answer, and from their anchor. Intersections are
drawn from an answer: all of them, and only those that narrow, whose links have different relations
and each more answers than the intersection. For each way the mean is printed beside the published
one, with their difference in standard errors, z.

    python benchmarks/compare_path_draws.py FB15k FB15k-237 NELL [--seed 0]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np

from conekg.errors import ConeKGError, ConfigError
from conekg.graph.adjacency import IntArray
from conekg.graph.benchmarks import benchmark_of
from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.graph.source import open_graph
from conekg.query.shape import STRUCTURES
from conekg.sampling.attempt import attempts
from conekg.sampling.ground import stream_key
from conekg.sampling.protocol import PRESETS

# Query2Box (Ren, Hu and Leskovec, ICLR 2020): mean numbers of answers of its test queries, taken
# from the awesome-logical-query list of benchmarks.
PUBLISHED = {
    "fb15k": {"2p": 255.6, "3p": 250.0, "2i": 90.3, "3i": 64.1},
    "fb15k-237": {"2p": 131.4, "3p": 215.3, "2i": 69.0, "3i": 48.9},
    "nell995": {"2p": 56.6, "3p": 65.3, "2i": 30.3, "3i": 15.9},
}


@dataclass(frozen=True)
class Mean:
    """A mean and its standard error."""

    value: float
    error: float

    def errors_from(self, published: float) -> float:
        """The published mean minus this one, in standard errors of the difference.

        The published mean is taken to have the same standard error, as it is of as many queries.
        """
        return (published - self.value) / (self.error * np.sqrt(2))


def narrows(graph: KnowledgeGraph, anchors: IntArray, relations: IntArray, total: int) -> bool:
    """Whether an intersection's links have different relations and each more than `total` answers.

    `total` is the number of answers of the intersection.
    """
    facts = graph.adjacency("test")
    links = zip(anchors.tolist(), relations.tolist(), strict=True)
    return len(set(relations.tolist())) == len(relations) and all(
        len(facts.neighbors(head, relation)) > total for head, relation in links
    )


def mean_answers(
    graph: KnowledgeGraph,
    name: str,
    count: int,
    *,
    seed: int,
    forwards: bool = False,
    narrowing: bool = False,
) -> Mean:
    """The mean number of answers, easy and hard, of `count` distinct test queries.

    Paths are walked from their anchor if `forwards`, else from an answer. With `narrowing`, only
    intersections that narrow are counted.
    """
    shape = STRUCTURES[name]
    seen = set[bytes]()
    sizes = list[int]()
    pieces = attempts(
        graph,
        "test",
        shape,
        key=stream_key(seed, "compare", name),
        cap=None,
        tries=40,
        distinct=True,
        forwards=forwards,
    )
    for piece in pieces:
        found = piece.accepted
        totals = found.easy.lengths + found.hard.lengths
        drawn = zip(found.anchors, found.relations, totals.tolist(), strict=True)
        for anchors, relations, total in drawn:
            text = anchors.tobytes() + relations.tobytes()
            if text in seen or (narrowing and not narrows(graph, anchors, relations, total)):
                continue
            seen.add(text)
            sizes.append(total)
        if len(sizes) >= count:
            break
    kept = np.array(sizes[:count])
    return Mean(float(kept.mean()), float(kept.std() / np.sqrt(len(kept))))


def compare(graph: KnowledgeGraph, seed: int) -> list[str]:
    """A line for each shape and each way to draw it."""
    data_set = benchmark_of(graph.name)
    if data_set is None or data_set not in PUBLISHED:
        raise ConfigError(
            f"Query2Box has no queries of {graph.name!r}; it has them of {', '.join(PUBLISHED)}",
            key="graph",
        )
    count = PRESETS[data_set].evaluation_count
    assert count is not None
    lines = []
    for name, published in PUBLISHED[data_set].items():
        draws = {"from an answer": mean_answers(graph, name, count, seed=seed)}
        if STRUCTURES[name].is_path:
            draws["from its anchor"] = mean_answers(graph, name, count, seed=seed, forwards=True)
        else:
            draws["that narrows"] = mean_answers(graph, name, count, seed=seed, narrowing=True)
        lines += [
            f"{data_set:10} {name}  published {published:6.1f}  {draw:15} "
            f"{mean.value:6.1f} ± {mean.error:4.1f}  z {mean.errors_from(published):+6.1f}"
            for draw, mean in draws.items()
        ]
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="+", help="benchmark folders or names")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    try:
        for name in arguments.graphs:
            print("\n".join(compare(open_graph(name), arguments.seed)), flush=True)
    except ConeKGError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
