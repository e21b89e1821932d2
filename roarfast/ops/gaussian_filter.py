"""Gaussian filter over the last two axes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from roarfast.ops import _check as check
from roarfast.ops._arrays import DTYPE_CODES, FLOATS, A, Arrays, ArrayT, images
from roarfast.ops._border import mode_codes, mode_names
from roarfast.ops._op import define_op
from roarfast.ops._renamed import scipys

if TYPE_CHECKING:
    import torch

MAX_RADIUS, MAX_ORDER = 2**20, 64  # kMaxRadius, kMaxOrder in csrc/common/filter_args.h


@scipys("axes", "output", "input")
def gaussian_filter(
    a: ArrayT,
    sigma: float | Sequence[float],
    mode: str | Sequence[str] = "reflect",
    cval: float = 0.0,
    truncate: float = 4.0,
    radius: int | Sequence[int] | None = None,
    *,
    order: int | Sequence[int] = 0,
    out: ArrayT | None = None,
) -> ArrayT:
    """`scipy.ndimage.gaussian_filter` of each image, in one fused pass.

    The last two axes are the image, all before a batch: a 3-D array is a stack of images here, a volume in SciPy.

    Args:
        a: Maps `[..., H, W]`: float16, bfloat16 (torch), float32 or float64. float64 is computed in float64, the
            others in float32.
        sigma: Standard deviation in pixels, >= 0; one, or one per axis as (rows, columns). 0 leaves an axis alone.
        mode: Border: `"reflect"` (d c b a | a b c d | d c b a), `"mirror"`, `"nearest"`, `"wrap"` or `"constant"`.
            torchvision's "reflect" is `"mirror"` here and in SciPy. One, or one per axis.
        cval: The value beyond the border for `mode="constant"`.
        truncate: The kernel ends at `int(truncate * sigma + 0.5)` pixels, at most 2^20.
        radius: Where the kernel ends, instead of `truncate`; one, or one per axis.
        order: 0 for the filter, n for the n-th derivative of the Gaussian; one, or one per axis.
        out: Where to write the result; like `a`.

    Returns:
        The filtered maps, of the shape and dtype of `a`.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> rf.gaussian_filter(np.eye(5, dtype=np.float32), sigma=1).shape
        (5, 5)
    """
    check.images("a", a, FLOATS)
    given = (*check.per_axis("sigma", sigma), truncate, *check.per_axis("radius", radius))
    parse = _parse_cached if all(type(v) in (int, float, type(None)) for v in given) else _parse
    sigmas, radii = parse(*given)
    orders = [check.integer("order", o, 0, MAX_ORDER) for o in check.per_axis("order", order)]
    return _op(a, sigmas, radii, orders, mode_names(mode), check.number("cval", cval, finite=False), out=out)


def _parse(
    sigma_y: float, sigma_x: float, truncate: float, radius_y: int | None, radius_x: int | None
) -> tuple[list[float], list[int]]:
    sigmas = [check.number("sigma", s, low=0) for s in (sigma_y, sigma_x)]
    check.number("truncate", truncate, low=0)
    reach = [float(truncate) * s + 0.5 for s in sigmas]
    if radius_y is None and max(reach) >= MAX_RADIUS + 1:
        raise ValueError(f"sigma * truncate must be at most {MAX_RADIUS} pixels, got {max(reach) - 0.5:g}")
    radii = [
        int(end) if r is None else check.integer("radius", r, 0, MAX_RADIUS)
        for end, r in zip(reach, (radius_y, radius_x))
    ]
    return sigmas, [r if s > 0 else 0 for s, r in zip(sigmas, radii)]


_parse_cached = lru_cache(typed=True)(_parse)  # of plain numbers only: a tensor may change and stay the same key


def _run(
    xp: Arrays[A],
    a: A,
    sigma: Sequence[float],
    radius: Sequence[int],
    order: Sequence[int],
    border: Sequence[str],
    cval: float,
    out: A | None = None,
) -> A:
    a = xp.contiguous(a)
    n, h, w = images(a.shape)
    dtype = DTYPE_CODES[xp.dtype(a)]
    result = xp.output(out, a.shape, xp.dtype(a), a)
    workspace_bytes = xp.query(a, "gaussian_filter_workspace_bytes", dtype, n, h, w, *radius, *order)
    workspace = xp.empty([workspace_bytes], "uint8", a)
    xp.call(
        a, "gaussian_filter", a, result, dtype, n, h, w, *sigma, *radius, *order, *mode_codes(border), cval, workspace
    )
    return xp.finish(result, out)


def _fake(a: torch.Tensor, *_: object) -> torch.Tensor:
    return a.new_empty(a.shape)


_op = define_op(
    "gaussian_filter",
    "(Tensor a, float[] sigma, int[] radius, int[] order, str[] border, float cval) -> Tensor",
    _run,
    _fake,
)
