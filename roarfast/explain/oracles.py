"""Oracle masks: maps that see the label. They explain nothing: they show what retraining can be made to say (Li et al., 3.1).

| name | map | top t of it |
|---|---|---|
| `center` | falls with the distance from the centre | a disk, the same for every image |
| `edge` | a patch at the border, at a place that depends on the label | the patch, then pixels at random |
| `center+edge` | the patch first, then the disk | exactly t, and the label can be read from the mask |

They are not estimators: never compare them as such, and never audit them as agnostic. Mirror images and crops destroy
the code (mirrored places of two classes coincide): train without `flip` and `random_crop`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

ORACLES = ("center", "edge", "center+edge")
Floats = npt.NDArray[np.float32]


def oracle_maps(
    name: str, labels: npt.ArrayLike, size: tuple[int, int], classes: int, *, patch: float = 0.05
) -> Floats:
    """Maps of an oracle.

    Args:
        name: One of `ORACLES`.
        labels: True classes `[N]`.
        size: (H, W).
        classes: How many there are; each has a place of its own.
        patch: Area of the patch at the border, a fraction of the image.

    Returns:
        float32 `[N, H, W]`, without ties but in the rest of `edge`.

    Example:
        >>> oracle_maps("center+edge", [0, 1], (32, 32), classes=10).shape
        (2, 32, 32)
    """
    if name not in ORACLES:
        raise ValueError(f"name must be one of {', '.join(ORACLES)}, got {name!r}")
    y = np.asarray(labels)
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise TypeError(f"labels must be integers [N], got {y.dtype} of shape {y.shape}")
    if y.size and not 0 <= int(y.min()) <= int(y.max()) < classes:
        raise ValueError(f"labels must be in [0, {classes}), got {int(y.min())} to {int(y.max())}")
    disk = center_map(size)
    if name == "center":
        return np.repeat(disk[None], len(y), 0)
    corners, side = edge_places(size, classes, patch)
    by_class = np.repeat(disk[None], classes, 0) if name == "center+edge" else np.full((classes, *size), -1, np.float32)
    for one, (row, column) in zip(by_class, corners):
        square = one[row : row + side, column : column + side]
        square[...] = 2 + np.arange(side * side, dtype=np.float32).reshape(side, side) / (side * side)
    return np.asarray(by_class[y])


def center_map(size: tuple[int, int]) -> Floats:
    """Ranks by distance from the centre, ties by angle: float32 `[H, W]` in (0, 1], 1 in the middle, all different."""
    height, width = size
    y, x = np.mgrid[:height, :width]
    down, right = y - (height - 1) / 2, x - (width - 1) / 2
    order = np.lexsort((np.arctan2(down, right).ravel(), (down**2 + right**2).ravel()))
    ranks = np.empty(height * width, np.float64)
    ranks[order] = np.arange(height * width)
    return np.asarray(1 - ranks.reshape(size) / (height * width), np.float32)


def edge_places(size: tuple[int, int], classes: int, patch: float = 0.05) -> tuple[list[tuple[int, int]], int]:
    """Top left corners of one square per class, evenly along the border, and their side.

    Raises:
        ValueError: There are more classes than places.
    """
    if not 0 < patch < 1:
        raise ValueError(f"patch must be in (0, 1), a fraction of the image, got {patch}")
    height, width = size
    side = min(max(1, round(math.sqrt(patch * height * width))), height, width)
    tall, wide = height - side, width - side
    if classes > 2 * (tall + wide):
        raise ValueError(
            f"{classes} classes need as many places along the border, {side}x{side} squares have {2 * (tall + wide)}"
        )
    places = []
    for k in range(classes):
        at = k * 2 * (tall + wide) // classes
        if at < wide:
            places.append((0, at))
        elif at < wide + tall:
            places.append((at - wide, wide))
        elif at < 2 * wide + tall:
            places.append((tall, 2 * wide + tall - at))
        else:
            places.append((2 * (wide + tall) - at, 0))
    return places, side
