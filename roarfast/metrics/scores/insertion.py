"""Insertion: how fast the class is found when the most relevant pixels come first."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from roarfast.metrics.perturbation import Fill, Perturbation
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Outcome, Score, register
from roarfast.metrics.scores.curves import EARLY, as_rates, check_indicator, line


def insertion(
    problem: Problem,
    maps: Tensor,
    *,
    rates: Sequence[float] = EARLY,
    fill: Fill = "auto",
    indicator: str = "probability",
    scored: str = "predicted",
    blur: float = 10.0,
) -> Outcome:
    """Area under the class's probability as pixels are put back into a substrate (RISE; higher is better).

    The substrate is a blurred image (`fill="blur"`), for series and features their means. Rates are fractions put back.

    Known defects: a blurred substrate shows low frequencies for free; smooth maps put back regions, scattered ones dust
    (their difference is geometry, not importance); the score depends on the order of pixels only.

    Args:
        problem: What is scored.
        maps: `[N, H, W]`.
        rates: Fractions of pixels put back.
        fill: As in `Perturbation`; `"auto"`: `"blur"` for images, `"dataset_mean"` otherwise.
        indicator: `"probability"`, `"accuracy"`, `"logit"`, `"margin"` or `"log-ratio"`.
        scored: `"predicted"` (of the whole sample) or `"label"`.
        blur: Standard deviation of the blur in pixels.
    """
    check_indicator(indicator)
    if fill == "auto":
        fill = "blur" if problem.inputs.kind == "images" else "dataset_mean"
    responses = problem.respond(maps, as_rates(rates), Perturbation(fill=fill, keep=True, blur=blur), scored=scored)
    return Outcome(responses.areas(indicator), curves={"insertion": line(responses, indicator, "fraction put back")})


register(Score("insertion", insertion, "higher", "order of pixels by how much they suffice for the class"))
