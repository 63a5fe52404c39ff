"""Plans: a batch of queries of mixed shapes as a short list of batched operator steps.

All projections at the same depth are one step, whichever query they belong to, so that a model
computes them as one matrix product. The same is done for negations and for intersections of
equal arity. A plan depends only on the shapes and the number of queries of each, so it is made
once and used for every batch of that composition. Running it is left to `model/embed.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeAlias, assert_never

from conekg.lines import counted
from conekg.query.branches import DEFAULT_BRANCH_CAP, UnionForm, union_free_branches
from conekg.query.shape import Shape
from conekg.query.tree import (
    Anchor,
    And,
    Not,
    Or,
    Project,
    Query,
    Universe,
    fold,
)


@dataclass(frozen=True, slots=True)
class Group:
    """`count` queries of one shape, given by its union-free branches, whose ids are slots."""

    branches: tuple[Query, ...]
    count: int


class Rows(NamedTuple):
    """Rows `start` up to, but not including, `stop` of the output of an earlier step."""

    step: int
    start: int
    stop: int


class Slot(NamedTuple):
    """A column of a group's matrix of ids: slot number `column` of all queries in `group`."""

    group: int
    column: int


@dataclass(frozen=True, slots=True)
class AnchorStep:
    """Embed the entities of the given slots."""

    entities: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class UniverseStep:
    """Embed the set of all entities, `count` times."""

    count: int


@dataclass(frozen=True, slots=True)
class ProjectStep:
    """Project each row of the operands along the relation in the same row of the slots."""

    operands: tuple[Rows, ...]
    relations: tuple[Slot, ...]


@dataclass(frozen=True, slots=True)
class IntersectStep:
    """Intersect row by row; `operands[i]` holds the i-th operand of every intersection."""

    operands: tuple[tuple[Rows, ...], ...]


@dataclass(frozen=True, slots=True)
class NegateStep:
    """Complement the operands."""

    operands: tuple[Rows, ...]


Step: TypeAlias = AnchorStep | UniverseStep | ProjectStep | IntersectStep | NegateStep


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order of execution, and the rows in which the region of each branch ends up."""

    groups: tuple[Group, ...]
    steps: tuple[Step, ...]
    outputs: tuple[tuple[Rows, ...], ...]
    """One tuple per step: its output, cut at every row where an input of a later step begins or
    ends."""
    roots: tuple[tuple[Rows, ...], ...]
    """One tuple per group with one entry per branch, each of `count` rows."""


def plan_shapes(
    shapes: Sequence[tuple[Shape, int]],
    union: UnionForm = "dnf",
    cap: int = DEFAULT_BRANCH_CAP,
) -> Plan:
    """The plan of a batch that has, for each (shape, count), `count` queries of that shape.

    >>> from conekg.query.shape import STRUCTURES
    >>> len(plan_shapes([(STRUCTURES["2p"], 4), (STRUCTURES["2i"], 2)]).steps)
    4
    """
    return _plan_shapes(tuple(shapes), union, cap)


@lru_cache(maxsize=1024)
def branches_of(shape: Shape, union: UnionForm, cap: int) -> tuple[Query, ...]:
    """The union-free branches of a shape's template; `QueryTooLargeError` beyond the cap."""
    return union_free_branches(shape.template, union, cap)


@lru_cache(maxsize=512)
def _plan_shapes(shapes: tuple[tuple[Shape, int], ...], union: UnionForm, cap: int) -> Plan:
    trees = [_tree_of_shape(shape, union, cap) for shape, _ in shapes]
    counts = [count for _, count in shapes]
    nodes, roots = _all_nodes(trees)
    batches = _in_order_of_use(_batches(nodes), nodes, roots)
    sizes = [counts[node.group] for node in nodes]
    placed: dict[int, Rows] = {}
    steps: list[Step] = []
    for number, batch in enumerate(batches):
        steps.append(_make_step([nodes[key] for key in batch], counts, placed))
        start = 0
        for key in batch:
            placed[key] = Rows(number, start, start + sizes[key])
            start += sizes[key]
    taken = [run for step in steps for run in _runs_taken_by(step)]
    taken += join_rows([placed[root] for branches in roots for root in branches])
    return Plan(
        tuple(Group(tree.branches, count) for tree, count in zip(trees, counts, strict=True)),
        tuple(steps),
        _cut_outputs([sum(sizes[key] for key in batch) for batch in batches], taken),
        tuple(tuple(placed[root] for root in branches) for branches in roots),
    )


