"""Null maps: the same maps moved, so that they keep their shape and lose what they know of the image.

| null | keeps | loses |
|---|---|---|
| `swap` | shape, size, blur, centre bias of the maps as a set | the image: each map is that of another image |
| `swap-class` | the same, and what shapes tell of the class | the image within its class |
| `roll` | the map's values, its blur but for one seam | the place: a cyclic shift |
| `turn` | the map's values and blur, its distance from the centre | the place: a mirror image or a rotation |

Everything is keyed by (seed, sample id), never by the batch, and no image keeps its own map.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from roarfast import _philox as philox
from roarfast._types import Array, Numpy

if TYPE_CHECKING:
    import torch

    from roarfast.metrics.inputs import Integers

Ids = npt.NDArray[np.int64]
MapsT = TypeVar("MapsT", Numpy, "torch.Tensor")
"""NumPy in, NumPy out; torch in, torch out."""


class Move(Protocol):
    """What a null does."""

    def __call__(self, maps: MapsT, ids: Ids, labels: Ids | None, seed: int, /) -> MapsT:
        """Maps moved."""


@dataclass(frozen=True)
class Null:
    """A way to move maps.

    Attributes:
        name: As in configs.
        keeps: What a moved map still has, in words for tables.
        loses: What it has lost.
        needs_labels: Whether it asks for the classes.
        make: `f(maps, index, labels, seed) -> maps`.
    """

    name: str
    keeps: str
    loses: str
    needs_labels: bool
    make: Move


def null_maps(
    maps: MapsT,
    null: str | Null = "swap",
    *,
    seed: int = 0,
    index: Integers | None = None,
    labels: Integers | None = None,
) -> MapsT:
    """Maps moved by a null.

    Args:
        maps: `[N, H, W]`, or features `[N, F]`, NumPy or torch; also masks or codes.
        null: A name in `NULLS`, or a `Null`.
        seed: Another seed is another draw.
        index: Sample ids, N different integers; 0, 1, 2, … by default.
        labels: Classes `[N]`, for `swap-class`.

    Returns:
        Like `maps`.

    Example:
        >>> a = np.arange(4.0).reshape(4, 1, 1) * np.ones((4, 2, 2))
        >>> swapped = null_maps(a, "swap", seed=1)
        >>> bool((swapped != a).all()), sorted(swapped[:, 0, 0].tolist())
        (True, [0.0, 1.0, 2.0, 3.0])
    """
    if isinstance(null, str):
        if null not in NULLS:
            raise ValueError(f"null must be one of {', '.join(NULLS)}, got {null!r}")
        null = NULLS[null]
    if getattr(maps, "ndim", 0) < 2:
        raise ValueError(f"maps must be [N, H, W] or [N, F], got shape {tuple(getattr(maps, 'shape', ()))}")
    n = int(maps.shape[0])
    ids = np.arange(n) if index is None else _integers("index", index, n)
    if len(np.unique(ids)) != n:
        raise ValueError("index must hold different sample ids, got one twice")
    classes = None if labels is None else _integers("labels", labels, n)
    if null.needs_labels and classes is None:
        raise ValueError(f"labels must be given for null {null.name!r}")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**63:
        raise ValueError(f"seed must be an integer in [0, 2^63), got {seed!r}")
    return null.make(maps, ids, classes, int(seed)) if n else maps


def swap_partners(index: npt.ArrayLike, seed: int = 0, labels: npt.ArrayLike | None = None) -> Ids:
    """Whose map each image gets: positions int64 `[N]`, a permutation without a fixed point.

    Images stand in a circle in the order of a hash of (seed, sample id), and each takes the map of the next; with
    labels, one circle per class.

    Raises:
        ValueError: If an image (of its class) stands alone.

    Example:
        >>> partners = swap_partners([10, 11, 12])
        >>> bool((partners != np.arange(3)).all()), sorted(partners.tolist())
        (True, [0, 1, 2])
    """
    ids = np.asarray(index, np.int64)
    groups = np.zeros(len(ids), np.int64) if labels is None else np.asarray(labels, np.int64)
    order = np.lexsort((ids, _words(seed, ids)[:, 0], groups))
    group = groups[order]
    first = np.flatnonzero(np.r_[True, group[1:] != group[:-1]]) if len(ids) else np.zeros(0, np.int64)
    sizes = np.diff(np.r_[first, len(ids)])
    if (sizes == 1).any():
        alone = int(group[first[int((sizes == 1).argmax())]])
        raise ValueError(
            "swap needs at least two images, got one"
            if labels is None
            else f"swap-class needs at least two images of each class, class {alone} has one"
        )
    following = np.arange(1, len(ids) + 1)
    following[first + sizes - 1] = first
    partners = np.empty(len(ids), np.int64)
    partners[order] = order[following]
    return partners


def _swap(maps: MapsT, ids: Ids, labels: Ids | None, seed: int) -> MapsT:
    return maps[_like(maps, swap_partners(ids, seed))]


def _swap_class(maps: MapsT, ids: Ids, labels: Ids | None, seed: int) -> MapsT:
    return maps[_like(maps, swap_partners(ids, seed, labels))]


def _roll(maps: MapsT, ids: Ids, labels: Ids | None, seed: int) -> MapsT:
    height, width = _size(maps)
    if height * width < 2:
        raise ValueError("roll needs maps of at least two pixels, got one")
    words = _words(seed, ids)
    # A 64-bit word modulo the number of shifts: the bias is below 2^-40 for any image. Shift 0 is left out.
    wide = words[:, 0].astype(np.uint64) << np.uint64(32) | words[:, 1]
    shift = (wide % np.uint64(height * width - 1)).astype(np.int64) + 1
    down, right = np.divmod(shift, width)
    rows = (np.arange(height) - down[:, None]) % height
    columns = (np.arange(width) - right[:, None]) % width
    sample = np.arange(len(ids))
    if maps.ndim == 2:
        return maps[_like(maps, sample[:, None]), _like(maps, columns)]
    return maps[
        ..., _like(maps, sample[:, None, None]), _like(maps, rows[:, :, None]), _like(maps, columns[:, None, :])
    ]


def _turn(maps: MapsT, ids: Ids, labels: Ids | None, seed: int) -> MapsT:
    height, width = _size(maps)
    if maps.ndim == 2:
        return maps[:, _like(maps, np.arange(width)[::-1].copy())]
    rows, columns = np.mgrid[:height, :width]
    back, left = height - 1 - rows, width - 1 - columns
    ways = [(back, columns), (rows, left), (back, left)]
    if height == width:  # a quarter turn keeps the shape of squares only
        ways += [(columns, rows), (left, rows), (columns, back), (left, back)]
    ways = [(y, x) for y, x in ways if not (np.array_equal(y, rows) and np.array_equal(x, columns))]  # one row: no flip
    if not ways:
        raise ValueError("turn needs maps of at least two pixels, got one")
    chosen = _words(seed, ids)[:, 2] % len(ways)
    y = np.stack([way[0] for way in ways])[chosen]
    x = np.stack([way[1] for way in ways])[chosen]
    sample = np.arange(len(ids))[:, None, None]
    return maps[_like(maps, sample), _like(maps, y), _like(maps, x)]


def _size(maps: Array) -> tuple[int, int]:
    if maps.ndim > 3:
        raise ValueError(f"maps must be [N, H, W] or [N, F] for this null, got shape {tuple(maps.shape)}")
    return (int(maps.shape[1]) if maps.ndim == 3 else 1), int(maps.shape[-1])


def _words(seed: int, ids: Ids) -> npt.NDArray[np.uint32]:
    samples: Any = ids.astype(np.uint64)  # philox.blocks broadcasts over samples as over blocks
    return philox.blocks(seed, samples, np.zeros(len(ids), np.uint64), philox.NULL_MAPS)


def _like(maps: MapsT, index: Numpy) -> MapsT:
    if isinstance(maps, np.ndarray):
        return index
    import torch

    return torch.from_numpy(np.ascontiguousarray(index)).to(maps.device)


def _integers(name: str, values: Integers, n: int) -> Ids:
    array = values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {array.dtype}")
    if array.shape != (n,):
        raise ValueError(f"{name} must be one integer per map, [{n}], got shape {array.shape}")
    return np.asarray(array, np.int64)


NULLS: dict[str, Null] = {
    null.name: null
    for null in (
        Null("swap", "shape, blur, centre bias", "the image", False, _swap),
        Null(
            "swap-class",
            "shape, blur, centre bias, what shapes tell of the class",
            "the image within its class",
            True,
            _swap_class,
        ),
        Null("roll", "values and blur of each map", "the place, by a cyclic shift", False, _roll),
        Null(
            "turn",
            "values, blur and distance from the centre of each map",
            "the place, by a mirror image or rotation",
            False,
            _turn,
        ),
    )
}
"""Every null by name."""
