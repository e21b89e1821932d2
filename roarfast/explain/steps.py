"""The steps that post-processings are chained from: one record each.

All are agnostic: they see the map, and for the random ones a seed and the sample's id, never the image or the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

import roarfast as rf
from roarfast._types import ArrayT
from roarfast._types import Numpy as Array

if TYPE_CHECKING:
    import torch

Numbers = tuple[float, ...]
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StepKind:
    """A kind of step.

    Attributes:
        name: As in `name(numbers)`.
        form: How it is written, for the grammar.
        meaning: What it does, for the grammar.
        wrong: Says what is wrong with its numbers, or `""`.
        apply: `f(maps [..., H, W], numbers) -> maps`, NumPy or torch (`native`), else NumPy.
        default: The numbers that stand for the bare name; None: they must be given.
        native: Whether `apply` takes torch tensors too.
        random: Whether `apply` also takes `(seed, ids)`, keyed by sample: k(A, U) of Song et al.
    """

    name: str
    form: str
    meaning: str
    wrong: Callable[[Numbers], str]
    apply: Callable[..., Any]
    default: Numbers | None = None
    native: bool = False
    random: bool = False


def _count(low: int, high: int, ok: Callable[[Numbers], bool], rule: str) -> Callable[[Numbers], str]:
    def wrong(numbers: Numbers) -> str:
        if not low <= len(numbers) <= high:
            many = f"{low}" if low == high else f"{low} or {high}"
            return f"it takes {many} number{'s' if high > 1 else ''}, got {len(numbers)}"
        return "" if ok(numbers) else rule

    return wrong


def _whole(numbers: Numbers) -> bool:
    return all(v >= 1 and v == int(v) for v in numbers)


def _nothing(numbers: Numbers) -> str:
    return "it takes no numbers" if numbers else ""


def _maximum(a: ArrayT, numbers: Numbers) -> ArrayT:
    return rf.maximum_filter(a, size=(int(numbers[0]), int(numbers[-1])))


def _gaussian(a: ArrayT, numbers: Numbers) -> ArrayT:
    return rf.gaussian_filter(a, sigma=(numbers[0], numbers[-1]))


def _positive(a: Array, _: Numbers) -> Array:
    return np.maximum(a, a.dtype.type(0))


def _unit(a: Array, _: Numbers) -> Array:
    return _divide(a, np.abs(a).max((-2, -1), keepdims=True))


def _minmax(a: Array, _: Numbers) -> Array:
    low = a.min((-2, -1), keepdims=True)
    return _divide(a - low, a.max((-2, -1), keepdims=True) - low)


def _divide(a: Array, by: Array) -> Array:
    return np.divide(a, by, out=np.zeros_like(a), where=by > 0)


def _power(a: Array, numbers: Numbers) -> Array:
    return np.sign(a) * np.abs(a) ** a.dtype.type(numbers[0])


def _shift(a: Array, numbers: Numbers) -> Array:
    return np.clip(a + a.dtype.type(numbers[0]), 0, 1)


def _clip(a: Array, numbers: Numbers) -> Array:
    return np.minimum(a, np.quantile(a, numbers[0], axis=(-2, -1), keepdims=True)).astype(a.dtype)


def _ranks(a: Array) -> Array:
    """Rank of each pixel in its map, ascending, divided by the number of pixels: in [0, 1)."""
    flat = a.reshape(*a.shape[:-2], -1)
    order = np.argsort(flat, -1, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(flat.shape[-1]), flat.shape), -1)
    return (ranks / flat.shape[-1]).reshape(a.shape)


def _lower(a: Array, numbers: Numbers) -> Array:
    rank = _ranks(a)
    return np.where((rank >= numbers[0]) & (rank < numbers[1]), a.dtype.type(0), a)


def _raise(a: Array, numbers: Numbers) -> Array:
    level = np.quantile(a, numbers[1], axis=(-2, -1), keepdims=True).astype(a.dtype)
    return np.where(_ranks(a) < numbers[0], level, a)


def _rect(a: Array, numbers: Numbers) -> Array:
    """A square of ones at the centre of mass of the positive values, moved inside; zeros elsewhere."""
    side = int(numbers[0])
    height, width = a.shape[-2:]
    if side > min(height, width):
        raise ValueError(f"rect({side}) does not fit into maps of {height}x{width}")
    weight = np.maximum(a.astype(np.float64), 0)
    mass = weight.sum((-2, -1))
    result = np.zeros_like(a)
    inside = np.ones(a.shape, bool)
    for axis, extent in ((-2, height), (-1, width)):
        along = weight.sum(-1 if axis == -2 else -2)
        centre = np.full(mass.shape, (extent - 1) / 2)  # of a map without mass: the middle
        np.divide(along @ np.arange(extent), mass, out=centre, where=mass > 0)
        first = np.ceil(centre - (side - 1) / 2 - 0.5)  # half pixels go down
        first = np.clip(first, 0, extent - side).astype(np.int64)[..., None]
        at = (np.arange(extent) >= first) & (np.arange(extent) < first + side)
        inside &= at[..., :, None] if axis == -2 else at[..., None, :]
    result[inside] = 1
    return result


def _rows(a: Array, numbers: Numbers) -> Array:
    """The mean over each of n bands of equal height."""
    bands, height = int(numbers[0]), a.shape[-2]
    if bands > height:
        raise ValueError(f"rows({bands}) cuts maps of {height} rows into more bands than rows")
    band = band_of_row(height, bands)
    member = (band == np.arange(bands)[:, None]) / np.bincount(band, minlength=bands)[:, None]  # [bands, H]
    means = np.einsum("bh,...hw->...b", member, a.astype(np.float64)) / a.shape[-1]
    return np.broadcast_to(means[..., band, None], a.shape).astype(a.dtype)


def band_of_row(height: int, bands: int) -> Ids:
    """Which of `bands` bands of equal height each row is in, counted from the top."""
    edges = np.round(np.arange(1, bands) * height / bands).astype(np.int64)
    return np.searchsorted(edges, np.arange(height), side="right")


def _jitter(a: Array, numbers: Numbers, seed: int, ids: Ids) -> Array:
    low, high = numbers
    # Another stream than that of random maps with the same seed: U is independent of A, also where A is `rand`.
    u = rf.pixel_random(a.shape, seed=(seed * 0x9E3779B97F4A7C15 + 0x6A69747465) % 2**63, index=ids)
    return np.clip(a + (low + (high - low) * u), 0, 1).astype(a.dtype)


def _inside(a: Array, numbers: Numbers, seed: int, ids: Ids) -> Array:
    """Random numbers on the top pixels of each map, -1 elsewhere: the reference pixel flipping of Wang and Wang as a k(A, U)."""
    u = rf.pixel_random(a.shape, seed=(seed * 0x9E3779B97F4A7C15 + 0x696E736964) % 2**63, index=ids)
    return np.where(rf.removal_mask(a, numbers[0], seed=seed, index=ids, ndim=2), u, -1).astype(a.dtype)


def _outlier(a: Array, numbers: Numbers, seed: int, ids: Ids) -> Array:
    """One random pixel of each map becomes a multiple of its largest absolute value."""
    pixels = a.shape[-2] * a.shape[-1]
    u = rf.pixel_random(a.shape, seed=(seed * 0x9E3779B97F4A7C15 + 0x6F75746C69) % 2**63, index=ids)
    flat, place = a.reshape(*a.shape[:-2], pixels).copy(), u.reshape(*a.shape[:-2], pixels).argmax(-1)[..., None]
    value = a.dtype.type(numbers[0]) * np.abs(flat).max(-1, keepdims=True)
    np.put_along_axis(flat, place, np.where(value > 0, value, 1).astype(a.dtype), -1)
    return flat.reshape(a.shape)


_SIZES = "the size of a maximum filter is an integer >= 1"
_UNIT_PAIR = _count(2, 2, lambda v: 0 <= v[0] <= v[1] <= 1, "it takes two rising fractions in [0, 1]")

KINDS: dict[str, StepKind] = {
    kind.name: kind
    for kind in (
        StepKind(
            "max",
            '"max(" size ")"',
            "maximum filter; max is max(3)",
            _count(1, 2, _whole, _SIZES),
            _maximum,
            (3.0,),
            native=True,
        ),
        StepKind(
            "gaussian",
            '"gaussian(" sigma ")"',
            "Gaussian filter; gaussian is gaussian(1)",
            _count(1, 2, lambda v: min(v) >= 0, "sigma is >= 0"),
            _gaussian,
            (1.0,),
            native=True,
        ),
        StepKind("positive", '"positive"', "negative values become 0", _nothing, _positive, ()),
        StepKind("unit", '"unit"', "divided by the largest absolute value", _nothing, _unit, ()),
        StepKind("minmax", '"minmax"', "moved and scaled to [0, 1]", _nothing, _minmax, ()),
        StepKind(
            "power",
            '"power(" p ")"',
            "|a|^p with the sign of a: keeps the order",
            _count(1, 1, lambda v: v[0] > 0, "p is > 0"),
            _power,
        ),
        StepKind(
            "clip",
            '"clip(" q ")"',
            "values above the q-quantile become it",
            _count(1, 1, lambda v: 0 <= v[0] <= 1, "q is in [0, 1]"),
            _clip,
        ),
        StepKind(
            "shift",
            '"shift(" c ")"',
            "a + c, clipped to [0, 1] (Li et al., Constant)",
            _count(1, 1, lambda v: True, ""),
            _shift,
        ),
        StepKind(
            "jitter",
            '"jitter(" low "," high ")"',
            "a + a random number per pixel, clipped to [0, 1] (Li et al., Random)",
            _count(2, 2, lambda v: v[0] <= v[1], "low is at most high"),
            _jitter,
            random=True,
        ),
        StepKind(
            "lower",
            '"lower(" from "," to ")"',
            "values at these ranks, ascending, become 0 (Li et al., Partial)",
            _UNIT_PAIR,
            _lower,
        ),
        StepKind(
            "raise",
            '"raise(" to "," q ")"',
            "values at the lowest ranks become the q-quantile (Li et al., Partial)",
            _count(2, 2, lambda v: min(v) >= 0 and max(v) <= 1, "both are in [0, 1]"),
            _raise,
        ),
        StepKind(
            "outlier",
            '"outlier(" factor ")"',
            "one random pixel becomes a multiple of the maximum; outlier is outlier(10)",
            _count(1, 1, lambda v: v[0] > 0, "the factor is > 0"),
            _outlier,
            (10.0,),
            random=True,
        ),
        StepKind(
            "inside",
            '"inside(" t ")"',
            "the top t in random order, the rest below (Wang and Wang, reference)",
            _count(1, 1, lambda v: 0 < v[0] <= 1, "t is above 0 and at most 1"),
            _inside,
            random=True,
        ),
        StepKind(
            "rect",
            '"rect(" side ")"',
            "a square of ones at the centre of mass (Li et al., Rect)",
            _count(1, 1, _whole, "the side is an integer >= 1"),
            _rect,
        ),
        StepKind(
            "rows",
            '"rows(" n ")"',
            "the mean over each of n bands (Li et al., Pooling)",
            _count(1, 1, _whole, "the number of bands is an integer >= 1"),
            _rows,
        ),
    )
}
"""Every kind of step by name."""


def apply(kind: StepKind, a: ArrayT, numbers: Numbers, seed: int, index: npt.ArrayLike | torch.Tensor | None) -> ArrayT:
    """A step applied to maps `[..., H, W]`, NumPy or torch; the result is of the same library, dtype and device."""
    if kind.native:
        return kind.apply(a, numbers)
    values = a if isinstance(a, np.ndarray) else _to_numpy(a)
    if not np.issubdtype(values.dtype, np.floating):
        raise TypeError(f"maps must be floating point for post-processing {kind.name!r}, got {values.dtype}")
    if kind.random:
        if index is None:
            raise ValueError(
                f"post-processing {kind.name!r} is random: it needs the sample ids, as in k(maps, index=ids)"
            )
        ids = np.ascontiguousarray(index.cpu().numpy() if hasattr(index, "cpu") else index, np.int64)
        result = kind.apply(values, numbers, seed, ids)
    else:
        result = kind.apply(values, numbers)
    if isinstance(a, np.ndarray):
        return result
    import torch

    return cast("ArrayT", torch.from_numpy(np.ascontiguousarray(result)).to(a.device, a.dtype))


def _to_numpy(a: torch.Tensor) -> Array:
    import torch

    a = a.detach().cpu()
    return (a.float() if a.dtype == torch.bfloat16 else a).numpy()
