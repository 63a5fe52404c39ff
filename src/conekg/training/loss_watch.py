"""The loss watch: stops a run whose loss is not finite or has collapsed.

It judges means over spans of steps, so its result does not depend on how often a run reports
its loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from conekg.errors import TrainingDivergedError


class LossWatch:
    """Watches the losses that a run reports, in the order of its steps."""

    span = 50
    """Losses are averaged over at least this many steps, as that of one batch is too noisy."""
    patience = 5
    """How many spans in a row must look collapsed before the run is stopped."""

    def __init__(self, uninformed_loss: float | None) -> None:
        """`uninformed_loss` is the loss of a model that knows nothing; None if it is unknown."""
        self._uninformed_loss = uninformed_loss
        self._has_learnt = False
        self._collapsed = 0
        self._last_step = 0
        self._total = 0.0
        self._steps = 0

    def check(self, losses: Mapping[str, float], step: int, learning_rate: float) -> None:
        """Raise `TrainingDivergedError` if a reported loss is not finite or has collapsed."""
        advice = (
            f"lower the learning rate, now {learning_rate:g} (--set training.learning_rate=...), "
            "or raise the margin (--set model.gamma=...)"
        )
        for pool, loss in losses.items():
            if not math.isfinite(loss):
                raise TrainingDivergedError(
                    f"the loss of pool {pool!r} is {loss} at step {step}",
                    hint=f"{advice}; the last checkpoint is from before this",
                )
        self.see(losses, step)
        if self._uninformed_loss is not None and losses and self._collapsed >= self.patience:
            mean = sum(losses.values()) / len(losses)
            raise TrainingDivergedError(
                f"the loss has collapsed: {mean:.4f} at step {step}, after it had been lower; "
                f"log 2 = {self._uninformed_loss:.4f} is the loss of a model that cannot tell "
                "answers from other entities",
                hint=f"{advice}; the last checkpoint may already be collapsed, but the best by "
                "validation, if there is one, is not",
            )

    def see(self, losses: Mapping[str, float], step: int) -> None:
        """Take a report without raising, such as a logged one of a run that is resumed."""
        if self._uninformed_loss is None or not losses:
            return
        steps = step - self._last_step
        self._last_step = step
        self._total += steps * sum(losses.values()) / len(losses)
        self._steps += steps
        if self._steps < self.span:
            return
        mean, spans = self._total / self._steps, self._steps // self.span
        self._total, self._steps = 0.0, 0
        self._has_learnt |= mean < 0.9 * self._uninformed_loss
        is_collapsed = self._has_learnt and mean > 0.99 * self._uninformed_loss
        self._collapsed = self._collapsed + spans if is_collapsed else 0
