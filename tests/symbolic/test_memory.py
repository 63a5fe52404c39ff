from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
from numba import njit

from conekg.graph.adjacency import build_adjacency
from conekg.symbolic.bitmaps import SLACK
from conekg.symbolic.memory import borrowed, graph_arrays, make_workspace

EDGES = np.array([[0, 0, 1], [0, 0, 3], [2, 0, 3], [3, 1, 0]], dtype=np.int32)


def test_kernels_see_one_type_whether_arrays_are_built_or_memory_mapped(tmp_path) -> None:
    adjacency = build_adjacency(EDGES, 4, 2)
    np.save(tmp_path / "tails.npy", adjacency.tails)
    mapped = np.load(tmp_path / "tails.npy", mmap_mode="r")
    for tails in (adjacency.tails, adjacency.tails.copy(), mapped):
        writeable = tails.flags.writeable
        frozen = graph_arrays(replace(adjacency, tails=tails)).tails
        assert type(frozen) is np.ndarray
        assert not frozen.flags.writeable
        assert tails.flags.writeable == writeable, "the array itself is left as it was"
        assert np.shares_memory(frozen, tails)
        assert frozen.tolist() == adjacency.tails.tolist()


def test_graph_arrays_have_the_names_of_the_adjacency() -> None:
    adjacency = build_adjacency(EDGES, 4, 2)
    arrays = graph_arrays(adjacency)._asdict()
    assert arrays.pop("num_entities") == 4
    heads, tails = adjacency.head_index, adjacency.tail_index
    of_indexes = {
        "head_words": heads.words,
        "head_firsts": heads.firsts,
        "tail_words": tails.words,
        "tail_rows": tails.rows,
    }
    for name, array in arrays.items():
        own = of_indexes[name] if name in of_indexes else getattr(adjacency, name)
        assert array.dtype == own.dtype, name
        assert np.array_equal(array, own), name


def test_a_workspace_has_one_row_per_set_and_a_spare() -> None:
    work = make_workspace(65, 3)
    assert work.rows.shape == (4, 65 + SLACK)
    assert work.stack[:, 0].tolist() == [0, 1, 2, 3]
    assert work.words.shape == (4, 2)
    assert len(work.summary) == 1
    assert (work.steps == 1).all()
    assert len(make_workspace(64 * 64, 1).summary) == 1


def test_there_is_room_for_the_steps_of_a_pair_however_many_entities_there_are() -> None:
    # A pair's tails are read as a list if there are fewer than the bitmap has words: without room
    # for that many steps, `mark_tails` would never read a pair.
    for num_entities in (1, 64 * 10_000):
        work = make_workspace(num_entities, 1)
        assert len(work.steps) >= work.words.shape[1]


@njit
def add_one(arrays):
    numbers, factor = borrowed(arrays)
    total = 0
    for place in range(len(numbers)):  # a loop: slices and sums take seconds to compile
        numbers[place] += factor * (place < 2)
        total += numbers[place]
    return total


def test_borrowed_arrays_are_the_same_arrays_with_unchanged_reference_counts() -> None:
    add_one((np.arange(4), 1))  # the compiler keeps references to its first arguments
    numbers = np.arange(4)
    before = sys.getrefcount(numbers)
    total = add_one((numbers, 1))
    after = sys.getrefcount(numbers)
    assert (total, numbers.tolist()) == (8, [1, 2, 2, 3])
    assert after == before
