"""The exact Euclidean distance transform of masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast.ops import _check as check
from roarfast.ops._arrays import A, Arrays, ArrayT, images
from roarfast.ops._op import define_op

if TYPE_CHECKING:
    import torch

MAX_SIDE = 32767  # squared distances fit int32


def distance_transform(mask: ArrayT, *, squared: bool = False, out: ArrayT | None = None) -> ArrayT:
    """Distance of each True pixel to the nearest False one; 0 at False pixels.

    As `scipy.ndimage.distance_transform_edt` of each image, exactly: squared distances are integers. How thick removed
    regions are is the mean over removed pixels; how far a pixel is from a region, a look-up in the transform of its
    complement.

    Args:
        mask: bool or uint8 (nonzero is True) `[..., H, W]`, sides up to 32767.
        squared: Return squared distances.
        out: Where to write the result.

    Returns:
        float32 `[..., H, W]`, or int32 if `squared`. An image without a False pixel has infinity, and 2147483647 if
        `squared`.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> rf.distance_transform(np.array([[False, True, True], [True, True, True]]), squared=True).tolist()
        [[0, 1, 4], [1, 2, 5]]
    """
    check.images("mask", mask, ("bool", "uint8"))
    if max(mask.shape[-2:]) > MAX_SIDE:
        raise ValueError(f"mask must be at most {MAX_SIDE} x {MAX_SIDE}, got shape {tuple(mask.shape)}")
    return _op(mask, check.flag("squared", squared), out=out)


def _run(xp: Arrays[A], mask: A, squared: bool, out: A | None = None) -> A:
    check.operand(xp, "mask", mask, ("bool", "uint8"), tuple(mask.shape))
    mask = xp.contiguous(mask)
    n, h, w = images(mask.shape, "mask")
    result = xp.output(out, mask.shape, "int32" if squared else "float32", mask)
    workspace = xp.empty([xp.query(mask, "distance_transform_workspace_bytes", n, h, w)], "uint8", mask)
    xp.call(mask, "distance_transform", mask, result, n, h, w, int(not squared), workspace)
    return xp.finish(result, out)


def _fake(mask: torch.Tensor, squared: bool) -> torch.Tensor:
    import torch

    return mask.new_empty(mask.shape, dtype=torch.int32 if squared else torch.float32)


_op = define_op("distance_transform", "(Tensor mask, bool squared) -> Tensor", _run, _fake)
