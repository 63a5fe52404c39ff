"""Distances from cones to their own candidates on a CPU, with gradients, compiled by numba.

Training on a CPU spends its time here. In plain PyTorch every term of the distance is a
tensor of rows × candidates × dimensions, written and read a dozen times; here each entity
row is read once forward and once backward, and no such tensor exists. Trigonometry is done
once per entity and once per region. `model.cone.cone_distance` is the plain reference.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import torch
from torch import Tensor

from conekg.model.kernels.processor import FloatArray, compiled
from conekg.model.kernels.scoring import thread_pool

DIMENSIONS_A_TASK = 64
"""Dimensions that a thread processes at a time. The split is fixed, so that sums, and with them a
whole training run, do not depend on the number of threads."""

_ZERO, _HALF = np.float32(0), np.float32(0.5)


def cone_candidate_distance(
    angles: Tensor, places: Tensor, axis: Tensor, half_aperture: Tensor, center_weight: float
) -> Tensor:
    """[rows, candidates] ConE's distance from each cone to its candidates.

    `angles` [entities, dim]; `places` [rows, candidates], the candidates' rows of it; `axis` and
    `half_aperture` [rows, dim]. Float32 on the CPU; differentiable by all three, once only.
    IndexError for a place that is no row of `angles`.
    """
    # The compiled passes check no index: they would read, and write, beyond the end of a table.
    if places.numel() and not 0 <= int(places.min()) <= int(places.max()) < len(angles):
        raise IndexError(f"index out of range: places must be at least 0 and below {len(angles)}")
    result: Tensor = _ConeCandidateDistance.apply(  # type: ignore[no-untyped-call]
        angles, places, axis, half_aperture, center_weight
    )
    return result


class _ConeCandidateDistance(torch.autograd.Function):
    """The compiled forward and backward passes as one differentiable operation."""

    @staticmethod
    def forward(
        context: Any,
        angles: Tensor,
        places: Tensor,
        axis: Tensor,
        half_aperture: Tensor,
        center_weight: float,
    ) -> Tensor:
        """The distances; sines and cosines of half angles are kept for the backward pass."""
        # The distance has period 2π in h, and the passes need sin(h/2) >= 0, so h in [0, 2π].
        # Dropout stretches half apertures beyond π, and complements of such cones are below zero.
        half_aperture = half_aperture.detach().remainder(2.0 * math.pi)
        parts = [_half_sine_cosine(part) for part in (angles, axis, half_aperture)]
        arrays = [part.numpy() for pair in parts for part in pair]
        where = places.numpy()
        weight = np.float32(center_weight)
        context.arrays, context.where, context.weight = arrays, where, weight
        partial = np.empty((_num_tasks(axis.shape[1]), *places.shape), dtype=np.float32)
        _over_dimensions(_distance, axis.shape[1], *arrays, where, weight, partial)
        return torch.from_numpy(partial.sum(axis=0))

    @staticmethod
    def backward(context: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients by entity angles, axes and half apertures."""
        if torch.is_grad_enabled():  # with create_graph: the passes would count as constants
            raise RuntimeError(
                "the compiled distances of ConE have no second derivatives; take a model in float64"
            )
        arrays, where = context.arrays, context.where
        by_angle, by_axis, by_aperture = (
            np.zeros_like(arrays[0]),
            np.zeros_like(arrays[2]),
            np.zeros_like(arrays[4]),
        )
        coefficients = grad.contiguous().numpy()
        _over_dimensions(
            _gradients,
            by_axis.shape[1],
            *arrays,
            where,
            context.weight,
            coefficients,
            by_angle,
            by_axis,
            by_aperture,
        )
        return (
            torch.from_numpy(by_angle),
            None,
            torch.from_numpy(by_axis),
            torch.from_numpy(by_aperture),
            None,
        )


def _half_sine_cosine(angle: Tensor) -> tuple[Tensor, Tensor]:
    half = angle.detach() * 0.5
    return torch.sin(half), torch.cos(half)


