"""A model made used to missing pixels: fine-tuned under random removal, for scores that remove few of them."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

import roarfast as rf
from roarfast._types import Array
from roarfast.metrics.inputs import Integers, PerChannel, integers, read_inputs


def finetune(
    model: nn.Module,
    images: Array,
    labels: Integers,
    *,
    beta: float = 0.1,
    epochs: int = 1,
    lr: float = 1e-4,
    batch_size: int = 64,
    layout: str | None = None,
    mean: PerChannel = None,
    std: PerChannel = None,
    normalized: bool | None = None,
    seed: int = 0,
) -> nn.Module:
    """A copy of a model, trained further on images of which a random share of up to `beta` of the pixels is missing.

    F-Fidelity (Zheng et al., 2024) removes at most as many, so that what it shows the model is nothing new to it. Missing pixels
    have the mean value of each channel (0 in normalised units, where `mean` is given).

    Args:
        model: Left as it is.
        images: Training images, series or features, as in `evaluate`; not those that are scored.
        labels: Their classes, int `[N]`.
        beta: Largest share of missing pixels, in (0, 1].
        epochs: Passes over the images.
        lr: Learning rate of Adam.
        batch_size: Images per step.
        layout: As in `evaluate`, as are the next three.
        mean: See there.
        std: See there.
        normalized: See there.
        seed: Of order and removal.

    Example:
        >>> net = nn.Sequential(nn.Flatten(), nn.Linear(12, 2))
        >>> tuned = finetune(net, torch.rand(8, 3, 2, 2), torch.arange(8) % 2)
        >>> tuned is net, tuned.training
        (False, False)
    """
    if not 0 < beta <= 1:
        raise ValueError(f"beta must be in (0, 1], got {beta!r}")
    for name, count in (("epochs", epochs), ("batch_size", batch_size)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise ValueError(f"{name} must be an integer >= 1, got {count!r}")
    if not lr > 0:
        raise ValueError(f"lr must be > 0, got {lr!r}")
    inputs = read_inputs(images, layout=layout, mean=mean, std=std, normalized=normalized)
    truth = integers("labels", labels, len(inputs))
    tuned = copy.deepcopy(model).train()
    place = next((p.device for p in tuned.parameters()), torch.device("cpu"))
    optimizer = torch.optim.Adam([p for p in tuned.parameters() if p.requires_grad], lr=lr)
    column = (1, -1, 1, 1)
    means, stds, center = (torch.tensor(v).reshape(column) for v in (inputs.mean, inputs.std, inputs.center))
    rng = torch.Generator().manual_seed(seed)
    for epoch in range(epochs):
        for rows in torch.randperm(len(inputs), generator=rng).split(batch_size):
            pixels = inputs.pixels[rows].cpu()
            planes = pixels.permute(0, 3, 1, 2).float() / 255 if inputs.whole_numbers else pixels
            gone = _missing(len(rows), inputs.map_shape, beta, (seed + epoch) % 2**63, rows, rng)
            x = (torch.where(gone[:, None], center, planes) - means) / stds
            optimizer.zero_grad()
            nn.functional.cross_entropy(tuned(inputs.for_model(x).to(place)), truth[rows].to(place)).backward()
            optimizer.step()
    return tuned.eval()


def _missing(n: int, shape: tuple[int, int], beta: float, seed: int, ids: Tensor, rng: torch.Generator) -> Tensor:
    """Bool `[n, H, W]`: a share of the pixels of each image, uniform in [0, beta], at random places."""
    noise = torch.from_numpy(rf.pixel_random((n, *shape), seed=seed, index=ids.numpy()))
    return noise < beta * torch.rand(n, 1, 1, generator=rng)
