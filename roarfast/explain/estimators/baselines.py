"""Estimators that ask no model: Sobel edges, random pixels, random blocks."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

import roarfast as rf
from roarfast import _philox as philox
from roarfast.explain.options import Options
from roarfast.explain.record import Estimator

# Far from the blocks that roarfast.block_random draws from in the same domain.
_BLOCK_CENTRES = 1 << 40


def sobel_map(x: Tensor, axis: int | str) -> Tensor:
    """Sobel derivative of the channel mean, `[N, C, H, W]` to `[N, 1, H, W]`: along an axis, or the magnitude."""
    grey = x.mean(1, keepdim=True)
    if axis == "magnitude":
        return torch.hypot(rf.sobel(grey, axis=-2), rf.sobel(grey, axis=-1))
    return rf.sobel(grey, axis=int(axis))


def random_map(index: Tensor, size: tuple[int, int], seed: int) -> Tensor:
    """PixelRandom, `[N, 1, H, W]`: a uniform number per pixel."""
    maps: Tensor = rf.pixel_random((len(index), *size), seed=seed, index=index, device=index.device)
    return maps.unsqueeze(1)


def nested_block_map(index: Tensor, size: tuple[int, int], seed: int) -> Tensor:
    """BlockRandom for all drop rates at once, `[N, 1, H, W]` in [0, 1].

    The pixels above any threshold form one rectangle with the image's aspect ratio, always inside the image. Its
    position is uniform: the rectangle of relative side s has its corner at (1 - s) p for a uniform point p, so the
    rectangles of growing s are nested, and a pixel's value is 1 minus the smallest s that reaches it.
    """
    samples = index.cpu().numpy().astype(np.uint64)
    words = philox.blocks(seed, samples, np.full(index.shape, _BLOCK_CENTRES), philox.BLOCK_RANDOM)
    # Half a grid step up: a corner never falls on the border, where the division below would be by zero.
    corner = ((words[:, :2] >> 8).astype(np.float64) + 0.5) * 2.0**-24  # [N, 2]
    reach = []
    for axis, extent in enumerate(size):
        centre = (np.arange(extent) + 0.5) / extent  # [extent]
        p = corner[:, axis, None]
        reach.append(np.where(centre < p, 1 - centre / p, (centre - p) / (1 - p)))
    smallest = np.maximum(reach[0][:, :, None], reach[1][:, None, :])
    return torch.from_numpy((1 - smallest).astype(np.float32)).to(index.device).unsqueeze(1)


def _size(x: Tensor) -> tuple[int, int]:
    return int(x.shape[-2]), int(x.shape[-1])


def _sobel(x: Tensor, index: Tensor, seed: int, options: Options) -> Tensor:
    return sobel_map(x, options.sobel_axis)


def _rand(x: Tensor, index: Tensor, seed: int, options: Options) -> Tensor:
    return random_map(index, _size(x), seed)


def _nested_block(x: Tensor, index: Tensor, seed: int, options: Options) -> Tensor:
    if options.block_drop is None:
        return nested_block_map(index, _size(x), seed)
    mask = rf.block_random((len(index), *_size(x)), options.block_drop, seed=seed, index=index, device=index.device)
    return mask.float().unsqueeze(1)  # type: ignore[no-any-return]


ESTIMATORS = (
    Estimator("sobel", "edges of the image", of_image=_sobel, one_channel=True, options=("sobel_axis",)),
    Estimator("rand", "a random number per pixel", of_image=_rand, one_channel=True, random=True),
    Estimator(
        "nested_block",
        "nested random rectangles",
        of_image=_nested_block,
        one_channel=True,
        random=True,
        options=("block_drop",),
    ),
)
