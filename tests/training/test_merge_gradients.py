"""The pass over compiled graphs: fewer products, the same gradients."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch._inductor.decomposition import select_decomp_table
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.functional import linear

from conekg.training.merge_gradients import MergeGradients

aten = torch.ops.aten


def traced(function: Callable[..., Tensor], gradients: Tensor, *inputs: Tensor) -> GraphModule:
    """The graph of the gradients, named as a joint graph of forward and backward is."""

    def joint(gradients: Tensor, *primals: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad(function(*primals), primals, gradients))

    graph = make_fx(joint, select_decomp_table(), tracing_mode="fake")(gradients, *inputs)
    entering = next(node for node in graph.graph.nodes if node.op == "placeholder")
    entering.target = "tangents_1"
    graph.graph.eliminate_dead_code()
    graph.recompile()
    return graph


def count(graph: GraphModule, target: object) -> int:
    return sum(node.target is target for node in graph.graph.nodes)


def three_layers(first: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Three uses of a layer, of different numbers of rows."""
    hidden = torch.relu(linear(first, weight, bias))
    again = torch.tanh(linear(hidden[:4], weight, bias))
    last = linear(again[1:3], weight, bias)
    return torch.cat([hidden.sum(dim=0), again.sum(dim=0), last.sum(dim=0)])


def test_a_layer_used_three_times_has_one_product_for_its_gradient() -> None:
    generator = torch.Generator().manual_seed(0)
    inputs = [
        torch.randn(*shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in ((7, 5), (5, 5), (5,))
    ]
    gradients = torch.randn(15, generator=generator, dtype=torch.float64)
    graph = traced(three_layers, gradients, *inputs)
    products, sums = count(graph, aten.mm.default), count(graph, aten.sum.dim_IntList)
    expected = graph(gradients, *inputs)
    MergeGradients()(graph.graph)
    graph.recompile()
    assert count(graph, aten.mm.default) == products - 2
    assert count(graph, aten.sum.dim_IntList) == sums - 2
    for ours, theirs in zip(graph(gradients, *inputs), expected, strict=True):
        assert ours.abs().max() > 0
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_other_sums_are_left_alone() -> None:
    def function(left: Tensor, right: Tensor) -> Tensor:
        return left @ right + torch.sin(left) @ right

    inputs = [torch.randn(4, 4, requires_grad=True) for _ in range(2)]
    graph = traced(function, torch.randn(4, 4), *inputs)
    total = count(graph, aten.add.Tensor)
    # The right factor's gradient is a sum of transposed products, the left one's is not.
    MergeGradients()(graph.graph)
    assert count(graph, aten.add.Tensor) == total - 1
