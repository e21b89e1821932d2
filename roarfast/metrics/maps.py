"""Maps as users have them: arrays, tensors, dictionaries, stored maps, attributions per channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor

import roarfast as rf
from roarfast._types import Array, Numpy
from roarfast.metrics.inputs import Inputs


class Stored(Protocol):
    """Maps that are read when they are needed: those of `roarfast.explain` on disk, or of another library."""

    @property
    def shape(self) -> tuple[int, ...]:
        """As of an array."""

    def __len__(self) -> int: ...

    def __getitem__(self, key: slice, /) -> Numpy: ...


Maps: TypeAlias = "Array | Stored"
"""One set of maps."""


def read_maps(
    maps: Maps | Mapping[str, Maps], inputs: Inputs, aggregate: str = "mean(abs)"
) -> tuple[dict[str, Tensor], bool]:
    """Reads attribution maps.

    Args:
        maps: One set of maps, or a dictionary of them by name: arrays or tensors `[N, H, W]`, attributions per channel
            `[N, C, H, W]` or `[N, H, W, C]` (as captum gives them), stored maps; `[N, T]`, `[N, C, T]` or `[N, F]`.
        inputs: The samples they belong to.
        aggregate: How channels become one value, as in `roarfast.aggregate_channels`.

    Returns:
        Tensors `[N, H, W]` on the host by name, and whether any had channels.
    """
    if isinstance(maps, Mapping):
        if not maps:
            raise ValueError("maps must hold at least one set of maps, got an empty dictionary")
        named = {str(name): value for name, value in maps.items()}
    else:
        named = {"map": maps}
    result, aggregated = {}, False
    for name, value in named.items():
        result[name], channels = _read(
            f"maps[{name!r}]" if isinstance(maps, Mapping) else "maps", value, inputs, aggregate
        )
        aggregated |= channels
    return result, aggregated


def _read(name: str, value: Maps, inputs: Inputs, aggregate: str) -> tuple[Tensor, bool]:
    if not isinstance(value, (Tensor, np.ndarray)):
        if not (hasattr(value, "__getitem__") and hasattr(value, "shape")):
            raise TypeError(f"{name} must be an array, a tensor or stored maps, got {type(value).__name__}")
        value = value[:]  # stored maps
    a = value.detach().cpu() if isinstance(value, Tensor) else torch.from_numpy(np.array(value))
    if a.dtype == torch.bool or not (a.is_floating_point() or a.dtype == torch.uint8):
        a = a.to(torch.float64)
    n, (h, w), c = len(inputs), inputs.map_shape, inputs.channels
    pixels = (n, h, w) if inputs.kind == "images" else (n, w)
    shape = tuple(a.shape)
    if shape == pixels:
        return _checked(name, a.reshape(n, h, w)), False
    channels_first, channels_last = (n, c, *pixels[1:]), (*pixels, c)
    if shape in (channels_first, channels_last) and inputs.kind != "features":
        floats = a if a.is_floating_point() else a.float()
        merged = rf.aggregate_channels(floats, aggregate, axis=1 if shape == channels_first else len(shape) - 1)
        if tuple(merged.shape) != pixels:
            raise ValueError(f"aggregate must leave one value per pixel, got {aggregate!r}")
        return _checked(name, merged.reshape(n, h, w)), True
    if shape == (n, 1, h, w) and inputs.kind == "images":  # a map with an axis of its own, as CAMs often have
        return _checked(name, a[:, 0]), False
    per_channel = "" if inputs.kind == "features" else f", or {channels_first} per channel"
    raise ValueError(f"{name} must be {pixels}, one value per pixel{per_channel}, got shape {shape}")


def _checked(name: str, a: Tensor) -> Tensor:
    if a.is_floating_point() and a.numel():
        finite = torch.isfinite(a).flatten(1).all(1)
        if not bool(finite.all()):
            bad = (~finite).nonzero()[:, 0]
            raise ValueError(
                f"{name} must be finite, got NaN or infinity in {len(bad)} of {len(a)} maps (first: {int(bad[0])})"
            )
    return a.contiguous()


def require_nonnegative(score: str, a: Tensor) -> None:
    """Attributions are >= 0 in scores that add them up or threshold them."""
    if a.is_floating_point() and a.numel() and float(a.min()) < 0:
        raise ValueError(
            f"{score} needs maps >= 0, got a minimum of {float(a.min()):g}: take their positive part or absolute value first "
            "(values='positive' or values='abs')"
        )


def take_values(score: str, a: Tensor, values: str) -> Tensor:
    """Maps as a score takes them: `"raw"` (which must be >= 0), `"positive"` (negative values become 0) or `"abs"`."""
    if values == "raw":
        require_nonnegative(score, a)
        return a
    if values not in ("positive", "abs"):
        raise ValueError(f"values must be 'raw', 'positive' or 'abs', got {values!r}")
    return a.clamp(min=0) if values == "positive" else a.abs()


def segment_means(a: Tensor, segments: Tensor) -> list[Tensor]:
    """The mean of each segment, one float64 tensor `[S_i]` per map; segments count from 0 without gaps."""
    result = []
    for values, parts in zip(a, segments):
        count = int(parts.max()) + 1
        flat = parts.reshape(-1)
        total = torch.zeros(count, dtype=torch.float64).index_add_(0, flat, values.reshape(-1).double())
        result.append(total / torch.bincount(flat, minlength=count).double())
    return result


def by_segment(a: Tensor, segments: Tensor | None) -> Tensor:
    """Maps `[N, H, W]` in which every pixel has the mean of its segment; as they are without segments."""
    if segments is None or not len(a):
        return a
    return torch.stack([means[parts].to(a.dtype) for means, parts in zip(segment_means(a, segments), segments)])


def random_maps(inputs: Inputs, ids: Tensor, seed: int, segments: Tensor | None = None) -> Tensor:
    """Independent uniform numbers `[N, H, W]`, keyed by (seed, sample id): one per pixel, or one per segment."""
    noise = torch.from_numpy(rf.pixel_random((len(inputs), *inputs.map_shape), seed=seed, index=ids.numpy()))
    if segments is None:
        return noise
    # Segment s takes the number of pixel s. Means of the numbers of its own pixels would be near 1/2 where it is large:
    # large segments would never come first or last.
    return noise.flatten(1).gather(1, segments.flatten(1)).reshape(noise.shape)


def read_segments(segments: Array | None, inputs: Inputs) -> Tensor | None:
    """Segments int64 `[N, H, W]`, numbered 0, 1, 2, … in each sample; one `[H, W]` map serves all."""
    if segments is None:
        return None
    s = segments.detach().cpu() if isinstance(segments, Tensor) else torch.from_numpy(np.array(segments))
    if s.is_floating_point() or s.dtype == torch.bool:
        raise TypeError(f"segments must be integers, got {s.dtype}")
    n, (h, w) = len(inputs), inputs.map_shape
    one = (h, w) if inputs.kind == "images" else (w,)
    if tuple(s.shape) not in (one, (n, *one)):
        raise ValueError(f"segments must be {(n, *one)}, or {one} for all samples, got shape {tuple(s.shape)}")
    s = s.reshape(-1, h, w) if tuple(s.shape) != one else s.reshape(1, h, w)
    dense = torch.stack([torch.unique(part, return_inverse=True)[1] for part in s]) if len(s) else s.long()
    return dense.expand(n, h, w)
