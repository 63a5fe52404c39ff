"""The training loss: it draws answers into their query's region and drives negatives out of it."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

UNINFORMED_LOSS = math.log(2.0)
"""The least loss of a model that cannot tell answers from other entities (all logits 0)."""


def negative_sampling_loss(
    positive_logits: Tensor,
    negative_logits: Tensor,
    weights: Tensor,
    adversarial_temperature: float = 0.0,
) -> Tensor:
    """Half the weighted mean of −log σ(ℓ₊) plus half that of −log σ(−ℓ₋); a scalar.

    `positive_logits` [rows, positives], `negative_logits` [rows, negatives], `weights` [rows].
    ConE, Section 4.3, as it was run with one positive: `weights` weighs the queries, and all
    positives of a query count equally, as do all negatives. With a temperature t, a negative has
    the weight softmax(t·ℓ₋) instead (Sun et al., "RotatE", 2019), so that negatives that the model
    takes for answers count most.
    """
    positive = (weights * logsigmoid(positive_logits).mean(dim=1)).sum()
    surprise = logsigmoid(-negative_logits)
    if adversarial_temperature > 0:
        share = torch.softmax(adversarial_temperature * negative_logits.detach(), dim=1)
        of_each_query = (share * surprise).sum(dim=1)
    else:
        of_each_query = surprise.mean(dim=1)
    negative = (weights * of_each_query).sum()
    return -(positive + negative) / (2.0 * weights.sum())


def subsampling_weights(num_answers: Tensor, discount: float = 0.5) -> Tensor:
    """[rows] (4 + answers)^−discount: queries with many answers count less; by 0.5 as published."""
    return (num_answers + 4.0) ** -discount
