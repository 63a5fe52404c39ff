"""Graphs to measure on: a public benchmark, or a random graph if its folder is missing."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

from conekg.graph.knowledge_graph import KnowledgeGraph, with_inverses
from conekg.graph.source import open_graph
from conekg.graph.vocabulary import NameTable, Vocabulary

_SIZES = {
    "FB15k-237": (14_505, 237, 310_079),
    "NELL": (63_361, 200, 142_804),
    "FB15k": (14_951, 1_345, 592_213),
}
"""Entities, named relations and facts."""


def add_data_option(parser: argparse.ArgumentParser) -> None:
    """Add the option `--data` to a script."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get("CONEKG_BENCHMARK_DATA", beside)),
        help="folder that holds FB15k-237, NELL and FB15k",
    )


def benchmark_graph(data: Path, name: str) -> KnowledgeGraph:
    """The named graph from the data folder, or a random graph of the same size."""
    if (data / name).is_dir():
        print(f"{name} from {data / name}")
        return open_graph(data / name)
    print(f"{name} is not in {data}: using a random graph of the same size")
    return random_graph(*_SIZES[name])


def random_graph(num_entities: int, num_names: int, num_facts: int) -> KnowledgeGraph:
    """Facts with entities and relations drawn by Zipf's law; 12 % of them are held out."""
    generator = np.random.default_rng(0)

    def skewed(size: int) -> np.ndarray:
        weights = 1 / np.arange(1, size + 1) ** 0.7
        return generator.choice(size, num_facts, p=weights / weights.sum())

    facts = np.stack([skewed(num_entities), skewed(num_names), skewed(num_entities)], axis=1)
    facts = generator.permutation(np.unique(facts, axis=0)).astype(np.int32)
    train, valid = int(0.88 * len(facts)), int(0.94 * len(facts))
    parts = {"train": facts[:train], "valid": facts[train:valid], "test": facts[valid:]}
    vocabulary = Vocabulary(
        NameTable("entity", [f"e{i}" for i in range(num_entities)]),
        NameTable("relation", [f"r{i}" for i in range(num_names)]),
    )
    return KnowledgeGraph(
        "random", vocabulary, {split: with_inverses(part) for split, part in parts.items()}
    )
