"""What a model is scored on: images, series or features of any library, layout and scale, read into one form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from roarfast._types import Array, Numpy

_CHANNELS = (1, 3, 4)
_CHUNK = 256  # samples looked at together: a dataset may be larger than memory
_GRID = 0.02  # of a grey level: floats this close to whole levels are 8-bit images after rounding errors
_MARGIN = 0.05  # outside [0, 1] that denormalised images may reach: interpolation overshoots a little

PerChannel: TypeAlias = "float | Sequence[float] | Array | None"
"""One number, or one per channel."""
Integers: TypeAlias = "Array | Sequence[int]"
"""Labels, or sample ids: int `[N]`."""


@dataclass(frozen=True)
class Inputs:
    """Samples in the form the engine perturbs.

    Attributes:
        pixels: uint8 `[N, H, W, C]` in 0..255, or float32 `[N, C, H, W]` in 0..1 (images) or in their own units.
        mean: Per channel, what the model's normalisation subtracts; in units of 0..1.
        std: Per channel, what it divides by.
        kind: `"images"`, `"series"` (`[N, C, T]`, held as one row of T pixels) or `"features"` (`[N, F]`, likewise).
        center: The mean value per channel in units of 0..1 (images) or of the samples: the fill `dataset_mean`.
        spread: The standard deviation of the values, for the fill `noise`.
        each: For series and features, whose values have units of their own: mean and deviation of each, `[C, 1, T]`.
    """

    pixels: Tensor
    mean: tuple[float, ...]
    std: tuple[float, ...]
    kind: str
    center: tuple[float, ...]
    spread: float
    each: tuple[Tensor, Tensor] | None = None

    def __len__(self) -> int:
        return int(self.pixels.shape[0])

    @property
    def whole_numbers(self) -> bool:
        """Whether the samples are 8-bit images."""
        return self.pixels.dtype == torch.uint8

    @property
    def channels(self) -> int:
        """Channels of a pixel."""
        return int(self.pixels.shape[3 if self.whole_numbers else 1])

    @property
    def map_shape(self) -> tuple[int, int]:
        """`(H, W)` of the maps that belong to these samples; H is 1 for series and features."""
        h, w = self.pixels.shape[1:3] if self.whole_numbers else self.pixels.shape[2:]
        return int(h), int(w)

    @property
    def values(self) -> int:
        """Numbers in one sample."""
        h, w = self.map_shape
        return self.channels * h * w

    def for_model(self, x: Tensor) -> Tensor:
        """A batch `[B, C, H, W]` in the shape the model takes."""
        if self.kind == "features":
            return x.reshape(x.shape[0], -1)
        return x.reshape(x.shape[0], x.shape[1], -1) if self.kind == "series" else x


def read_inputs(
    images: Array,
    *,
    layout: str | None = None,
    mean: PerChannel = None,
    std: PerChannel = None,
    normalized: bool | None = None,
) -> Inputs:
    """Reads samples.

    Args:
        images: `[N, C, H, W]` or `[N, H, W, C]` images, uint8 or floating point; `[N, C, T]` series; `[N, F]` features.
            NumPy or torch.
        layout: `"NCHW"` or `"NHWC"`; None: by where 1, 3 or 4 channels are.
        mean: Per channel, in units of 0..1: the model takes `(image - mean) / std`.
        std: Likewise.
        normalized: Whether float images are normalised already; None: if they leave [0, 1].

    Returns:
        The samples. Float images that lie on the 256 grey levels, up to rounding, become uint8: both kinds of input
        then give the same results, bit for bit.

    Example:
        >>> read_inputs(np.zeros((2, 8, 8, 3), np.uint8)).map_shape
        (8, 8)
    """
    x = images if isinstance(images, Tensor) else _tensor("images", images)
    if x.ndim == 2 or x.ndim == 3:
        return _read_rows(x, mean, std)
    if x.ndim != 4:
        raise ValueError(f"images must be [N, C, H, W], [N, H, W, C], [N, C, T] or [N, F], got shape {tuple(x.shape)}")
    layout = _layout(x, layout)
    channels = int(x.shape[1 if layout == "NCHW" else 3])
    means = _per_channel("mean", mean, channels, 0.0)
    stds = _per_channel("std", std, channels, 1.0)
    if min(stds) <= 0:
        raise ValueError(f"std must be > 0, got {min(stds):g}")
    given = mean is not None or std is not None
    if x.dtype == torch.uint8:
        pixels = x.permute(0, 2, 3, 1) if layout == "NCHW" else x
        pixels = pixels.contiguous()
    elif x.is_floating_point():
        planes = x if layout == "NCHW" else x.permute(0, 3, 1, 2)
        pixels = _pixels(planes, means, stds, given, normalized)
    else:
        raise TypeError(f"images must be uint8 or floating point, got {x.dtype}")
    center, spread = _statistics(pixels)
    return Inputs(pixels, means, stds, "images", means if mean is not None else center, spread)


def integers(name: str, values: Integers, n: int) -> Tensor:
    """Integers int64 `[n]` on the host."""
    tensor = values.detach().cpu() if isinstance(values, Tensor) else torch.from_numpy(np.asarray(values).copy())
    if tensor.numel() and (tensor.is_floating_point() or tensor.dtype == torch.bool or tensor.is_complex()):
        raise TypeError(f"{name} must be integers, got {tensor.dtype}")
    if tuple(tensor.shape) != (n,):
        raise ValueError(f"{name} must be one integer per sample, [{n}], got shape {tuple(tensor.shape)}")
    return tensor.to(torch.int64)


def _tensor(name: str, a: Numpy) -> Tensor:
    if not isinstance(a, np.ndarray):
        raise TypeError(f"{name} must be a NumPy array or a torch tensor, got {type(a).__name__}")
    if a.dtype == object:
        raise TypeError(f"{name} must be numbers, got an array of objects")
    if not a.flags.writeable or any(s < 0 for s in a.strides) or not a.dtype.isnative:
        # torch warns of read-only arrays and refuses the others; nothing here writes to it
        a = np.array(a, a.dtype.newbyteorder("=")) if not isinstance(a, np.memmap) else a
    if isinstance(a, np.memmap) and not a.flags.writeable:
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return torch.from_numpy(a)
    return torch.from_numpy(a)


def _layout(x: Tensor, layout: str | None) -> str:
    if layout is not None:
        if layout not in ("NCHW", "NHWC"):
            raise ValueError(f"layout must be 'NCHW' or 'NHWC', got {layout!r}")
        return layout
    first, last = int(x.shape[1]) in _CHANNELS, int(x.shape[3]) in _CHANNELS
    if first and last:
        raise ValueError(
            f"images of shape {tuple(x.shape)} may be [N, C, H, W] or [N, H, W, C]: say layout='NCHW' or layout='NHWC'"
        )
    return "NHWC" if last else "NCHW"


def _per_channel(name: str, value: PerChannel, channels: int, default: float) -> tuple[float, ...]:
    if value is None:
        return (default,) * channels
    values = np.asarray(value.cpu() if isinstance(value, Tensor) else value, np.float64).reshape(-1)
    if values.size not in (1, channels):
        raise ValueError(f"{name} must be one number or one per channel ({channels}), got {values.size}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, got {values.tolist()}")
    return tuple(float(v) for v in np.broadcast_to(values, (channels,)))


def _pixels(
    planes: Tensor, mean: tuple[float, ...], std: tuple[float, ...], given: bool, normalized: bool | None
) -> Tensor:
    """Float planes as uint8 pixels where they are 8-bit images, else as float32 planes in 0..1."""
    low, high = _range("images", planes)
    inside = low >= -1e-6 and high <= 1 + 1e-6
    if not inside and not given:
        hint = (
            "divide them by 255, or pass uint8"
            if low >= 0 and high <= 255
            else "pass the mean= and std= they were normalised by"
        )
        raise ValueError(
            f"float images must be in [0, 1] where mean and std are not given, got {low:g} to {high:g}: {hint}"
        )
    normalized = not inside if normalized is None else normalized
    column = (1, -1, 1, 1)
    means, stds = (torch.tensor(v, dtype=torch.float64).reshape(column) for v in (mean, std))

    def unit(part: Tensor) -> Tensor:
        part = part.double()
        return part * stds.to(part.device) + means.to(part.device) if normalized else part

    if normalized:
        low, high = _range("images", planes, unit)
        if low < -_MARGIN or high > 1 + _MARGIN:
            raise ValueError(
                f"images * std + mean must be in [0, 1], got {low:g} to {high:g}: "
                "do mean and std belong to these images?"
            )
    grid = all(_on_grid(unit(part)) for part in planes.split(_CHUNK))
    if grid:
        n, c, h, w = planes.shape
        out = torch.empty((n, h, w, c), dtype=torch.uint8, device=planes.device)
        for part, target in zip(planes.split(_CHUNK), out.split(_CHUNK)):
            target.copy_((255 * unit(part)).round().permute(0, 2, 3, 1))
        return out
    if not normalized:
        return planes.float().contiguous()
    return torch.cat([unit(part).float() for part in planes.split(_CHUNK)]) if len(planes) else planes.float()


def _on_grid(part: Tensor) -> bool:
    levels = 255 * part
    whole = levels.round()
    return bool(((levels - whole).abs() <= _GRID).all() and (whole >= 0).all() and (whole <= 255).all())


def _range(name: str, x: Tensor, change: Callable[[Tensor], Tensor] | None = None) -> tuple[float, float]:
    low, high = np.inf, -np.inf
    for start in range(0, len(x), _CHUNK):
        part = x[start : start + _CHUNK]
        part = part if change is None else change(part)
        if part.numel() == 0:
            continue
        if not bool(torch.isfinite(part).all()):
            bad = int((~torch.isfinite(part)).flatten(1).any(1).nonzero()[0]) + start
            raise ValueError(f"{name} must be finite, got NaN or infinity in sample {bad}")
        low, high = min(low, float(part.min())), max(high, float(part.max()))
    return (0.0, 0.0) if low > high else (low, high)


def _read_rows(x: Tensor, mean: PerChannel, std: PerChannel) -> Inputs:
    """Features `[N, F]` and series `[N, C, T]`, in their own units."""
    kind = "features" if x.ndim == 2 else "series"
    if x.dtype == torch.uint8 and x.ndim == 3:
        raise ValueError(f"images of shape {tuple(x.shape)} lack the channel axis: pass images[:, None] ([N, 1, H, W])")
    if x.dtype == torch.bool or x.is_complex():
        raise TypeError(f"{kind} must be real numbers, got {x.dtype}")
    values = (x if x.is_floating_point() else x.double()).float()
    _range(kind, values)
    planes = values[:, None, None, :] if x.ndim == 2 else values[:, :, None, :]
    channels = int(planes.shape[1])
    means = _per_channel("mean", mean, channels, 0.0)
    stds = _per_channel("std", std, channels, 1.0)
    if min(stds) <= 0:
        raise ValueError(f"std must be > 0, got {min(stds):g}")
    center, spread = _statistics(planes)
    each = (planes.mean(0), planes.std(0, correction=0)) if len(planes) else (planes.sum(0), planes.sum(0))
    return Inputs(planes.contiguous(), means, stds, kind, center, spread, each)


def _statistics(pixels: Tensor) -> tuple[tuple[float, ...], float]:
    """Mean per channel and standard deviation of all values, in units of 0..1 for uint8."""
    whole = pixels.dtype == torch.uint8
    channels = int(pixels.shape[3 if whole else 1])
    total = torch.zeros(channels, dtype=torch.float64)
    squares, count = 0.0, 0
    for part in pixels.split(_CHUNK):
        values = part.double() / 255 if whole else part.double()
        total += values.sum((0, 1, 2) if whole else (0, 2, 3)).cpu()
        squares += float(values.square().sum())
        count += part.numel()
    if count == 0:
        return (0.0,) * channels, 0.0
    center = tuple(float(v) for v in total * channels / count)
    mean = float(total.sum()) / count
    return center, max(squares / count - mean * mean, 0.0) ** 0.5
