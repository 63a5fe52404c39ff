from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from conekg.graph.knowledge_graph import KnowledgeGraph
from conekg.query.shape import STRUCTURES, Shape, shape_of, slots_of
from conekg.query.tree import (
    Anchor,
    And,
    Not,
    Or,
    Project,
    has_negation,
    inverse_of,
    subtrees,
)
from conekg.sampling.ground import (
    DEAD_END,
    GROUNDED,
    TWIN_BRANCHES,
    _has_twins,
    compile_grounding,
    compile_path_grounding,
    draw_query,
    possible_starts,
    random_below,
    random_state,
    stream_key,
)
from conekg.symbolic.engine import answer
from conekg.symbolic.memory import graph_arrays
from strategies import graphs, shapes


def draw(
    graph: KnowledgeGraph,
    shape: Shape,
    target: int,
    number: int,
    scratch: int = 0,
    compiled=compile_grounding,
):
    """The outcome of one draw, and its ids; `scratch` is the initial value of its memory."""
    tries = 40
    program = compiled(shape)
    nodes = np.full((program.num_nodes, 2), scratch, dtype=np.int32)
    anchors = np.full(shape.num_anchors, -1, dtype=np.int32)
    relations = np.full(shape.num_relations, -1, dtype=np.int32)
    state = np.array([random_state(stream_key(0, "test"), number)], dtype=np.uint64)
    arrays = graph_arrays(graph.adjacency("train"))
    outcome = draw_query(arrays, program, target, state, tries, nodes, anchors, relations)
    return outcome, anchors, relations


@given(graphs(), shapes(negation=False), st.integers(0, 10_000))
def test_the_target_answers_a_query_without_negation(
    graph: KnowledgeGraph, shape: Shape, number: int
) -> None:
    targets = possible_starts(graph.adjacency("train"))
    assume(len(targets))
    target = int(targets[number % len(targets)])
    outcome, anchors, relations = draw(graph, shape, target, number)
    if outcome == GROUNDED:
        assert anchors.min(initial=0) >= 0
        assert relations.min(initial=0) >= 0
        query = shape.ground(anchors, relations)
        assert target in answer(graph.adjacency("train"), query).tolist()


@given(graphs(), st.integers(0, 10_000))
def test_negated_branches_too_start_from_the_target(graph: KnowledgeGraph, number: int) -> None:
    targets = possible_starts(graph.adjacency("train"))
    assume(len(targets))
    target = int(targets[number % len(targets)])
    outcome, anchors, relations = draw(graph, STRUCTURES["2in"], target, number)
    assume(outcome == GROUNDED)
    adjacency = graph.adjacency("train")
    for branch in (0, 1):
        reached = adjacency.neighbors(int(anchors[branch]), int(relations[branch]))
        assert target in reached.tolist()


def test_a_walk_never_takes_the_inverse_of_its_last_relation_except_after_a_branching(
    random_graph: KnowledgeGraph,
) -> None:
    turned_after_branching = False
    for number in range(400):
        outcome, _, relations = draw(random_graph, STRUCTURES["3p"], number % 60, number)
        if outcome == GROUNDED:
            first, second, third = relations.tolist()
            assert second != inverse_of(third)
            assert first != inverse_of(second)
        outcome, _, relations = draw(random_graph, STRUCTURES["ip"], number % 60, number)
        if outcome == GROUNDED:
            turned_after_branching |= inverse_of(int(relations[2])) in relations[:2].tolist()
    assert turned_after_branching


def test_a_negation_does_not_let_a_walk_take_the_inverse(random_graph: KnowledgeGraph) -> None:
    shape = shape_of(Project(Not(Project(Anchor(0), 0)), 0))
    grounded = 0
    for number in range(400):
        outcome, _, relations = draw(random_graph, shape, number % 60, number)
        if outcome == GROUNDED:
            grounded += 1
            first, second = relations.tolist()
            assert first != inverse_of(second)
    assert grounded > 300


def test_a_walk_with_nowhere_to_go_is_a_dead_end(film_graph: KnowledgeGraph) -> None:
    entities = film_graph.vocabulary.entities
    outcomes = {
        draw(film_graph, STRUCTURES["2p"], entities.id_of("d2"), number)[0] for number in range(50)
    }
    # Only f2 leads to d2 and, besides d2 itself, only c1 leads to f2. The one relation that leads
    # into c1 is the inverse of `produced`, which the walk may not take back.
    assert outcomes == {GROUNDED}
    assert draw(film_graph, STRUCTURES["3p"], entities.id_of("d2"), 0)[0] == DEAD_END


