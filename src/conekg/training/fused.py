"""The updater for one GPU: sampling, operators, loss and Adam as one captured CUDA graph.

The tensor sizes of a step never change, so the whole round of updates is captured once and
then replayed by a single launch. The operators are ordinary PyTorch code through `embed`.
The work on the entity table, which is nearly all of the memory traffic, is fused: `draw`
samples the batch, and `entity_kernels` reads each candidate's row once for the loss and its
gradients, and sums the gradient of each row in the kernel that applies Adam to it.
Needs CUDA and Triton (or, in tests, Triton's interpreter, without a captured graph).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from conekg.model.embed import embed
from conekg.model.interface import QueryModel, Region
from conekg.model.kernels.draw import Drawn, Pool, draw
from conekg.model.kernels.entity_update import Occurrences, advance, find_occurrences
from conekg.query.plan import AnchorStep, Plan, plan_shapes
from conekg.training.batches import DROPOUT, DeviceData, seed_at
from conekg.training.entity_kernels import Moments, kernels_of
from conekg.training.precision import ReducedWeights, matrix_precision
from conekg.training.recipe import TrainingRecipe

_BETAS, _EPSILON = (0.9, 0.999), 1e-8
"""Adam's constants, PyTorch's defaults, as published."""
_WARM_UP_STEPS = 3
"""Steps before the capture, so that libraries allocate and kernels compile outside the graph."""
COMPILER_OPTIONS: dict[str, str | int | bool | Callable[..., Any]] = {"combo_kernels": True}
"""Options of `torch.compile`: small independent kernels are joined into one, which saves a
twenty-fifth of a step of ConE."""


class FusedUpdater:
    """Runs recipe steps on a GPU; see `updater.Updater` for the contract."""

    def __init__(self, model: QueryModel, data: DeviceData, recipe: TrainingRecipe) -> None:
        kernels = kernels_of(model)
        assert kernels is not None, f"no kernels for {model.name}"
        self._model = model.train()
        self._kernels = kernels
        self._recipe = recipe
        self._device = data.device
        # Autograd keeps running the gradient of a parameter on the stream that it first ran on,
        # so all uncaptured steps and the capture share one stream.
        self._main = SideStream(data.device, priority=-1)
        # The highest priority, so that its kernels start even while one of the main stream fills
        # the device.
        self._beside = SideStream(data.device, priority=-2)
        # The lowest priority, for kernels that fill the device by themselves: they use what the
        # main stream leaves idle.
        self._behind = SideStream(data.device)
        self._near = data.near_misses_of(recipe.negatives, recipe.near_misses)
        self._pools: dict[str, Pool] = {}
        self._plans: dict[str, Plan] = {}
        for name in dict.fromkeys(recipe.cycle):
            composition = recipe.pool(name).composition(recipe.batch_size)
            self._pools[name] = pack_pool(data, composition)
            self._plans[name] = plan_shapes(
                [(data.blocks[shape].shape, count) for shape, count in composition.items()]
            )
        is_reduced = recipe.precision == "bfloat16" and self._device.type == "cuda"
        self._reduced = ReducedWeights(model, torch.bfloat16) if is_reduced else None
        self._embed = {name: self._embedding_function(plan) for name, plan in self._plans.items()}
        self._counters = torch.zeros(2, dtype=torch.int64, device=self._device)
        self._learning_rate = torch.zeros(1, device=self._device)
        self._adam = Moments(
            torch.zeros_like(model.entity, requires_grad=False),
            torch.zeros_like(model.entity, requires_grad=False),
            torch.tensor([0.0, 0.0, *_BETAS, _EPSILON], device=self._device),
        )
        self._rest = {
            name: parameter
            for name, parameter in model.named_parameters()
            if parameter is not model.entity
        }
        self._optimizer = torch.optim.Adam(
            self._rest.values(),
            lr=self._learning_rate,
            betas=_BETAS,
            eps=_EPSILON,
            fused=True,
            capturable=self._device.type == "cuda",
        )
        self._losses = {name: torch.zeros(2, device=self._device) for name in self._pools}
        self._steps_summed = 0
        self._steps = 0
        self._uncaptured = 0
        self._graph: torch.cuda.CUDAGraph | None = None

    def _embedding_function(self, plan: Plan) -> Callable[[Tensor, Tensor, Tensor], Region]:
        """A function from anchor rows and ids to regions [batch, dim], compiled if configured."""
        operators = Operators(self._model, plan)
        reduced = self._reduced

        def run(rows: Tensor, anchors: Tensor, relations: Tensor) -> Region:
            if reduced is None:
                region: Region = operators(rows, anchors, relations)
            else:
                weights = {f"model.{name}": part for name, part in reduced.stand_ins().items()}
                region = functional_call(operators, weights, (rows, anchors, relations))
            return region

        if self._recipe.compile_operators and self._device.type == "cuda":
            return torch.compile(run, dynamic=False, options=COMPILER_OPTIONS)
        return run

    def step(self, learning_rate: float) -> None:
        """Run one round of the update cycle."""
        self._learning_rate.fill_(learning_rate)
        self._seed_dropout()
        if self._graph is not None:
            self._graph.replay()
        elif self._device.type != "cuda":
            self._run_cycle()
        elif self._uncaptured < _WARM_UP_STEPS:
            with self._main.fork(), _compiling_quietly():
                if self._reduced is not None:  # the weights may have been loaded since
                    self._reduced.renew()
                self._run_cycle()
            self._main.join()
            self._uncaptured += 1
        else:
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph, stream=self._main.stream):
                self._run_cycle()
            self._graph.replay()
        self._steps += 1
        self._steps_summed += 1

    def _run_cycle(self) -> None:
        """One round of updates; later batches are drawn in parallel with the first update."""
        first, *later = self._recipe.cycle
        batches = [self._draw(first, 0)]
        with self._beside.fork():
            batches += [self._draw(name, ahead) for ahead, name in enumerate(later, start=1)]
            places = [
                find_occurrences(batch.candidates, anchors, self._model.num_entities)
                for batch, anchors in batches
            ]
        for name, (batch, anchors), occurrences in zip(
            self._recipe.cycle, batches, places, strict=True
        ):
            self._update(name, batch, anchors, occurrences)

    def _draw(self, name: str, ahead: int) -> tuple[Drawn, Tensor]:
        """The batch of the update that is `ahead` updates away, and its anchor entities [rows]."""
        drawn = draw(
            self._pools[name],
            self._counters,
            self._recipe.seed,
            num_entities=self._model.num_entities,
            positives=self._recipe.positives,
            negatives=self._recipe.negatives,
            filtered=self._recipe.negative_sampling == "uniform-filtered",
            near=self._near,
            shared=self._recipe.shared_negatives,
            ahead=ahead,
        )
        return drawn, anchor_ids_of(self._plans[name], drawn.anchors)

    def _update(
        self, name: str, batch: Drawn, anchor_ids: Tensor, occurrences: Occurrences
    ) -> None:
        """Embed a batch and apply Adam to every parameter once."""
        # A separate leaf tensor: only these rows get a gradient, never the whole table.
        rows = self._model.entity.detach()[anchor_ids].requires_grad_()
        with self._behind.fork():
            self._kernels.prepare()
        with matrix_precision(self._recipe.precision, self._device):
            region = self._embed[name](rows, batch.anchors, batch.relations)
            # `contrast` needs what `prepare` computes. The later batches are drawn from the
            # counters, so they must be complete before `advance` changes those.
            self._beside.join()
            self._behind.join()
            contrasted = self._kernels.contrast(region, batch, self._recipe.adversarial_temperature)
            advance(self._counters, self._learning_rate, self._adam.constants)
            with self._behind.fork():
                self._kernels.update(contrasted, occurrences, None, self._adam)
            # `backward` would accumulate into `.grad` by nodes that outlive the update and belong
            # to the stream they were created on, so the gradients are returned instead. A weight
            # that the batch does not use gets None or, if idle weights drift, zeros.
            anchor_grads, *grads = torch.autograd.grad(
                contrasted.outputs,
                [rows, *self._rest.values()],
                contrasted.gradients,
                allow_unused=True,
                materialize_grads=self._recipe.idle_weights == "drift",
            )
        with self._beside.fork():
            self._kernels.update(contrasted, occurrences, anchor_grads.contiguous(), self._adam)
            self._losses[name] += contrasted.result.loss
        for parameter, gradient in zip(self._rest.values(), grads, strict=True):
            parameter.grad = gradient
        self._optimizer.step()
        if self._reduced is not None:
            self._reduced.renew(moved_only=True)
        self._beside.join()
        self._behind.join()

    def take_loss(self) -> dict[str, float]:
        """The mean loss of each pool since the last call; only this waits for the device."""
        means = {}
        for name, sums in self._losses.items():
            updates = self._steps_summed * self._recipe.cycle.count(name)
            if updates:
                means[name] = float(sums.mean()) / updates
            sums.zero_()
        self._steps_summed = 0
        return means

    def reset_moments(self) -> None:
        """Forget Adam's moments and its count of updates, in place, as the graph refers to them."""
        self._counters[1] = 0
        self._adam.first.zero_()
        self._adam.second.zero_()
        for state in self._optimizer.state.values():
            for value in state.values():
                value.zero_()

    def state(self) -> dict[str, Tensor]:
        """Adam's moments by parameter name, its count of updates, and the steps done."""
        state = {
            "steps": torch.tensor(self._steps),
            "entity:exp_avg": self._adam.first.clone(),
            "entity:exp_avg_sq": self._adam.second.clone(),
            "entity:step": self._counters[1].float(),
        }
        for name, parameter in self._rest.items():
            for key, value in self._optimizer.state.get(parameter, {}).items():
                state[f"{name}:{key}"] = value.detach().clone()
        return state

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from what `state` of this or of the eager updater returned."""
        self._steps = int(state["steps"])
        self._counters[0] = self._steps * len(self._recipe.cycle)
        self._counters[1] = int(state["entity:step"]) if "entity:step" in state else 0
        for moment, key in ((self._adam.first, "exp_avg"), (self._adam.second, "exp_avg_sq")):
            stored = state.get(f"entity:{key}")
            if stored is None:
                moment.zero_()
            else:
                moment.copy_(stored)
        self._optimizer.state.clear()
        for entry, value in state.items():
            name, _, key = entry.rpartition(":")
            if name in self._rest:
                slot = self._optimizer.state[self._rest[name]]
                slot[key] = value.to(self._device, torch.float32, copy=True)
        self._graph = None  # the optimizer's tensors are new, so the graph is captured again
        self._uncaptured = 0

    def _seed_dropout(self) -> None:
        """Make the dropout masks depend only on the seed and the number of the step.

        They come from the device's default generator, whose seed a graph reads at each replay.
        """
        seed = seed_at(self._recipe.seed, self._steps, 0, DROPOUT)
        if self._device.type == "cuda":
            torch.cuda.manual_seed(seed)
        else:
            torch.default_generator.manual_seed(seed)


@contextmanager
def _compiling_quietly() -> Iterator[None]:
    """Suppress a warning of the compiler about its own reductions, which no user can act on."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"\s*Online softmax is disabled", UserWarning)
        yield


