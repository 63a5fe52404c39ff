"""Updaters: run the steps of a recipe and change the parameters of a model.

An updater owns the model's parameters, the data and the optimizer during a run; the training
loop does not touch them. `make_updater` chooses the implementation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from typing import Protocol

import torch
from torch import Tensor

from conekg.model.embed import embed
from conekg.model.interface import QueryModel
from conekg.query.plan import Plan, plan_shapes
from conekg.training.batches import (
    DROPOUT,
    Batch,
    BatchSampler,
    DeviceData,
    generator_at,
    seed_at,
)
from conekg.training.loss import negative_sampling_loss
from conekg.training.precision import matrix_precision
from conekg.training.recipe import TrainingRecipe

WORTH_A_THREAD = 1 << 17
"""Size of a batch (queries times dimensions) below which one thread is used. Below it, a second
thread waits more than it works: at 512 times 128, one thread was faster than two that sleep while
they wait, as in our commands, on idle and on busy cores."""


class Updater(Protocol):
    """Runs the steps of a recipe, counts them, and can be stopped and continued exactly."""

    def step(self, learning_rate: float) -> None:
        """Run one round of the update cycle."""

    def take_loss(self) -> dict[str, float]:
        """The mean loss of each pool since the last call; only this waits for the device."""

    def reset_moments(self) -> None:
        """Forget Adam's moments and its count of updates."""

    def state(self) -> dict[str, Tensor]:
        """Everything besides the parameters that the next step depends on."""

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from what `state` returned."""


def make_updater(
    model: QueryModel, data: DeviceData, recipe: TrainingRecipe, device: torch.device
) -> Updater:
    """The fastest updater for this model on this device."""
    model = model.to(device)
    # The fused updater trains all weights: its kernels would move a frozen entity table.
    trains_all = all(parameter.requires_grad for parameter in model.parameters())
    # The GPU builds of torch for Windows come without Triton, which the kernels need.
    if device.type == "cuda" and trains_all and find_spec("triton") is not None:
        from conekg.training.fused import FusedUpdater, can_fuse

        if can_fuse(model, data, recipe):
            return FusedUpdater(model, data, recipe)
    return EagerUpdater(model, data, recipe)


class EagerUpdater:
    """Plain PyTorch, for every model and every device."""

    def __init__(self, model: QueryModel, data: DeviceData, recipe: TrainingRecipe) -> None:
        self._model = model.train()
        self._recipe = recipe
        self._device = data.device
        self._samplers = {
            name: BatchSampler(
                data,
                recipe.pool(name),
                recipe.batch_size,
                recipe.negatives,
                recipe.negative_sampling,
                recipe.positives,
                recipe.near_misses,
                recipe.shared_negatives,
            )
            for name in dict.fromkeys(recipe.cycle)
        }
        self._plans: dict[str, Plan] = {
            name: plan_shapes(sampler.groups) for name, sampler in self._samplers.items()
        }
        self._optimizer = self._new_optimizer()
        is_small = recipe.batch_size * model.dim < WORTH_A_THREAD
        self._one_thread = is_small and self._device.type == "cpu"
        self._steps = 0
        self._losses: dict[str, list[Tensor]] = {name: [] for name in self._samplers}

    def step(self, learning_rate: float) -> None:
        """Run one round of the update cycle."""
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        with one_thread() if self._one_thread else nullcontext():
            for update, pool in enumerate(self._recipe.cycle):
                # Entered for each update: until it is left, autocast keeps its copies of the
                # weights, which the update changes.
                with matrix_precision(self._recipe.precision, self._device):
                    loss = self._update(pool, update)
                self._losses[pool].append(loss)
        self._steps += 1

    def _update(self, pool: str, update: int) -> Tensor:
        """Update the parameters with one batch; returns the loss of the batch."""
        counters = (self._recipe.seed, self._steps, update)
        generator = generator_at(*counters, self._device)
        with _seeded(seed_at(*counters, DROPOUT), self._device):
            if self._model.has_own_loss:
                loss = self._model.training_loss(self._recipe.batch_size, generator)
            else:
                batch = self._samplers[pool].draw(generator)
                loss = batch_loss(
                    self._model,
                    self._plans[pool],
                    batch,
                    self._recipe.adversarial_temperature,
                )
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self._recipe.idle_weights == "drift":
            for parameter in self._model.parameters():
                if parameter.requires_grad and parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
        self._optimizer.step()
        return loss.detach()

    def take_loss(self) -> dict[str, float]:
        """The mean loss of each pool since the last call; only this waits for the device."""
        means = {
            pool: float(torch.stack(losses).mean())
            for pool, losses in self._losses.items()
            if losses
        }
        for losses in self._losses.values():
            losses.clear()
        return means

    def reset_moments(self) -> None:
        """Forget Adam's moments and its count of updates."""
        self._optimizer = self._new_optimizer()

    def state(self) -> dict[str, Tensor]:
        """Adam's moments by parameter name, and the number of steps done."""
        state = {"steps": torch.tensor(self._steps)}
        for name, parameter in self._model.named_parameters():
            for key, value in self._optimizer.state.get(parameter, {}).items():
                state[f"{name}:{key}"] = value.detach().clone()
        return state

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from what `state` returned."""
        self._steps = int(state["steps"])
        self._optimizer = self._new_optimizer()
        parameters = dict(self._model.named_parameters())
        for entry, value in state.items():
            name, separator, key = entry.rpartition(":")
            if separator:
                # Adam's step counter is on the parameter's device or on the CPU; it accepts both.
                self._optimizer.state[parameters[name]][key] = value.to(self._device, copy=True)

    def _new_optimizer(self) -> torch.optim.Adam:
        # `fused` makes one pass over each table instead of a dozen. Sparse gradients of the used
        # rows would save nothing, since Adam's moments move every row.
        return torch.optim.Adam(self._model.parameters(), lr=self._recipe.learning_rate, fused=True)


def batch_loss(
    model: QueryModel, plan: Plan, batch: Batch, adversarial_temperature: float = 0.0
) -> Tensor:
    """The loss of a batch, a differentiable scalar."""
    region = embed(model, plan, batch.anchors, batch.relations)
    candidates = torch.cat([batch.positives, batch.negatives], dim=1)
    positives, negatives = model.logits(region, candidates).split(
        [batch.positives.shape[1], batch.negatives.shape[1]], dim=1
    )
    return negative_sampling_loss(positives, negatives, batch.weights, adversarial_temperature)


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread in torch during the block, and in code that asks torch for their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's default generators during the block, and restore their state after it."""
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
