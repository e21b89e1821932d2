"""Arguments that no op may accept in silence, or crash on; and which errors are good ones."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from fuzz_case import Case, Rng, pick

import roarfast as rf

HUGE = (2**31, 2**61, 2**62, 2**63 - 1, -(2**63), 2.0**60, 1e19, 1e300, (2**61, 1), (1.0, 2.0**61))
"""Numbers that fit 64 bits (or nearly), and products of which do not."""

NUMBERS = (
    "sigma",
    "radius",
    "size",
    "pad",
    "crop",
    "draw",
    "epoch",
    "origin",
    "chunk",
    "max_iter",
    "axis",
    "ndim",
    "count",
)
"""Parameters that sizes of memory are made of."""

_HOPELESS = [
    {}, set(), object(), type, lambda: None, slice(None), Ellipsis, NotImplemented, b"", b"\x02\x02", bytearray(b"x"), 1j,
    "\0", "naïve", [None], ["3"], np.datetime64("2020-01-01"), np.timedelta64(3), np.complex64(0.5 + 9j), np.array("a"),
    np.array([None], object), np.ma.masked_array([1.0], [True]), [[1, 2], [3, 4]],
]  # fmt: skip
"""What no parameter of any op means: accepting one is a failure."""
_ODD = [
    None, True, False, 0, 1, -1, 2**31, 2**61, 2**62, 2**63, 2**64, 2**70, -(2**63), -(2**70), 0.5, -0.5, 1.5, 1e300,
    float("nan"), float("inf"), -float("inf"), "", "no", "reflect", [], (), [1], [1, 2], (0.1, 0.2), [1.9, 2.7], [True, False],
    range(2), Decimal("0.5"), Fraction(1, 2), np.float32(0.5), np.float64("nan"), np.int8(3), np.uint64(2**63), np.True_,
    np.str_("a"), np.array(0.3), np.array(3), np.array([0.1, 0.2]), np.array([1, 2]), np.array([]), np.dtype("float32"),
]  # fmt: skip
"""Wrong for most parameters, right for some."""


@cache
def _scalars() -> list[Any]:
    try:
        import torch
    except ImportError:
        return _HOPELESS + _ODD
    some = [torch.tensor(0.5), torch.tensor([1, 2]), torch.float32, torch.device("cpu"), torch.zeros(0)]
    return _HOPELESS + _ODD + some


@cache
def parameters(op: str) -> dict[str, inspect.Parameter]:
    """The parameters of a public function."""
    return dict(inspect.signature(getattr(rf, op)).parameters)


def scalar(rng: Rng) -> Any:
    """A value that is wrong, or at best odd, for nearly every parameter."""
    return pick(rng, _scalars())


def must_be_refused(op: str, name: str, value: Any) -> bool:
    """Whether a parameter can mean nothing by a value: of those above, or no bool for a flag."""
    if name in ("index", "fill", "value") and isinstance(value, list) and value == [[1, 2], [3, 4]]:
        return False  # four ids, or four values for two images of two channels: right where there are so many
    if any(value is hopeless for hopeless in _HOPELESS):
        return True
    return isinstance(parameters(op)[name].default, bool) and not isinstance(value, (bool, np.bool_))


def _numpy_arrays(right: Any) -> list[Callable[[], Any]]:
    shape, dtype = right.shape, right.dtype
    return [
        *(
            lambda kind=kind: np.zeros(shape, kind)
            for kind in (
                np.complex64,
                object,
                "U3",
                "M8[s]",
                np.int16,
                np.longdouble,
                [("a", "f4"), ("b", "u1")],
            )
        ),
        *(
            lambda size=size: np.zeros(size, dtype)
            for size in (
                (),
                (1,),
                (0, *shape[1:]),
                (*shape, 2),
                tuple(s + 1 for s in shape),
                shape[1:],
                (1, *shape),
            )
        ),
        lambda: np.broadcast_to(np.zeros(1, dtype), shape),
        lambda: np.ma.masked_array(np.zeros(shape, dtype), True),
        lambda: np.full(shape, 255, np.uint8).view(bool),
        lambda: right.tolist(),
        lambda: memoryview(np.ascontiguousarray(right)),
        lambda: np.full(shape, np.nan) if dtype.kind == "f" else np.full(shape, 200, dtype),
        lambda: np.full(shape, -(2**62)) if dtype.kind == "i" else np.zeros(shape, np.float32),
        lambda: np.full(shape, 2**40) if dtype.kind == "i" else np.zeros(shape, np.float64),
    ]


def _tensors(right: Any, torch: Any) -> list[Callable[[], Any]]:
    dense = torch.from_numpy(np.ascontiguousarray(right)) if right.dtype.isnative else torch.zeros(right.shape)

    def resized(nbytes: int) -> Any:
        tensor = dense.clone()
        tensor.untyped_storage().resize_(max(0, nbytes))
        return tensor

    made = [
        lambda: dense,
        lambda: dense.to("meta"),
        lambda: resized(0),
        lambda: resized(dense.nbytes - 1),
        lambda: dense.to(torch.complex64),
        lambda: dense.flatten()[:1].clone(),
        lambda: dense[None],
        lambda: dense[:0],
    ]
    if dense.dim() < 1:
        return made[:-1]
    if dense.dim() < 2:
        return made
    nested = lambda: torch.nested.nested_tensor([dense.float(), dense.float()])  # noqa: E731
    return [*made, lambda: dense.to_sparse(), nested]


def bad_array(rng: Rng, right: Any, torch: Any, only_tensors: bool = False) -> Any:
    """An array of a wrong kind for an argument that should be `right`."""
    made = [] if only_tensors else _numpy_arrays(right)
    if torch is not None:
        made += _tensors(right, torch)
    return pick(rng, made)()


@cache
def _naming(names: tuple[str, ...]) -> re.Pattern[str]:
    """A sentence about one of some arguments: "a must …", "codes needs …", "x and mask must …", "drops[1] must …"."""
    some = "|".join(map(re.escape, names))
    return re.compile(
        rf"\b(?:{some})(?:\[\d+\])?(?: and \w+| \* \w+)? (?:must|needs)\b|\b(?:{some})=|\b(?:{some}) '[^']*'(?::| needs)"
    )


def is_named(error: Exception, names: tuple[str, ...]) -> bool:
    """Whether an error says which argument is meant: the word alone, such as "a", says nothing."""
    return _naming(names).search(str(error)) is not None


EXCUSED = {
    MemoryError: "",  # NumPy's and torch's own sentence: all arguments are right, the machine is too small
    RuntimeError: "can't allocate memory",
}
"""Errors that need not name an argument, with words that they must have."""


def verdict(error: Exception, case: Case) -> str:
    """What is wrong with an error of a public function; empty for one that helps."""
    if not isinstance(error, (TypeError, ValueError, RuntimeError, MemoryError)):
        return f"{type(error).__name__}: {error}"
    if any(isinstance(error, kind) and words in str(error) for kind, words in EXCUSED.items()):
        return ""
    if is_named(error, tuple(parameters(case.op))):
        return ""
    return f"an error that names no argument: {type(error).__name__}: {str(error)[:200]}"


def direct_verdict(error: Exception, names: tuple[str, ...]) -> str:
    """The same for `torch.ops.roarfast`: torch refuses what does not fit the schema, and names op and argument."""
    if not isinstance(error, (TypeError, ValueError, RuntimeError, NotImplementedError, MemoryError)):
        return f"{type(error).__name__}: {error}"
    if "roarfast::" in str(error) or is_named(error, names) or isinstance(error, MemoryError):
        return ""
    return f"an error that names no argument: {type(error).__name__}: {str(error)[:200]}"
