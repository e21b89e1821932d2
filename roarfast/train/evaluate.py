"""Accuracy and loss of a model on a dataset."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from roarfast.data.device import DeviceDataset, Transform
from roarfast.train.distributed import World


@dataclass(frozen=True)
class Evaluation:
    """How a model does on a dataset."""

    accuracy: float
    loss: float  # mean cross entropy, without label smoothing
    count: int
    true_class_probability: float = 0.0  # mean softmax probability of the label


@torch.no_grad()
def evaluate(
    model: nn.Module,
    data: DeviceDataset,
    transform: Transform | None = None,
    *,
    batch_size: int = 500,
    autocast: str = "float32",
    world: World | None = None,
) -> Evaluation:
    """Evaluate in eval mode, without augmentation unless the transform asks for it; the model's mode is restored.

    Args:
        model: on the device of `data`.
        data: the images.
        transform: normalisation and removal.
        batch_size: does not change the result beyond rounding.
        autocast: `"float32"`, or the dtype of CUDA autocast.
        world: several processes share the work.

    Returns:
        Accuracy, loss and the number of images.
    """
    world = world or World()
    n = len(data)
    rows = [np.arange(i, min(i + batch_size, n)) for i in range(0, n, batch_size)][world.rank :: world.size]
    was_training = model.training
    model.eval()
    totals = torch.zeros(3, dtype=torch.float64, device=data.device)
    try:
        for x, y in data.batches(rows, transform, reuse=data.device.type == "cpu"):
            with autocast_to(autocast):
                logits = model(x)
            totals[0] += (logits.argmax(1) == y).sum()
            log_probability = F.log_softmax(logits.float(), 1).gather(1, y[:, None])
            totals[1] -= log_probability.sum()
            totals[2] += log_probability.exp().sum()
    finally:
        model.train(was_training)
    correct, loss, probability = (value / max(n, 1) for value in world.sum(totals).tolist())
    return Evaluation(correct, loss, n, probability)


def autocast_to(precision: str) -> contextlib.AbstractContextManager[None]:
    """CUDA autocast to a dtype, or nothing for float32."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast("cuda", dtype=getattr(torch, precision))  # type: ignore[return-value]
