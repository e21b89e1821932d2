"""Channel aggregation: attribution values `[N, C, ...]` to one map `[N, ...]`."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from roarfast.ops import _check as check
from roarfast.ops._arrays import FLOATS, ArrayT
from roarfast.ops._op import is_tensor

REDUCTIONS = ("mean", "sum", "max", "l2", "none")
VALUES = ("abs", "raw", "squared")
_FORM = re.compile(r"(?P<reduce>[a-z0-9]+)(\((?P<values>[a-z]+)\))?")


def parse_aggregation(text: str) -> tuple[str, str]:
    """`"mean(abs)"` as `("mean", "abs")`; without brackets, of absolute values."""
    match = _FORM.fullmatch(text.replace(" ", "").lower())
    if match is None or match["reduce"] not in REDUCTIONS or (match["values"] or "abs") not in VALUES:
        raise ValueError(
            f"aggregation must look like 'mean(abs)': one of {', '.join(REDUCTIONS)} "
            f"of {', '.join(VALUES)} values; got {text!r}"
        )
    return match["reduce"], match["values"] or "abs"


def aggregate_channels(a: ArrayT, aggregate: str = "mean(abs)", *, axis: int = 1) -> ArrayT:
    """One value per pixel from the values of its channels.

    Args:
        a: Attributions `[N, C, H, W]` (or `[N, C, T]`, …), floating point, NumPy or torch.
        aggregate: A reduction (`mean`, `sum`, `max`, `l2`: root of the sum of squares, `none`) of `abs`, `raw` or
            `squared` values, such as `"mean(abs)"`, `"sum(raw)"`, `"max(abs)"`.
        axis: Where the channels are.

    Returns:
        Maps without the channel axis (with it for `none`), of the dtype of `a`.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> rf.aggregate_channels(np.array([[[[1.0]], [[-3.0]]]]), "max(abs)").tolist()
        [[[3.0]]]
    """
    check.array("a", a, FLOATS, 2, "[N, C, ...]")
    if not -len(a.shape) <= axis < len(a.shape):
        raise ValueError(f"axis must be in [{-len(a.shape)}, {len(a.shape)}), got {axis}")
    reduce, values = parse_aggregation(aggregate)
    x: Any = a
    if values == "abs":
        x = abs(x)
    elif values == "squared":
        x = x * x
    if reduce == "none":
        return x  # type: ignore[no-any-return]
    if reduce == "mean":
        return x.mean(axis)  # type: ignore[no-any-return]
    if reduce == "sum":
        return x.sum(axis)  # type: ignore[no-any-return]
    if reduce == "max":
        return x.amax(axis) if is_tensor(x) else x.max(axis)  # type: ignore[no-any-return]
    total = (x * x).sum(axis)
    return total.sqrt() if is_tensor(total) else np.sqrt(total)  # type: ignore[no-any-return]
