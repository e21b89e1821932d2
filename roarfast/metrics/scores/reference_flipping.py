"""Reference pixel flipping (Wang and Wang): random pixels inside the top of a map, against the map itself."""

from __future__ import annotations

from typing import overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

import roarfast as rf
from roarfast._types import Array, Numpy
from roarfast.metrics.inputs import Integers
from roarfast.metrics.perturbation import Fill, Perturbation
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Outcome, Score, register
from roarfast.metrics.scores.curves import check_indicator, line


@overload
def reference_map(maps: Tensor, top: float, *, seed: int = 0, index: Integers | None = None) -> Tensor: ...


@overload
def reference_map(
    maps: Numpy, top: float, *, seed: int = 0, index: Integers | None = None
) -> npt.NDArray[np.float32]: ...


def reference_map(maps: Array, top: float, *, seed: int = 0, index: Integers | None = None) -> Array:
    """Maps that rank the top pixels of other maps at random, and the rest below them.

    Args:
        maps: `[N, H, W]`, NumPy or torch.
        top: The reference set: the fraction of pixels with the highest values.
        seed: Breaks ties and draws the order.
        index: Sample ids.

    Returns:
        float32 like maps: uniform in [0, 1) inside the reference, -1 outside.

    Example:
        >>> a = np.arange(16.0).reshape(1, 4, 4)
        >>> int((reference_map(a, 0.5) >= 0).sum())
        8
    """
    inside = rf.removal_mask(maps, top, seed=seed, index=index)
    noise = rf.pixel_random(tuple(maps.shape), seed=seed + 1, index=index)
    if isinstance(inside, Tensor):
        return torch.where(inside, torch.from_numpy(noise).to(inside.device), -1.0)
    return np.where(inside, noise, np.float32(-1))


def dice(a: Array, b: Array) -> npt.NDArray[np.float64]:
    """Dice similarity `2 |A ∩ B| / (|A| + |B|)` of masks `[..., H, W]`; NaN where both are empty.

    Example:
        >>> float(dice(np.array([[True, True]]), np.array([[True, False]])))
        0.6666666666666666
    """
    a, b = (np.asarray(m.cpu() if isinstance(m, Tensor) else m, bool) for m in (a, b))
    both = (a & b).sum((-2, -1))
    with np.errstate(invalid="ignore"):
        return np.asarray(2 * both / (a.sum((-2, -1)) + b.sum((-2, -1))), np.float64)


def expected_dice(n: float, reference: float) -> tuple[float, float]:
    """Mean n / N and standard deviation of the Dice of n random pixels of a reference of N with its top n (counts).

    Example:
        >>> expected_dice(50, 200)[0]
        0.25
    """
    if not 0 < n <= reference:
        raise ValueError(f"n must be in (0, {reference:g}], got {n!r}")
    share = n / reference
    return share, (1 - share) / max(reference - 1, 1) ** 0.5 if reference > 1 else 0.0


def reference_flipping(
    problem: Problem,
    maps: Tensor,
    *,
    top: float = 0.3,
    steps: int = 6,
    fill: Fill = "zero",
    indicator: str = "logit",
    scored: str = "label",
) -> Outcome:
    """By how much random pixels inside the top of a map beat the map's own order (Wang and Wang; a diagnostic of flipping).

    The score is the mean of (indicator under the map's order) - (indicator under random order inside the map's top
    `top`) over rates below `top`; above 0, scattering removed pixels does more than ranking them, so pixel flipping
    rewards isolation. At the rate `top` both remove the same pixels.

    Args:
        problem: What is scored.
        maps: `[N, H, W]`.
        top: Size of the reference set, as a fraction of the pixels.
        steps: Rates: top / steps, 2 top / steps, …, top.
        fill: As in `Perturbation`.
        indicator: As in `pixel_flipping`.
        scored: `"label"` or `"predicted"`.
    """
    check_indicator(indicator)
    if not 0 < top <= 1:
        raise ValueError(f"top must be in (0, 1], got {top!r}")
    if isinstance(steps, bool) or not isinstance(steps, int) or not 1 <= steps <= 254:
        raise ValueError(f"steps must be an integer in [1, 254], got {steps!r}")
    rates = (*(top * (j + 1) / steps for j in range(steps - 1)), float(top))
    how = Perturbation(fill=fill)
    own = problem.respond(maps, rates, how, scored=scored)
    inside = problem.codes(maps, (float(top),), how) == 0  # whole segments where there are segments
    scattered = torch.where(inside, problem.random_maps(0), -1.0)
    other = problem.respond(scattered, rates, how, scored=scored)
    gap = own.values(indicator)[:-1] - other.values(indicator)[:-1]
    per_image = gap.mean(0) if steps > 1 else np.zeros(len(problem))
    lines = {"map": line(own, indicator), "reference": line(other, indicator)}
    share = {f"E[Dice] at {r:g}": r / top for r in rates}
    return Outcome(per_image, curves=lines, details=share)


register(
    Score(
        "reference_flipping", reference_flipping, "neither", "how much flipping rewards scattered pixels (a diagnostic)"
    )
)
