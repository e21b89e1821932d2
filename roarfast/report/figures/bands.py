"""Curves of protocols without retraining, with bands over the test images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from roarfast.report.answers import Answers
from roarfast.report.figures import plotting
from roarfast.report.figures.plotting import Figure
from roarfast.report.grid import BASELINES, PLAIN, pretty
from roarfast.report.score_curves import CurveScore

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class _Line(TypedDict, total=False):
    color: str
    linestyle: tuple[int, tuple[float, float]]
    marker: str
    markersize: float
    label: str


def indicator(one: CurveScore) -> str:
    """What the curve of a protocol shows."""
    return next((name for name in ("probability", "logit") if name in one.protocol.score), "accuracy")


def bands_figure(found: Sequence[CurveScore], answers: Sequence[Answers], folder: Path) -> Figure | None:
    """One axes per protocol, all plain maps over each other; None where the answers were not kept."""
    shown = [one for one in found if any(_is_of(a, one) for a in answers)]
    if not shown:
        return None
    with plotting.style() as new_figure:
        figure, axes = plotting.two_columns(new_figure, len(shown), 3.0)
        for axis, one in zip(axes, shown):
            _bands(axis, one, [a for a in answers if _is_of(a, one)])
        note = f"Curves of {len(shown)} protocols without retraining, plain maps, with 95 % bands over the test images."
        return plotting.finish(figure, folder, "score-curves", "Curves without retraining", note)


def _is_of(a: Answers, one: CurveScore) -> bool:
    c = a.curve
    return (c.protocol, c.order, c.null, c.postprocess) == (one.protocol.name, one.order, "own", PLAIN)


def _bands(axis: Axes, one: CurveScore, answers: Sequence[Answers]) -> None:
    of = indicator(one)
    by_estimator: dict[str, list[Answers]] = {}
    for a in answers:
        by_estimator.setdefault(a.curve.estimator, []).append(a)
    real = [e for e in by_estimator if e not in BASELINES]
    for estimator, mine in by_estimator.items():
        values = np.mean([np.concatenate([a.responses.ends(of)[0][None], a.responses.values(of)]) for a in mine], 0)
        x = [1.0 if one.protocol.keeps else 0.0, *mine[0].rates]
        order = np.argsort(x)
        mean, half = (
            values.mean(1),
            1.96 * values.std(1, ddof=1) / np.sqrt(values.shape[1]) if values.shape[1] > 1 else 0 * values.mean(1),
        )
        if estimator in BASELINES:
            colour, dashes = plotting.BASELINE_STYLES[estimator]
            style: _Line = {"color": colour, "linestyle": dashes, "label": BASELINES[estimator]}
        else:
            colour, marker = plotting.MAP_STYLES[real.index(estimator) % len(plotting.MAP_STYLES)]
            style = {"color": colour, "marker": marker, "markersize": 3, "label": pretty(estimator)}
        x_sorted = np.array(x)[order]
        axis.plot(x_sorted, mean[order], linewidth=1.2, **style)
        axis.fill_between(x_sorted, (mean - half)[order], (mean + half)[order], color=colour, alpha=0.15, linewidth=0)
    axis.set_title(f"{one.title} (score: {one.better} is better)", loc="left", fontsize=9)
    axis.set_xlabel("fraction of pixels kept" if one.protocol.keeps else "fraction of pixels removed")
    axis.set_ylabel(
        {"accuracy": "accuracy", "probability": "probability", "logit": "logit"}[of] + " (mean over images)"
    )
    axis.legend(fontsize=7.5)
