"""Channel aggregation: attribution values `[N, C, ...]` to one map `[N, ...]`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from roarfast.ops import _check as check
from roarfast.ops._arrays import FLOATS, ArrayT
from roarfast.ops._op import is_tensor

REDUCTIONS = ("mean", "sum", "max", "l2", "none")
VALUES = ("abs", "raw", "squared", "positive")
_FORM = re.compile(r"(?P<reduce>[a-z0-9]+)(\((?P<values>[a-z]+)\))?")


def parse_aggregation(text: str) -> tuple[str, str]:
    """`"mean(abs)"` as `("mean", "abs")`; without brackets, of absolute values."""
    match = _FORM.fullmatch(text.replace(" ", "").lower()) if isinstance(text, str) else None
    if match is None or match["reduce"] not in REDUCTIONS or (match["values"] or "abs") not in VALUES:
        raise ValueError(
            f"aggregate must look like 'mean(abs)': one of {', '.join(REDUCTIONS)} "
            f"of {', '.join(VALUES)} values; got {text!r}"
        )
    return match["reduce"], match["values"] or "abs"


def aggregate_channels(a: ArrayT, aggregate: str = "mean(abs)", *, axis: int = 1) -> ArrayT:
    """One value per pixel from the values of its channels.

    Args:
        a: Attributions `[N, C, H, W]` (or `[N, C, T]`, …), floating point, NumPy or torch.
        aggregate: A reduction (`mean`, `sum`, `max`, `l2`: root of the sum of squares, `none`) of `abs`, `raw`,
            `squared` or `positive` values (negative ones count as 0), such as `"mean(abs)"`, `"sum(raw)"`.
        axis: Where the channels are.

    Returns:
        Maps without the channel axis (with it for `none`), of the dtype of `a`.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> rf.aggregate_channels(np.array([[[[1.0]], [[-3.0]]]]), "max(abs)").tolist()
        [[[3.0]]]
    """
    check.array("a", a, FLOATS, 2, "[N, C, ...]")
    axis = check.integer("axis", axis, -len(a.shape), len(a.shape) - 1)
    reduce, values = parse_aggregation(aggregate)
    check.readable("a", a, a)  # torch reads memory that was freed
    x: Any = a
    if not is_tensor(a) and not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    if values == "abs":
        x = abs(x)
    elif values == "squared":
        x = x * x
    elif values == "positive":
        x = x.clamp(min=0) if is_tensor(a) else np.maximum(x, 0)
    if reduce == "none":
        return x
    if reduce == "mean":
        return x.mean(axis)
    if reduce == "sum":
        return x.sum(axis)
    if reduce == "max":
        return x.amax(axis) if is_tensor(a) else x.max(axis)
    total = (x * x).sum(axis)
    return total.sqrt() if is_tensor(a) else np.sqrt(total)
