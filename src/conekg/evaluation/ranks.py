"""Filtered ranks by counting: how many other entities score above a hard answer.

Entities that are answers themselves, easy or hard, are not counted. Nothing is sorted,
only ranks leave the device, and memory does not grow with the number of answers. A named
policy breaks ties; every report states it.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor

from conekg.errors import ConeKGError, ConfigError

Ties = Literal["mean", "optimistic", "pessimistic"]
"""Where a hard answer ranks among non-answers of equal score: in the middle (constant scores then
give the middle rank), before them, or behind them."""

_COUNTED_AT_ONCE = 1 << 24
"""How many (answer, entity) pairs are compared at a time."""


def filtered_ranks(
    scores: Tensor,
    hard_offsets: Tensor,
    hard_values: Tensor,
    easy_offsets: Tensor,
    easy_values: Tensor,
    ties: Ties = "mean",
) -> Tensor:
    """[hard answers] the rank of each hard answer, 1 being best; float64 for half ranks.

    `scores` [rows, num_entities], larger is better; the answers of row i are
    `values[offsets[i] : offsets[i + 1]]`. All tensors are on one device.
    """
    if ties not in get_args(Ties):
        raise ConfigError(f"ties is {ties!r}; it must be {' or '.join(get_args(Ties))}", key="ties")
    if bool(scores.isnan().any()):
        raise ConeKGError(
            "the model's scores are not numbers (NaN), so nothing can be ranked",
            hint="its training diverged: train again with a lower learning rate",
        )
    hard_rows = _row_of_each(hard_offsets)
    others = _without(scores, hard_rows, hard_values, _row_of_each(easy_offsets), easy_values)
    own = scores[hard_rows, hard_values]
    chunk = max(1, _COUNTED_AT_ONCE // max(1, scores.shape[1]))
    ranks = [
        _ranks_among(others[rows], score.unsqueeze(1), ties)
        for rows, score in zip(hard_rows.split(chunk), own.split(chunk), strict=True)
    ]
    return torch.cat(ranks)


def _ranks_among(others: Tensor, own: Tensor, ties: Ties) -> Tensor:
    """[answers] 1 + the number of higher scores + the policy's share of the equal ones."""
    ranks = 1.0 + (others > own).sum(dim=1).double()
    if ties == "optimistic":
        return ranks
    equal = (others == own).sum(dim=1).double()
    return ranks + (equal / 2.0 if ties == "mean" else equal)


def _without(scores: Tensor, *rows_and_values: Tensor) -> Tensor:
    """The scores with NaN at the given places, which is neither above nor equal to any score."""
    others = scores.clone()
    for rows, values in zip(rows_and_values[::2], rows_and_values[1::2], strict=True):
        others[rows, values] = torch.nan
    return others


def _row_of_each(offsets: Tensor) -> Tensor:
    """[values] the row that each value of a ragged array belongs to."""
    rows = torch.arange(len(offsets) - 1, device=offsets.device)
    return rows.repeat_interleave(offsets.diff())
