from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conekg.errors import ConfigError
from conekg.graph.ragged import Ragged
from conekg.query.shape import STRUCTURES
from conekg.sampling.query_set import QueryBlock, QuerySet
from conekg.training.batches import (
    BATCHES,
    DROPOUT,
    BatchSampler,
    generator_at,
    is_among,
    load_training_data,
    move_to_device,
    nth_outside,
    seed_at,
    usable_shapes,
)
from conekg.training.recipe import Pool, TrainingRecipe
from oracle import Oracle
from tiny import tiny_graph, tiny_queries

CPU = torch.device("cpu")
POOL = Pool("mixed", (("1p", 2.0), ("2i", 1.0)))


def block(name, answers):
    shape, rows = STRUCTURES[name], len(answers)
    return QueryBlock(
        shape,
        np.arange(rows * shape.num_anchors, dtype=np.int32).reshape(rows, shape.num_anchors),
        np.arange(rows * shape.num_relations, dtype=np.int32).reshape(rows, shape.num_relations),
        Ragged.from_rows([[]] * rows),
        Ragged.from_rows(answers),
    )


def query_set(*blocks):
    return QuerySet("train", blocks)


@pytest.fixture
def data():
    queries = query_set(
        block("1p", [[0], [1, 3], [0, 1, 2, 3, 4, 5], []]), block("2i", [[2, 4], [5]])
    )
    return move_to_device(queries, 6, ("1p", "2i"), CPU)


def test_queries_without_an_answer_or_without_a_negative_are_left_out(data):
    assert len(data.blocks["1p"]) == 2
    assert data.max_answers == 2
    more = query_set(block("1p", [[0]]), block("2i", [[1, 3, 4], [5]]))
    for shapes in (("1p", "2i"), ("2i", "1p")):
        assert move_to_device(more, 6, shapes, CPU).max_answers == 3


def test_a_shape_without_queries_is_refused():
    told = "trains on 3i, but .* there are queries of "
    given = query_set(block("1p", [[0]]), block("2p", []), block("2i", [[1]]))
    with pytest.raises(ConfigError, match=f"{told}1p, 2i$") as caught:
        move_to_device(given, 6, ("1p", "3i"), CPU)
    assert caught.value.key == "training.pools"
    with pytest.raises(ConfigError, match=f"{told}no shape at all$"):
        move_to_device(query_set(block("2p", [])), 6, ("3i",), CPU)
    everyone = query_set(block("1p", [[0, 1], []]), block("2i", [[0], [0, 1]]))
    with pytest.raises(ConfigError, match="none that some entities answer and others do not"):
        move_to_device(everyone, 2, ("1p",), CPU)
    assert usable_shapes(everyone, 2) == {"2i"}
    assert usable_shapes(everyone, 3) == {"1p", "2i"}


def test_unions_are_refused():
    for name in ("2u", "up"):
        with pytest.raises(ConfigError, match=f"{name}, a union"):
            move_to_device(query_set(block("1p", [[0]]), block(name, [[0]])), 6, ("1p", name), CPU)
    by_law = move_to_device(query_set(block("2u-DM", [[0]])), 6, ("2u-DM",), CPU)
    assert len(by_law.blocks["2u-DM"]) == 1


@pytest.mark.parametrize("sampling", ["uniform-filtered", "uniform-published"])
@pytest.mark.parametrize("positives", [1, 4])
def test_batches_have_their_composition_and_true_positives(data, sampling, positives):
    sampler = BatchSampler(data, POOL, 9, 50, sampling, positives)
    assert [count for _, count in sampler.groups] == [6, 3]
    batch = sampler.draw(generator_at(0, 0, 0, CPU))
    assert [len(part) for part in batch.anchors] == [6, 3]
    assert batch.positives.shape == (9, positives)
    assert batch.negatives.shape == (9, 50)
    assert batch.negatives.min() >= 0
    assert batch.negatives.max() < 6
    known = {("1p", 0): {0}, ("1p", 1): {1, 3}, ("2i", 0): {2, 4}, ("2i", 2): {5}}
    names = ["1p"] * 6 + ["2i"] * 3
    first_anchor = torch.cat([part[:, 0] for part in batch.anchors]).tolist()
    hit_an_answer = False
    for row, key in enumerate(zip(names, first_anchor, strict=True)):
        answers = known[key]
        assert set(batch.positives[row].tolist()) <= answers
        assert float(batch.weights[row]) == pytest.approx((4 + len(answers)) ** -0.5)
        hit_an_answer |= bool(answers & set(batch.negatives[row].tolist()))
    assert hit_an_answer == (sampling == "uniform-published")


