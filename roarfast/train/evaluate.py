"""Accuracy and loss of a model on a dataset."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from roarfast._temperature import TEMPERATURES, Scaled, fit, losses_at
from roarfast.data.device import DeviceDataset, Transform
from roarfast.train.distributed import World


@dataclass(frozen=True)
class Evaluation:
    """How a model does on a dataset.

    Attributes:
        accuracy: In [0, 1].
        loss: Mean cross entropy, without label smoothing.
        count: How many images there are.
        true_class_probability: Mean softmax probability of the label.
        scaled: The loss of one half of the images at the temperature that fits the other one.
    """

    accuracy: float
    loss: float
    count: int
    true_class_probability: float = 0.0
    scaled: Scaled | None = None


@torch.no_grad()
def evaluate(
    model: nn.Module,
    data: DeviceDataset,
    transform: Transform | None = None,
    *,
    batch_size: int = 500,
    autocast: str = "float32",
    world: World | None = None,
    halves: npt.NDArray[np.bool_] | None = None,
) -> Evaluation:
    """Tests a model in evaluation mode, without augmentation unless the transform asks for it; its mode is restored.

    Args:
        model: On the device of `data`.
        data: The images.
        transform: Normalisation and removal.
        batch_size: Does not change the result beyond rounding.
        autocast: `"float32"`, or the dtype of CUDA autocast.
        world: Several processes share the work.
        halves: bool `[N]`: fits a temperature on the images that are True and tries it on the others (`scaled`).

    Returns:
        Accuracy, loss and the number of images.

    Example:
        >>> from roarfast.data import load
        >>> data = DeviceDataset(load("shapes", "test", n=20), "cpu")
        >>> evaluate(nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 10)), data).count
        20
    """
    world = world or World()
    n = len(data)
    rows = [np.arange(i, min(i + batch_size, n)) for i in range(0, n, batch_size)][world.rank :: world.size]
    was_training = model.training
    model.eval()
    totals = torch.zeros(3, dtype=torch.float64, device=data.device)
    scaled = torch.zeros(2, len(TEMPERATURES), dtype=torch.float64, device=data.device)
    try:
        for some, (x, y) in zip(rows, data.batches(rows, transform, reuse=data.device.type == "cpu")):
            with autocast_to(autocast):
                logits = model(x)
            totals[0] += (logits.argmax(1) == y).sum()
            log_probability = F.log_softmax(logits.float(), 1).gather(1, y[:, None])
            totals[1] -= log_probability.sum()
            totals[2] += log_probability.exp().sum()
            if halves is not None:
                first = torch.from_numpy(halves[some]).to(data.device)
                losses = losses_at(logits, y).double()
                scaled += torch.stack([losses[first].sum(0), losses[~first].sum(0)])
    finally:
        model.train(was_training)
    correct, loss, probability = (value / max(n, 1) for value in world.sum(totals).tolist())
    if halves is None:
        return Evaluation(correct, loss, n, probability)
    counts = np.array([[halves.sum()], [(~halves).sum()]])
    with np.errstate(invalid="ignore", divide="ignore"):
        means = world.sum(scaled).cpu().numpy() / counts
    return Evaluation(correct, loss, n, probability, fit(means))


def autocast_to(precision: str) -> contextlib.AbstractContextManager[None]:
    """CUDA autocast to a dtype, or nothing for float32."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast("cuda", dtype=getattr(torch, precision))  # type: ignore[return-value]
