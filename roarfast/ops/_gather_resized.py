"""`gather_batch(scale=...)`: crops of random size and shape, resampled. Its own kernel: no padding, and pixels are mixed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from roarfast._types import Numpy
from roarfast.ops import _check as check
from roarfast.ops._arrays import DTYPE_CODES, LAYOUT_CODES, A, Arrays
from roarfast.ops._images import chw, permute
from roarfast.ops._op import define_op, is_tensor

if TYPE_CHECKING:
    import torch

MAX_SIDE = 16384  # kMaxResizedSide in csrc/common/resized_crop.h
_RATIO = (3 / 4, 4 / 3)
_RATIOS = (1e-3, 1e3)


def box_range(scale: Sequence[float] | None, ratio: Sequence[float] | None, pad: int) -> list[float] | None:
    """Low and high of share and ratio, and the logarithm of the latter's range: what the kernel takes. None without `scale`."""
    if scale is None:
        if ratio is not None:
            raise ValueError(f"ratio needs scale, the share of the area that a crop has, got ratio={ratio!r}")
        return None
    low, high = _pair("scale", scale, 0.0, 1.0)
    if low <= 0:
        raise ValueError(f"scale must be two rising numbers in (0, 1], got {scale!r}")
    if pad:
        raise ValueError(f"scale cuts crops from the image itself: pad must be 0, got {pad}")
    thin, wide = _pair("ratio", _RATIO if ratio is None else ratio, *_RATIOS)
    return [low, high, thin, wide, math.log(wide / thin)]


def _pair(name: str, value: Sequence[float], low: float, high: float) -> tuple[float, float]:
    listed = [check.number(name, v, low, high) for v in check.entries(name, value, "two numbers (low, high)")]
    if len(listed) != 2 or listed[0] > listed[1]:
        raise ValueError(f"{name} must be two rising numbers (low, high), got {value!r}")
    return listed[0], listed[1]


@lru_cache(maxsize=256)
def _table(numbers: tuple[float, ...]) -> Numpy:
    """Rows scale, bias, fill in units of 0..255."""
    means, stds, fills, _ = np.array(numbers).reshape(4, -1)
    table = np.stack([1.0 / (255.0 * stds), -means / stds, fills]).astype(np.float32)
    return table


@lru_cache(maxsize=256)
def _table_on(numbers: tuple[float, ...], device: torch.device) -> torch.Tensor:
    import torch

    return torch.from_numpy(_table.__wrapped__(numbers)).to(device)


def _run(
    xp: Arrays[A],
    images: A,
    index: A,
    numbers: Sequence[float],
    ids: A | None,
    codes: A | None,
    imputed: A | None,
    rates: A | None,
    layout: str,
    rate_index: int,
    keep: bool,
    out_h: int,
    out_w: int,
    box: Sequence[float],
    flip: bool,
    seed: int,
    epoch: int,
    dtype: str,
    out_layout: str,
    out: A | None = None,
) -> A:
    if out_h < 1 or out_w < 1:
        raise ValueError(f"out_h and out_w must be >= 1, got {out_h} and {out_w}")
    if len(numbers) % 4 or not numbers or len(box) != 5:
        raise ValueError(f"numbers must be 4 per channel and box 5, got {len(numbers)} and {len(box)}")
    for name, a in (("index", index), ("ids", ids), ("rate_index", rates)):
        check.operand(xp, name, a, ("int64", "int32"), tuple(index.shape))
    table = _table_on(tuple(numbers), images.device) if is_tensor(images) else _table(tuple(numbers))
    images, index = xp.contiguous(images), xp.contiguous(index, "int64")
    ids, rates = (None if a is None else xp.contiguous(a, "int64") for a in (ids, rates))
    codes, imputed = (None if a is None else xp.contiguous(a) for a in (codes, imputed))
    if len(images.shape) != 4 or len(index.shape) != 1:
        raise ValueError(
            f"images and index must be [N, C, H, W] and [B], got {tuple(images.shape)} and {tuple(index.shape)}"
        )
    n, b, (c, h, w) = images.shape[0], index.shape[0], chw(images.shape, layout)
    if b and not n:
        raise ValueError(f"index must be empty if images hold none, got {b} entries")
    check.operand(xp, "images", images, ("uint8",), tuple(images.shape))
    check.operand(xp, "numbers", table, ("float32",), (3, c))
    check.operand(xp, "codes", codes, ("uint8",), (n, h, w), (n, c, h, w))
    check.operand(xp, "imputed", imputed, ("uint8", "float16"), tuple(images.shape))
    code_channels = 1 if codes is None or len(codes.shape) == 3 else c
    imputed_dtype = DTYPE_CODES["uint8" if imputed is None else xp.dtype(imputed)]
    dense = out if out is None or out_layout == "NCHW" else permute(out, 0, 2, 3, 1)
    shape = [b, c, out_h, out_w] if out_layout == "NCHW" else [b, out_h, out_w, c]
    result = xp.output(dense, shape, dtype, images, index, table, ids, codes, imputed, rates)
    xp.call(
        images, "gather_batch_resized", images, LAYOUT_CODES[layout], n, c, h, w, index, ids, b, codes, code_channels, rate_index,
        rates, keep, imputed, imputed_dtype, xp.contiguous(table), out_h, out_w, *box, flip, seed, epoch, result,
        DTYPE_CODES[dtype], LAYOUT_CODES[out_layout],
    )  # fmt: skip
    xp.finish(result, dense)
    if out is not None:
        return out
    return result if out_layout == "NCHW" else permute(result, 0, 3, 1, 2)


def _fake(
    images: torch.Tensor,
    index: torch.Tensor,
    numbers: Sequence[float],
    ids: torch.Tensor | None,
    codes: torch.Tensor | None,
    imputed: torch.Tensor | None,
    rates: torch.Tensor | None,
    layout: str,
    rate_index: int,
    keep: bool,
    out_h: int,
    out_w: int,
    box: Sequence[float],
    flip: bool,
    seed: int,
    epoch: int,
    dtype: str,
    out_layout: str,
) -> torch.Tensor:
    import torch

    b, c = index.shape[0], images.shape[1 if layout == "NCHW" else 3]
    if out_layout == "NCHW":
        return images.new_empty((b, c, out_h, out_w), dtype=getattr(torch, dtype))
    return images.new_empty((b, out_h, out_w, c), dtype=getattr(torch, dtype)).permute(0, 3, 1, 2)


gather_resized = define_op(
    "gather_batch_resized",
    "(Tensor images, Tensor index, float[] numbers, Tensor? ids, Tensor? codes, Tensor? imputed, Tensor? rates, str layout, int rate_index, "
    "bool keep, int out_h, int out_w, float[] box, bool flip, int seed, int epoch, str dtype, str out_layout) -> Tensor",
    _run,
    _fake,
)
