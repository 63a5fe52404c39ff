import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conekg.errors import ConeKGError, ConfigError
from conekg.evaluation import ranks as module
from conekg.evaluation.ranks import filtered_ranks
from conekg.model.catalog import build_model
from conekg.model.scoring import CompiledTable, DeviceTable

TIES = ("mean", "optimistic", "pessimistic")


def slow_rank(scores, answer, answers, ties):
    """The definition, one comparison at a time; shares nothing with the code under test."""
    above = below_or_equal = 0
    for entity, score in enumerate(scores):
        if entity in answers:
            continue
        if score > scores[answer]:
            above += 1
        elif score == scores[answer]:
            below_or_equal += 1
    places = [above + 1 + i for i in range(below_or_equal + 1)]
    return {
        "optimistic": places[0],
        "pessimistic": places[-1],
        "mean": sum(places) / len(places),
    }[ties]


@st.composite
def batches(draw):
    """One to five queries: few distinct scores, so that ties abound; disjoint easy and hard."""
    size = draw(st.integers(1, 9))
    scores = st.lists(st.integers(-2, 2), min_size=size, max_size=size)
    kinds = st.lists(st.sampled_from(["easy", "hard", "no"]), min_size=size, max_size=size)
    return draw(st.lists(st.tuples(scores, kinds), min_size=1, max_size=5))


def ragged(batch, wanted):
    values = [[i for i, kind in enumerate(kinds) if kind == wanted] for _, kinds in batch]
    offsets = np.cumsum([0, *map(len, values)])
    flat = [value for row in values for value in row]
    return torch.tensor(offsets), torch.tensor(flat, dtype=torch.int64)


@pytest.mark.parametrize("ties", TIES)
@given(batch=batches())
def test_equals_the_slow_definition(ties, batch):
    """With ties, without easy or hard answers, and with queries that every entity answers."""
    scores = torch.tensor([row for row, _ in batch], dtype=torch.float32)
    found = filtered_ranks(scores, *ragged(batch, "hard"), *ragged(batch, "easy"), ties).tolist()
    expected = [
        slow_rank(row, answer, {i for i, kind in enumerate(kinds) if kind != "no"}, ties)
        for row, kinds in batch
        for answer, kind in enumerate(kinds)
        if kind == "hard"
    ]
    assert found == expected


@given(batch=batches())
def test_increasing_transforms_of_scores_change_nothing(batch):
    scores = torch.tensor([row for row, _ in batch], dtype=torch.float64)
    answers = (*ragged(batch, "hard"), *ragged(batch, "easy"))
    assert torch.equal(
        filtered_ranks(scores, *answers), filtered_ranks(torch.exp(3 * scores) - 7, *answers)
    )


def test_constant_scores_give_the_middle_rank():
    scores = torch.zeros(1, 9)
    hard = (torch.tensor([0, 1]), torch.tensor([4]))
    easy = (torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64))
    ranks = [float(filtered_ranks(scores, *hard, *easy, ties)) for ties in TIES]
    assert ranks == [5.0, 1.0, 9.0]


def test_chunks_change_nothing(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(0, 20, (5, 40), generator=generator).float()
    hard = (torch.tensor([0, 3, 3, 7, 8, 12]), torch.arange(12) * 3)
    easy = (torch.tensor([0, 0, 2, 2, 2, 3]), torch.tensor([1, 2, 5]))
    whole = filtered_ranks(scores, *hard, *easy)
    answers_at_once, ranks_among = [], module._ranks_among
    monkeypatch.setattr(
        module,
        "_ranks_among",
        lambda others, *rest: answers_at_once.append(len(others)) or ranks_among(others, *rest),
    )
    for pairs, expected in ((90, [2] * 6), (39, [1] * 12)):
        answers_at_once.clear()
        monkeypatch.setattr(module, "_COUNTED_AT_ONCE", pairs)
        assert torch.equal(filtered_ranks(scores, *hard, *easy), whole)
        assert answers_at_once == expected


def test_infinite_scores_are_ranked_and_nan_is_refused():
    hard = (torch.tensor([0, 1]), torch.tensor([0]))
    easy = (torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64))
    ranks = filtered_ranks(torch.tensor([[-torch.inf, -torch.inf, 1.0]]), *hard, *easy)
    assert ranks.tolist() == [2.5]
    with pytest.raises(ConeKGError, match="NaN") as caught:
        filtered_ranks(torch.tensor([[0.0, torch.nan]]), *hard, *easy)
    assert "train again with a lower learning rate" in str(caught.value.hint)


def test_an_unknown_policy_for_ties_is_refused():
    hard = (torch.tensor([0, 1]), torch.tensor([0]))
    easy = (torch.tensor([0, 0]), torch.tensor([], dtype=torch.int64))
    with pytest.raises(ConfigError, match="ties is 'average'; it must be mean or ") as caught:
        filtered_ranks(torch.zeros(1, 3), *hard, *easy, "average")
    assert caught.value.key == "ties"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("ties", TIES)
def test_the_gpu_counts_as_the_cpu_does(ties):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randint(0, 50, (64, 3000), generator=generator).float()
    hard = (torch.arange(65) * 4, torch.randint(0, 3000, (256,), generator=generator))
    easy = (torch.arange(65) * 9, torch.randint(0, 3000, (576,), generator=generator))
    on_cpu = filtered_ranks(scores, *hard, *easy, ties)
    on_gpu = filtered_ranks(scores.cuda(), *(x.cuda() for x in (*hard, *easy)), ties)
    assert torch.equal(on_gpu.cpu(), on_cpu)


def ranks_by_loops_and_by_kernel(name, num_entities, dim):
    """Ranks of six hard answers by the compiled loops and by the Triton kernel.

    Without a GPU the kernel runs under Triton's interpreter.
    """
    pytest.importorskip("triton")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = build_model(name, num_entities, 4, {"dim": dim}, seed=1)
    with torch.no_grad():
        region = model.project(model.anchor(torch.arange(6)), torch.tensor([0, 1, 2, 3, 0, 1]))
        by_loops = CompiledTable(model).logits(region)
        there = build_model(name, num_entities, 4, {"dim": dim}, seed=1).to(device)
        by_kernel = DeviceTable(there).logits(tuple(part.to(device) for part in region))
    hard = torch.arange(7), torch.arange(6) * (num_entities // 6) + 1
    easy = torch.tensor([0, 2, 2, 2, 3, 3, 3]), torch.tensor([7, 40, 2])
    expected = filtered_ranks(by_loops, *hard, *easy, "mean")
    actual = filtered_ranks(by_kernel, *(ids.to(device) for ids in (*hard, *easy)), "mean")
    assert len(set(expected.tolist())) > 2, "equal ranks everywhere would prove nothing"
    return expected, actual.cpu()


@pytest.mark.parametrize("name", ["cone", "box", "gqe"])
def test_the_kernel_of_a_gpu_ranks_as_the_loops_of_a_cpu_do(name):
    expected, actual = ranks_by_loops_and_by_kernel(name, 50, 12)
    assert torch.equal(actual, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["cone", "box", "gqe"])
def test_a_gpu_ranks_a_larger_table_as_a_cpu_does(name):
    """Rounding may shift a rank among thousands by one or two."""
    expected, actual = ranks_by_loops_and_by_kernel(name, 6000, 100)
    torch.testing.assert_close(actual, expected, atol=2.0, rtol=0.0)
