"""The fraction of pixels really removed, from rank codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast.ops import _check as check
from roarfast.ops import _selection as selection
from roarfast.ops._arrays import A, Arrays, ArrayT
from roarfast.ops._op import define_op
from roarfast.ops._renamed import renamed

if TYPE_CHECKING:
    import torch


@renamed(j="rate_index=...")
def removed_fraction(codes: ArrayT, rate_index: int, *, ndim: int = 2, out: ArrayT | None = None) -> ArrayT:
    """The fraction of each sample that `codes <= rate_index` removes.

    Under the rules `percentile` and `strict` tied maps lose more or less than their drop rate says; this is what they
    do lose.

    Args:
        codes: Rank codes `[..., H, W]`, uint8.
        rate_index: The index of the drop rate, 0 to 254.
        ndim: How many trailing axes make up one sample, as in `rank_codes`.
        out: Where to write the result, float64 `[...]`.

    Returns:
        float64 `[...]`.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> float(rf.removed_fraction(np.array([[2, 0], [1, 2]], np.uint8), rate_index=1))
        0.5
    """
    check.array("codes", codes, ("uint8",))
    ndim = selection.sample_ndim(codes, ndim, "codes")
    return _op(codes, check.integer("rate_index", rate_index, 0, 254), ndim, out=out)


def _run(xp: Arrays[A], codes: A, rate_index: int, ndim: int, out: A | None = None) -> A:
    check.operand(xp, "codes", codes, ("uint8",), tuple(codes.shape))
    codes = xp.contiguous(codes)
    n, f = selection.samples(codes.shape, ndim)
    if not f:
        raise ValueError(f"codes must have at least one feature per sample, got shape {tuple(codes.shape)}")
    result = xp.output(out, codes.shape[: len(codes.shape) - ndim], "float64", codes)
    xp.call(codes, "removed_fraction", codes, result, n, f, rate_index)
    return xp.finish(result, out)


def _fake(codes: torch.Tensor, rate_index: int, ndim: int) -> torch.Tensor:
    import torch

    return codes.new_empty(codes.shape[: len(codes.shape) - ndim], dtype=torch.float64)


_op = define_op("removed_fraction", "(Tensor codes, int rate_index, int ndim) -> Tensor", _run, _fake)
