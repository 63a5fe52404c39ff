"""Shared by all tests: hypothesis profiles, small graphs, and the benchmark data if present."""

from __future__ import annotations

import errno
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

from conekg.graph import place
from conekg.graph.knowledge_graph import KnowledgeGraph, with_inverses
from conekg.graph.vocabulary import NameTable, Vocabulary

# Triton reads this when it is imported: whether kernels are compiled or interpreted.
HAS_GPU = shutil.which("nvidia-smi") is not None
if not HAS_GPU:
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.hookimpl(tryfirst=True)  # before `-m gpu` selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need a GPU, visibly, if there is none.

    A module with a `DEVICE` runs its kernels there. If that is a GPU, `-m gpu` selects its tests.
    """
    for item in items:
        # Not `item.keywords`, in which there are also the names of folders.
        if not HAS_GPU and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))
        elif getattr(getattr(item, "module", None), "DEVICE", None) == torch.device("cuda"):
            item.add_marker(pytest.mark.gpu)


_RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("local", max_examples=50, deadline=None, suppress_health_check=_RELAXED)
# In CI the same code is always checked with the same examples; other profiles try new ones.
settings.register_profile(
    "ci", parent=settings.get_profile("local"), max_examples=100, derandomize=True
)
# Few examples, because each may compile kernels of its own.
settings.register_profile("gpu", parent=settings.get_profile("local"), max_examples=10)
settings.register_profile("thorough", parent=settings.get_profile("local"), max_examples=3000)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE")
    or ("ci" if os.environ.get("CI") == "true" else "gpu" if HAS_GPU else "local")
)


@pytest.fixture
def usual_ctrl_c() -> Iterator[None]:
    """Install Python's handler of Ctrl-C, which is ignored in tests started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make writing into any folder fail as on a read-only file system."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(place.tempfile, "TemporaryDirectory", refuse)


def _benchmark_root() -> Path | None:
    """The folder of the benchmark graphs, from the environment or beside the checkout, if any."""
    named = os.environ.get("CONEKG_BENCHMARK_DATA")
    root = Path(named) if named else Path(__file__).parents[2] / "shared" / "data"
    return root if root.is_dir() else None


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """The folder with `NELL`, `FB15k-237` and `FB15k`; without it the test is skipped."""
    root = _benchmark_root()
    if root is None:
        pytest.skip("no benchmark data; set CONEKG_BENCHMARK_DATA to the folder with NELL in it")
    return root


@pytest.fixture(scope="session")
def film_graph() -> KnowledgeGraph:
    """A graph of ten facts about films, three of them held out, with labels.

    Entities: awards a1; films f1 f2 f3; directors d1 d2; countries c1 c2.
    """
    entities = ["a1", "f1", "f2", "f3", "d1", "d2", "c1", "c2"]
    labels = ["Academy Award", "Argo", "Alien", "Amour", "Ben Affleck", "Ridley Scott"]
    labels += ["United States", "France"]
    relations = ["won_by", "directed_by", "produced"]
    facts = {
        "train": [
            ("a1", "won_by", "f1"),
            ("a1", "won_by", "f3"),
            ("f1", "directed_by", "d1"),
            ("f2", "directed_by", "d2"),
            ("c1", "produced", "f1"),
            ("c1", "produced", "f2"),
            ("c2", "produced", "f3"),
        ],
        "valid": [("a1", "won_by", "f2")],
        "test": [("f3", "directed_by", "d2"), ("c2", "produced", "f1")],
    }
    vocabulary = Vocabulary(NameTable("entity", entities, labels), NameTable("relation", relations))
    return KnowledgeGraph(
        "films",
        vocabulary,
        {
            split: with_inverses(
                np.array(
                    [
                        (entities.index(h), relations.index(r), entities.index(t))
                        for h, r, t in named
                    ],
                    dtype=np.int32,
                )
            )
            for split, named in facts.items()
        },
    )


@pytest.fixture(scope="session")
def random_graph() -> KnowledgeGraph:
    """A graph of 60 entities, 5 relations and 400 random facts, a fifth of them held out."""
    generator = np.random.default_rng(7)
    triples = np.unique(generator.integers(0, (60, 5, 60), size=(400, 3)), axis=0)
    triples = generator.permutation(triples).astype(np.int32)
    first, second = int(0.8 * len(triples)), int(0.9 * len(triples))
    parts = {"train": triples[:first], "valid": triples[first:second], "test": triples[second:]}
    vocabulary = Vocabulary(
        NameTable("entity", [f"e{i}" for i in range(60)]),
        NameTable("relation", [f"r{i}" for i in range(5)]),
    )
    return KnowledgeGraph(
        "random", vocabulary, {split: with_inverses(part) for split, part in parts.items()}
    )
