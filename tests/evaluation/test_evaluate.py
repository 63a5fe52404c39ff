from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from conekg.errors import ConeKGError, ConfigError
from conekg.evaluation import evaluate as module
from conekg.evaluation.evaluate import evaluate
from conekg.graph.ragged import Ragged
from conekg.model.catalog import MODELS, build_model
from conekg.query.shape import NEGATION_STRUCTURES, STRUCTURES, Shape
from conekg.query.tree import Anchor, And, Not, Or, Project
from conekg.sampling.answers import easy_and_hard
from conekg.sampling.query_set import QueryBlock, QuerySet
from oracle import Oracle
from tiny import CONFIGS, tiny_graph, tiny_queries

GRAPH = tiny_graph()
SIZE = GRAPH.num_entities
ALIKE = 1e-4
"""Scores closer than this may change places between batched and single evaluation. Each is a sum of
32 numbers of size 1 in float32, with an error of about 1e-5."""


def new_model(name):
    return build_model(
        name, SIZE, GRAPH.num_relations, CONFIGS[name], 5, facts=GRAPH.edges("train")
    ).eval()


def slow_scores(model, query):
    """All entities' scores of one query: a plain recursion, no plan, no batch, no table."""

    def region(node):
        match node:
            case Anchor(entity):
                return model.anchor(torch.tensor([entity]))
            case Project(operand, relation):
                return model.project(region(operand), torch.tensor([relation]))
            case And(operands):
                parts = zip(*map(region, operands), strict=True)
                return model.intersect(tuple(torch.stack(part) for part in parts))
            case Not(operand):
                return model.negate(region(operand))

    def branches(node):
        """By hand for the two structures with a union: at the top, or below one projection."""
        match node:
            case Or(operands):
                return list(operands)
            case Project(Or(operands), relation):
                return [Project(operand, relation) for operand in operands]
            case _:
                return [node]

    all_ids = torch.arange(SIZE)[None]
    with torch.no_grad():
        logits = [model.logits(region(branch), all_ids)[0] for branch in branches(query)]
    return torch.stack(logits).amax(dim=0).tolist()


def slow_mrr(model, query):
    """The least and the largest filtered MRR of one query, straight from the definition.

    An entity whose score differs by less than `ALIKE` may come before an answer or after it. None
    without a hard answer.
    """
    smaller, larger = (
        Oracle(np.concatenate([GRAPH.edges(split) for split in splits]), SIZE)
        for splits in (("train", "valid"), ("train", "valid", "test"))
    )
    easy = smaller.answer(query)
    hard = larger.answer(query) - easy
    scores = slow_scores(model, query)
    least, most = [], []
    for answer in hard:
        others = [scores[e] for e in range(SIZE) if e not in easy and e not in hard]
        least.append(1 / (1 + sum(score >= scores[answer] - ALIKE for score in others)))
        most.append(1 / (1 + sum(score > scores[answer] + ALIKE for score in others)))
    return (np.mean(least), np.mean(most)) if hard else None


def query_set(shape, anchors, relations):
    anchors, relations = np.array(anchors, dtype=np.int32), np.array(relations, dtype=np.int32)
    easy, hard = easy_and_hard(GRAPH, "test", shape, anchors, relations, workers=1)
    return QuerySet("test", (QueryBlock(shape, anchors, relations, easy, hard),))


@st.composite
def query_sets(draw, name):
    """Random queries: some have no hard answer or none at all, some have false easy answers."""
    shape = STRUCTURES[name]
    rows = draw(st.integers(1, 5))
    entity, relation = st.integers(0, SIZE - 1), st.integers(0, GRAPH.num_relations - 1)

    def matrix(element, width):
        row = st.lists(element, min_size=width, max_size=width)
        return draw(st.lists(row, min_size=rows, max_size=rows))

    return query_set(
        shape, matrix(entity, shape.num_anchors), matrix(relation, shape.num_relations)
    )


