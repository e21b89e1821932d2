"""Pixel flipping: the class's score, not the accuracy, as pixels are replaced."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from roarfast.metrics.perturbation import Fill
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Outcome, Score, register
from roarfast.metrics.scores.curves import EARLY
from roarfast.metrics.scores.deletion import deletion


def pixel_flipping(
    problem: Problem,
    maps: Tensor,
    *,
    rates: Sequence[float] = EARLY,
    fill: Fill = "zero",
    indicator: str = "logit",
    scored: str = "label",
) -> Outcome:
    """Area under the class's logit as pixels are replaced, most relevant first (Wang and Wang; lower is better).

    Six fills: `"zero"`, `"dataset_mean"`, `"image_mean"`, `"blur"`, `"noise"`, `"linear"`.

    Known defects (Wang and Wang): with accuracy as indicator the less important pixel can look more important, hence
    the logit; for a linear model w * x is optimal and the gradient w is not, so sensitivity methods are judged by
    another goal than theirs; rankings change with the fill; random pixels inside the top of a map beat the map itself
    (`reference_flipping`).

    Args:
        problem: What is scored.
        maps: `[N, H, W]`.
        rates: Drop rates.
        fill: As in `Perturbation`.
        indicator: `"logit"`, `"probability"`, `"accuracy"`, `"margin"` or `"log-ratio"`.
        scored: `"label"` or `"predicted"`.
    """
    found = deletion(problem, maps, rates=rates, fill=fill, indicator=indicator, scored=scored)
    return Outcome(found.per_image, curves={"pixel_flipping": found.curves["deletion"]})


register(
    Score(
        "pixel_flipping",
        pixel_flipping,
        "lower",
        "order of pixels by their contribution to the class's score",
        additive=True,
    )
)
