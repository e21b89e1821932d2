"""Maximum filter over the last two axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roarfast.ops import _check as check
from roarfast.ops._arrays import DTYPE_CODES, A, Arrays, ArrayT, images
from roarfast.ops._border import mode_codes, mode_names
from roarfast.ops._op import define_op
from roarfast.ops._renamed import scipys

if TYPE_CHECKING:
    import torch

MAX_SIZE = 2**31  # kMaxWindow in csrc/common/filter_args.h


@scipys("footprint", "axes", "output", "input")
def maximum_filter(
    a: ArrayT,
    size: int | Sequence[int],
    mode: str | Sequence[str] = "reflect",
    cval: float = 0.0,
    *,
    origin: int | Sequence[int] = 0,
    out: ArrayT | None = None,
) -> ArrayT:
    """`scipy.ndimage.maximum_filter` of each image, exactly; the cost hardly grows with the size.

    The last two axes are the image, all before a batch: a 3-D array is a stack of images here, a volume in SciPy.

    Args:
        a: Maps or masks `[..., H, W]`: float16, bfloat16 (torch), float32, float64, uint8 or bool. Must not hold NaN.
        size: Window in pixels, >= 1; one, or one per axis as (rows, columns). The window of a pixel starts
            `size // 2 + origin` before it. May be larger than the image.
        mode: Border: `"reflect"`, `"mirror"`, `"nearest"`, `"wrap"` or `"constant"`, as in `gaussian_filter`.
            One, or one per axis.
        cval: The value beyond the border for `mode="constant"`.
        origin: Moves the window back by this many pixels; in [-(size // 2), (size - 1) // 2]; one, or one per axis.
        out: Where to write the result; like `a`.

    Returns:
        The filtered maps, of the shape and dtype of `a`. Where a window holds zeros of both signs and nothing larger, the
        sign of the zero is not promised.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> rf.maximum_filter(np.eye(3, dtype=np.uint8), size=3).tolist()
        [[1, 1, 1], [1, 1, 1], [1, 1, 1]]
    """
    check.images("a", a, DTYPE_CODES)
    sizes = [check.integer("size", s, 1, MAX_SIZE) for s in check.per_axis("size", size)]
    origins = [
        check.integer("origin", o, -(s // 2), (s - 1) // 2) for o, s in zip(check.per_axis("origin", origin), sizes)
    ]
    cval = check.number("cval", cval, finite=False)
    dtype = check.dtype_name(a)
    highest = {"uint8": 255, "bool": 1}.get(dtype)
    if highest is not None and not (0 <= cval <= highest and cval == int(cval)):
        raise ValueError(f"cval must be an integer in [0, {highest}] for dtype {dtype}, got {cval:g}")
    return _op(a, sizes, origins, mode_names(mode), cval, out=out)


def _run(
    xp: Arrays[A],
    a: A,
    size: Sequence[int],
    origin: Sequence[int],
    border: Sequence[str],
    cval: float,
    out: A | None = None,
) -> A:
    a = xp.maps(a)
    n, h, w = images(a.shape)
    dtype = DTYPE_CODES[xp.dtype(a)]
    result = xp.output(out, a.shape, xp.dtype(a), a)
    workspace_bytes = xp.query(a, "maximum_filter_workspace_bytes", dtype, n, h, w, *size, *origin)
    workspace = xp.empty([workspace_bytes], "uint8", a)
    xp.call(a, "maximum_filter", a, result, dtype, n, h, w, *size, *origin, *mode_codes(border), cval, workspace)
    return xp.finish(result, out)


def _fake(a: torch.Tensor, *_: object) -> torch.Tensor:
    return a.new_empty(a.shape)


_op = define_op(
    "maximum_filter", "(Tensor a, int[] size, int[] origin, str[] border, float cval) -> Tensor", _run, _fake
)
