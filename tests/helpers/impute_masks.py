"""Removal masks that are hard for a linear solver, each for its own reason."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.ndimage import gaussian_filter


def _top(score: np.ndarray, rate: float) -> np.ndarray:
    mask = np.zeros(score.size, bool)
    mask[np.argsort(-score, axis=None)[: int(rate * score.size)]] = True
    return mask.reshape(score.shape)


def random_mask(rng: np.random.Generator, h: int, w: int, rate: float) -> np.ndarray:
    return _top(rng.random((h, w)), rate)


def smooth_mask(rng: np.random.Generator, h: int, w: int, rate: float, sigma: float) -> np.ndarray:
    return _top(gaussian_filter(rng.standard_normal((h, w)), sigma), rate)


def adversarial_masks(rng: np.random.Generator, h: int, w: int) -> Iterator[tuple[str, np.ndarray]]:
    """Named masks `[h, w]`, each with at least one known and one removed pixel."""
    y, x = np.mgrid[:h, :w]
    full = np.ones((h, w), bool)

    def known_at(*where):
        mask = full.copy()
        mask[where] = False
        return mask

    maze = (y % 2 == 1) | ((y % 4 == 0) & (x == 0)) | ((y % 4 == 2) & (x == w - 1))
    masks = {
        "one known": known_at(int(rng.integers(h)), int(rng.integers(w))),
        "known row": known_at(int(rng.integers(h))),
        "known column": known_at(slice(None), int(rng.integers(w))),
        "known corners": known_at([0, -1], [0, -1]),
        "one removed": ~known_at(int(rng.integers(h)), int(rng.integers(w))),
        "isolated": (y % 2 == 1) & (x % 2 == 1),
        "checkerboard": (y + x) % 2 == 1,
        "coarse checkerboard": (y // 2 + x // 2) % 2 == 1,
        "row stripes": y % 3 != 0,
        "column stripes": x % 5 != 0,
        "sparse dots": ~((y % 7 == 3) & (x % 7 == 3)),
        "diagonals": (y - x) % 4 != 0,
        "rings": np.hypot(y - h / 2, x - w / 2) % 6 > 1,
        "maze": maze,
        "maze walls": ~maze,
        "rectangle": (y >= h // 8) & (y < h - h // 8) & (x >= w // 8) & (x < w - w // 8),
        "half": x < w / 2,
    }
    for rate in (0.1, 0.5, 0.9, 0.99):
        masks[f"random {rate}"] = random_mask(rng, h, w, rate)
        for sigma in (1, 4, 12):
            masks[f"smooth {rate} {sigma}"] = smooth_mask(rng, h, w, rate, sigma)
    for name, mask in masks.items():
        if mask.any() and not mask.all():
            yield name, mask