@pytest.mark.parametrize("name", list(STRUCTURES))
@settings(max_examples=10)
@given(data=st.data())
def test_equals_an_independent_slow_evaluator(name, data):
    model = new_model("cone")
    drawn = data.draw(query_sets(name))
    report = evaluate(model, drawn, num_entities=SIZE)
    (block,) = drawn.blocks
    expected = [slow_mrr(model, block.query(row)) for row in range(len(block))]
    expected = [value for value in expected if value is not None]
    (result,) = report.structures
    assert result.num_queries == len(expected)
    if expected:
        least, most = np.mean(expected, axis=0)
        assert least - 1e-6 <= result.metrics.mrr <= most + 1e-6
    else:
        assert result.metrics is None
        assert "no query" in result.reason


@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_is_evaluated_and_says_what_it_cannot_answer(name):
    model = new_model(name)
    report = evaluate(model, tiny_queries()["test"], num_entities=SIZE)
    answered = set(report.measured)
    assert {"1p", "2i", "2u"} <= answered
    present = {b.shape.name for b in tiny_queries()["test"] if len(b)}
    negations = present & set(NEGATION_STRUCTURES)
    assert negations
    if model.can_negate:
        assert negations <= answered
    else:
        assert not negations & answered
        assert all("has no negation" in report.unanswered[s] for s in negations)
        untried = [each for each in report.structures if each.structure in negations]
        assert {each.num_answers for each in untried} == {0}
        assert min(each.num_queries for each in untried) > 0
        assert "avg_n" not in report.averages


def test_an_easy_answer_that_negation_makes_false_is_filtered_all_the_same():
    """train < valid < test: in the test graph the entity no longer answers, yet stays easy."""
    found = None
    shape = STRUCTURES["2in"]
    for block in tiny_queries()["test"]:
        if block.shape == shape:
            larger = Oracle(
                np.concatenate([GRAPH.edges(s) for s in ("train", "valid", "test")]), SIZE
            )
            for row in range(len(block)):
                retracted = set(block.easy[row].tolist()) - larger.answer(block.query(row))
                if retracted and len(block.hard[row]):
                    found = block.take(np.array([row]))
    assert found is not None, "the tiny graph has such a query"
    model = new_model("cone")
    report = evaluate(model, QuerySet("test", (found,)), num_entities=SIZE)
    least, most = slow_mrr(model, found.query(0))
    assert least - 1e-6 <= report.measured["2in"].mrr <= most + 1e-6


def test_the_callback_gets_the_ranked_queries_and_their_ranks():
    given_ranks = []
    queries = tiny_queries()["test"]
    report = evaluate(
        new_model("box"),
        queries,
        num_entities=SIZE,
        max_queries=3,
        ranked=lambda block, ranks: given_ranks.append((block, ranks)),
    )
    assert [block.shape.name for block, _ in given_ranks] == [
        result.structure for result in report.structures if result.metrics is not None
    ]
    for block, ranks in given_ranks:
        assert len(block) == min(3, len(queries.block(block.shape.name)))
        ends = np.cumsum(block.hard.lengths)
        assert len(ranks) == ends[-1]
        by_query = [np.mean(1 / each) for each in np.split(ranks, ends[:-1])]
        assert report.measured[block.shape.name].mrr == pytest.approx(np.mean(by_query))


def test_batches_change_nothing(monkeypatch):
    model = new_model("cone")
    whole = evaluate(model, tiny_queries()["test"], num_entities=SIZE)
    monkeypatch.setitem(module._SCORES_AT_ONCE, "cpu", 3 * SIZE)
    reported = []
    parts = evaluate(
        model,
        tiny_queries()["test"],
        num_entities=SIZE,
        progress=lambda done, total: reported.append((done, total)),
    )
    for name, metrics in whole.measured.items():
        assert parts.measured[name].mrr == pytest.approx(metrics.mrr, rel=0.02)
    assert reported == sorted(reported)
    assert reported[-1][0] == reported[-1][1] == sum(r.num_queries for r in whole.structures)


