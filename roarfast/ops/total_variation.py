"""Total variation of maps and masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast.ops import _check as check
from roarfast.ops._arrays import DTYPE_CODES, A, Arrays, ArrayT, images
from roarfast.ops._op import define_op

if TYPE_CHECKING:
    import torch

_KINDS = {"anisotropic": 0, "isotropic": 1}
_NORMALIZE = {"none": 0, "minmax": 1, "mean": 2}


def total_variation(
    a: ArrayT, kind: str = "anisotropic", normalize: str = "none", *, out: ArrayT | None = None
) -> ArrayT:
    """Total variation of each image: how much neighbouring pixels differ.

    Smooth maps and masks have little of it. One pass over the data; the result does not depend on the batch or the
    number of threads.

    Args:
        a: Maps or masks `[..., H, W]`: float16, bfloat16 (torch), float32, float64, uint8 or bool.
        kind: `"anisotropic"`: the sum of absolute differences of horizontal and of vertical neighbours.
            `"isotropic"`: the sum over pixels of the length of (difference to the right, difference down), a
            difference beyond the last row or column being 0.
        normalize: `"none"`; `"minmax"`: of the map scaled to [0, 1] (a constant map has 0); `"mean"`: per pair of
            neighbours (anisotropic) or per pixel (isotropic), so that image sizes compare.
        out: Where to write the result, float64 `[...]`.

    Returns:
        float64 `[...]`.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> float(rf.total_variation(np.array([[0.0, 1.0], [1.0, 0.0]])))
        4.0
    """
    check.images("a", a, DTYPE_CODES)
    check.one_of("kind", kind, _KINDS)
    check.one_of("normalize", normalize, _NORMALIZE)
    return _op(a, kind, normalize, out=out)


def _run(xp: Arrays[A], a: A, kind: str, normalize: str, out: A | None = None) -> A:
    a = xp.maps(a)
    n, h, w = images(a.shape)
    dtype = DTYPE_CODES[xp.dtype(a)]
    result = xp.output(out, a.shape[:-2], "float64", a)
    workspace = xp.empty([xp.query(a, "total_variation_workspace_bytes", dtype, n, h, w)], "uint8", a)
    xp.call(a, "total_variation", a, result, dtype, n, h, w, _KINDS[kind], _NORMALIZE[normalize], workspace)
    return xp.finish(result, out)


def _fake(a: torch.Tensor, kind: str, normalize: str) -> torch.Tensor:
    import torch

    return a.new_empty(a.shape[:-2], dtype=torch.float64)


_op = define_op("total_variation", "(Tensor a, str kind, str normalize) -> Tensor", _run, _fake)
