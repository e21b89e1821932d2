"""Rank codes: at which of several drop rates each pixel goes, in one byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roarfast.ops import _check as check
from roarfast.ops import _selection as selection
from roarfast.ops._arrays import DTYPE_CODES, Arrays, ArrayT
from roarfast.ops._op import define_op


def rank_codes(
    a: ArrayT,
    drops: Sequence[float],
    rule: str = "exact",
    order: str = "morf",
    seed: int = 0,
    index: Any = None,
    *,
    per_channel: bool = False,
    ndim: int = 2,
    nan: str = "raise",
    out: ArrayT | None = None,
) -> ArrayT:
    """The index of the first drop rate at which each pixel is removed, `len(drops)` if it never is.

    `codes <= j` is `removal_mask(a, drops[j], ...)`, for all rates from one selection. For KAR use the same codes the
    other way round: `codes > j` is `removal_mask(a, drops[j], ..., keep=True)`.

    Args:
        a: Maps `[..., H, W]`: float16, bfloat16 (torch), float32, float64 or uint8.
        drops: Ascending drop rates, fractions in [0, 1], at most 254.
        rule: As in `removal_mask`, as are `order`, `seed`, `index`, `per_channel`, `ndim` and `nan`.
        order: See `removal_mask`.
        seed: See `removal_mask`.
        index: See `removal_mask`.
        per_channel: See `removal_mask`.
        ndim: See `removal_mask`.
        nan: See `removal_mask`.
        out: Where to write the codes; uint8, like `a`.

    Returns:
        uint8, of the shape of `a`.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> rf.rank_codes(np.array([[0.1, 0.9], [0.5, 0.3]]), drops=(0.25, 0.5)).tolist()
        [[2, 0], [1, 2]]
    """
    check.array("a", a, DTYPE_CODES)
    ndim = selection.sample_ndim(a, ndim, per_channel)
    drops = selection.rates("drops", drops)
    check.one_of("rule", rule, selection.RULES)
    check.one_of("order", order, selection.ORDERS)
    index = selection.sample_index(index, selection.samples(a.shape, ndim)[0], a)
    raises = selection.check_nan_policy(nan)
    return _op(a, index, drops, ndim, rule, order, selection.seed_value(seed), raises, out=out)  # type: ignore[no-any-return]


def _run(
    xp: Arrays,
    a: Any,
    index: Any,
    drops: Sequence[float],
    ndim: int,
    rule: str,
    order: str,
    seed: int,
    raises: bool,
    out: Any = None,
) -> Any:
    a = xp.contiguous(a)
    n, f = selection.samples(a.shape, ndim)
    dtype = DTYPE_CODES[xp.dtype(a)]
    rates, pointer = selection.host_array(tuple(drops))
    result = xp.output(out, a.shape, "uint8", a)
    flags = selection.nan_flags(xp, n, raises and n * f > 0, a)
    workspace = xp.empty([xp.query(a, "rank_codes_workspace_bytes", dtype, n, f, len(rates))], "uint8", a)
    names = selection.RULES[rule], selection.ORDERS[order]
    xp.call(a, "rank_codes", a, result, dtype, n, f, pointer, len(rates), *names, seed, index, flags, workspace)
    selection.raise_on_nan(flags)
    return xp.finish(result, out)


def _fake(a: Any, *_: Any) -> Any:
    import torch

    return a.new_empty(a.shape, dtype=torch.uint8)


_op = define_op(
    "rank_codes",
    "(Tensor a, Tensor? index, float[] drops, int ndim, str rule, str order, int seed, bool raises) -> Tensor",
    _run,
    _fake,
)
