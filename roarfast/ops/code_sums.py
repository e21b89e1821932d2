"""Sums of map values by rank code: how much attribution goes at each rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast.ops import _check as check
from roarfast.ops import _selection as selection
from roarfast.ops._arrays import DTYPE_CODES, A, Arrays, ArrayT
from roarfast.ops._op import define_op

if TYPE_CHECKING:
    import torch


def code_sums(
    a: ArrayT, codes: ArrayT, count: int, *, ndim: int = 2, check_result: bool = True, out: ArrayT | None = None
) -> ArrayT:
    """The sum of the values of each code, for every sample.

    With codes of `rank_codes(a, drops)` and `count = len(drops) + 1`, entry j is the attribution of the pixels that go
    between `drops[j - 1]` and `drops[j]`, and the last entry that of the pixels that never go. Sums are within
    1e-15 of the sum of absolute values, and the same bits on every backend, in any batch and with any number of threads.

    Args:
        a: Maps `[..., H, W]`: float16, bfloat16 (torch), float32, float64 or uint8; finite.
        codes: uint8, like `a`; codes from `count` on are left out.
        count: Number of codes, 1 to 256.
        ndim: How many trailing axes make up one sample, as in `rank_codes`.
        check_result: Whether to raise an error for maps that are not finite, which on CUDA waits for the device; if not,
            all sums of such a map are NaN.
        out: Where to write the result, float64 `[..., count]`.

    Returns:
        float64 `[..., count]`.

    Raises:
        ValueError: If a map has NaN or infinity, unless `check_result` is False.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> a = np.array([[0.1, 0.9], [0.5, 0.3]])
        >>> rf.code_sums(a, rf.rank_codes(a, drops=(0.25, 0.5)), 3).tolist()
        [0.9, 0.5, 0.4]
    """
    check.array("a", a, DTYPE_CODES)
    check.array("codes", codes, ("uint8",))
    check.same_kind(a=a, codes=codes)
    ndim = selection.sample_ndim(a, ndim)
    if tuple(codes.shape) != tuple(a.shape):
        raise ValueError(f"codes must be shaped like a, {tuple(a.shape)}, got {tuple(codes.shape)}")
    count = check.integer("count", count, 1, 256)
    check_result = check.flag("check_result", check_result)
    return _op(a, codes, count, ndim, check_result, out=out)


def _run(xp: Arrays[A], a: A, codes: A, count: int, ndim: int, checked: bool, out: A | None = None) -> A:
    check.operand(xp, "a", a, tuple(DTYPE_CODES), tuple(a.shape))
    check.operand(xp, "codes", codes, ("uint8",), tuple(a.shape))
    a, codes = xp.contiguous(a), xp.contiguous(codes)
    n, f = selection.samples(a.shape, ndim)
    count = check.integer("count", count, 1, 256)
    result = xp.output(out, (*a.shape[: len(a.shape) - ndim], count), "float64", a, codes)
    xp.call(a, "code_sums", a, codes, result, DTYPE_CODES[xp.dtype(a)], n, f, count)
    rows = result.reshape(-1, count)[:, 0]
    if checked and bool((rows != rows).any()):
        first = int((rows != rows).nonzero()[0][0])
        raise ValueError(f"a must be finite, got NaN or infinity in sample {first}")
    return xp.finish(result, out)


def _fake(a: torch.Tensor, codes: torch.Tensor, count: int, ndim: int, checked: bool) -> torch.Tensor:
    import torch

    return a.new_empty((*a.shape[: len(a.shape) - ndim], count), dtype=torch.float64)


_op = define_op("code_sums", "(Tensor a, Tensor codes, int count, int ndim, bool checked) -> Tensor", _run, _fake)