def _num_tasks(dim: int) -> int:
    return -(-dim // DIMENSIONS_A_TASK)


def _over_dimensions(kernel: Any, dim: int, *arguments: Any) -> None:
    """Run a kernel over every range of dimensions, on as many threads as torch uses."""
    threads = torch.get_num_threads()
    ranges = [
        (task, task * DIMENSIONS_A_TASK, min((task + 1) * DIMENSIONS_A_TASK, dim))
        for task in range(_num_tasks(dim))
    ]
    if threads == 1 or len(ranges) == 1:
        for each in ranges:
            kernel(*arguments, *each)
        return
    # Of n threads, n − 1 belong to the pool. The calling thread computes every n-th range itself.
    pending = [
        thread_pool(os.getpid(), threads).submit(kernel, *arguments, *each)
        for index, each in enumerate(ranges)
        if index % threads
    ]
    for each in ranges[::threads]:
        kernel(*arguments, *each)
    for future in pending:
        future.result()


@compiled
def _distance(
    sine: FloatArray,
    cosine: FloatArray,
    axis_sine: FloatArray,
    axis_cosine: FloatArray,
    aperture_sine: FloatArray,
    aperture_cosine: FloatArray,
    places: Any,
    center_weight: np.float32,
    partial: FloatArray,
    task: int,
    low: int,
    high: int,
) -> None:
    """Fill `partial[task]` [rows, candidates] with the distances in dimensions `low` to `high`.

    The formula is that of `model.cone.cone_distance` (ConE, Section 4.3).
    """
    for row in range(places.shape[0]):
        sa, ca = axis_sine[row, low:high], axis_cosine[row, low:high]
        sh, ch = aperture_sine[row, low:high], aperture_cosine[row, low:high]
        for column in range(places.shape[1]):
            place = places[row, column]
            sv, cv = sine[place, low:high], cosine[place, low:high]
            outside = _ZERO
            inside = _ZERO
            for j in range(high - low):
                x = abs(sv[j] * ca[j] - cv[j] * sa[j])
                y = abs(cv[j] * ca[j] + sv[j] * sa[j])
                outside += max(_ZERO, x * abs(ch[j]) - y * sh[j])
                inside += min(x, sh[j])
            partial[task, row, column] = outside + center_weight * inside


@compiled
def _gradients(
    sine: FloatArray,
    cosine: FloatArray,
    axis_sine: FloatArray,
    axis_cosine: FloatArray,
    aperture_sine: FloatArray,
    aperture_cosine: FloatArray,
    places: Any,
    center_weight: np.float32,
    coefficients: FloatArray,
    by_angle: FloatArray,
    by_axis: FloatArray,
    by_aperture: FloatArray,
    task: int,
    low: int,
    high: int,
) -> None:
    """Add the gradients of dimensions `low` to `high` to the three outputs.

    With s = sin(δ/2), c = cos(δ/2): d|s|/dδ = sign(s)·c/2 and d|c|/dδ = −sign(c)·s/2.
    """
    for row in range(places.shape[0]):
        sa, ca = axis_sine[row, low:high], axis_cosine[row, low:high]
        sh, ch = aperture_sine[row, low:high], aperture_cosine[row, low:high]
        axis_sum, aperture_sum = by_axis[row, low:high], by_aperture[row, low:high]
        for column in range(places.shape[1]):
            place = places[row, column]
            factor = coefficients[row, column] * _HALF
            sv, cv = sine[place, low:high], cosine[place, low:high]
            angle_sum = by_angle[place, low:high]
            for j in range(high - low):
                s = sv[j] * ca[j] - cv[j] * sa[j]
                c = cv[j] * ca[j] + sv[j] * sa[j]
                x, y, wide = abs(s), abs(c), abs(ch[j])
                is_outside = x * wide > y * sh[j]
                is_near = x < sh[j]
                x_slope = c if s > _ZERO else -c
                y_slope = -s if c > _ZERO else s
                by_delta = (x_slope * wide - y_slope * sh[j]) if is_outside else _ZERO
                by_delta += center_weight * x_slope if is_near else _ZERO
                wide_slope = -sh[j] if ch[j] > _ZERO else sh[j]
                by_half = (x * wide_slope - y * ch[j]) if is_outside else _ZERO
                by_half += _ZERO if is_near else center_weight * ch[j]
                angle_sum[j] += factor * by_delta
                axis_sum[j] -= factor * by_delta
                aperture_sum[j] += factor * by_half
