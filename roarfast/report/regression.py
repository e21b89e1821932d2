"""Total variation against accuracy over estimators: the points and the fits."""

from __future__ import annotations

import math

from roarfast.report.grid import BASELINES, PLAIN, Panel
from roarfast.report.stats import Fit, linear_fit

TV_KINDS = {
    "tv_mask": "total variation of the masks, per pair of neighbours",
    "tv_map": "total variation of the min-max scaled maps",
    "tv_map_train": "total variation of the min-max scaled maps of the train images, as in Song et al.",
}
FEWEST_POINTS = 5
"""A line through fewer points than these says nothing: its band fills the figure, and no rank correlation can be significant."""
POINT_SETS = {"paper": "all plain estimators and random pixels, as in the paper", "estimators": "without random pixels"}


def points_at(panel: Panel, kind: str, drop: float, points: str = "all") -> dict[str, tuple[float, float]]:
    """Estimator → (TV, accuracy), means over trials, of the plain maps at one rate.

    Args:
        panel: The panel.
        kind: One of `TV_KINDS`.
        drop: The rate.
        points: `"all"`, `"paper"` (no random block: a rectangle is not a map) or `"estimators"` (no baseline).
    """
    left_out = {"all": (), "paper": ("block",), "estimators": tuple(BASELINES)}[points]
    found = {}
    for estimator in panel.estimators:
        cell = panel.get(estimator, PLAIN, drop)
        if cell is None or estimator in left_out or math.isnan(cell.mean(kind)):
            continue
        found[estimator] = (cell.mean(kind), cell.accuracy().mean)
    return found


def fit_at(panel: Panel, kind: str, drop: float, points: str = "paper") -> Fit:
    """The line through those points."""
    chosen = points_at(panel, kind, drop, points).values()
    return linear_fit([x for x, _ in chosen], [y for _, y in chosen])


def shown_rates(panel: Panel) -> list[float]:
    """At most four of the rates, evenly chosen with the first and the last: more cannot be told apart."""
    drops = panel.main_drops
    if len(drops) <= 4:
        return drops
    return [drops[round(i * (len(drops) - 1) / 3)] for i in range(4)]
