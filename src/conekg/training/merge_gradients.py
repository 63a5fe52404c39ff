"""Weight gradients of a layer that a batch uses several times, as one product each.

A projection network runs once a depth, so that autograd adds up one product (and one
column sum, for the bias) a depth for every layer. Σ_i δ_iᵀ x_i is the product of the δ_i
and x_i stacked row upon row, though, and a compiler can write these where they are needed
in the first place. `MergeGradients` is a pass over the graph that `torch.compile` traces,
forward and backward together; it changes the order of some sums and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch._guards import detect_fake_mode
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
from torch.fx import Graph, Node
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves

_aten = torch.ops.aten
_CAST = torch.ops.prims.convert_element_type.default


class MergeGradients(CustomGraphPass):
    """For `torch.compile(..., options={"joint_custom_post_pass": MergeGradients()})`."""

    def __call__(self, graph: Graph) -> None:
        """Rewrite the joint graph of forward and backward in place."""
        stacks = _Stacks(graph)
        for total in [node for node in graph.nodes if _is_sum(node)]:
            terms = [_read_term(leaf) for leaf in _leaves(total)]
            kinds = {term.kind for term in terms if term is not None}
            if None not in terms and len(kinds) == 1:
                _merge(graph, total, [term for term in terms if term is not None], stacks)
        _keep_products_wide(graph)
        graph.eliminate_dead_code()
        graph.lint()

    def uuid(self) -> bytes:
        """What caches of compiled graphs know this pass by."""
        return get_hash_for_files((__file__,))


@dataclass(frozen=True)
class _Term:
    """One summand: what it is, and the tensors [rows, width] whose rows it sums over."""

    kind: Literal["product", "column sum"]
    factors: tuple[Node, ...]
    node: Node
    """Without the cast to another kind of number that may follow."""


def _read_term(node: Node) -> _Term | None:
    """The summand as δᵀ x or as the column sum of δ, cast or not; None where it is neither."""
    first = node.args[0] if node.args else None
    if len(node.users) != 1 or not isinstance(first, Node):
        return None
    if node.target is _CAST:
        return _read_term(first)
    if node.target is first.target is _aten.permute.default and node.args[1] == first.args[1] == [
        1,
        0,
    ]:
        return _read_term(first.args[0]) if isinstance(first.args[0], Node) else None
    if node.target is _aten.mm.default and first.target is _aten.permute.default:
        transposed, right = first.args[0], node.args[1]
        assert isinstance(transposed, Node)
        assert isinstance(right, Node)
        return _Term("product", (transposed, right), node)
    is_reshaped = node.target in (_aten.view.default, _aten.reshape.default)
    if is_reshaped and first.target is _aten.sum.dim_IntList and first.args[1] == [0]:
        rows = first.args[0]
        assert isinstance(rows, Node)
        return _Term("column sum", (rows,), node) if rows.meta["val"].dim() == 2 else None
    return None


def _is_sum(node: Node) -> bool:
    """Whether a node is an addition that is no part of a larger one."""
    return _is_addition(node) and not any(_is_inner_addition(node, user) for user in node.users)


def _is_inner_addition(node: Node, user: Node) -> bool:
    return _is_addition(node) and _is_addition(user) and len(node.users) == 1


def _is_addition(node: Node) -> bool:
    """Whether a node adds two tensors of one shape and kind."""
    if node.target is not _aten.add.Tensor or node.kwargs:
        return False
    values = [arg.meta["val"] for arg in node.args if isinstance(arg, Node)]
    return len(values) == 2 and values[0].shape == values[1].shape


def _leaves(total: Node) -> Iterator[Node]:
    """What is added up, in order."""
    for arg in total.args:
        assert isinstance(arg, Node)
        if _is_inner_addition(arg, total):
            yield from _leaves(arg)
        else:
            yield arg


def _merge(graph: Graph, total: Node, terms: Sequence[_Term], stacks: _Stacks) -> None:
    """Replace a sum of terms by the one term of their factors, stacked."""
    stacked = [stacks.of(parts) for parts in zip(*(t.factors for t in terms), strict=True)]
    first = terms[0].node
    with graph.inserting_before(total):
        if terms[0].kind == "product":
            transposed = _call(graph, _aten.permute.default, stacked[0], [1, 0])
            merged = _call(graph, _aten.mm.default, transposed, stacked[1])
        else:
            column_sum = first.args[0]
            assert isinstance(column_sum, Node)
            summed = _call(graph, _aten.sum.dim_IntList, stacked[0], *column_sum.args[1:])
            merged = _call(graph, first.target, summed, *first.args[1:])
        if merged.meta["val"].dtype != total.meta["val"].dtype:
            merged = _call(graph, _CAST, merged, total.meta["val"].dtype)
    total.replace_all_uses_with(merged)


class _Stacks:
    """Tensors stacked row upon row, each set of them once."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[tuple[Node, ...], Node] = {}
        self._backward = _depends_on_tangents(graph)

    def of(self, parts: tuple[Node, ...]) -> Node:
        """The parts in one tensor.

        What is known in the forward pass is stacked there and the backward pass reads its
        rows from the stack, so that nothing is kept twice.
        """
        if parts in self._known:
            return self._known[parts]
        order = {node: number for number, node in enumerate(self._graph.nodes)}
        last = max(parts, key=order.__getitem__)
        with self._graph.inserting_after(last):
            stack = _call(self._graph, _aten.cat.default, list(parts))
        self._known[parts] = stack
        if not self._backward.intersection(parts):
            self._known[self._read_from(stack, parts)] = stack
        return stack

    def _read_from(self, stack: Node, parts: Sequence[Node]) -> tuple[Node, ...]:
        """Slices of a stack that take the place of its parts in the backward pass."""
        slices: list[Node] = []
        start = 0
        for part in parts:
            stop = start + part.meta["val"].shape[0]
            with self._graph.inserting_after(stack):
                rows = _call(self._graph, _aten.slice.Tensor, stack, 0, start, stop)
            part.replace_all_uses_with(rows, delete_user_cb=self._backward.__contains__)
            slices.append(rows)
            start = stop
        return tuple(slices)


def _depends_on_tangents(graph: Graph) -> set[Node]:
    """The nodes of the backward pass: what follows from the gradients that enter."""
    reached: set[Node] = set()
    for node in graph.nodes:
        enters = node.op == "placeholder" and "tangent" in str(node.target)
        if enters or any(source in reached for source in node.all_input_nodes):
            reached.add(node)
    return reached


def _keep_products_wide(graph: Graph) -> None:
    """Let products that leave the graph in float32 be rounded to nothing less before.

    A GPU adds up the products of bfloat16 numbers in float32 anyway.
    """
    for cast in graph.find_nodes(op="call_function", target=_CAST):
        product, dtype = cast.args
        is_result = all(user.op == "output" for user in cast.users)
        if not (is_result and dtype == torch.float32 and product.target is _aten.mm.default):
            continue
        value = product.meta["val"]
        if len(product.users) == 1 and value.device.type == "cuda" and value.dtype != dtype:
            with graph.inserting_before(cast):
                wide = graph.call_function(_aten.mm.dtype, (*product.args, torch.float32))
            wide.meta["val"] = cast.meta["val"]
            cast.replace_all_uses_with(wide)


def _call(graph: Graph, target: Any, *args: Any) -> Node:
    """A new node, with the value that later passes expect to find there."""
    node = graph.call_function(target, args)
    values = map_arg(args, lambda arg: arg.meta["val"])
    with detect_fake_mode(tree_leaves(values)) or nullcontext():
        node.meta["val"] = target(*values)
    return node
