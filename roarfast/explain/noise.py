"""Noisy copies of images, the same for a sample in whatever batch it is."""

from __future__ import annotations

import torch
from torch import Tensor

from roarfast.explain.options import Options
from roarfast.ops.philox_normal import philox_normal


def noise_level(x: Tensor, options: Options) -> Tensor:
    """Standard deviation of the noise for each image, `[N, 1, 1, 1]`."""
    shape = (x.shape[0], 1, 1, 1)
    if options.noise_absolute:
        return x.new_full(shape, options.noise)
    if options.input_range is not None:
        low, high = options.input_range
        return x.new_full(shape, options.noise * (high - low))
    flat = x.flatten(1)
    return ((flat.amax(1) - flat.amin(1)) * options.noise).reshape(shape)


def noisy_copies(x: Tensor, level: Tensor, index: Tensor, seed: int, first: int, count: int) -> Tensor:
    """Copies `first` to `first + count` of images `[N, C, H, W]`: `[count, N, C, H, W]`.

    Copy j of sample i gets draw j of `roarfast.philox_normal` for (seed, i).
    """
    copies = torch.empty((count, *x.shape), dtype=torch.float32, device=x.device)
    for j in range(count):
        philox_normal(index, x.shape[1:], seed, first + j, out=copies[j])
    return copies.to(x.dtype).mul_(level).add_(x)
