"""Do curves tell maps apart? Hausdorff distances (Table 1 of Li et al.), and maps changed on purpose (Table 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt

import roarfast as rf

if TYPE_CHECKING:
    from roarfast.metrics.inputs import Integers

Floats = npt.NDArray[np.float64]
FloatT = TypeVar("FloatT", bound=np.floating)
SCHEMES = ("constant", "random", "partial")


def hausdorff(p: npt.ArrayLike, q: npt.ArrayLike, *, between: str = "points") -> float:
    """Hausdorff distance of two curves `[P, 2]` and `[Q, 2]`.

    Args:
        p: Points of a curve.
        q: Points of another.
        between: `"points"`, as in Li et al.; `"polylines"`: the curves as drawn (segments included), so that a denser
            sampling of the same curve has distance 0.

    Example:
        >>> hausdorff([[0, 0], [1, 0]], [[0, 1], [1, 2]])
        2.0
    """
    p, q = (np.asarray(v, np.float64) for v in (p, q))
    for name, v in (("p", p), ("q", q)):
        if v.ndim != 2 or v.shape[1] != 2 or not len(v):
            raise ValueError(f"{name} must be points [P, 2], got shape {v.shape}")
        if not np.isfinite(v).all():
            raise ValueError(f"{name} must be finite: leave out points where the curve is not defined")
    if between == "points":
        distance = np.linalg.norm(p[:, None] - q[None], axis=-1)
        return float(max(distance.min(1).max(), distance.min(0).max()))
    if between != "polylines":
        raise ValueError(f"between must be 'points' or 'polylines', got {between!r}")
    return max(_farthest(p, q), _farthest(q, p))


def _to_segments(points: Floats, curve: Floats) -> Floats:
    """Distance of each point to each segment of a polyline, `[points, segments]`."""
    if len(curve) == 1:
        return np.asarray(np.linalg.norm(points - curve[0], axis=1))[:, None]
    start, along = curve[:-1], np.diff(curve, axis=0)
    length = np.maximum((along * along).sum(1), np.finfo(np.float64).tiny)
    t = np.clip(((points[:, None] - start) * along).sum(-1) / length, 0, 1)
    return np.asarray(np.linalg.norm(points[:, None] - start - t[..., None] * along, axis=-1))


def _farthest(p: Floats, q: Floats) -> float:
    """The largest distance of a point of the polyline p to the polyline q.

    Pieces of p are halved while they may hold a farther point than the best so far. They cannot if one segment of q is
    near to both ends: the distance to a segment is convex along a line, so its maximum is at an end.
    """
    ends = _to_segments(p, q)
    best = float(ends.min(1).max())
    stack = [(p[i], p[i + 1], ends[i], ends[i + 1]) for i in range(len(p) - 1)]
    while stack:
        a, b, da, db = stack.pop()
        if np.maximum(da, db).min() <= best + 1e-9:
            continue
        middle = (a + b) / 2
        dm = _to_segments(middle[None], q)[0]
        best = max(best, float(dm.min()))
        stack += [(a, middle, da, dm), (middle, b, dm, db)]
    return best


def separation(curves: Mapping[str, npt.ArrayLike], *, between: str = "points") -> tuple[float, tuple[str, str]]:
    """The smallest Hausdorff distance between any two curves, and which two.

    Example:
        >>> separation({"a": [[0, 0]], "b": [[0, 3]], "c": [[0, 1]]})
        (1.0, ('a', 'c'))
    """
    names = list(curves)
    if len(names) < 2:
        raise ValueError(f"curves must be at least two, got {len(names)}")
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    distances = [hausdorff(curves[a], curves[b], between=between) for a, b in pairs]
    smallest = int(np.argmin(distances))
    return distances[smallest], pairs[smallest]


def introduce(
    maps: npt.NDArray[FloatT],
    scheme: str = "constant",
    *,
    amount: float = 0.6,
    clip: bool = True,
    seed: int = 0,
    index: Integers | None = None,
) -> npt.NDArray[FloatT]:
    """Maps with attribution added (Li et al., Table 3): all 0.6 higher, random amounts higher, or the lowest 40 % raised.

    Args:
        maps: NumPy `[N, H, W]` in [0, 1].
        scheme: `"constant"`, `"random"` or `"partial"` (ranks [0, 0.4] are set to the 0.8-quantile).
        amount: Of the first two.
        clip: Back to [0, 1]. Without it `"constant"` keeps the order of all values strictly.
        seed: Of the random amounts.
        index: Sample ids.

    Example:
        >>> introduce(np.array([[[0.0, 0.25], [0.5, 0.75]]])).tolist()
        [[[0.6, 0.85], [1.0, 1.0]]]
    """
    return _changed(maps, scheme, amount, clip, seed, index, 1)


def remove(
    maps: npt.NDArray[FloatT],
    scheme: str = "constant",
    *,
    amount: float = 0.6,
    clip: bool = True,
    seed: int = 0,
    index: Integers | None = None,
) -> npt.NDArray[FloatT]:
    """Maps with attribution taken away: all 0.6 lower, random amounts lower, or ranks [0.6, 0.8] set to 0.

    Args:
        maps: NumPy `[N, H, W]` in [0, 1].
        scheme: `"constant"`, `"random"` or `"partial"`.
        amount: Of the first two.
        clip: Back to [0, 1].
        seed: Of the random amounts.
        index: Sample ids.

    Example:
        >>> remove(np.array([[[0.0, 0.25], [0.5, 0.75]]]), amount=0.5).tolist()
        [[[0.0, 0.0], [0.0, 0.25]]]
    """
    return _changed(maps, scheme, amount, clip, seed, index, -1)


def _changed(
    maps: npt.NDArray[FloatT],
    scheme: str,
    amount: float,
    clip: bool,
    seed: int,
    index: Integers | None,
    sign: int,
) -> npt.NDArray[FloatT]:
    a = np.asarray(maps)
    if a.ndim < 2 or a.dtype.kind != "f":
        raise ValueError(f"maps must be floating point [N, H, W], got {a.dtype} of shape {a.shape}")
    if scheme not in SCHEMES:
        raise ValueError(f"scheme must be one of {', '.join(SCHEMES)}, got {scheme!r}")
    if a.size and not (a.min() >= 0 and a.max() <= 1):
        raise ValueError(f"maps must be in [0, 1], got {a.min():g} to {a.max():g}: divide each by its maximum first")
    if scheme == "constant":
        changed = a + a.dtype.type(sign * amount)
    elif scheme == "random":
        changed = a + a.dtype.type(sign * amount) * rf.pixel_random(a.shape, seed=seed, index=index).astype(a.dtype)
    else:
        flat = a.reshape(*a.shape[:-2], -1)
        count = flat.shape[-1]
        rank = flat.argsort(-1, kind="stable").argsort(-1, kind="stable").reshape(a.shape)
        if sign > 0:
            level = np.quantile(flat, 0.8, axis=-1)[..., None, None].astype(a.dtype)
            return np.where(rank < 0.4 * count, np.maximum(a, level), a)
        return np.where((rank >= 0.6 * count) & (rank < 0.8 * count), a.dtype.type(0), a)
    return np.clip(changed, 0, 1) if clip else changed
