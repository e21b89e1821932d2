"""Sobel derivative along one image axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roarfast.ops import _check as check
from roarfast.ops._arrays import DTYPE_CODES, FLOATS, A, Arrays, ArrayT, images
from roarfast.ops._border import mode_codes, mode_names
from roarfast.ops._op import define_op
from roarfast.ops._renamed import scipys

if TYPE_CHECKING:
    import torch


@scipys("output", "input")
def sobel(
    a: ArrayT, axis: int = -1, mode: str | Sequence[str] = "reflect", cval: float = 0.0, *, out: ArrayT | None = None
) -> ArrayT:
    """`scipy.ndimage.sobel` of each image: [-1 0 1] along `axis`, [1 2 1] along the other image axis.

    The last two axes are the image, all before a batch: a 3-D array is a stack of images here, a volume in SciPy.

    Args:
        a: Maps `[..., H, W]`: float16, bfloat16 (torch), float32 or float64.
        axis: -1 for the derivative along columns, -2 along rows.
        mode: Border: `"reflect"`, `"mirror"`, `"nearest"`, `"wrap"` or `"constant"`, as in `gaussian_filter`.
            One, or one per axis.
        cval: The value beyond the border for `mode="constant"`.
        out: Where to write the result; like `a`.

    Returns:
        The derivatives, of the shape and dtype of `a`.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> rf.sobel(np.array([[0.0, 1.0, 2.0]] * 3), axis=-1).tolist()[1]
        [4.0, 8.0, 4.0]
    """
    check.images("a", a, FLOATS)
    axis = check.integer("axis", axis)
    ndim = len(a.shape)
    if axis not in (-1, -2, ndim - 1, ndim - 2):
        raise ValueError(f"axis must be one of the last two axes (-2 or -1), got {axis}")
    row_or_column = 0 if axis in (-2, ndim - 2) else 1
    return _op(a, row_or_column, mode_names(mode), check.number("cval", cval, finite=False), out=out)


def _run(xp: Arrays[A], a: A, axis: int, border: Sequence[str], cval: float, out: A | None = None) -> A:
    a = xp.contiguous(a)
    n, h, w = images(a.shape)
    result = xp.output(out, a.shape, xp.dtype(a), a)
    xp.call(a, "sobel", a, result, DTYPE_CODES[xp.dtype(a)], n, h, w, axis, *mode_codes(border), cval)
    return xp.finish(result, out)


def _fake(a: torch.Tensor, *_: object) -> torch.Tensor:
    return a.new_empty(a.shape)


_op = define_op("sobel", "(Tensor a, int axis, str[] border, float cval) -> Tensor", _run, _fake)
