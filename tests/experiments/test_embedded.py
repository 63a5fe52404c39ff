from dataclasses import replace

from conekg.experiments.embedded import chosen_blocks


def test_chosen_blocks_are_in_order_and_tell_how_far_they_are(trained, options):
    told = list[tuple[int, int]]()
    few = replace(options, max_queries=2, progress=lambda *done: told.append(done))
    found = [(b.shape.name, len(b)) for b in chosen_blocks(trained["cone"], few, ("2i", "1p"))]
    assert found == [("2i", 2), ("1p", 2)]
    assert told == [(2, 4), (4, 4)]
