"""The training loss: known answers near their query's region, drawn entities away from it."""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn.functional import logsigmoid

UNINFORMED_LOSS = math.log(2.0)
"""The least loss of a model that cannot tell answers from other entities (all logits 0)."""


def negative_sampling_loss(
    positive_logits: Tensor, negative_logits: Tensor, weights: Tensor
) -> Tensor:
    """The weighted mean of −log σ(ℓ₊) and of −log σ(−ℓ₋), half of each; a scalar.

    `positive_logits` [rows], `negative_logits` [rows, negatives], `weights` [rows]. ConE,
    Section 4.3, as it was run: queries are weighted and every negative counts alike.
    """
    positive = (weights * logsigmoid(positive_logits)).sum()
    negative = (weights * logsigmoid(-negative_logits).mean(dim=1)).sum()
    return -(positive + negative) / (2.0 * weights.sum())


def subsampling_weights(num_answers: Tensor) -> Tensor:
    """[rows] 1/√(4 + answers): queries with many answers count less, as published."""
    return (num_answers + 4.0).rsqrt()