def test_an_entity_without_edges_is_a_dead_end(film_graph: KnowledgeGraph) -> None:
    only = {"train": film_graph.edges("train")[-2:]}
    none = np.zeros((0, 3), dtype=np.int32)
    graph = KnowledgeGraph("one", film_graph.vocabulary, {"valid": none, "test": none} | only)
    targets = possible_starts(graph.adjacency("train")).tolist()
    for target in range(graph.num_entities):
        outcome, *_ = draw(graph, STRUCTURES["1p"], target, 0)
        assert outcome == (GROUNDED if target in targets else DEAD_END)


def test_a_draw_does_not_depend_on_the_contents_of_its_memory(random_graph: KnowledgeGraph) -> None:
    for number in range(50):
        draws = [
            draw(random_graph, STRUCTURES["ip"], number, number, scratch) for scratch in range(10)
        ]
        outcomes, anchors, relations = zip(*draws, strict=True)
        assert len(set(outcomes)) == 1
        if outcomes[0] == GROUNDED:
            assert len(np.unique(anchors, axis=0)) == len(np.unique(relations, axis=0)) == 1


def draw_forwards(graph: KnowledgeGraph, shape: Shape, start: int, number: int, scratch: int = 0):
    return draw(graph, shape, start, number, scratch, compile_path_grounding)


def walks_from(graph: KnowledgeGraph, start: int, hops: int) -> dict[tuple[int, ...], float]:
    """The probability of each sequence of relations; the rest to 1 is that of a dead end."""
    leaving: dict[int, dict[int, list[int]]] = {}
    for head, relation, tail in set(map(tuple, graph.edges("train").tolist())):
        leaving.setdefault(head, {}).setdefault(relation, []).append(tail)
    chances = {((), start): 1.0}
    for _ in range(hops):
        longer: dict[tuple[tuple[int, ...], int], float] = {}
        for (path, entity), chance in chances.items():
            back = inverse_of(path[-1]) if path else None
            open_ways = {r: ends for r, ends in leaving.get(entity, {}).items() if r != back}
            for relation, ends in open_ways.items():
                for end in ends:
                    place = ((*path, relation), end)
                    share = chance / len(open_ways) / len(ends)
                    longer[place] = longer.get(place, 0.0) + share
        chances = longer
    found: dict[tuple[int, ...], float] = {}
    for (path, _), chance in chances.items():
        found[path] = found.get(path, 0.0) + chance
    return found


@pytest.mark.parametrize("name", ["1p", "2p", "3p"])
def test_paths_walked_forwards_have_the_expected_probabilities(
    film_graph: KnowledgeGraph, name: str
) -> None:
    shape, draws = STRUCTURES[name], 1500
    some_lead_nowhere = False
    for start in range(film_graph.num_entities):
        expected = walks_from(film_graph, start, shape.num_relations)
        counts: Counter[tuple[int, ...]] = Counter()
        for number in range(draws):
            outcome, anchors, relations = draw_forwards(film_graph, shape, start, number)
            if outcome == GROUNDED:
                assert anchors.tolist() == [start]
                counts[tuple(relations.tolist())] += 1
            else:
                assert outcome == DEAD_END
        assert set(counts) == set(expected)
        for path, chance in expected.items():
            error = (chance * (1 - chance) / draws) ** 0.5
            assert abs(counts[path] / draws - chance) <= 5 * error + 1e-12
        some_lead_nowhere |= sum(expected.values()) < 0.999
    assert some_lead_nowhere == (name != "1p")


@given(graphs(), st.sampled_from(["1p", "2p", "3p"]), st.integers(0, 10_000))
def test_a_path_walked_forwards_has_an_answer(
    graph: KnowledgeGraph, name: str, number: int
) -> None:
    starts = possible_starts(graph.adjacency("train"))
    assume(len(starts))
    start = int(starts[number % len(starts)])
    draws = [draw_forwards(graph, STRUCTURES[name], start, number, held) for held in (0, 7)]
    (outcome, anchors, relations), (again, *ids) = draws
    assert outcome == again
    if outcome == GROUNDED:
        assert [part.tolist() for part in ids] == [anchors.tolist(), relations.tolist()]
        query = STRUCTURES[name].ground(anchors, relations)
        assert len(answer(graph.adjacency("train"), query))


def test_only_paths_are_walked_forwards() -> None:
    with pytest.raises(AssertionError, match="branches"):
        compile_path_grounding(STRUCTURES["2i"])


