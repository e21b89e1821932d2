"""Sensitivity-n: does the attribution of a random subset say what removing it does, for many sizes?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from roarfast.metrics.perturbation import Fill
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Line, Outcome, Score, register
from roarfast.metrics.scores.curves import as_rates, check_indicator
from roarfast.metrics.subsets import correlations, subset_effects

SIZES = (0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)


def sensitivity_n(
    problem: Problem,
    maps: Tensor,
    *,
    sizes: Sequence[float] = SIZES,
    draws: int = 30,
    fill: Fill = "dataset_mean",
    indicator: str = "logit",
    scored: str = "label",
) -> Outcome:
    """Correlation between the attribution of random subsets and the drop they cause (Ancona et al.; higher is better).

    For every image and subset size, Pearson's correlation over `draws` random subsets; the score is its mean over sizes.

    Known defects: with few draws the correlation of single images is noise (the mean over images is not); random subsets of
    many pixels all cost about the same, so large sizes say little; a map's scale does not matter, its sign does: take
    signed attributions (`aggregate="sum(raw)"`).

    Args:
        problem: What is scored.
        maps: `[N, H, W]`.
        sizes: Sizes of subsets as fractions of the pixels, ascending.
        draws: Subsets per size.
        fill: As in `Perturbation`.
        indicator: `"logit"` or another one.
        scored: `"label"` or `"predicted"`.
    """
    check_indicator(indicator)
    sizes = as_rates(sizes)
    attribution, effect = subset_effects(problem, maps, sizes, draws, fill, indicator, scored)
    by_size = correlations(attribution, effect)  # [sizes, N]
    known = np.isfinite(by_size)
    count = known.sum(0)
    total = np.where(known, by_size, 0.0).sum(0)
    per_image = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    missing = int((count == 0).sum())
    notes = (f"{missing} images have no correlation: map or effect does not vary",) if missing else ()
    curve = Line(np.array(sizes), by_size, "subset size (fraction of pixels)", "correlation")
    return Outcome(per_image, curves={"sensitivity_n": curve}, details={"draws": draws}, notes=notes)


register(
    Score(
        "sensitivity_n",
        sensitivity_n,
        "higher",
        "sums of attribution say what removing pixels costs",
        additive=True,
    )
)
