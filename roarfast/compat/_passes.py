"""N-dimensional separable filters by kernels that filter two axes, without a transposed copy where one can be avoided.

A contiguous array whose axis `k` is filtered is `[before, length, after]`: images of `length` rows that are filtered along
rows only. Two neighbouring axes at the end are one image with both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from roarfast._types import Numpy

ArgumentsT = TypeVar("ArgumentsT")

# Below this many values after the filtered axes, rows are too short for vectors: the axes are moved to the end instead.
SHORT_ROWS = 16


class Axis(NamedTuple, Generic[ArgumentsT]):
    """One axis to filter, and its own arguments."""

    axis: int
    arguments: ArgumentsT


# (images [n, h, w], arguments along rows or None, arguments along columns or None, out) -> None
Kernel: TypeAlias = Callable[[Numpy, ArgumentsT | None, ArgumentsT | None, Numpy], None]


def run_rounded(
    kernel: Kernel[ArgumentsT], a: Numpy, axes: Sequence[Axis[ArgumentsT]], rounded: np.dtype[np.generic]
) -> Numpy:
    """`run`, with what SciPy stores between axes: each pass in the dtype of `a`, its result rounded to `rounded`."""
    for axis in axes:
        a = run(kernel, a, [axis]).astype(rounded).astype(a.dtype)
    return a


def run(kernel: Kernel[ArgumentsT], a: Numpy, axes: Sequence[Axis[ArgumentsT]]) -> Numpy:
    """Filters `a` along the axes, in their order, and returns a new contiguous array.

    Args:
        kernel: Filters images along rows, columns or both.
        a: Contiguous.
        axes: At least one, each at most once.
    """
    rest = list(axes)
    while rest:
        first, *others = rest
        used = 1
        if others and _is_image(a.shape, first.axis, others[0].axis):
            images = a.reshape(-1, a.shape[first.axis], a.shape[others[0].axis])
            a = _call(kernel, images, first.arguments, others[0].arguments).reshape(a.shape)
            used = 2
        elif others and _is_short(a.shape, first.axis, others[0].axis):
            a = _moved(kernel, a, first, others[0])
            used = 2
        elif math.prod(a.shape[first.axis + 1 :]) == 1:
            images = a.reshape(1, -1, a.shape[first.axis])
            a = _call(kernel, images, None, first.arguments).reshape(a.shape)
        else:
            before, after = a.shape[: first.axis], a.shape[first.axis + 1 :]
            images = a.reshape(math.prod(before), a.shape[first.axis], math.prod(after))
            a = _call(kernel, images, first.arguments, None).reshape(a.shape)
        rest = rest[used:]
    return a


def _is_image(shape: tuple[int, ...], rows: int, columns: int) -> bool:
    """Whether these two axes are the last ones, but for axes of length 1."""
    between, after = shape[rows + 1 : columns], shape[columns + 1 :]
    return rows < columns and math.prod(between) == 1 and math.prod(after) == 1


def _is_short(shape: tuple[int, ...], first: int, second: int) -> bool:
    return min(math.prod(shape[first + 1 :]), math.prod(shape[second + 1 :])) < SHORT_ROWS


def _moved(kernel: Kernel[ArgumentsT], a: Numpy, first: Axis[ArgumentsT], second: Axis[ArgumentsT]) -> Numpy:
    moved = np.ascontiguousarray(np.moveaxis(a, (first.axis, second.axis), (-2, -1)))
    images = moved.reshape(-1, *moved.shape[-2:])
    filtered = _call(kernel, images, first.arguments, second.arguments).reshape(moved.shape)
    return np.ascontiguousarray(np.moveaxis(filtered, (-2, -1), (first.axis, second.axis)))


def _call(kernel: Kernel[ArgumentsT], images: Numpy, rows: ArgumentsT | None, columns: ArgumentsT | None) -> Numpy:
    out = np.empty_like(images)
    kernel(images, rows, columns, out)
    return out