def join_rows(rows: Sequence[Rows]) -> tuple[Rows, ...]:
    """The same rows in the same order, in as few slices as possible; empty slices are left out.

    >>> join_rows([Rows(0, 0, 2), Rows(0, 2, 5), Rows(1, 5, 6)])
    (Rows(step=0, start=0, stop=5), Rows(step=1, start=5, stop=6))
    """
    joined: list[Rows] = []
    for part in rows:
        last = joined[-1] if joined else None
        if last and (last.step, last.stop) == (part.step, part.start):
            joined[-1] = Rows(part.step, last.start, part.stop)
        elif part.start < part.stop:
            joined.append(part)
    return tuple(joined)


def describe(plan: Plan) -> list[str]:
    """The steps of a plan in words, in order of execution.

    >>> from conekg.query.shape import STRUCTURES
    >>> describe(plan_shapes([(STRUCTURES["2in"], 1)]))
    ['embed 2 entities', 'project 2 sets', 'complement 1 set', 'intersect 2 sets']
    """

    def sets(rows: Sequence[Rows]) -> str:
        return counted(sum(r.stop - r.start for r in rows), "set")

    lines: list[str] = []
    for step in plan.steps:
        match step:
            case AnchorStep(entities):
                size = sum(plan.groups[slot.group].count for slot in entities)
                lines.append(f"embed {counted(size, 'entity')}")
            case UniverseStep():
                lines.append("embed the set of all entities")
            case ProjectStep(operands, _):
                lines.append(f"project {sets(operands)}")
            case NegateStep(operands):
                lines.append(f"complement {sets(operands)}")
            case IntersectStep(operand_lists):
                size = sum(r.stop - r.start for r in operand_lists[0])
                times = "" if size == 1 else f", {size} times"
                lines.append(f"intersect {len(operand_lists)} sets{times}")
            case _:
                assert_never(step)
    return lines


class _Node(NamedTuple):
    """A node of a batch; nodes refer to each other by number."""

    group: int
    query: Query
    rank: tuple[int, int, int]
    operands: tuple[int, ...]
    """The numbers of its operands."""
    parents: tuple[int, ...]
    """The numbers of the nodes that use it, once for each time that it is an operand."""


@dataclass(frozen=True, slots=True)
class _Tree:
    """The nodes of a group's branches, operands first; equal subtrees are one node."""

    branches: tuple[Query, ...]
    nodes: tuple[_Node, ...]
    roots: tuple[int, ...]


@lru_cache(maxsize=1024)
def _tree_of_shape(shape: Shape, union: UnionForm, cap: int) -> _Tree:
    branches = branches_of(shape, union, cap)
    numbers: dict[tuple[object, ...], int] = {}
    queries: list[Query] = []
    operands: list[tuple[int, ...]] = []
    depths: list[int] = []

    def number(query: Query, below: tuple[int, ...]) -> int:
        """The number of a node; a new node is added to the lists.

        Equal nodes are found by type, id and the numbers of their operands `below`, which is much
        faster than comparing trees.
        """
        own_id = query.entity_id if isinstance(query, Anchor) else None
        own_id = query.relation_id if isinstance(query, Project) else own_id
        node_number = numbers.setdefault((type(query), own_id, below), len(numbers))
        if node_number == len(queries):
            queries.append(query)
            operands.append(below)
            depth = max((depths[operand] for operand in below), default=0)
            depths.append(depth + isinstance(query, Project))
        return node_number

    roots = tuple(fold(branch, number) for branch in branches)
    parents: list[list[int]] = [[] for _ in queries]
    for node_number, below in enumerate(operands):
        for operand in below:
            parents[operand].append(node_number)
    nodes = tuple(
        _Node(0, query, _rank(query, depth), below, tuple(above))
        for query, depth, below, above in zip(queries, depths, operands, parents, strict=True)
    )
    return _Tree(branches, nodes, roots)


def _all_nodes(trees: Sequence[_Tree]) -> tuple[list[_Node], list[list[int]]]:
    """The nodes of all groups, numbered consecutively, and the roots of each group's branches."""
    nodes: list[_Node] = []
    roots: list[list[int]] = []
    for group, tree in enumerate(trees):
        first = len(nodes)
        roots.append([first + root for root in tree.roots])
        nodes += [
            _Node(
                group,
                query,
                rank,
                tuple([first + operand for operand in operands]),
                tuple([first + parent for parent in parents]),
            )
            for _, query, rank, operands, parents in tree.nodes
        ]
    return nodes, roots


