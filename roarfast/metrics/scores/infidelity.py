"""Infidelity: the squared error of the attribution as a prediction of what removing pixels does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from roarfast.metrics.perturbation import Fill
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Outcome, Score, register
from roarfast.metrics.scores.curves import as_rates, check_indicator
from roarfast.metrics.subsets import subset_effects


def infidelity(
    problem: Problem,
    maps: Tensor,
    *,
    sizes: Sequence[float] = (0.1, 0.3, 0.5),
    draws: int = 10,
    fill: Fill = "dataset_mean",
    normalize: bool = True,
    indicator: str = "logit",
    scored: str = "label",
) -> Outcome:
    """Mean of (attribution of a random subset - what removing it costs)² (Yeh et al.; lower is better).

    The perturbation is the mask of the subset, so maps count as contributions (as integrated gradients, gradient times
    input and Shapley values are); captum's `infidelity` with the same masks gives the same numbers. With `normalize`
    maps are first scaled per image as fits best, as captum's option of that name does.

    Known defects: without `normalize` the scale of a map decides; with it a map may be scaled by a negative number; models
    with larger logits have larger infidelity, so compare maps of one model only.

    Args:
        problem: What is scored.
        maps: `[N, H, W]`, signed contributions.
        sizes: Fractions of the pixels in subsets, ascending.
        draws: Subsets per size.
        fill: As in `Perturbation`.
        normalize: Scale each map by the factor that fits its effects best.
        indicator: `"logit"`, `"probability"` or another one.
        scored: `"label"` or `"predicted"`.
    """
    check_indicator(indicator)
    attribution, effect = subset_effects(problem, maps, as_rates(sizes), draws, fill, indicator, scored)
    x, y = (np.concatenate(list(v)) for v in (attribution, effect))  # [draws x sizes, N]
    if normalize:
        power = (x * x).sum(0)
        with np.errstate(invalid="ignore", divide="ignore"):
            x = x * np.where(power > 0, (x * y).sum(0) / power, 0.0)
    return Outcome(((x - y) ** 2).mean(0), details={"draws": len(x)})


register(
    Score(
        "infidelity",
        infidelity,
        "lower",
        "attribution as a prediction of what removing pixels costs",
        additive=True,
    )
)
