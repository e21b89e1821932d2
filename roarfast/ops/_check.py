"""Checks of arguments. Every message names the argument, the value got and what is allowed."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from roarfast._types import Array, Numpy
from roarfast.ops._arrays import NUMPY, NUMPY_NAMES, A, Arrays, UnusableTensor, require_memory
from roarfast.ops._op import is_compiling, is_tensor

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

# The names of torch's dtypes seen so far: making one takes half a microsecond.
_tensor_dtypes: dict[torch.dtype, str] = {}


_INT64 = (-(2**63), 2**63 - 1)


def dtype_name(a: Array) -> str:
    """The dtype of an array or tensor as "float32", "uint8" and so on."""
    if is_tensor(a):
        name = _tensor_dtypes.get(a.dtype)
        if name is None:
            name = _tensor_dtypes[a.dtype] = str(a.dtype).removeprefix("torch.")
        return name
    return NUMPY_NAMES.get(a.dtype) or str(a.dtype.name)


def array(name: str, a: object, dtypes: Collection[str], min_ndim: int = 0, dims: str = "") -> None:
    """`a` is a NumPy array or torch tensor of an allowed dtype with at least `min_ndim` dimensions."""
    if is_tensor(a):
        if a.is_nested or str(a.layout) != "torch.strided":
            kind = "nested" if a.is_nested else str(a.layout).removeprefix("torch.")
            raise TypeError(f"{name} must be a dense tensor, got a {kind} one")
    elif not isinstance(a, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array or a torch tensor, got {type(a).__name__}")
    elif type(a) is not np.ndarray and isinstance(a, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be a masked array: fill it (a.filled(...)) or pass its data")
    got = dtype_name(a)
    if got not in dtypes:
        raise TypeError(f"{name} must have dtype {_listing(dtypes)}, got {got}")
    if len(a.shape) < min_ndim:
        raise ValueError(f"{name} must be {dims}, got shape {tuple(a.shape)}")


def images(name: str, a: object, dtypes: Collection[str]) -> None:
    """`a` is `[..., H, W]` of an allowed dtype."""
    array(name, a, dtypes, 2, "[..., H, W]")


def same_kind(**arrays: Array | None) -> None:
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


def readable(name: str, a: object, like: object = None) -> None:
    """A tensor has memory that was not freed, and values, unless those of `like` are not looked at either ("meta")."""
    if not is_tensor(a) or is_compiling():
        return
    if a.is_meta:
        if not is_tensor(like) or not like.is_meta:
            raise ValueError(f"{name} must hold values, got a tensor on meta")
        return
    try:
        require_memory(a)
    except UnusableTensor as error:
        raise ValueError(f"{name} must have memory, but {error}") from None


def operand(xp: Arrays[A], name: str, a: A | None, dtypes: Collection[str], *shapes: Sequence[int]) -> None:
    """An array that goes to a kernel has one of the dtypes and one of the shapes; None is fine.

    Public functions have seen to that, and NumPy arrays come through no other way; `torch.ops.roarfast` can be called
    without them.
    """
    if a is None or xp is NUMPY:
        return
    if xp.dtype(a) not in dtypes:
        raise TypeError(f"{name} must have dtype {_listing(dtypes)}, got {xp.dtype(a)}")
    if a.shape not in shapes:
        raise ValueError(f"{name} must have shape {_listing([str(s) for s in shapes])}, got {tuple(a.shape)}")


def flag(name: str, value: object) -> bool:
    """`value` as a bool: True or False, and nothing that merely counts as one, such as "no"."""
    if value is True or value is False:
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    raise TypeError(f"{name} must be True or False, got {_shown(value)}")


def one_of(name: str, value: object, allowed: Collection[str]) -> str:
    """`value`, which is one of the allowed strings."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {_listing([repr(x) for x in allowed])}, got {_shown(value)}")
    return value


def number(
    name: str, value: object, low: float = -math.inf, high: float = math.inf, hint: str = "", finite: bool = True
) -> float:
    """`value` as a float in [low, high]."""
    x = value if type(value) is float else _as_float(name, value)
    if math.isnan(x) or (finite and math.isinf(x)) or not low <= x <= high:
        got = _shown(value) + (f": {hint}" if hint else "")
        raise ValueError(f"{name} must be {_range(low, high, finite)}, got {got}")
    return x


def integer(name: str, value: object, low: int | None = None, high: int | None = None) -> int:
    """`value` as an int in [low, high]; without bounds, one that fits 64 bits."""
    x = value if type(value) is int else _as_int(name, value)
    if x < (_INT64[0] if low is None else low) or x > (_INT64[1] if high is None else high):
        if low is not None and high is not None:
            bounds = f"in [{low}, {high}]"
        else:
            bounds = (
                "of at most 64 bits" if low is None else f">= {low} of at most 64 bits" if x >= low else f">= {low}"
            )
        raise ValueError(f"{name} must be an integer {bounds}, got {_shown(value)}")
    return x


def _as_float(name: str, value: object) -> float:
    refused = (bool, str, bytes, bytearray, complex, np.bool_, np.complexfloating, np.datetime64, np.timedelta64)
    if not isinstance(value, refused) and hasattr(value, "__float__") and not _is_complex_or_bool(value):
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            pass
    raise TypeError(f"{name} must be a number, got {_shown(value)}")


def _as_int(name: str, value: object) -> int:
    if not isinstance(value, (bool, np.bool_)) and hasattr(value, "__index__") and not _is_complex_or_bool(value):
        try:
            return int(value.__index__())
        except (TypeError, ValueError, OverflowError, RuntimeError):
            pass
    raise TypeError(f"{name} must be an integer, got {_shown(value)}")


def _is_complex_or_bool(value: object) -> bool:
    """Of arrays and tensors with one element, which convert to numbers and may be of any dtype."""
    return hasattr(value, "dtype") and any(
        word in str(value.dtype) for word in ("complex", "bool", "datetime", "timedelta")
    )


def _shown(value: object) -> str:
    """`repr` for a message: short, and of whatever."""
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:200]}…"


def entries(name: str, value: object, what: str) -> Sequence[object] | Numpy:
    """`value` is a sequence or an array with one axis, the entries of which are looked at one by one."""
    if isinstance(value, (str, bytes, bytearray)) or not isinstance(value, (Sequence, np.ndarray)):
        raise TypeError(f"{name} must be {what}, got {_shown(value)}")
    if isinstance(value, np.ndarray) and value.ndim != 1:
        raise TypeError(f"{name} must be {what}, got an array of shape {value.shape}")
    return value


def per_axis(name: str, value: T | Sequence[T]) -> tuple[T, T]:
    """One value for both image axes, or a (rows, columns) pair."""
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"{name} must be a number or a (rows, columns) pair, got {_shown(value)}")
    if isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim):
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
