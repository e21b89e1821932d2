"""Plausibility scores (Wang and Wang, 6.1 and C): what they are blind to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roarfast.data.watermark import number_stamps
from roarfast.metrics import sparse_linear
from roarfast.metrics.localisation import pointing_game
from roarfast.validate.check import Outcome, check, exactly, show


def digits(count: int, seed: int = 0) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Grey digits at one of nine places on black, 16x16, with noise on the strokes: uint8 `[N, 16, 16]` and labels."""
    rng = np.random.default_rng(seed)
    glyphs = number_stamps(10, 64)[:, 2:12, 2:8]  # twice the 3x5 bitmaps
    labels = rng.integers(0, 10, count)
    images = np.zeros((count, 16, 16), np.uint8)
    for image, label, (top, left) in zip(images, labels, rng.integers(2, 5, (count, 2))):
        image[top : top + 10, left + 1 : left + 7] = glyphs[label] * rng.integers(120, 256, (10, 6))
    return images, labels


@check(
    "pointing-at-a-corner",
    claim="a linear model can be changed so that every explanation points at a corner and no answer changes",
    source="004, 6.1, Table 3",
    paper="accuracy 79.51 % both; pointing game 100.0 % and 0.0 %",
)
def corner() -> Outcome:
    """Shifted pixels; generated digits."""
    images, labels = digits(1500)
    model = sparse_linear.fit(images, labels, 10, penalty=0.01, steps=200)
    moved = sparse_linear.point_at(model, images)
    answers = [m.logits(images).argmax(1) for m in (model, moved)]
    ink = images > 0
    # Digits are one piece: their rows and columns with ink span the tight box.
    boxes = np.any(ink, 2, keepdims=True) & np.any(ink, 1, keepdims=True)
    values = {
        "accuracy": float((answers[0] == labels).mean()),
        "answers changed": float((answers[0] != answers[1]).sum()),
        "pointing game": pointing_game(model.maps(images, labels), boxes).ratio,
        "manipulated": pointing_game(moved.maps(images, labels), boxes).ratio,
    }
    good = values["answers changed"] == 0 and values["manipulated"] == 0 and values["accuracy"] > 0.6
    return Outcome(show(values), "holds" if good else "fails", values)


@check(
    "pointing-on-raw-pixels",
    claim="on raw pixels, where the background is 0, no weight can move the explanation, and 100 % is automatic wherever a "
    "contribution is positive",
    source="004, 6.1, Table 3",
    paper="the corner gets the largest attribution",
)
def raw_pixels() -> Outcome:
    """A black pixel has no contribution, so every explanation points inside the ink."""
    images, labels = digits(600)
    model = sparse_linear.fit(images, labels, 10, penalty=0.01, steps=100, mean=0.0, std=1.0)
    refused = 0.0
    try:
        sparse_linear.point_at(model, images)
    except ValueError:
        refused = 1.0
    maps = model.maps(images, labels)
    some = maps.max((1, 2)) > 0
    values = {
        "refused": refused,
        "share with a positive one": float(some.mean()),
        "pointing game": pointing_game(maps[some], images[some] > 0).ratio,
    }
    return exactly(values, {"refused": 1, "pointing game": 1}, otherwise="differs")


@check(
    "pointing-rule",
    claim="the hit rule needs the smallest distance to the region: with the printed maximum, even the true object misses",
    source="004, C",
    paper="max over the region of the distance <= tau",
)
def rule() -> Outcome:
    """Maps that are exactly the object."""
    rng = np.random.default_rng(0)
    regions = np.zeros((200, 16, 16), bool)
    for region, (y, x) in zip(regions, rng.integers(0, 12, (200, 2))):
        region[y : y + 4, x : x + 4] = True
    game = pointing_game(regions.astype(float), regions)
    away = np.array([np.hypot(*(np.argwhere(r) - p).T).max() for r, p in zip(regions, game.point)])
    values = {"by the minimum": game.ratio, "by the maximum": float((away <= 0).mean())}
    return exactly(values, {"by the minimum": 1, "by the maximum": 0}, otherwise="differs")
