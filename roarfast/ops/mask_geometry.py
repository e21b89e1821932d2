"""The shape of masks as counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast.ops import _check as check
from roarfast.ops._arrays import A, Arrays, ArrayT, images
from roarfast.ops._op import define_op

if TYPE_CHECKING:
    import torch

FIELDS = ("removed", "isolated", "isolated8", "boundary", "border")


def mask_geometry(mask: ArrayT, *, out: ArrayT | None = None) -> ArrayT:
    """How scattered removed pixels are.

    Args:
        mask: bool or uint8 (nonzero is removed) `[..., H, W]`.
        out: Where to write the result, int64 `[..., 5]`.

    Returns:
        int64 `[..., 5]`: removed pixels; removed pixels without a removed neighbour among the four; among the eight;
        pairs of 4-neighbours of which just one is removed (the length of the boundary); removed pixels at the image's
        border.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> rf.mask_geometry(np.array([[True, False, False], [False, True, False], [False, False, False]])).tolist()
        [2, 2, 0, 6, 1]
    """
    check.images("mask", mask, ("bool", "uint8"))
    return _op(mask, out=out)


def _run(xp: Arrays[A], mask: A, out: A | None = None) -> A:
    check.operand(xp, "mask", mask, ("bool", "uint8"), tuple(mask.shape))
    mask = xp.contiguous(mask)
    n, h, w = images(mask.shape, "mask")
    result = xp.output(out, (*mask.shape[:-2], len(FIELDS)), "int64", mask)
    workspace = xp.empty([xp.query(mask, "mask_geometry_workspace_bytes", n, h, w)], "uint8", mask)
    xp.call(mask, "mask_geometry", mask, result, n, h, w, workspace)
    return xp.finish(result, out)


def _fake(mask: torch.Tensor) -> torch.Tensor:
    import torch

    return mask.new_empty((*mask.shape[:-2], len(FIELDS)), dtype=torch.int64)


_op = define_op("mask_geometry", "(Tensor mask) -> Tensor", _run, _fake)
