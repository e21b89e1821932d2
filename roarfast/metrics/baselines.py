"""Maps that know nothing of the model or the label: what an explanation must beat."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import roarfast as rf
from roarfast._types import Numpy
from roarfast.metrics.inputs import Inputs
from roarfast.metrics.maps import random_maps

NAMES = ("random", "sobel", "center", "constant")


def baseline_map(name: str, inputs: Inputs, ids: Tensor, seed: int = 0, segments: Tensor | None = None) -> Tensor:
    """A label-free map `[N, H, W]`.

    Args:
        name: `"random"` (pixels, or segments), `"sobel"` (edges), `"center"` (nearness to the middle) or `"constant"`.
        inputs: The samples.
        ids: Sample ids, which key the random maps.
        seed: Of the random maps.
        segments: int64 `[N, H, W]`, 0, 1, 2, …: pixels that go together.

    Example:
        >>> from roarfast.metrics import read_inputs
        >>> inputs = read_inputs(np.zeros((2, 3, 3, 3), np.uint8), layout="NHWC")
        >>> baseline_map("center", inputs, torch.arange(2))[0].argmax().item()
        4
    """
    n, (h, w) = len(inputs), inputs.map_shape
    if name == "random":
        return random_maps(inputs, ids, seed, segments)
    if name == "constant":
        return torch.ones((n, h, w))
    if name == "center":
        y, x = (torch.arange(size) - (size - 1) / 2 for size in (h, w))
        distance = torch.sqrt(y[:, None] ** 2 + x[None] ** 2)
        return (distance.max() - distance).expand(n, h, w).contiguous()
    if name == "sobel":
        if inputs.kind != "images":
            raise ValueError(f"the baseline 'sobel' needs images, got {inputs.kind}")
        pixels = inputs.pixels.cpu()
        grey = (pixels.float().mean(-1) if inputs.whole_numbers else pixels.float().mean(1)).contiguous()
        return torch.sqrt(rf.sobel(grey, axis=-2) ** 2 + rf.sobel(grey, axis=-1) ** 2)
    raise ValueError(f"baselines must be among {', '.join(NAMES)}, got {name!r}")


def spearman(a: Numpy, b: Numpy) -> npt.NDArray[np.float64]:
    """Spearman's rank correlation of each pair of maps `[N, ...]`, ties by mean rank; NaN for constant maps.

    Example:
        >>> spearman(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 4.0, 9.0]])).tolist()
        [1.0]
    """
    from scipy.stats import rankdata

    x, y = (rankdata(v.reshape(len(v), -1), axis=1) for v in (a, b))
    x, y = x - x.mean(1, keepdims=True), y - y.mean(1, keepdims=True)
    scale = np.sqrt((x * x).sum(1) * (y * y).sum(1))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(scale > 0, np.minimum((x * y).sum(1) / scale, 1.0), np.nan))
