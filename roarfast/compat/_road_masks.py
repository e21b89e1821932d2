"""The pixels that road_evaluation keeps: by rank of the summed, rescaled and jittered explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from roarfast._types import Numpy

if TYPE_CHECKING:
    import torch


def kept(
    explanation: Numpy,
    jitter: npt.NDArray[np.float64],
    share: float,
    most: bool,
    least_share: bool,
    image: torch.Tensor,
) -> torch.Tensor:
    """uint8 `[H, W]`, 0 = removed.

    Args:
        explanation: `[H, W, C]`.
        jitter: Added after rescaling, `[H, W]`: breaks ties.
        share: Of pixels.
        most: Remove the `share` most relevant; else the rest.
        least_share: With `most=False`: remove the `share` least relevant instead.
        image: `[C, H, W]`, for H and W.
    """
    import torch

    summed = np.sum(explanation, axis=-1)
    low, high = np.min(summed), np.max(summed)
    values = (summed - low) / (high - low + 1e-5)
    values += jitter  # in place: float32 explanations stay float32, and are ranked as such
    h, w = image.size(-2), image.size(-1)
    top = int(h * w * share)
    if least_share:
        top = h * w - top
    is_top = _top(values.reshape(-1), top)
    removed = is_top if most and not least_share else ~is_top
    return torch.from_numpy((~removed).astype(np.uint8)).reshape(h, w)


def _top(values: Numpy, count: int) -> npt.NDArray[np.bool_]:
    """The `count` largest values; which of equal ones, torch's unstable sort decides, as in the original."""
    import torch

    if count <= 0:
        return np.zeros(values.shape, np.bool_)
    if count >= values.size:
        return np.ones(values.shape, np.bool_)
    # Without a tie across the boundary no sort is needed: selection gives the same set.
    threshold = np.partition(values, values.size - count)[values.size - count]
    at_least = values >= threshold
    if int(at_least.sum()) == count:
        return at_least
    order = torch.argsort(torch.tensor(values.reshape(-1, 1)), dim=0, descending=True).flatten()
    top = np.zeros(values.shape, np.bool_)
    top[order[:count].numpy()] = True
    return top