def test_filtered_negatives_are_uniform_over_the_non_answers(data):
    sampler = BatchSampler(data, Pool("p", (("2i", 1.0),)), 1, 60_000, "uniform-filtered")
    drawn = None
    for step in range(20):
        batch = sampler.draw(generator_at(1, step, 0, CPU))
        if int(batch.anchors[0][0, 0]) == 0:
            drawn = Counter(batch.negatives[0].tolist())
            break
    assert drawn is not None
    assert set(drawn) == {0, 1, 3, 5}
    for count in drawn.values():
        assert abs(count - 15_000) < 6 * (15_000 * 0.75) ** 0.5  # six standard deviations


def test_shared_negatives_differ_only_where_a_query_has_one_as_its_answer(data):
    def negatives(sampling):
        sampler = BatchSampler(data, POOL, 9, 4000, sampling, shared_negatives=True)
        batch = sampler.draw(generator_at(0, 0, 0, CPU))
        first_anchors = torch.cat([part[:, 0] for part in batch.anchors]).tolist()
        return batch.negatives, first_anchors

    everywhere, _ = negatives("uniform-published")
    assert torch.equal(everywhere, everywhere[:1].expand(9, -1))
    assert everywhere[0].unique().tolist() == list(range(6))
    drawn, first_anchors = negatives("uniform-filtered")
    answers = {("1p", 0): {0}, ("1p", 1): {1, 3}, ("2i", 0): {2, 4}, ("2i", 2): {5}}
    names = ["1p"] * 6 + ["2i"] * 3
    known = [answers[key] for key in zip(names, first_anchors, strict=True)]
    assert set(map(frozenset, known)) == set(map(frozenset, answers.values())), "all are drawn"
    for column in drawn.T.tolist():
        rows = list(zip(column, known, strict=True))
        assert any(all(found == e or e in row for found, row in rows) for e in range(6)), column
    for row, found in zip(known, drawn, strict=True):
        counts = Counter(found.tolist())
        assert set(counts) == set(range(6)) - row, "every entity but the answers"
        share = 4000 / len(counts)
        for count in counts.values():
            assert abs(count - share) < 6 * share**0.5


@given(
    rows=st.lists(st.sets(st.integers(0, 30), max_size=31), min_size=1, max_size=6),
    numbers=st.lists(st.integers(0, 40), min_size=1, max_size=9),
)
def test_is_among_finds_the_values_of_each_slice(rows, numbers):
    ragged = Ragged.from_rows([sorted(row) for row in rows])
    if not len(ragged.values):
        return
    found = is_among(
        torch.tensor(numbers).expand(len(rows), -1),
        torch.from_numpy(ragged.values),
        torch.from_numpy(ragged.offsets[:-1, None].copy()),
        torch.from_numpy(ragged.lengths[:, None].copy()),
        rounds=int(ragged.lengths.max()).bit_length(),
    )
    assert found.tolist() == [[number in row for number in numbers] for row in rows]


NEAR = {"1p": [[], []], "2i": [[1, 3], [], [2]], "2in": [[0, 3], []]}


@pytest.fixture
def with_near_misses():
    queries = query_set(
        block("1p", [[0], [1, 3]]),
        block("2i", [[2, 4], [5], [0]]),
        block("2in", [[1, 2], [4]]),
    )
    return move_to_device(
        queries, 6, ("1p", "2i", "2in"), CPU, lambda b: Ragged.from_rows(NEAR[b.shape.name])
    )


@pytest.mark.parametrize("sampling", ["uniform-filtered", "uniform-published"])
@pytest.mark.parametrize(("share", "count"), [(0.01, 1), (0.13, 3), (0.5, 10), (1.0, 20)])
def test_the_first_negatives_are_near_misses_where_there_are_some(
    with_near_misses, sampling, share, count
):
    pool = Pool("all", (("1p", 1.0), ("2i", 2.0), ("2in", 1.0)))
    near = BatchSampler(with_near_misses, pool, 8, 20, sampling, near_misses=share)
    plain = BatchSampler(with_near_misses, pool, 8, 20, sampling)
    seen = Counter()
    for step in range(60):
        batch, without = (each.draw(generator_at(0, step, 0, CPU)) for each in (near, plain))
        assert torch.equal(batch.positives, without.positives)
        names = ["1p"] * 2 + ["2i"] * 4 + ["2in"] * 2
        rows = (
            torch.cat([part[:, 0] for part in batch.anchors]) // torch.tensor([1] * 2 + [2] * 6)
        ).tolist()
        for row, (name, query) in enumerate(zip(names, rows, strict=True)):
            expected = NEAR[name][query]
            replaced = count if expected else 0
            assert torch.equal(batch.negatives[row, replaced:], without.negatives[row, replaced:])
            assert set(batch.negatives[row, :replaced].tolist()) <= set(expected)
            seen.update((name, entity) for entity in batch.negatives[row, :replaced].tolist())
    assert set(seen) == {("2i", 1), ("2i", 3), ("2i", 2), ("2in", 0), ("2in", 3)}
    assert 0.3 < seen["2in", 0] / (seen["2in", 0] + seen["2in", 3]) < 0.7


