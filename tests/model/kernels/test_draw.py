"""Drawn batches: every id from the right query, positives answer, filtered negatives do not."""

import pytest
import torch

pytest.importorskip("triton")
kernel = pytest.importorskip("conekg.model.kernels.draw")

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NUM_ENTITIES = 9
NEAR = [[], [0, 3, 7], [8], [], [1, 2]]
ANSWERS = [[0], [1, 2, 8], [0, 1, 2, 3, 4, 5, 6, 7], [3, 5], [4, 5, 6]]


def ragged(rows: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.tensor([0, *map(len, rows)])
    values = torch.tensor([entity for row in rows for entity in row], dtype=torch.int32)
    return lengths.cumsum(0).to(DEVICE), values.to(DEVICE)


def pool() -> "kernel.Pool":
    """Queries 0-2 are of one shape, 3-4 of another; a batch has three rows of each."""
    answer_offsets, answers = ragged(ANSWERS)
    near_offsets, near_misses = ragged(NEAR)
    ids = torch.arange(10, dtype=torch.int32).reshape(5, 2)
    return kernel.Pool(
        anchors=ids.to(DEVICE),
        relations=(ids + 100).to(DEVICE),
        answer_offsets=answer_offsets,
        answers=answers,
        weights=torch.arange(1.0, 6.0, device=DEVICE),
        near_offsets=near_offsets,
        near_misses=near_misses,
        row_starts=torch.tensor([0, 0, 0, 3, 3, 3], dtype=torch.int32, device=DEVICE),
        row_counts=torch.tensor([3, 3, 3, 2, 2, 2], dtype=torch.int32, device=DEVICE),
        most_answers=8,
    )


def batches(
    updates: int,
    *,
    filtered: bool,
    seed: int = 5,
    positives: int = 1,
    near: int = 0,
    shared: bool = False,
) -> "list[kernel.Drawn]":
    counter = torch.zeros(1, dtype=torch.int64, device=DEVICE)
    drawn = []
    for update in range(updates):
        counter.fill_(update)
        drawn.append(
            kernel.draw(
                pool(),
                counter,
                seed,
                num_entities=NUM_ENTITIES,
                positives=positives,
                negatives=5,
                filtered=filtered,
                near=near,
                shared=shared,
            )
        )
    return drawn


@pytest.mark.parametrize("count", [1, 2, 7])
def test_rows_are_whole_queries_of_their_shape_with_their_own_answers(count: int) -> None:
    seen = set()
    for drawn in batches(12, filtered=True, positives=count):
        assert drawn.positives == count
        assert drawn.candidates.shape == (6, count + 5)
        queries = (drawn.anchors[:, 0] // 2).tolist()
        weights = torch.tensor([1.0 + query for query in queries])
        torch.testing.assert_close(drawn.weights.cpu(), weights / weights.sum())
        for row, query in enumerate(queries):
            assert query in ((0, 1, 2) if row < 3 else (3, 4))
            assert drawn.anchors[row].tolist() == [2 * query, 2 * query + 1]
            assert drawn.relations[row].tolist() == [2 * query + 100, 2 * query + 101]
            positives = drawn.candidates[row, :count].tolist()
            negatives = drawn.candidates[row, count:].tolist()
            assert set(positives) <= set(ANSWERS[query])
            assert not set(negatives) & set(ANSWERS[query])
            assert all(0 <= entity < NUM_ENTITIES for entity in negatives)
            seen |= {(query, positive) for positive in positives}
    assert len(seen) > 12, "queries and answers vary"


def test_the_answers_of_a_row_are_drawn_independently() -> None:
    drawn = torch.cat(
        [batch.candidates[:3, :4] for batch in batches(30, filtered=True, positives=4)]
    )
    of_many = drawn[drawn.max(dim=1).values > 2]  # rows of queries 1 and 2
    for column in range(4):
        for other in range(column):
            same = (of_many[:, column] == of_many[:, other]).float().mean()
            assert 0.05 < float(same) < 0.5, "one answer in 3, or in 8, is the same by chance"
    first = [batch.candidates[:, 0] for batch in batches(3, filtered=True)]
    more = [batch.candidates[:, 0] for batch in batches(3, filtered=True, positives=4)]
    assert all(torch.equal(a, b) for a, b in zip(first, more, strict=True))


def test_unfiltered_negatives_are_drawn_from_all_entities_including_answers() -> None:
    negatives = torch.cat(
        [drawn.candidates[:, 1:].flatten() for drawn in batches(8, filtered=False)]
    )
    assert set(negatives.tolist()) == set(range(NUM_ENTITIES))
    row = [drawn for drawn in batches(8, filtered=False) if drawn.anchors[0, 0] == 4]
    assert any(set(d.candidates[0, 1:].tolist()) & set(ANSWERS[2]) for d in row)


@pytest.mark.parametrize(
    ("filtered", "near", "count"),
    [(True, 1, 1), (True, 3, 7), (True, 5, 7), (False, 1, 7), (False, 5, 1)],
)
def test_the_first_negatives_are_near_misses_if_the_query_has_any(
    filtered: bool, near: int, count: int
) -> None:
    seen = set()
    plain = batches(15, filtered=filtered, positives=count)
    for drawn, without in zip(
        batches(15, filtered=filtered, positives=count, near=near), plain, strict=True
    ):
        assert torch.equal(drawn.anchors, without.anchors)
        for row, query in enumerate((drawn.anchors[:, 0] // 2).tolist()):
            first, last = count, count + (near if NEAR[query] else 0)
            assert set(drawn.candidates[row, first:last].tolist()) <= set(NEAR[query])
            seen |= {(query, entity) for entity in drawn.candidates[row, first:last].tolist()}
            for part in (slice(first), slice(last, None)):
                assert torch.equal(drawn.candidates[row, part], without.candidates[row, part])
    assert seen == {(query, entity) for query, row in enumerate(NEAR) for entity in row}


@pytest.mark.parametrize("near", [0, 2])
def test_shared_negatives_are_one_draw_except_in_the_place_of_answers(near: int) -> None:
    shared = batches(40, filtered=False, shared=True, near=near)
    filtered = batches(40, filtered=True, shared=True, near=near)
    own = batches(40, filtered=True, near=near)
    seen, replaced = set(), 0
    for every, drawn, alone in zip(shared, filtered, own, strict=True):
        assert torch.equal(drawn.anchors, alone.anchors)
        assert torch.equal(drawn.candidates[:, 0], alone.candidates[:, 0])
        (common,) = {tuple(row) for row in every.candidates[:, 1 + near :].tolist()}
        seen |= set(common)
        for row, query in enumerate((drawn.anchors[:, 0] // 2).tolist()):
            near_here = near if NEAR[query] else 0
            for column in range(1 + near_here, 6):
                entity = int(every.candidates[row, column])
                if entity in ANSWERS[query]:
                    replaced += 1
                    entity = int(alone.candidates[row, column])
                assert int(drawn.candidates[row, column]) == entity
            for of in (every, drawn):
                part = of.candidates[row, 1 : 1 + near_here]
                assert torch.equal(part, alone.candidates[row, 1 : 1 + near_here])
    assert seen == set(range(NUM_ENTITIES))
    assert replaced > 100


def test_a_batch_depends_on_seed_and_update_alone() -> None:
    first, again = batches(2, filtered=True), batches(2, filtered=True)
    other = batches(2, filtered=True, seed=6)
    for drawn, same in zip(first, again, strict=True):
        assert torch.equal(drawn.candidates, same.candidates)
    assert not torch.equal(first[0].candidates, first[1].candidates)
    assert not torch.equal(first[0].candidates, other[0].candidates)


@pytest.mark.parametrize("update", [0, 2**31 - 1, 2**32 + 7])
@pytest.mark.parametrize("seed", [1, 2**32 + 1, 2**63 - 1])
def test_a_batch_ahead_is_that_of_the_later_update(seed: int, update: int) -> None:
    """All 64 bits of the seed and of the update's number matter."""
    counter = torch.tensor([update], dtype=torch.int64, device=DEVICE)

    def candidates(counter: torch.Tensor, seed: int, ahead: int = 0) -> torch.Tensor:
        options = {"num_entities": NUM_ENTITIES, "negatives": 5, "filtered": True}
        return kernel.draw(pool(), counter, seed, **options, ahead=ahead).candidates

    ahead = candidates(counter, seed, ahead=2)
    assert torch.equal(ahead, candidates(counter + 2, seed))
    assert not torch.equal(ahead, candidates(counter, seed))
    if seed >= 2**32:
        assert not torch.equal(ahead, candidates(counter + 2, seed % 2**32))
    if update >= 2**32:
        assert not torch.equal(ahead, candidates(counter + 2 - 2**32, seed))


@pytest.mark.parametrize("filtered", [True, False])
def test_one_negative(filtered: bool) -> None:
    counter = torch.zeros(1, dtype=torch.int64, device=DEVICE)
    drawn = kernel.draw(
        pool(), counter, 3, num_entities=NUM_ENTITIES, negatives=1, filtered=filtered
    )
    assert drawn.candidates.shape == (6, 2)
    for row, query in enumerate((drawn.anchors[:, 0] // 2).tolist()):
        positive, negative = drawn.candidates[row].tolist()
        assert positive in ANSWERS[query]
        assert 0 <= negative < NUM_ENTITIES
        assert not filtered or negative not in ANSWERS[query]
