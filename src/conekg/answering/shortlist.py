"""Shortlists by one dense product, for entity tables too large to score in full.

A cone's distance is, in each dimension, an even and 2π-periodic function of
entity minus axis. Its first Fourier harmonic c₀(h) + c₁(h)·cos(v − a) is an inner
product of 2d features, so all entities are compared with a matrix product; the best
of them are then scored exactly. Approximate: how much it misses is measured.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from conekg.model.cone import Cone
from conekg.model.interface import Region

_CHUNK = 1 << 18
"""Entities compared at once, which bounds the memory of the products."""


class HarmonicShortlist:
    """The entity features of a ConE model; a snapshot of its entity table."""

    def __init__(self, model: Cone) -> None:
        self.center_weight = model.config.center_weight
        self.num_entities = model.num_entities
        device = model.entity.device
        self.features = torch.empty(model.num_entities, 2 * model.dim, device=device)
        with torch.inference_mode():
            for ids in torch.arange(model.num_entities, device=device).split(_CHUNK):
                angle = model.points(ids)
                self.features[ids] = torch.cat([torch.cos(angle), torch.sin(angle)], dim=-1)

    def candidates(self, region: Region, count: int) -> Tensor:
        """[rows, count] the entities whose first harmonic is nearest, in no particular order."""
        axis, half_aperture = region
        slope = first_harmonic(half_aperture, self.center_weight)
        weights = torch.cat([slope * torch.cos(axis), slope * torch.sin(axis)], dim=-1)
        count = min(count, self.num_entities)
        best_values: list[Tensor] = []
        best_ids: list[Tensor] = []
        for start in range(0, self.num_entities, _CHUNK):
            part = self.features[start : start + _CHUNK]
            values, places = (weights @ part.T).topk(min(count, len(part)), largest=False)
            best_values.append(values)
            best_ids.append(places + start)
        order = torch.cat(best_values, dim=1).topk(count, largest=False).indices
        return torch.cat(best_ids, dim=1).gather(1, order)


def first_harmonic(half_aperture: Tensor, center_weight: float) -> Tensor:
    """c₁(h) = 2/π ∫₀^π (d_out + λ·d_in) cos δ dδ, the weight of cos δ in ConE's distance.

    With d_out = sin((δ−h)/2) beyond h and d_in = sin(min(δ, h)/2) both integrals are
    elementary. At most zero: farther entities have a smaller cosine and a larger distance.
    """
    sine, cosine = torch.sin(half_aperture / 2), torch.cos(half_aperture / 2)
    outside = -(2 / 3) * (sine + torch.cos(half_aperture))
    inside = cosine - torch.cos(1.5 * half_aperture) / 3 - 2 / 3 - sine * torch.sin(half_aperture)
    return (2 / math.pi) * (outside + center_weight * inside)
