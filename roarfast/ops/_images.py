"""Image layouts of the fills: where the channels are, and how a mask belongs to an image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from roarfast.ops import _check as check
from roarfast.ops._arrays import LAYOUT_CODES, A

LAYOUTS = {"NCHW": 3, "NHWC": 3, "NHW": 2, "NF": 1}  # trailing axes of one image; leading axes are free


class Layout(NamedTuple):
    """n images of c channels and p pixels, as the kernels want it."""

    n: int
    c: int
    p: int
    layout_code: int
    per_feature: bool


def channels_hint(mask_shape: Sequence[int], x_shape: Sequence[int]) -> str:
    """The end of an error about a mask or codes that must be per pixel: what to do if they were made of channels."""
    if len(mask_shape) != len(x_shape):
        return ""
    return ". If its maps had channels, aggregate channels first: rf.removal_mask(rf.aggregate_channels(a), drop)"


def parse(x_shape: Sequence[int], layout: str, mask_shape: Sequence[int], mask_name: str = "mask") -> Layout:
    """The layout of images x and their masks (or maps), which are per pixel or of the shape of x."""
    check.one_of("layout", layout, LAYOUTS)
    x_shape, mask_shape = tuple(x_shape), tuple(mask_shape)
    ndim = LAYOUTS[layout]
    if len(x_shape) < ndim:
        others = ", ".join(repr(name) for name, size in LAYOUTS.items() if size <= len(x_shape))
        raise ValueError(
            f"x must be [..., {', '.join(layout[1:])}] for layout={layout!r}, got shape {x_shape}"
            + (f"; layouts that fit: {others}" if others else "")
        )
    leading, image = x_shape[: len(x_shape) - ndim], x_shape[len(x_shape) - ndim :]
    channel_axis = {"NCHW": 0, "NHWC": 2}.get(layout)
    pixels = image if channel_axis is None else image[:channel_axis] + image[channel_axis + 1 :]
    c = 1 if channel_axis is None else image[channel_axis]
    if mask_shape == x_shape:
        per_feature = channel_axis is not None
    elif mask_shape == (*leading, *pixels):
        per_feature = False
    else:
        allowed = f"{(*leading, *pixels)}" + (
            "" if channel_axis is None else f" (per pixel) or {x_shape} (per feature)"
        )
        raise ValueError(
            f"{mask_name} must have shape {allowed} for x of shape {x_shape}, got {mask_shape}{channels_hint(mask_shape, x_shape)}"
        )
    return Layout(math.prod(leading), c, math.prod(pixels), LAYOUT_CODES.get(layout, 0), per_feature)


def chw(shape: Sequence[int], layout: str) -> tuple[int, int, int]:
    """Channels, rows and columns of `[N, C, H, W]` or `[N, H, W, C]`, none of them empty."""
    c, h, w = shape[1:] if layout == "NCHW" else (shape[3], shape[1], shape[2])
    if min(c, h, w) < 1:
        raise ValueError(f"images must have at least one channel, row and column, got shape {tuple(shape)}")
    return int(c), int(h), int(w)


def permute(a: A, *order: int) -> A:
    """The axes of an array or tensor in another order."""
    return a.transpose(order) if isinstance(a, np.ndarray) else a.permute(order)
