"""How Query2Box's queries were drawn: how many answers paths and intersections have, by each draw.

The release's training queries without negation are those of Query2Box, which says only of its test
queries how many answers they have on average. Paths of two and three hops are drawn here from an
answer and from their anchor, on the test graph, without a cap, as many as Query2Box has, each with
an answer that the smaller graphs lack; beside them stand the published means, and how many standard
errors away each draw is. Intersections are drawn from an answer: any, and those that narrow, whose
links are of different relations and have each more answers than the intersection.

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

# Query2Box (Ren, Hu and Leskovec, ICLR 2020), average number of answers of its test queries, as
# the awesome-logical-query list of benchmarks has it.
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
        """How far a published mean of as many queries is away, in errors of the difference."""
        return (published - self.value) / (self.error * np.sqrt(2))


def narrows(graph: KnowledgeGraph, anchors: IntArray, relations: IntArray, total: int) -> bool:
    """Whether links differ in their relations and each has more answers than the `total` of all."""
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
    """Answers of `count` distinct test queries, easy and hard ones.

    Paths may be drawn `forwards`, from their anchor; of intersections those alone may be wanted
    that are `narrowing`.
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
    """A line for each shape and each draw."""
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
