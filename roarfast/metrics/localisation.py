"""Plausibility: does the map point where the object, or the watermark, is? Needs no model, and says nothing of one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import roarfast as rf
from roarfast._types import Array, Numpy

if TYPE_CHECKING:
    from roarfast.metrics.inputs import Integers

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

VALUES = ("abs", "positive", "raw")
TIES = ("hash", "any", "all")


@dataclass(frozen=True)
class PointingGame:
    """Whether the highest pixel of each map is in its region.

    Attributes:
        hit: bool `[N]`; False where there is no region.
        ratio: Hits among the images that have a region; NaN if none has.
        point: int64 `[N, 2]`, row and column of the highest pixel.
        distance: float64 `[N]`, from that pixel to the nearest of the region, between centres; NaN without region.
        skipped: How many images have no region.
    """

    hit: Bools
    ratio: float
    point: npt.NDArray[np.int64]
    distance: Floats
    skipped: int


def mass_inside(maps: Array, regions: Array, *, values: str = "abs") -> Floats:
    """The share of a map's attribution inside a region: Attr% of Zhou et al. 2022.

    Args:
        maps: `[..., H, W]`, NumPy or torch.
        regions: bool `[..., H, W]`, True inside.
        values: `"abs"`: absolute values; `"positive"`: negative ones count as 0; `"raw"`: maps must be >= 0.

    Returns:
        float64 `[...]`; NaN where the region or the map is empty.

    Example:
        >>> float(mass_inside(np.array([[1.0, -3.0]]), np.array([[False, True]])))
        0.75
    """
    if values not in VALUES:
        raise ValueError(f"values must be one of {', '.join(VALUES)}, got {values!r}")
    a, inside = _pair(maps, regions)
    if values == "raw" and a.size and a.min() < 0:
        raise ValueError(f"maps must be >= 0 for values='raw', got {a.min()}: take 'positive' or 'abs'")
    a = np.abs(a) if values == "abs" else np.maximum(a, 0)
    mass = a.sum((-2, -1))
    share = np.full(mass.shape, np.nan)
    np.divide((a * inside).sum((-2, -1)), mass, out=share, where=(mass > 0) & inside.any((-2, -1)))
    return share


def pointing_game(
    maps: Array,
    regions: Array | None = None,
    *,
    boxes: Array | Sequence[Sequence[float]] | None = None,
    tolerance: float = 0.0,
    ties: str = "hash",
    seed: int = 0,
    index: Integers | None = None,
) -> PointingGame:
    """Zhang et al.'s pointing game: a hit if the highest pixel is in the region, or at most `tolerance` from it.

    Args:
        maps: `[N, H, W]`, NumPy or torch.
        regions: bool `[N, H, W]`, True on the object.
        boxes: float `[N, 4]`, x0 y0 x1 y1 in pixels, instead of regions; pixel [y, x] is inside if its centre is.
        tolerance: In pixels, between centres of pixels.
        ties: Which of several highest pixels counts: `"hash"`: one of them, by (seed, sample id); `"any"`: a hit if any
            of them hits (a constant map then always does); `"all"`: only if all do.
        seed: Of the hash.
        index: Sample ids `[N]` of the hash.

    Returns:
        Hits and distances; images without a region are skipped and counted.

    Example:
        >>> a = np.zeros((1, 4, 4))
        >>> a[0, 0, 3] = 1
        >>> region = np.zeros((1, 4, 4), bool)
        >>> region[0, 2:, 3] = True
        >>> pointing_game(a, region).ratio, pointing_game(a, region, tolerance=2).ratio
        (0.0, 1.0)
    """
    from scipy.ndimage import distance_transform_edt

    if ties not in TIES:
        raise ValueError(f"ties must be one of {', '.join(TIES)}, got {ties!r}")
    if not (np.isfinite(tolerance) and tolerance >= 0):
        raise ValueError(f"tolerance must be >= 0 pixels, got {tolerance}")
    if 0 < tolerance < 1:
        warnings.warn(f"tolerance={tolerance} is less than one pixel: it changes nothing", UserWarning, stacklevel=2)
    if (regions is None) == (boxes is None):
        raise ValueError("give either regions or boxes")
    a = _array(maps)
    if a.ndim != 3:
        raise ValueError(f"maps must be [N, H, W], got shape {a.shape}")
    if regions is None:
        assert boxes is not None
        regions = box_regions(boxes, a.shape)
    a, inside = _pair(a, regions)
    n, height, width = a.shape
    # Half a pixel more than one, so that rounding cannot make it none.
    top = rf.removal_mask(a, min(1.0, 1.5 / (height * width)), seed=seed, index=index) if n else np.zeros_like(inside)
    point = np.stack(np.divmod(top.reshape(n, -1).argmax(1), width), 1)
    there = inside.any((-2, -1))
    distance = np.full(n, np.nan)
    hit = np.zeros(n, bool)
    for i in np.flatnonzero(there):
        away = distance_transform_edt(~inside[i])
        distance[i] = away[tuple(point[i])]
        if ties == "hash":
            hit[i] = distance[i] <= tolerance
        else:
            highest = away[a[i] == a[i].max()] <= tolerance
            hit[i] = highest.any() if ties == "any" else highest.all()
    count = int(there.sum())
    return PointingGame(hit, float(hit.sum() / count) if count else float("nan"), point, distance, n - count)


def box_regions(boxes: Array | Sequence[Sequence[float]], shape: tuple[int, ...]) -> Bools:
    """Boxes `[N, 4]` (x0 y0 x1 y1) as regions bool `[N, H, W]` of the pixels whose centres are inside.

    Raises:
        ValueError: A box is inverted, or reaches outside the image; says which. Boxes of zeros are empty regions.
    """
    b = np.asarray(_array(boxes), np.float64)
    n, height, width = shape
    if b.shape != (n, 4):
        raise ValueError(f"boxes must be [{n}, 4], got shape {b.shape}")
    wrong = (b[:, 0] > b[:, 2]) | (b[:, 1] > b[:, 3]) | (b < 0).any(1) | (b > [width, height, width, height]).any(1)
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(f"boxes must be x0 <= x1, y0 <= y1 inside {width}x{height} pixels, box {i} is {b[i].tolist()}")
    x, y = np.arange(width) + 0.5, np.arange(height) + 0.5
    across = (x >= b[:, 0, None]) & (x < b[:, 2, None])
    down = (y >= b[:, 1, None]) & (y < b[:, 3, None])
    return np.asarray(down[:, :, None] & across[:, None, :])


def _array(values: Array | Sequence[Sequence[float]]) -> Numpy:
    return values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)


def _pair(maps: Array, regions: Array) -> tuple[Floats, Bools]:
    a, inside = np.asarray(_array(maps), np.float64), _array(regions)
    if inside.dtype != bool:
        raise TypeError(f"regions must be bool, got {inside.dtype}")
    if a.ndim < 2 or a.shape != inside.shape:
        raise ValueError(f"maps and regions must have the same shape [..., H, W], got {a.shape} and {inside.shape}")
    if not np.isfinite(a).all():
        raise ValueError("maps must be finite, got NaN or infinity")
    return a, inside
