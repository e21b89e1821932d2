"""What one case is: a valid call, what it must return, and how a result is compared with that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import roarfast as rf

Rng = np.random.Generator
FLOATS = ("float16", "float32", "float64")
EPS = {"float16": 1e-3, "float32": 1.2e-7, "float64": 2.3e-16}
LARGE = 64
"""Cases with an image beyond LARGE x LARGE count as large."""


@dataclass
class Case:
    """`op(**arrays, **options)` must be `want` within `atol` of each value (0: the same bits, but for the sign of zero)."""

    op: str
    arrays: dict[str, Any]
    options: dict[str, Any]
    want: Any
    atol: float = 0.0
    takes_out: bool = True
    makes: bool = False
    """Makes arrays from nothing: `device=` instead of arrays."""
    function: Callable[..., Any] | None = field(default=None, repr=False)

    def call(self, **given: Any) -> Any:
        """Calls the op, with some of the arguments replaced."""
        function = self.function or getattr(rf, self.op)
        return function(**(self.arrays | self.options | given))

    def is_large(self) -> bool:
        """Whether an array holds an image (or the features of one) beyond LARGE x LARGE."""
        sides = [a.shape for a in (*self.arrays.values(), self.want)]
        return any(_image_size(shape) > LARGE * LARGE for shape in sides)


def _image_size(shape: tuple[int, ...]) -> int:
    sides = sorted(shape)[-2:]
    return sides[0] * sides[-1] if len(sides) == 2 else sum(sides)


def pick(rng: Rng, options: Any) -> Any:
    """One of some values; `rng.choice` would make an array of them first."""
    return options[int(rng.integers(len(options)))]


def extent(rng: Rng) -> tuple[int, int]:
    """Rows and columns: mostly a few, an eighth beyond 64, now and then 1."""
    if rng.random() < 0.125:
        return int(rng.integers(65, 90)), int(rng.integers(65, 90))
    return int(rng.integers(1, 24)), int(rng.integers(1, 24))


def leading(rng: Rng, image: tuple[int, ...]) -> tuple[int, ...]:
    """Axes before those of one map; large maps come in small batches."""
    most = 3 if int(np.prod(image)) > LARGE * LARGE else 4
    return tuple(int(v) for v in rng.integers(1, most, rng.integers(0, 3)))


def values(rng: Rng, shape: tuple[int, ...], dtype: str) -> Any:
    """Numbers of a dtype: smooth, or of few levels, so that there are ties."""
    if dtype == "bool":
        return rng.random(shape) < rng.random()
    if dtype == "uint8":
        return rng.integers(0, pick(rng, (2, 256)), shape, dtype=np.uint8)
    if rng.random() < 0.3:
        return rng.integers(-2, 3, shape).astype(dtype)
    return (rng.standard_normal(shape, np.float32) * 10.0 ** rng.integers(-2, 3)).astype(dtype)


def seed_of(rng: Rng) -> int:
    """A seed, at the ends of its range too."""
    return int(pick(rng, (0, 1, 2**32 + 5, 2**63 - 1)))


def ids_of(rng: Rng, n: int) -> Any:
    """Sample ids, or None."""
    return None if rng.random() < 0.5 else rng.integers(0, 2**40, n)


def with_ids(arrays: dict[str, Any], ids: Any) -> dict[str, Any]:
    """Arrays with sample ids, if there are any."""
    return arrays if ids is None else arrays | {"index": ids}


def largest(a: Any) -> float:
    """The largest absolute value."""
    return float(np.abs(a.astype(np.float64)).max(initial=0))


def difference(case: Case, result: Any) -> str:
    """How a result differs from what it must be; empty if it does not."""
    got, want = np.asarray(result), case.want
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype} {got.shape} instead of {want.dtype} {want.shape}"
    same = got == want
    if same.all():
        return ""
    if case.atol:
        with np.errstate(invalid="ignore"):
            same |= np.abs(got.astype(np.float64) - want.astype(np.float64)) <= case.atol
    wrong = ~same
    if not wrong.any():
        return ""
    where = tuple(int(v) for v in np.argwhere(wrong)[0]) if wrong.ndim else ()
    return f"{int(wrong.sum())} of {wrong.size} values wrong, first at {where}: {got[where]} instead of {want[where]}"