class Operators(nn.Module):
    """A model's operators for one plan, as a module whose weights `functional_call` can replace."""

    def __init__(self, model: QueryModel, plan: Plan) -> None:
        super().__init__()
        self.model = model
        self._plan = plan

    def forward(self, rows: Tensor, anchors: Tensor, relations: Tensor) -> Region:
        """Regions [batch, dim] from the anchors' rows of the entity table and the ids."""
        region = embed(
            self.model,
            self._plan,
            slice_groups(anchors, self._plan),
            slice_groups(relations, self._plan),
            anchor=lambda _: self.model.anchor_of_weights(rows),
        )
        return tuple(part.contiguous() for part in region)


class SideStream:
    """A CUDA stream for work in parallel with the current stream, also within a captured graph."""

    def __init__(self, device: torch.device, priority: int = 0) -> None:
        on_gpu = device.type == "cuda"
        self.stream = torch.cuda.Stream(device, priority=priority) if on_gpu else None
        """None on a CPU, where all work is done in order."""

    @contextmanager
    def fork(self) -> Iterator[None]:
        """Run the block's work in parallel with the current stream's work until `join`.

        It starts after the work that the current stream has been given so far.
        """
        if self.stream is None:
            yield
            return
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            yield

    def join(self) -> None:
        """Let the current stream wait for the work of this stream."""
        if self.stream is not None:
            torch.cuda.current_stream().wait_stream(self.stream)


