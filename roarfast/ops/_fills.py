"""The replacements that `fill` and `remove` share: from what the user says to what the kernels take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from roarfast._types import Array
from roarfast.ops import _check as check
from roarfast.ops._arrays import NUMPY, A, Arrays
from roarfast.ops._images import Layout
from roarfast.ops._op import is_tensor
from roarfast.ops.gaussian_filter import gaussian_filter

if TYPE_CHECKING:
    import torch

FillValue: TypeAlias = "str | float | Sequence[float] | Sequence[Sequence[float]] | Array"
"""The name of a fill, or its numbers: one, one per channel, or one per image and channel."""

# The values of rf_fill_kind in csrc/include/roarfast.h.
KINDS = {"values": 0, "kept_mean": 1, "image_mean": 2, "image": 3, "noise": 4}
NAMES = ("zero", "kept_mean", "image_mean", "blur", "noise", "linear")
_INSTEAD = {
    "mean": "'kept_mean' is the mean of the pixels that stay, 'image_mean' that of all",
    "mean_all": "it is called 'image_mean'",
    "dataset_mean": "an op sees one batch: give the means of the dataset, one number per channel",
}
_CACHED = 64  # constants that stay on their device


class Fill(NamedTuple):
    """A replacement: `constants` as numbers, or `values` ([n, c]) and `other` (images) as arrays like x; else None."""

    kind: str
    constants: list[float] | None  # c of them, or n * c
    values: Array | None
    other: Array | None
    noise_mean: float
    noise_std: float


def prepare(
    name: str,
    value: FillValue,
    x: Array,
    layout: str,
    sizes: Layout,
    sigma: float | Sequence[float],
    noise_mean: float,
    noise_std: float,
) -> Fill:
    """Checks the value of a fill and makes its arrays."""
    mean = check.number("noise_mean", noise_mean)
    std = check.number("noise_std", noise_std, 0)
    if type(sigma) is not float:  # unused by most fills, and still no place for nonsense
        for s in check.per_axis("sigma", sigma):
            check.number("sigma", s, 0)
    if isinstance(value, str):
        if value in _INSTEAD:
            raise ValueError(f"{name} {value!r}: {_INSTEAD[value]}")
        check.one_of(name, value, NAMES)
        if value == "blur":
            return Fill("image", None, None, _blur(x, layout, sigma), mean, std)
        if value != "zero":
            return Fill(value, None, None, None, mean, std)
        value = 0.0
    if is_tensor(value) and value.ndim > 0 and value.device.type != "cpu":
        return Fill("values", None, _device_values(name, value, x, sizes), None, mean, std)
    return Fill("values", _constants(name, value, x, sizes), None, None, mean, std)


def operands(
    xp: Arrays[A],
    x: A,
    kind: str,
    constants: Sequence[float] | None,
    values: A | None,
    other: A | None,
    index: A | None,
    sizes: Layout,
) -> tuple[A | None, int, A | None, A | None]:
    """Values, whether they are per image, the other image and the sample ids as kernels want them; see `check.operand`."""
    if xp is not NUMPY:
        if KINDS[kind] == KINDS["values"] and constants is None and values is None:
            raise ValueError("constants or values must be given for kind 'values'")
        if KINDS[kind] == KINDS["image"] and other is None:
            raise ValueError("other must be given for kind 'image'")
        if constants is not None and len(constants) not in (sizes.c, sizes.n * sizes.c):
            raise ValueError(f"constants must be {sizes.c} or {sizes.n * sizes.c} numbers, got {len(constants)}")
        check.operand(xp, "values", values, ("float64",), (sizes.c,), (sizes.n, sizes.c))
        check.operand(xp, "other", other, (xp.dtype(x),), tuple(x.shape))
        check.operand(xp, "index", index, ("int64",), (sizes.n,))
    values, other, index = (None if a is None else xp.contiguous(a) for a in (values, other, index))
    values, per_image = kernel_values(constants, values, x, sizes.c)
    return values, per_image, other, index


def _constants(name: str, value: Any, x: Array, sizes: Layout) -> list[float]:
    """`c` or `n * c` numbers. Plain numbers without NumPy, so that torch.compile can follow."""
    if type(value) in (int, float):
        values, shape = [float(value)] * sizes.c, (sizes.c,)
    elif type(value) in (list, tuple) and all(type(v) in (int, float) for v in value):
        values, shape = [float(v) for v in value], (len(value),)
    else:
        try:
            array = np.asarray(value.detach().cpu().numpy() if is_tensor(value) else value)
            if array.dtype.kind not in "iuf" or isinstance(value, (np.ma.MaskedArray, bytearray, memoryview)):
                raise TypeError
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            raise TypeError(
                f"{name} must be a number, one per channel, [N, C], or one of {', '.join(map(repr, NAMES))}, got {value!r}"
            ) from None
        if array.ndim == 0:
            array = np.full(sizes.c, float(array))
        elif array.ndim > 1:
            array = array.reshape(-1, array.shape[-1])
        values, shape = [float(v) for v in array.reshape(-1)], array.shape
    _check_shape(name, shape, sizes)
    if not all(math.isfinite(v) for v in values):
        raise ValueError(f"{name} must be finite, got {value!r}")
    if check.dtype_name(x) == "uint8" and not all(0 <= v <= 255 for v in values):
        raise ValueError(f"{name} must be in [0, 255] for uint8 images, got {value!r}")
    return values


def _device_values(name: str, value: torch.Tensor, x: Array, sizes: Layout) -> torch.Tensor:
    """float64 `[c]` or `[n, c]` where it is: looking at the numbers would wait for the device."""
    check.same_kind(x=x, **{name: value})
    values = value.detach().double()
    values = values.reshape(-1, values.shape[-1]) if values.ndim > 1 else values
    _check_shape(name, tuple(values.shape), sizes)
    return values.contiguous()


def _check_shape(name: str, shape: tuple[int, ...], sizes: Layout) -> None:
    if shape not in ((sizes.c,), (sizes.n, sizes.c)):
        raise ValueError(
            f"{name} must be one number, {sizes.c} (one per channel) or {sizes.n} x {sizes.c} (per image and channel), "
            f"got shape {shape}"
        )


def kernel_values(constants: Sequence[float] | None, values: A | None, like: A, c: int) -> tuple[A | None, int]:
    """What the kernels take: an array of the library and device of `like`, and whether it is per image."""
    if constants is None:
        return values, int(values is not None and len(values.shape) == 2)
    per_image = int(len(constants) != c)
    if not is_tensor(like):
        return np.array(constants), per_image
    make = _constants_on if len(constants) <= _CACHED else _constants_on.__wrapped__
    return make(tuple(constants), like.device), per_image


@lru_cache(maxsize=256)
def _constants_on(constants: tuple[float, ...], device: torch.device) -> torch.Tensor:
    """On a GPU an upload that waits for the device: once, not in every call."""
    import torch

    return torch.tensor(constants, dtype=torch.float64, device=device)


def _blur(x: Array, layout: str, sigma: float | Sequence[float]) -> Array:
    """X blurred along its image axes, in its own dtype."""
    if layout == "NF":
        raise ValueError("blur needs images, got layout='NF' (features without neighbours)")
    if is_tensor(x):
        import torch

        check.readable("x", x, x)
        image = x.movedim(-1, -3) if layout == "NHWC" else x
        whole = not image.is_floating_point()
        blurred = gaussian_filter(image.float() if whole else image, sigma)
        blurred = blurred.round().clamp(0, 255).to(torch.uint8) if whole else blurred
        return (blurred.movedim(-3, -1) if layout == "NHWC" else blurred).contiguous()
    planes = np.moveaxis(x, -1, -3) if layout == "NHWC" else x
    whole = planes.dtype.kind == "u"
    smooth = gaussian_filter(planes.astype(np.float32) if whole else planes, sigma)
    smooth = np.clip(np.rint(smooth), 0, 255).astype(np.uint8) if whole else smooth
    return np.ascontiguousarray(np.moveaxis(smooth, -3, -1) if layout == "NHWC" else smooth)
