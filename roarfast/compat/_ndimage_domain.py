"""The arguments of `scipy.ndimage`'s filters: those of our domain in one form, `Outside` with a reason for the others."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from roarfast._types import Numpy
from roarfast.compat._status import Outside, require
from roarfast.ops._border import ALIASES, MODES

DType: TypeAlias = np.dtype[Any]  # its kind is asked for as the code runs

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
COMPLEX: dict[DType, DType] = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}


def arrays(a: npt.ArrayLike, output: Numpy | npt.DTypeLike | None) -> tuple[Numpy, Numpy | None, DType]:
    """The input, the array to write to if there is one, and the dtype of the result."""
    if not isinstance(a, np.ndarray):
        # Arrays of other libraries have their own rules in SciPy.
        require(isinstance(a, (list, tuple, np.generic, int, float, complex)), f"input of type {type(a).__name__}")
        a = np.asarray(a)
    require(type(a) is np.ndarray or type(a) is np.memmap, f"input of type {type(a).__name__}")
    require(a.ndim > 0 and a.size > 0, "an input without values")
    require(a.dtype.kind in "biufc" and a.dtype.itemsize <= 16 and a.dtype != np.float16, f"input of dtype {a.dtype}")
    require(a.dtype.kind != "f" or a.dtype.itemsize <= 8, f"input of dtype {a.dtype}")
    if output is None:
        return a, None, a.dtype.newbyteorder("=")
    if isinstance(output, (type, np.dtype, str)):
        try:
            dtype = np.dtype(output)
        except TypeError:
            raise Outside("an output that is no dtype") from None
        require(dtype.isnative and dtype.kind in "biufc", f"output of dtype {dtype}")
        require(dtype.kind != "b" or not isinstance(output, str), "an output that is no number")
        out = None
    else:
        if type(output) is not np.ndarray or output.shape != a.shape:
            raise Outside("an output of another type or shape")
        require(output.flags.writeable, "a read-only output")
        out, dtype = output, output.dtype.newbyteorder("=")
    require((a.dtype.kind == "c") == (dtype.kind == "c"), "an output of another kind than the input")
    return a, out, dtype


def axes(axes: int | Iterable[int] | None, ndim: int) -> tuple[int, ...]:
    """Axis numbers, all >= 0."""
    if axes is None:
        return tuple(range(ndim))
    if not isinstance(axes, Iterable):
        axes = (axes,)
    try:
        numbers = [operator.index(axis) for axis in axes]
    except TypeError:
        raise Outside("axes that are no integers") from None
    require(all(-ndim <= axis < ndim for axis in numbers), "axes out of range")
    positive = tuple(axis % ndim for axis in numbers)
    require(len(set(positive)) == len(positive), "axes that repeat")
    return positive


def sequence(value: object, n: int) -> list[object]:
    """One value for every axis, or a sequence of as many."""
    if isinstance(value, str) or not np.iterable(value):
        return [value] * n
    values = list(value)
    require(len(values) == n, "a sequence of another length than there are axes")
    return values


def numbers(values: Sequence[object], name: str) -> list[float]:
    """Finite numbers, as floats."""
    found = [v for v in values if isinstance(v, (int, float, np.integer, np.floating))]
    require(len(found) == len(values), f"{name} that is no number")
    require(all(np.isfinite(v) for v in found), f"{name} that is not finite")
    return [float(v) for v in found]


def integers(values: Sequence[object], name: str, low: int | None = None, high: int | None = None) -> list[int]:
    """Integers in [low, high]."""
    found = [int(v) for v in values if isinstance(v, (int, np.integer))]
    require(len(found) == len(values), f"{name} that is no integer")
    allowed = all((low is None or v >= low) and (high is None or v <= high) for v in found)
    require(allowed, f"{name} out of range")
    return found


def modes(values: Sequence[object]) -> list[str]:
    """The names of border modes as our filters spell them."""
    names = [ALIASES.get(v, v) for v in values if isinstance(v, str)]
    require(len(names) == len(values) and all(v in MODES for v in names), "an unknown mode")
    return names


def radius(sigma: float, truncate: float, radius: object) -> int:
    """Where a kernel ends, as SciPy computes it."""
    if sigma <= 1e-15:
        return 0
    if radius is None:
        require(isinstance(truncate, (int, float, np.integer, np.floating)), "truncate that is no number")
        radius = int(float(truncate) * sigma + 0.5)
    if not isinstance(radius, (int, np.integer)) or not 0 <= radius < 2**28:
        raise Outside("a radius out of range")
    return int(radius)


def constant(cval: complex, used: bool) -> float:
    """`cval` as a float; 0 if no axis uses it."""
    if not used:
        return 0.0
    if not isinstance(cval, (int, float, np.integer, np.floating)):
        raise Outside("a cval that is no real number")
    require(bool(np.isfinite(cval)), "a cval that is not finite")
    return float(cval)


def is_single(a: DType, result: DType) -> bool:
    """Whether input and result are of single precision."""
    return a in (np.float32, np.complex64) and result in (np.float32, np.complex64)


def exact_dtype(a: Numpy, factor: int) -> DType:
    """The float in which integers up to `factor` times the largest of `a` are exact."""
    if a.dtype.itemsize <= 2:
        return np.dtype(np.float32)
    if a.dtype.itemsize == 8:
        largest = max(abs(int(a.max())), abs(int(a.min())))
        require(largest * factor < 2**53, "64-bit integers beyond 2^53")
    return np.dtype(np.float64)


def maximum_dtype(a: Numpy, dtype: DType, constant: float) -> DType:
    """The dtype in which maxima of `a` are exact."""
    require(a.dtype.kind != "c" and dtype.kind != "c", "complex numbers")
    both_float = a.dtype.kind == "f" and dtype.kind == "f"
    require(both_float or np.can_cast(a.dtype, dtype, "safe"), f"output of dtype {dtype} for {a.dtype}")
    if a.dtype.kind == "f":
        require(not bool(np.isnan(a.max())), "NaN")
        # A constant that float32 rounds would win or lose against values near it.
        exact = a.dtype == np.float32 and float(np.float32(constant)) == constant
        return np.dtype(np.float32) if exact else np.dtype(np.float64)
    if dtype.kind in "biu":
        top = 1 if dtype.kind == "b" else np.iinfo(dtype).max
        bottom = 0 if dtype.kind == "b" else np.iinfo(dtype).min
        require(constant == int(constant) and bottom <= constant <= top, "a cval that the output cannot hold")
    if a.dtype.kind == "b" or a.dtype == np.uint8:
        highest = 1 if a.dtype.kind == "b" else 255
        if constant == int(constant) and 0 <= constant <= highest:
            return a.dtype
    work = exact_dtype(a, 1)
    return work if float(work.type(constant)) == constant else np.dtype(np.float64)