def pack_pool(data: DeviceData, composition: dict[str, int]) -> Pool:
    """The queries of a pool in one table, with the range of each batch row's shape in it."""
    blocks = [data.blocks[shape] for shape in composition]
    widest_anchors = max(block.anchors.shape[1] for block in blocks)
    widest_relations = max(block.relations.shape[1] for block in blocks)
    starts = [0]
    for block in blocks:
        starts.append(starts[-1] + len(block))
    answer_offsets, answers = _joined([(b.answer_offsets, b.answer_values) for b in blocks])
    near_offsets, near_misses = _joined([(b.near_offsets, b.near_values) for b in blocks])
    lengths = answer_offsets.diff()
    counts = list(composition.values())

    def per_row(numbers: list[int]) -> Tensor:
        column = torch.tensor(numbers).repeat_interleave(torch.tensor(counts))
        return column.to(data.device, torch.int32)

    return Pool(
        anchors=torch.cat([_padded(block.anchors, widest_anchors) for block in blocks]),
        relations=torch.cat([_padded(block.relations, widest_relations) for block in blocks]),
        answer_offsets=answer_offsets,
        answers=answers,
        weights=torch.cat([block.weights for block in blocks]),
        near_offsets=near_offsets,
        near_misses=near_misses,
        row_starts=per_row(starts[:-1]),
        row_counts=per_row([len(block) for block in blocks]),
        most_answers=int(lengths.max()),
    )


