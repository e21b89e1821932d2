"""Planted truth: maps of known quality on data that knows where its objects are, and how well a score orders them.

Maps are made from the object's mask, so their quality is known: the true mask with a share of pixels replaced by coin
tosses, its edge, its blur, a shifted copy, edges of the image, random numbers. A score can be trusted as far as its
order of these maps is the order of their overlap with the object.

The model part of a score is 0 for all of them by construction (they ask no model), and it should be: it is about the
model, not about the object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import roarfast as rf

if TYPE_CHECKING:
    from roarfast.metrics.inputs import Integers

Floats = npt.NDArray[np.float64]
Maps = dict[str, npt.NDArray[np.float32]]

SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
_COINS, _PLACES = 0x636F696E73, 0x706C61636573  # streams of their own, apart from random maps with the same seed


def planted_maps(
    images: npt.NDArray[np.uint8], masks: npt.NDArray[np.bool_], *, seed: int = 0, index: Integers | None = None
) -> Maps:
    """Maps of graded quality.

    Args:
        images: uint8 `[N, H, W, C]`.
        masks: bool `[N, H, W]`, True on the object.
        seed: Of coin tosses and random maps.
        index: Sample ids `[N]`.

    Returns:
        float32 `[N, H, W]` by name: `truth`, `truth 10 % noise` …, `edge`, `blur`, `shifted`, `sobel`, `rand`.

    Example:
        >>> from roarfast.data import load
        >>> data = load("shapes", "test", n=4)
        >>> sorted(planted_maps(data.images, data.masks))[:3]
        ['blur', 'edge', 'rand']
    """
    truth = np.ascontiguousarray(masks, np.float32)
    if truth.ndim != 3 or images.shape[:3] != truth.shape:
        raise ValueError(f"masks must be [N, H, W] like images, got {truth.shape} and {images.shape}")
    ids = np.arange(len(truth)) if index is None else np.asarray(index, np.int64)
    # A pixel is replaced where its number is below the share: the noise of a higher share contains that of a lower.
    place = rf.pixel_random(truth.shape, seed=(seed + _PLACES) % 2**63, index=ids)
    coin = rf.pixel_random(truth.shape, seed=(seed + _COINS) % 2**63, index=ids) < 0.5
    maps: Maps = {}
    for share in SHARES:
        name = "truth" if share == 0 else f"truth {share:.0%} noise".replace("%", " %")
        maps[name] = np.where(place < share, coin, truth).astype(np.float32)
    inner = -rf.maximum_filter(-truth, 3)
    maps["edge"] = truth - inner
    maps["blur"] = rf.gaussian_filter(truth, 2.0)
    maps["shifted"] = np.roll(truth, (truth.shape[1] // 4, truth.shape[2] // 4), (1, 2))
    grey = images.mean(-1, dtype=np.float32)
    maps["sobel"] = np.hypot(rf.sobel(grey, axis=-1), rf.sobel(grey, axis=-2))
    maps["rand"] = rf.pixel_random(truth.shape, seed=seed, index=ids)
    return maps


def overlap(
    maps: npt.NDArray[np.float32],
    masks: npt.NDArray[np.bool_],
    drops: Sequence[float],
    *,
    seed: int = 0,
    index: Integers | None = None,
) -> Floats:
    """How much of the object the top t of a map covers, of what it could: float64 `[R, N]` in [0, 1].

    `|top ∩ object| / min(|top|, |object|)`; NaN for images without an object.

    Example:
        >>> mask = np.array([[[True, False], [False, False]]])
        >>> overlap(mask.astype(np.float32), mask, (0.25, 0.5)).tolist()
        [[1.0], [1.0]]
    """
    codes = rf.rank_codes(maps, tuple(drops), seed=seed, index=index)
    top = codes[None] <= np.arange(len(drops)).reshape(-1, 1, 1, 1)
    possible = np.minimum(top.sum((2, 3)), masks.sum((1, 2)))
    shared = np.full(possible.shape, np.nan)
    np.divide((top & masks).sum((2, 3)), possible, out=shared, where=possible > 0)
    return shared


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's rank correlation, ties sharing the mean of their ranks; NaN if one side is constant or has a NaN."""
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if np.isnan(a).any() or np.isnan(b).any():
        return float("nan")
    ranks = [((v[:, None] > v).sum(1) + (v[:, None] >= v).sum(1)) / 2 for v in (a, b)]
    centred = [r - r.mean() for r in ranks]
    scale = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return float(centred[0] @ centred[1]) / scale if scale > 0 else float("nan")