def test_equal_branches_are_twins_and_different_shapes_never(film_graph: KnowledgeGraph) -> None:
    entities = film_graph.vocabulary.entities
    # Only f2's director edge enters d2, so both branches are the same.
    assert draw(film_graph, STRUCTURES["2i"], entities.id_of("d2"), 0)[0] == TWIN_BRANCHES
    assert draw(film_graph, STRUCTURES["2u"], entities.id_of("d2"), 0)[0] == TWIN_BRANCHES
    assert draw(film_graph, STRUCTURES["2in"], entities.id_of("d2"), 0)[0] == GROUNDED


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_twins_are_equal_operands(name: str, place: int) -> None:
    """Two operands of one structure, which differ in one id at most, beside a negated path."""
    operands = [STRUCTURES[name].template] * 2
    operands.insert(place, Not(STRUCTURES["2p"].template))
    shape = shape_of(And(tuple(operands)))
    counts = [(len(ids), len(others)) for ids, others in map(slots_of, operands)]
    anchors, relations = (
        np.concatenate([np.arange(size) for size in sizes]).astype(np.int32)
        for sizes in zip(*counts, strict=True)
    )
    ids = np.concatenate([anchors, relations])
    found = []
    for changed in (None, *range(len(ids))):
        other = ids.copy()
        if changed is not None:
            other[changed] += 100
        given_anchors, given_relations = np.split(other, [len(anchors)])
        query = shape.ground(given_anchors, given_relations)
        twins = any(
            len(set(node.operands)) < len(node.operands)
            for node in subtrees(query)
            if isinstance(node, And | Or)
        )
        program = compile_grounding(shape)
        assert _has_twins(program.twins, given_anchors, given_relations) == twins
        found.append(twins)
    assert found.count(True) == 1 + 3, "only the path's ids may be changed"


@given(shapes())
def test_a_program_has_a_place_for_every_slot_and_cannot_be_changed(shape: Shape) -> None:
    program = compile_grounding(shape)
    assert (program.num_anchors, program.num_relations) == (shape.num_anchors, shape.num_relations)
    for shared in (program.steps, program.twins):  # by all who draw queries of the shape
        assert not shared.flags.writeable


def test_twins_are_found_among_nested_and_negated_branches() -> None:
    path = Project(Anchor(0), 0)
    shape = shape_of(And((Not(path), Or((path, path)), Not(path))))
    twins = compile_grounding(shape).twins.tolist()
    # The two negated branches (slots 0 and 3), and the two operands of the union (1 and 2).
    assert sorted(row[:2] for row in twins) == [[0, 3], [1, 2]]
    assert has_negation(shape.template)


SPLITMIX_OF_1234567 = (
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
)
"""The first numbers of SplitMix64 from this seed, as Rosetta Code lists them."""


def test_random_numbers_are_those_of_splitmix() -> None:
    state = np.array([1234567], dtype=np.uint64)
    found = [random_below(state, 2**32) for _ in SPLITMIX_OF_1234567]
    assert found == [number >> 32 for number in SPLITMIX_OF_1234567]
    # `random_state` mixes twice; with this key its result is SplitMix64's first number.
    first, golden = SPLITMIX_OF_1234567[0], 0x9E3779B97F4A7C15
    key = np.uint64(first ^ (1234567 + golden) % 2**64)
    assert int(random_state(key, 1234567)) == first


def test_numbers_below_a_bound_are_uniform() -> None:
    state = np.array([random_state(stream_key(1, "uniform"), 0)], dtype=np.uint64)
    counts = Counter(random_below(state, 5) for _ in range(5_000))
    assert sorted(counts) == [0, 1, 2, 3, 4]
    assert all(850 < count < 1150 for count in counts.values())


def test_streams_differ_by_seed_name_and_number() -> None:
    keys = {int(stream_key(seed, name)) for seed in (0, 1) for name in ("a", "b", "ab")}
    keys |= {int(stream_key(0, "a", "b"))}
    assert len(keys) == 7
    assert len({int(random_state(stream_key(0, "a"), n)) for n in range(1_000)}) == 1_000


@pytest.mark.parametrize("split", ["train", "test"])
def test_targets_are_the_entities_with_edges(film_graph: KnowledgeGraph, split: str) -> None:
    edges = np.concatenate([film_graph.edges(part) for part in ("train", "valid", "test")])
    if split == "train":
        edges = film_graph.edges("train")
    assert possible_starts(film_graph.adjacency(split)).tolist() == sorted(set(edges[:, 2]))
