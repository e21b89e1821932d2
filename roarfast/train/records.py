"""What a training is told of removed pixels, and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypedDict

from torch import nn

from roarfast._temperature import Scaled
from roarfast._types import Json
from roarfast.ops.gather_batch import PerChannel


class RemovalFields(TypedDict, total=False):
    """The fields of `Transform` that say what is removed; none where nothing is."""

    rate_index: int
    keep: bool
    fill: PerChannel | None


class EpochRecord(TypedDict):
    """What the history of a training says of one epoch."""

    epoch: int
    loss: float
    accuracy: float
    images_per_second: float
    test_accuracy: float | None


@dataclass(frozen=True)
class Removal:
    """Which pixels are removed, from training and test images alike. Each `DeviceDataset` holds its codes.

    With `whole_test` the test images stay as they are, and need no codes.
    """

    rate_index: int
    keep: bool = False
    fill: PerChannel | None = None
    whole_test: bool = False

    def fields(self) -> RemovalFields:
        """As `Transform` names them."""
        return {"rate_index": self.rate_index, "keep": self.keep, "fill": self.fill}

    @property
    def of_test(self) -> Removal | None:
        """What is removed from test images."""
        return None if self.whole_test else self


def first_spelling(removal: Removal | None) -> str:
    """A removal as the first checkpoints spelled it, so that trainings under way can be resumed."""
    if removal is None:
        return "None"
    more = ", whole_test=True" if removal.whole_test else ""
    return f"Removal(j={removal.rate_index!r}, keep={removal.keep!r}, fill={removal.fill!r}{more})"


@dataclass
class TrainResult:
    """What a training leaves behind.

    Attributes:
        accuracy: Test accuracy after the last epoch: the score.
        loss: Test loss after the last epoch.
        true_class_probability: Mean probability of the label on the test set, after the last epoch.
        history: Per epoch: loss, accuracy (of training), images_per_second, and test_accuracy where it was evaluated.
        step_losses: Training loss of every step.
        timing: Seconds of data, forward_backward, evaluation and total, in this call.
        steps: Optimiser steps, over all calls.
        resumed_at: The step a checkpoint was continued from; None if it started fresh.
        recipe: As plain values.
        seed: Of weights, shuffling and augmentation.
        model: With its final weights, in evaluation mode.
        scaled: Test loss after temperature scaling, where `halves` were given.
    """

    accuracy: float
    loss: float
    true_class_probability: float
    history: list[EpochRecord]
    step_losses: list[float]
    timing: dict[str, float]
    steps: int
    resumed_at: int | None
    recipe: dict[str, Json]
    seed: int
    model: nn.Module = field(repr=False)
    scaled: Scaled | None = None
