"""Checks of arguments. Every message names the argument, the value got and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from roarfast.ops._arrays import NUMPY_NAMES
from roarfast.ops._op import is_tensor


def dtype_name(a: Any) -> str:
    """The dtype of an array or tensor as "float32", "uint8" and so on."""
    if is_tensor(a):
        return str(a.dtype).removeprefix("torch.")
    return NUMPY_NAMES.get(a.dtype) or str(a.dtype.name)


def array(name: str, a: Any, dtypes: Collection[str], min_ndim: int = 0, dims: str = "") -> None:
    """`a` is a NumPy array or torch tensor of an allowed dtype with at least `min_ndim` dimensions."""
    if not isinstance(a, np.ndarray) and not is_tensor(a):
        raise TypeError(f"{name} must be a NumPy array or a torch tensor, got {type(a).__name__}")
    got = dtype_name(a)
    if got not in dtypes:
        raise TypeError(f"{name} must have dtype {_listing(dtypes)}, got {got}")
    if len(a.shape) < min_ndim:
        raise ValueError(f"{name} must be {dims}, got shape {tuple(a.shape)}")


def images(name: str, a: Any, dtypes: Collection[str]) -> None:
    """`a` is `[..., H, W]` of an allowed dtype."""
    array(name, a, dtypes, 2, "[..., H, W]")


def same_kind(**arrays: Any) -> None:
    """All of the arrays (None is left out) are NumPy arrays, or all are torch tensors on one device."""
    given = {name: a for name, a in arrays.items() if a is not None}
    first, *others = given
    for name in others:
        if is_tensor(given[first]) != is_tensor(given[name]):
            raise TypeError(
                f"{first} and {name} must be of one library, got {type(given[first]).__name__} and {type(given[name]).__name__}"
            )
        if is_tensor(given[first]) and given[first].device != given[name].device:
            raise ValueError(
                f"{first} and {name} must be on one device, got {given[first].device} and {given[name].device}"
            )


def one_of(name: str, value: Any, allowed: Collection[str]) -> None:
    """`value` is one of the allowed strings."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {_listing([repr(x) for x in allowed])}, got {value!r}")


def number(
    name: str, value: Any, low: float = -math.inf, high: float = math.inf, hint: str = "", finite: bool = True
) -> float:
    """`value` as a float in [low, high]."""
    if isinstance(value, (bool, str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number, got {value!r}")
    x = float(value)
    if math.isnan(x) or (finite and math.isinf(x)) or not low <= x <= high:
        raise ValueError(f"{name} must be {_range(low, high, finite)}, got {value!r}" + (f": {hint}" if hint else ""))
    return x


def integer(name: str, value: Any, low: int | None = None, high: int | None = None) -> int:
    """`value` as an int in [low, high]."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    x = int(value.__index__())
    if (low is not None and x < low) or (high is not None and x > high):
        bounds = _range(-math.inf if low is None else low, math.inf if high is None else high, False)
        raise ValueError(f"{name} must be an integer {bounds.removeprefix('a finite number ')}, got {value!r}")
    return x


def per_axis(name: str, value: Any) -> tuple[Any, Any]:
    """One value for both image axes, or a (rows, columns) pair."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name} must be a number or a (rows, columns) pair, got {value!r}")
    if isinstance(value, (Sequence, np.ndarray)):
        if len(value) != 2:
            raise ValueError(f"{name} must be one value or a (rows, columns) pair, got {len(value)} values")
        return value[0], value[1]
    return value, value


def _range(low: float, high: float, finite: bool) -> str:
    if math.isinf(low) and math.isinf(high):
        return "a finite number" if finite else "a number, not NaN"
    if math.isinf(high):
        return f">= {low:g}"
    if math.isinf(low):
        return f"<= {high:g}"
    return f"in [{low:g}, {high:g}]"


def _listing(values: Collection[str]) -> str:
    items = list(values)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} or {items[-1]}"
