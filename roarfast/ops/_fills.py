"""The replacements that `fill` and `remove` share: from what the user says to what the kernels take."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from roarfast.ops import _check as check
from roarfast.ops._images import Layout
from roarfast.ops._op import is_tensor
from roarfast.ops.gaussian_filter import gaussian_filter

# The values of rf_fill_kind in csrc/include/roarfast.h.
KINDS = {"values": 0, "kept_mean": 1, "image_mean": 2, "image": 3, "noise": 4}
NAMES = ("zero", "kept_mean", "image_mean", "blur", "noise", "linear")
_INSTEAD = {
    "mean": "'kept_mean' is the mean of the pixels that stay, 'image_mean' that of all",
    "mean_all": "it is called 'image_mean'",
    "dataset_mean": "an op sees one batch: give the means of the dataset, one number per channel",
}


class Fill(NamedTuple):
    """A replacement: `values` ([c] or [n, c]) and `other` (images) are arrays like x or None."""

    kind: str
    values: Any
    other: Any
    noise_mean: float
    noise_std: float


def prepare(
    name: str, value: Any, x: Any, layout: str, sizes: Layout, sigma: Any, noise_mean: float, noise_std: float
) -> Fill:
    """Checks the value of a fill and makes its arrays."""
    mean = check.number("noise_mean", noise_mean)
    std = check.number("noise_std", noise_std, 0)
    if isinstance(value, str):
        if value in _INSTEAD:
            raise ValueError(f"{name} {value!r}: {_INSTEAD[value]}")
        check.one_of(name, value, NAMES)
        if value == "blur":
            return Fill("image", None, _blur(x, layout, sigma), mean, std)
        if value != "zero":
            return Fill(value, None, None, mean, std)
        value = 0.0
    return Fill("values", _values(name, value, x, sizes), None, mean, std)


def _values(name: str, value: Any, x: Any, sizes: Layout) -> Any:
    """float64 `[c]` or `[n, c]` of the library of x."""
    given = value.detach().cpu().numpy() if is_tensor(value) else value
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be a number, one per channel, [N, C], or one of {', '.join(map(repr, NAMES))}, got {value!r}"
        ) from None
    if values.ndim == 0:
        values = np.full(sizes.c, float(values))
    elif values.ndim > 1:
        values = values.reshape(-1, values.shape[-1])
    if values.shape not in ((sizes.c,), (sizes.n, sizes.c)):
        raise ValueError(
            f"{name} must be one number, {sizes.c} (one per channel) or {sizes.n} x {sizes.c} (per image and channel), "
            f"got shape {np.shape(given)}"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, got {value!r}")
    if check.dtype_name(x) == "uint8" and values.size and not (values.min() >= 0 and values.max() <= 255):
        raise ValueError(f"{name} must be in [0, 255] for uint8 images, got {value!r}")
    if is_tensor(x):
        import torch

        return torch.from_numpy(values).to(x.device)
    return np.ascontiguousarray(values)


def _blur(x: Any, layout: str, sigma: Any) -> Any:
    """X blurred along its image axes, in its own dtype."""
    if layout == "NF":
        raise ValueError("blur needs images, got layout='NF' (features without neighbours)")
    if is_tensor(x):
        import torch

        image = x.movedim(-1, -3) if layout == "NHWC" else x
        whole = not image.is_floating_point()
        blurred = gaussian_filter(image.float() if whole else image, sigma)
        blurred = blurred.round().clamp(0, 255).to(torch.uint8) if whole else blurred
        return (blurred.movedim(-3, -1) if layout == "NHWC" else blurred).contiguous()
    image = np.moveaxis(x, -1, -3) if layout == "NHWC" else x
    whole = image.dtype.kind == "u"
    blurred = gaussian_filter(image.astype(np.float32) if whole else image, sigma)
    blurred = np.clip(np.rint(blurred), 0, 255).astype(np.uint8) if whole else blurred
    return np.ascontiguousarray(np.moveaxis(blurred, -3, -1) if layout == "NHWC" else blurred)