def test_near_misses_change_nothing_if_no_query_has_any(data):
    near = BatchSampler(data, POOL, 9, 5, "uniform-filtered", near_misses=1.0)
    plain = BatchSampler(data, POOL, 9, 5, "uniform-filtered")
    batches = [each.draw(generator_at(0, 0, 0, CPU)) for each in (near, plain)]
    assert torch.equal(batches[0].negatives, batches[1].negatives)


def test_training_data_has_the_near_misses_that_the_recipe_asks_for():
    graph, queries = tiny_graph(), tiny_queries()["train"]
    recipe = TrainingRecipe(steps=1, near_misses=0.5)
    data = load_training_data(graph, queries, recipe, CPU)
    oracle = Oracle([tuple(edge) for edge in graph.edges("train").tolist()], graph.num_entities)
    found = 0
    for name, trained in data.blocks.items():
        offsets = trained.near_offsets.tolist()
        assert (len(offsets), offsets[0]) == (len(trained) + 1, found)
        assert ("n" in name) == (offsets[-1] > found)
        for row, ids in enumerate(zip(trained.anchors, trained.relations, strict=True)):
            query = STRUCTURES[name].ground(*(part.tolist() for part in ids))
            near = trained.near_values[offsets[row] : offsets[row + 1]].tolist()
            assert not set(near) & oracle.answer(query)
        found = offsets[-1]
    assert found == len(data.blocks["1p"].near_values) > 50
    without = load_training_data(graph, queries, replace(recipe, near_misses=0.0), CPU)
    assert not len(without.blocks["2in"].near_values)


@pytest.mark.parametrize("discount", [0.0, 0.3, 1.0])
def test_queries_are_weighted_by_the_recipes_discount(discount):
    recipe = TrainingRecipe(steps=1, answer_discount=discount)
    data = load_training_data(tiny_graph(), tiny_queries()["train"], recipe, CPU)
    pool = recipe.pool("path")
    batch = BatchSampler(data, pool, 30, 3, "uniform-filtered").draw(generator_at(0, 0, 0, CPU))
    expected = []
    for name, anchors, relations in zip(pool.shapes, batch.anchors, batch.relations, strict=True):
        block = data.blocks[name]
        for anchor, relation in zip(anchors, relations, strict=True):
            same = (block.anchors == anchor).all(dim=1) & (block.relations == relation).all(dim=1)
            count = block.answer_offsets.diff()[same].tolist()
            expected.append((4.0 + count[0]) ** -discount)
    assert batch.weights.tolist() == pytest.approx(expected)
    assert (len(set(expected)) > 1) == (discount > 0)


@given(
    rows=st.lists(st.sets(st.integers(0, 30), max_size=31), min_size=1, max_size=6),
    seed=st.integers(0, 2**32 - 1),
)
def test_nth_outside_skips_every_value(rows, seed):
    ragged = Ragged.from_rows([sorted(row) for row in rows])
    if not len(ragged.values):
        return
    rng = np.random.default_rng(seed)
    index = torch.from_numpy(rng.integers(0, 40, (len(rows), 7)))
    found = nth_outside(
        index,
        torch.from_numpy(ragged.values),
        torch.from_numpy(ragged.offsets[:-1, None].copy()),
        torch.from_numpy(ragged.lengths[:, None].copy()),
        rounds=int(ragged.lengths.max()).bit_length(),
    )
    for row, values in enumerate(rows):
        outside = [number for number in range(100) if number not in values]
        assert found[row].tolist() == [outside[i] for i in index[row].tolist()]


def test_randomness_is_a_function_of_the_counters(data):
    sampler = BatchSampler(data, POOL, 9, 5, "uniform-filtered")

    def draw(*counters):
        batch = sampler.draw(generator_at(*counters, CPU))
        return torch.cat([batch.positives.flatten(), batch.negatives.flatten()]).tolist()

    assert draw(3, 5, 1) == draw(3, 5, 1)
    counters = [(a, b, c, d) for a in range(3) for b in range(3) for c in range(3) for d in (0, 1)]
    assert len({seed_at(*each) for each in counters}) == len(counters)
    assert draw(3, 5, 1) != draw(3, 5, 2)
    assert seed_at(3, 5, 1, BATCHES) != seed_at(3, 5, 1, DROPOUT)
