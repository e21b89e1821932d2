"""Arguments that no op may accept in silence, or crash on; and which errors are good ones."""

from __future__ import annotations

import inspect
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from fuzz_cases import Case

import roarfast as rf

HUGE = (2**31, 2**61, 2**62, 2**63 - 1, -(2**63), 2.0**60, 1e19, 1e300, (2**61, 1), (1.0, 2.0**61))
"""Numbers that fit 64 bits (or nearly), and products of which do not."""


NUMBERS = ("sigma", "radius", "size", "pad", "crop", "draw", "epoch", "origin", "chunk", "max_iter", "axis", "ndim")
"""Parameters that sizes of memory are made of."""


def scalars(torch: Any) -> list[Any]:
    """Values that are wrong, or at best odd, for nearly every parameter."""
    plain = [
        None, True, False, 0, 1, -1, 2**31, 2**61, 2**62, 2**63, 2**64, 2**70, -(2**63), -(2**70), 0.5, -0.5, 1.5, 1e300,
        float("nan"), float("inf"), -float("inf"), "", "no", "reflect", "\0", "naïve", b"", b"\x02\x02", bytearray(b"x"),
        [], (), {}, set(), [1], [1, 2], (0.1, 0.2), [[1, 2], [3, 4]], [None], ["3"], [1.9, 2.7], [True, False], range(2),
        object(), type, lambda: None, 1j, Decimal("0.5"), Fraction(1, 2), slice(None), Ellipsis, NotImplemented,
        np.float32(0.5), np.float64("nan"), np.int8(3), np.uint64(2**63), np.complex64(0.5 + 9j), np.True_, np.str_("a"),
        np.datetime64("2020-01-01"), np.timedelta64(3), np.array(0.3), np.array(3), np.array([0.1, 0.2]), np.array([1, 2]),
        np.array([]), np.array("a"), np.array([None], object), np.ma.masked_array([1.0], [True]), np.dtype("float32"),
    ]  # fmt: skip
    if torch is not None:
        plain += [torch.tensor(0.5), torch.tensor([1, 2]), torch.float32, torch.device("cpu"), torch.zeros(0)]
    return plain


def arrays(rng: np.random.Generator, right: Any, torch: Any) -> list[Any]:
    """Arrays of a wrong kind for an argument that should be `right`."""
    shape, dtype = right.shape, right.dtype
    made = [
        np.zeros(shape, np.complex64), np.zeros(shape, object), np.zeros(shape, "U3"), np.zeros(shape, "M8[s]"),
        np.zeros(shape, np.int16), np.zeros(shape, np.longdouble), np.zeros(shape, [("a", "f4"), ("b", "u1")]),
        np.zeros((), dtype), np.zeros(1, dtype), np.zeros((0, *shape[1:]), dtype), np.zeros((*shape, 2), dtype),
        np.zeros(tuple(s + 1 for s in shape), dtype), np.zeros(shape[1:], dtype), np.zeros((1, *shape), dtype),
        np.broadcast_to(np.zeros(1, dtype), shape), np.ma.masked_array(np.zeros(shape, dtype), True),
        np.full(shape, 255, np.uint8).view(bool), right.tolist(), memoryview(np.ascontiguousarray(right)),
        np.full(shape, np.nan) if dtype.kind == "f" else np.full(shape, 200, dtype),
        np.full(shape, -(2**62)) if dtype.kind == "i" else np.zeros(shape, np.float32),
        np.full(shape, 2**40) if dtype.kind == "i" else np.zeros(shape, np.float64),
    ]  # fmt: skip
    if torch is not None:
        dense = torch.from_numpy(np.ascontiguousarray(right)) if dtype.isnative else torch.zeros(shape)
        freed, shrunk = dense.clone(), dense.clone()
        freed.untyped_storage().resize_(0)
        shrunk.untyped_storage().resize_(max(0, shrunk.nbytes - 1))
        made += [dense, dense.to("meta"), freed, shrunk, dense.to(torch.complex64), dense.flatten()[:1].clone()]
        if dense.dim() >= 2:
            made += [dense.to_sparse(), torch.nested.nested_tensor([dense.float(), dense.float()])]
    return made


def is_named(error: Exception, case: Case) -> bool:
    """Whether an error says which argument is meant."""
    names = set(inspect.signature(getattr(rf, case.op)).parameters) | {"tensor", "tensors"}
    return any(re.search(rf"\b{name}\b", str(error)) for name in names)


EXCUSED = (
    "Cannot access data pointer",  # torch's own sentence about fake tensors
    "meta",  # what only exists as a shape
)


def verdict(error: Exception, case: Case) -> str:
    """What is wrong with an error; empty for one that helps."""
    if not isinstance(error, (TypeError, ValueError, RuntimeError, NotImplementedError, MemoryError)):
        return f"{type(error).__name__}: {error}"
    if is_named(error, case) or any(words in str(error) for words in EXCUSED):
        return ""
    return f"an error that names no argument: {type(error).__name__}: {str(error)[:200]}"