def test_progress_counts_queries_that_cannot_be_answered_too():
    reported, queries = [], tiny_queries()["test"]
    assert queries.blocks[-1].shape.name in NEGATION_STRUCTURES
    evaluate(
        new_model("box"),
        queries,
        num_entities=SIZE,
        progress=lambda done, total: reported.append((done, total)),
    )
    assert reported == sorted(reported)
    assert reported[-1][0] == reported[-1][1]


def test_a_limit_takes_evenly_spaced_queries():
    shape = STRUCTURES["1p"]
    links = np.unique(GRAPH.edges("test")[:, :2], axis=0)
    everything = query_set(shape, links[:, :1], links[:, 1:])
    (block,) = everything.blocks
    model = new_model("gqe")
    limited = evaluate(model, everything, num_entities=SIZE, max_queries=3)
    rows = np.flatnonzero(block.hard.lengths)
    chosen = block.take(rows[np.arange(3) * len(rows) // 3])
    assert len(rows) > 3
    again = evaluate(model, QuerySet("test", (chosen,)), num_entities=SIZE)
    assert limited.structures[0].num_queries == 3
    assert limited.measured == again.measured
    for limit in (1, len(rows) - 1, len(rows), len(rows) + 1):
        report = evaluate(model, everything, num_entities=SIZE, max_queries=limit)
        assert report.structures[0].num_queries == min(limit, len(rows))


def test_a_limit_of_zero_queries_is_refused():
    with pytest.raises(ConfigError, match="max_queries is 0; it must be 1 or more") as caught:
        evaluate(new_model("gqe"), tiny_queries()["test"], num_entities=SIZE, max_queries=0)
    assert caught.value.key == "max_queries"


def test_an_empty_set_is_reported_as_such():
    nothing = Ragged.from_rows([])
    block = QueryBlock(
        STRUCTURES["1p"], np.zeros((0, 1), np.int32), np.zeros((0, 1), np.int32), nothing, nothing
    )
    report = evaluate(new_model("cone"), QuerySet("test", (block,)), num_entities=SIZE)
    assert report.measured == {}
    assert "no query" in report.unanswered["1p"]
    assert report.mean() == 0.0


def test_a_model_is_left_as_it_was_found():
    model = new_model("cone").train()
    one = evaluate(model, tiny_queries()["test"], num_entities=SIZE)
    assert model.training
    two = evaluate(model.eval(), tiny_queries()["test"], num_entities=SIZE)
    assert not model.training
    assert replace(one, seconds=0) == replace(two, seconds=0)  # dropout is off either way
    scorer = module.ModelScorer(model.train())
    three = evaluate(scorer, tiny_queries()["test"], num_entities=SIZE)
    assert model.training
    assert replace(three, seconds=0) == replace(two, seconds=0)


def test_unions_by_de_morgan_use_the_operators():
    model = new_model("cone")
    by_law = evaluate(model, tiny_queries()["test"], num_entities=SIZE, union="demorgan")
    by_branch = evaluate(model, tiny_queries()["test"], num_entities=SIZE)
    assert by_law.measured["1p"] == by_branch.measured["1p"]
    assert by_law.measured["2u"] != by_branch.measured["2u"]
    boxes = evaluate(new_model("box"), tiny_queries()["test"], num_entities=SIZE, union="demorgan")
    assert "negation" in boxes.unanswered["2u"]


@pytest.mark.parametrize("union", ["dnf", "demorgan"])
def test_a_scorer_keeps_its_own_way_with_unions(union):
    model, queries = new_model("cone"), tiny_queries()["test"]
    expected = evaluate(model, queries, num_entities=SIZE, union=union)
    scorer = module.ModelScorer(model, union)
    for given_union in (None, union):
        report = evaluate(scorer, queries, num_entities=SIZE, union=given_union)
        assert report.union == union
        assert report.measured == expected.measured
    other = "dnf" if union == "demorgan" else "demorgan"
    with pytest.raises(ConfigError, match=f"union is '{other}', but .* as '{union}'") as caught:
        evaluate(scorer, queries, num_entities=SIZE, union=other)
    assert caught.value.key == "union"


def seven_unions():
    """(a | b) & (c | d) & ...: 128 union-free branches, and its form by De Morgan's law."""
    links = [Project(Anchor(slot), slot) for slot in range(14)]
    pairs = list(zip(links[::2], links[1::2], strict=True))
    shape = Shape(And(tuple(Or(pair) for pair in pairs)))
    return shape, And(tuple(Not(And((Not(one), Not(other)))) for one, other in pairs))


def one_query(shape):
    """One query of entities and relations 0, 1, ..., with entity 3 as hard answer, true or not."""
    anchors = np.arange(shape.num_anchors, dtype=np.int32)[None]
    relations = np.arange(shape.num_relations, dtype=np.int32)[None] % GRAPH.num_relations
    return QueryBlock(shape, anchors, relations, Ragged.from_rows([[]]), Ragged.from_rows([[3]]))


def test_too_many_branches_are_reported_and_de_morgan_needs_only_one():
    model = new_model("cone")
    shape, by_law = seven_unions()
    block = one_query(shape)
    reported = []
    others = tiny_queries()["test"].blocks
    report = evaluate(
        model,
        QuerySet("test", (*others, block)),
        num_entities=SIZE,
        progress=lambda done, total: reported.append((done, total)),
    )
    alone = evaluate(model, QuerySet("test", others), num_entities=SIZE)
    assert report.measured == alone.measured
    assert "1p" in report.measured
    why = report.unanswered[shape.name]
    assert "128 union-free branches; at most 64 are allowed, unless" in why
    assert "De Morgan" in why
    assert reported[-1][0] == reported[-1][1]
    report = evaluate(model, QuerySet("test", (block,)), num_entities=SIZE, union="demorgan")
    query = Shape(by_law).ground(block.anchors[0].tolist(), block.relations[0].tolist())
    scores = slow_scores(model, query)
    rank = 1 + sum(score > scores[3] for score in scores)
    assert 1 < rank < SIZE
    # Within one rank: scores differ in the last bits between batched and single evaluation.
    assert 1 / report.measured[shape.name].mrr == pytest.approx(rank, abs=1.0)


@pytest.mark.parametrize(("union", "rows"), [("dnf", [1] * 4), ("demorgan", [2] * 2)])
def test_batch_sizes_depend_on_the_number_of_embedded_branches(monkeypatch, union, rows):
    """There is memory for two scores per entity; by DNF one query of a union takes both."""
    monkeypatch.setitem(module._SCORES_AT_ONCE, "cpu", 2 * SIZE)
    block = one_query(STRUCTURES["2u"]).take(np.zeros(4, dtype=np.int64))
    seen, scores = [], module.ModelScorer.scores
    monkeypatch.setattr(
        module.ModelScorer, "scores", lambda self, b: seen.append(len(b)) or scores(self, b)
    )
    evaluate(new_model("cone"), QuerySet("test", (block,)), num_entities=SIZE, union=union)
    assert seen == rows


def test_a_failed_evaluation_leaves_the_model_training():
    model = new_model("gqe").train()
    with torch.no_grad():
        model.entity.fill_(torch.nan)
    with pytest.raises(ConeKGError, match="NaN"):
        evaluate(model, tiny_queries()["valid"], num_entities=SIZE)
    assert model.training
    model = new_model("gqe").train()
    too_large = one_query(STRUCTURES["1p"])
    too_large.anchors[:] = SIZE
    with pytest.raises(IndexError):
        evaluate(model, QuerySet("test", (too_large,)), num_entities=SIZE)
    assert model.training
