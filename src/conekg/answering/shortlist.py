"""Shortlists by one dense product, for entity tables too large to score in full.

A cone's distance is, in each dimension, an even and 2π-periodic function of
entity minus axis. Its first Fourier harmonic c₀(h) + c₁(h)·cos(v − a) is an inner
product of 2d features, so one matrix product compares all entities with a cone; the best
of them are then scored exactly. The search is approximate; its recall is measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from conekg.answering.ranking import Ranking, rank
from conekg.graph.adjacency import IntArray
from conekg.model.cone import Cone
from conekg.model.interface import Region

SHORTLIST_SIZE = 2_000
"""The least length of a shortlist, whose entities are scored exactly. It is 20 times the number of
answers wanted if that is more, and longer by the number of skipped entities."""

_CHUNK = 1 << 18
"""Entities compared at once, which bounds the memory of the products."""


class ShortlistSearch:
    """A search by shortlist, its candidates scored exactly; see `search.Search`."""

    def __init__(self, model: Cone) -> None:
        self._model = model
        self._shortlist = HarmonicShortlist(model)
        self.recall = measure_recall(model, self._shortlist)
        """As measured on this model."""

    def top(self, region: Region, counts: Sequence[int], skip: Sequence[IntArray]) -> list[Ranking]:
        """See `search.Search`."""
        found: dict[int, Ranking] = {}
        rows_of: dict[int, list[int]] = {}
        for row, (count, skipped) in enumerate(zip(counts, skip, strict=True)):
            size = max(SHORTLIST_SIZE, 20 * count)
            if self._model.num_entities - len(skipped) <= size:
                # No more entities are left than a shortlist would hold: score all of them.
                left = np.delete(np.arange(self._model.num_entities), skipped)
                ids = torch.from_numpy(left).to(region[0].device)
                own = tuple(part[row : row + 1] for part in region)
                found[row] = rank(ids, self._model.logits(own, ids[None])[0], count)
            else:
                rows_of.setdefault(size + len(skipped), []).append(row)
        for size, rows in rows_of.items():
            part = tuple(component[rows] for component in region)
            candidates = self._shortlist.candidates(part, size)
            logits = self._model.logits(part, candidates)
            for row, ids, scores in zip(rows, candidates, logits, strict=True):
                kept = ~torch.isin(ids, torch.as_tensor(skip[row], device=ids.device))
                found[row] = rank(ids[kept], scores[kept], counts[row])
        return [found[row] for row in range(len(counts))]


class HarmonicShortlist:
    """The entity features of a ConE model, copied from its entity table.

    Always in single precision: they only select the entities that are then scored exactly.
    """

    def __init__(self, model: Cone) -> None:
        self.center_weight = model.config.center_weight
        self.num_entities = model.num_entities
        device = model.device
        self.features = torch.empty(
            model.num_entities, 2 * model.dim, dtype=torch.float32, device=device
        )
        with torch.inference_mode():
            for ids in torch.arange(model.num_entities, device=device).split(_CHUNK):
                angle = model.points(ids).float()
                self.features[ids] = torch.cat([torch.cos(angle), torch.sin(angle)], dim=-1)

    def candidates(self, region: Region, count: int) -> Tensor:
        """[rows, count] the entities whose first harmonic is nearest, in no particular order."""
        axis, half_aperture = (part.float() for part in region)
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


def measure_recall(model: Cone, shortlist: HarmonicShortlist) -> float:
    """The share of the true ten best entities that a shortlist holds.

    Measured on 16 one-hop queries, evenly spaced over the model's entities and relations.
    """
    queries, count = 16, min(10, model.num_entities)
    device = model.device
    heads = torch.linspace(0, model.num_entities - 1, queries, device=device).long()
    relations = torch.linspace(0, model.num_relations - 1, queries, device=device).long()
    with torch.inference_mode():
        region = model.project(model.anchor(heads), relations)
        candidates = shortlist.candidates(region, SHORTLIST_SIZE)
        found = 0
        for row in range(queries):
            logits = model.logits_of_all(tuple(part[row : row + 1] for part in region))
            true = logits[0].topk(count).indices
            found += int(torch.isin(true, candidates[row]).sum())
    return found / (queries * count)


def first_harmonic(half_aperture: Tensor, center_weight: float) -> Tensor:
    """c₁(h) = 2/π ∫₀^π (d_out + λ·d_in) cos δ dδ, the weight of cos δ in ConE's distance.

    With d_out = sin((δ−h)/2) beyond h and d_in = sin(min(δ, h)/2) both integrals are
    elementary. At most zero: farther entities have a smaller cosine and a larger distance.
    Absolute values, as in `cone_distance`: a half aperture beyond π is as wide as one below.
    """
    sine, cosine = torch.sin(half_aperture / 2).abs(), torch.cos(half_aperture / 2).abs()
    sine_h, cosine_h = 2 * sine * cosine, cosine.square() - sine.square()
    outside = -(2 / 3) * (sine + cosine_h)
    cosine_of_three_halves = cosine_h * cosine - sine_h * sine
    inside = cosine - cosine_of_three_halves / 3 - 2 / 3 - sine * sine_h
    return (2 / math.pi) * (outside + center_weight * inside)