def slice_groups(table: Tensor, plan: Plan) -> list[Tensor]:
    """The rows of each group of a batch; the columns after a shape's own slots are padding."""
    return list(torch.split(table, [group.count for group in plan.groups]))


def can_fuse(model: QueryModel, data: DeviceData, recipe: TrainingRecipe) -> bool:
    """Whether there are kernels for the model and every pool has a shape with an anchor."""
    pools = [recipe.pool(name) for name in recipe.cycle]
    return kernels_of(model) is not None and all(
        any(data.blocks[shape].shape.num_anchors for shape in pool.shapes) for pool in pools
    )


def anchor_ids_of(plan: Plan, anchors: Tensor) -> Tensor:
    """[rows] the entities of the plan's only anchor step, in the order of that step."""
    (step,) = (step for step in plan.steps if isinstance(step, AnchorStep))
    groups = slice_groups(anchors, plan)
    return torch.cat([groups[slot.group][:, slot.column] for slot in step.entities])


def _joined(parts: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """The rows of all parts (offsets, values) in one part without gaps."""
    lengths = torch.cat([offsets.diff() for offsets, _ in parts])
    joined = torch.zeros(len(lengths) + 1, dtype=torch.int64, device=lengths.device)
    torch.cumsum(lengths, dim=0, out=joined[1:])
    return joined, torch.cat([values[int(at[0]) : int(at[-1])] for at, values in parts])


def _padded(ids: Tensor, width: int) -> Tensor:
    padded = torch.nn.functional.pad(ids, (0, width - ids.shape[1]))
    return padded.to(torch.int32)
