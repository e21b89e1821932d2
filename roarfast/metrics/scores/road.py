"""ROAD: accuracy under noisy linear imputation, most and least relevant pixels first."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from roarfast.metrics.perturbation import Fill, Perturbation
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Outcome, Score, register
from roarfast.metrics.scores.curves import TENTHS, as_rates, check_indicator, line


def road(
    problem: Problem,
    maps: Tensor,
    *,
    rates: Sequence[float] = TENTHS,
    order: str = "both",
    indicator: str = "accuracy",
    noise: float = 0.01,
    fill: Fill = "linear",
) -> Outcome:
    """ROAD without retraining (Rong et al.).

    With `order="both"` the score is the area between the curves: least relevant first minus most relevant first. With
    `"morf"` or `"lerf"` it is the area under one of them (`"morf"`: lower is better).

    Known defects: the score depends on the order of pixels only, so a map and any increasing function of it score alike;
    imputation of scattered pixels restores the image, so smooth masks remove more than scattered ones at the same rate
    (total variation should be shown beside it); accuracy ignores how sure the model is.

    Args:
        problem: What is scored.
        maps: `[N, H, W]`.
        rates: Drop rates.
        order: `"both"`, `"morf"` or `"lerf"`.
        indicator: `"accuracy"`, `"probability"`, `"logit"`, `"margin"` or `"log-ratio"`.
        noise: Of the imputation, in units of 0..1.
        fill: Another fill than `"linear"`, as in `Perturbation`.
    """
    check_indicator(indicator)
    if order not in ("both", "morf", "lerf"):
        raise ValueError(f"order must be 'both', 'morf' or 'lerf', got {order!r}")
    lines, areas = {}, {}
    for one in ("morf", "lerf") if order == "both" else (order,):
        how = Perturbation(order=one, fill=fill, noise=noise)
        responses = problem.respond(maps, as_rates(rates), how)
        lines[one] = line(responses, indicator)
        areas[one] = responses.areas(indicator)
    per_image = areas["lerf"] - areas["morf"] if order == "both" else areas[order]
    return Outcome(
        per_image,
        curves=lines,
        details={f"area {k}": float(v.mean()) if len(v) else float("nan") for k, v in areas.items()},
    )


register(
    Score(
        "road",
        road,
        "higher",
        "order of pixels by what the model loses and keeps, after imputation",
        turned={("order", "morf"): "lower", ("order", "lerf"): "higher", ("order", "both"): "higher"},
    )
)
