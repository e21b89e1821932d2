"""Faithfulness correlation: sensitivity-n at one size of subsets."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from roarfast.metrics.perturbation import Fill
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Outcome, Score, register
from roarfast.metrics.scores.curves import check_indicator
from roarfast.metrics.subsets import correlations, subset_effects


def faithfulness_correlation(
    problem: Problem,
    maps: Tensor,
    *,
    size: float = 0.1,
    draws: int = 50,
    fill: Fill = "dataset_mean",
    indicator: str = "logit",
    scored: str = "label",
) -> Outcome:
    """Correlation over random subsets of one size (Bhatt et al.; higher is better).

    Known defects: those of `sensitivity_n`; the choice of the size and of the fill decides rankings.

    Args:
        problem: What is scored.
        maps: `[N, H, W]`.
        size: Fraction of the pixels in a subset.
        draws: Number of subsets per image.
        fill: As in `Perturbation`.
        indicator: `"logit"`, as in the paper's formula; Quantus takes the probability after softmax models.
        scored: `"label"` or `"predicted"`.
    """
    check_indicator(indicator)
    attribution, effect = subset_effects(problem, maps, (float(size),), draws, fill, indicator, scored)
    per_image = correlations(attribution[:, 0], effect[:, 0])
    missing = int(np.isnan(per_image).sum())
    notes = (f"{missing} images have no correlation: map or effect does not vary",) if missing else ()
    return Outcome(per_image, details={"size": size, "draws": draws}, notes=notes)


register(
    Score(
        "faithfulness_correlation",
        faithfulness_correlation,
        "higher",
        "sums of attribution say what removing pixels costs",
        additive=True,
    )
)
