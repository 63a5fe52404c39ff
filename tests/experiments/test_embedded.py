from dataclasses import replace

import numpy as np
import pytest

from conekg.experiments.embedded import chosen_blocks, evenly_spaced
from tiny import tiny_queries


@pytest.mark.parametrize(("at_most", "rows"), [(1, [0]), (3, [0, 3, 6]), (4, [0, 2, 5, 7])])
def test_too_many_queries_are_thinned_evenly(at_most, rows):
    block = tiny_queries()["train"].block("1p").take(np.arange(10))
    found = evenly_spaced(block, at_most)
    np.testing.assert_array_equal(found.anchors, block.anchors[rows])
    np.testing.assert_array_equal(found.relations, block.relations[rows])


@pytest.mark.parametrize("at_most", [None, 10, 11])
def test_no_more_queries_than_there_are(at_most):
    block = tiny_queries()["train"].block("1p").take(np.arange(10))
    assert evenly_spaced(block, at_most) is block


def test_chosen_blocks_are_in_order_and_tell_how_far_they_are(trained, options):
    told = list[tuple[int, int]]()
    few = replace(options, max_queries=2, progress=lambda *done: told.append(done))
    found = [(b.shape.name, len(b)) for b in chosen_blocks(trained["cone"], few, ("2i", "1p"))]
    assert found == [("2i", 2), ("1p", 2)]
    assert told == [(2, 4), (4, 4)]
