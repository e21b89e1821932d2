"""Percentiles of each map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from roarfast.ops import _check as check
from roarfast.ops import _selection as selection
from roarfast.ops._arrays import DTYPE_CODES, A, Arrays, ArrayT
from roarfast.ops._op import define_op

if TYPE_CHECKING:
    import torch


def percentile(
    a: ArrayT, q: float | Sequence[float], *, ndim: int = 2, nan: str = "raise", out: ArrayT | None = None
) -> ArrayT:
    """`np.percentile` of each map with linear interpolation, bit for bit, all q from one pass and without sorting.

    Zeros of either sign are equal: the sign of a zero in the result is not promised where a map holds both.

    Args:
        a: Maps `[..., H, W]`: float16, bfloat16 (torch), float32, float64 or uint8. Infinities give what NumPy gives:
            NaN where it subtracts inf from inf.
        q: Percentiles in [0, 100]; one number, or a sequence.
        ndim: How many trailing axes make up one sample: 2 for maps, 1 for features `[..., F]`, 3 for `[..., C, H, W]`.
        nan: `"raise"` an error if there is a NaN, or `"ignore"` it: a NaN then counts as +inf.
        out: Where to write the result.

    Returns:
        For one q, `[...]` of the dtype of `a` (float64 for uint8). For a sequence, `[..., Q]` in float64, since NumPy
        interpolates in float64 there. (NumPy puts Q first.)

    Example:
        >>> import numpy as np, roarfast as rf
        >>> rf.percentile(np.arange(5.0), [0, 50, 90], ndim=1).tolist()
        [0.0, 2.0, 3.6]
    """
    check.array("a", a, DTYPE_CODES)
    ndim = selection.sample_ndim(a, ndim)
    scalar = q.ndim == 0 if isinstance(q, np.ndarray) else not isinstance(q, Sequence) or isinstance(q, (str, bytes))
    values = [q] if scalar else check.entries("q", q, "a percentile or a sequence of them")
    wanted = [check.number("q", v, 0, 100) for v in values]
    if not wanted:
        raise ValueError("q must have at least one percentile, got none")
    return _op(a, wanted, scalar, ndim, selection.check_nan_policy(nan), out=out)


def _run(xp: Arrays[A], a: A, q: Sequence[float], scalar: bool, ndim: int, raises: bool, out: A | None = None) -> A:
    if not len(q):
        raise ValueError("q must have at least one percentile, got none")
    if scalar and len(q) != 1:
        raise ValueError(f"q must be one percentile if scalar, got {len(q)}")
    a = xp.maps(a)
    n, f = selection.samples(a.shape, ndim)
    if f < 1:
        raise ValueError(f"a must have at least one feature per sample, got shape {tuple(a.shape)}")
    dtype = xp.dtype(a)
    result_dtype = dtype if scalar and dtype not in ("uint8", "bool") else "float64"
    leading: tuple[int, ...] = tuple(a.shape[: len(a.shape) - ndim])
    result = xp.output(out, leading if scalar else (*leading, len(q)), result_dtype, a)
    values = np.asarray(q, np.float64)
    ascending = np.sort(values)
    flags = selection.nan_flags(xp, n, raises and n > 0, a)
    parts = []
    for start in range(0, len(values), selection.MAX_RATES):
        some = np.ascontiguousarray(ascending[start : start + selection.MAX_RATES])
        part = xp.empty((n, len(some)), result_dtype, a)
        workspace = xp.empty(
            [xp.query(a, "percentile_workspace_bytes", DTYPE_CODES[dtype], n, f, len(some))], "uint8", a
        )
        codes = DTYPE_CODES[dtype], DTYPE_CODES[result_dtype]
        xp.call(a, "percentile", a, part, *codes, n, f, some.ctypes.data, len(some), flags, workspace)
        parts.append(part)
    selection.raise_on_nan(flags)
    columns = [int(c) for c in np.argsort(np.argsort(values, kind="stable"), kind="stable")]
    for j, c in enumerate(columns):
        target = result.reshape(n, len(columns))
        target[:, j] = parts[c // selection.MAX_RATES][:, c % selection.MAX_RATES]
    return xp.finish(result, out)


def _fake(a: torch.Tensor, q: Sequence[float], scalar: bool, ndim: int, raises: bool) -> torch.Tensor:
    import torch

    leading = tuple(a.shape[: len(a.shape) - ndim])
    same = scalar and a.dtype not in (torch.uint8, torch.bool)
    return a.new_empty(leading if scalar else (*leading, len(q)), dtype=a.dtype if same else torch.float64)


_op = define_op("percentile", "(Tensor a, float[] q, bool scalar, int ndim, bool raises) -> Tensor", _run, _fake)