def _batches(nodes: Sequence[_Node]) -> list[list[int]]:
    """The numbers of the nodes of each step, with steps in order of execution."""
    missing = [len(node.operands) for node in nodes]
    ready: dict[tuple[int, int, int], list[int]] = {}
    for number, node in enumerate(nodes):
        if not node.operands:
            ready.setdefault(node.rank, []).append(number)
    batches: list[list[int]] = []
    while ready:
        # The smallest rank first. Otherwise a projection could run before other projections of
        # the same depth are ready, and they would not share a matrix product.
        batches.append(ready.pop(min(ready)))
        for number in batches[-1]:
            for parent in nodes[number].parents:
                missing[parent] -= 1
                if not missing[parent]:
                    ready.setdefault(nodes[parent].rank, []).append(parent)
    return batches


def _in_order_of_use(
    batches: Sequence[Sequence[int]], nodes: Sequence[_Node], roots: Sequence[Sequence[int]]
) -> list[list[int]]:
    """The batches, with the nodes of each sorted in the order in which later steps use them.

    The input of a step is then one or a few slices of an earlier output, instead of one slice per
    node. So tensors and gradients are sliced, where they would otherwise be copied.
    """
    used = [root for branches in roots for root in branches]
    first_use: dict[int, int] = {}
    start = 0
    ordered: list[list[int]] = []
    for batch in reversed(batches):
        # Uses are numbered from the last to the first with falling numbers, so that the earliest
        # of several uses of a node is the one that remains in the dictionary.
        start -= len(used)
        first_use.update((key, start + number) for number, key in reversed(list(enumerate(used))))
        ordered.append(sorted(batch, key=first_use.__getitem__))
        columns = zip(*(nodes[key].operands for key in ordered[-1]), strict=True)
        used = [key for column in columns for key in column]
    return ordered[::-1]


def _runs_taken_by(step: Step) -> tuple[Rows, ...]:
    """The slices of earlier outputs that a step uses."""
    match step:
        case AnchorStep() | UniverseStep():
            return ()
        case ProjectStep(operands, _) | NegateStep(operands):
            return operands
        case IntersectStep(operand_lists):
            return tuple(run for operands in operand_lists for run in operands)
    assert_never(step)


def _cut_outputs(sizes: Sequence[int], taken: Sequence[Rows]) -> tuple[tuple[Rows, ...], ...]:
    """The output of each step, cut at both ends of every slice in `taken`.

    `sizes` has the number of rows of each step's output.
    """
    cuts = [{0, size} for size in sizes]
    for run in taken:
        cuts[run.step] |= {run.start, run.stop}
    return tuple(
        tuple(Rows(step, start, stop) for start, stop in pairwise(sorted(rows)))
        for step, rows in enumerate(cuts)
    )


def _rank(query: Query, depth: int) -> tuple[int, int, int]:
    """(projection depth, operator, arity): nodes of equal rank that are ready form one step.

    The projection depth is the largest number of projections on a path to a leaf. Smaller ranks
    run first. Within a depth, complements run before intersections, which may need their results,
    so that intersections of equal arity end up in one step.
    """
    match query:
        case Anchor():
            return depth, 0, 0
        case Universe():
            return depth, 1, 0
        case Project():
            return depth, 2, 1
        case Not():
            return depth, 3, 1
        case And(operands):
            return depth, 4, len(operands)
        case Or():
            raise AssertionError("unions are rewritten away before planning")
    assert_never(query)


def _make_step(batch: Sequence[_Node], counts: Sequence[int], placed: Mapping[int, Rows]) -> Step:
    """The step that computes the nodes of a batch; `placed` has the rows of earlier nodes."""
    operands = [
        join_rows([placed[operand] for operand in column])
        for column in zip(*(node.operands for node in batch), strict=True)
    ]
    match batch[0].query:
        case Anchor():
            return AnchorStep(
                tuple(
                    Slot(node.group, node.query.entity_id)
                    for node in batch
                    if isinstance(node.query, Anchor)
                )
            )
        case Universe():
            return UniverseStep(sum(counts[node.group] for node in batch))
        case Project():
            return ProjectStep(
                operands[0],
                tuple(
                    Slot(node.group, node.query.relation_id)
                    for node in batch
                    if isinstance(node.query, Project)
                ),
            )
        case Not():
            return NegateStep(operands[0])
        case And():
            return IntersectStep(tuple(operands))
        case Or():
            raise AssertionError("unions are rewritten away before planning")
    assert_never(batch[0].query)
