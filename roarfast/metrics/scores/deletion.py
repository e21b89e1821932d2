"""Deletion: how fast the class is lost when the most relevant pixels go."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from roarfast.metrics.perturbation import Fill, Perturbation
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Outcome, Score, register
from roarfast.metrics.scores.curves import EARLY, as_rates, check_indicator, line


def deletion(
    problem: Problem,
    maps: Tensor,
    *,
    rates: Sequence[float] = EARLY,
    fill: Fill = "dataset_mean",
    indicator: str = "probability",
    scored: str = "label",
    order: str = "morf",
) -> Outcome:
    """Area under the class's probability as pixels are replaced, most relevant first (RISE; lower is better).

    RISE replaces by zero in normalised units, which is the fill `dataset_mean`, and scores the predicted class
    (`scored="predicted"`). The area runs over the fraction really removed, from nothing to everything.

    Known defects: replaced images look like none the model has seen, so isolated pixels do more harm than coherent
    regions, and random pixels can beat real explanations (shown in docs/scores.md); the score depends on the order of
    pixels only.

    Args:
        problem: What is scored.
        maps: `[N, H, W]`.
        rates: Drop rates.
        fill: As in `Perturbation`.
        indicator: `"probability"`, `"accuracy"`, `"logit"`, `"margin"` or `"log-ratio"`.
        scored: `"label"` or `"predicted"`.
        order: `"morf"`, or `"lerf"` for the least relevant first (higher is then better).
    """
    check_indicator(indicator)
    responses = problem.respond(maps, as_rates(rates), Perturbation(order=order, fill=fill), scored=scored)
    return Outcome(responses.areas(indicator), curves={"deletion": line(responses, indicator)})


register(
    Score(
        "deletion",
        deletion,
        "lower",
        "order of pixels by how much the class needs them",
        turned={("order", "morf"): "lower", ("order", "lerf"): "higher"},
    )
)
