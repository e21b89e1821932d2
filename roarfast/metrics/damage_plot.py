"""The figure of damage: stacked bars of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from roarfast.metrics.plotting import new_figure
from roarfast.metrics.resampling import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

COLOURS = {"shape": "#9e9e9e", "image": "#4c78a8", "model": "#f58518"}


class Row(Protocol):
    """A bar: `damage_parts.EstimatorParts`."""

    @property
    def shape(self) -> Estimate:
        """Below."""

    @property
    def image(self) -> Estimate:
        """In the middle."""

    @property
    def model(self) -> Estimate:
        """On top, with its interval."""


class Parts(Protocol):
    """What is drawn: `damage_parts.Parts`, which imports this module."""

    @property
    def rows(self) -> Mapping[str, Row]:
        """By estimator."""

    @property
    def of(self) -> str:
        """The response."""


def plot_parts(parts: Parts, ax: Axes | None = None) -> Figure | SubFigure:
    """Stacked bars per estimator, negative parts below the axis, with the interval of the model part.

    Args:
        parts: From `metrics.parts`.
        ax: matplotlib axes; a new figure by default.

    Returns:
        The figure.
    """
    ax = _axes(ax, (1.2 + 0.62 * len(parts.rows), 3.6))
    scale = 1.0 if parts.of == "bits" else 100.0
    place = np.arange(len(parts.rows))
    up, down = np.zeros(len(place)), np.zeros(len(place))
    for name, colour in COLOURS.items():
        height = np.array([getattr(row, name).value * scale for row in parts.rows.values()])
        bottom = np.where(height >= 0, up, down)
        ax.bar(place, height, 0.7, bottom, color=colour, label=name)
        if name == "model":
            estimates = [row.model for row in parts.rows.values()]
            top = bottom + height
            low = np.array([(e.value - e.low) * scale for e in estimates])
            high = np.array([(e.high - e.value) * scale for e in estimates])
            known = ~np.isnan(low)
            ax.errorbar(
                place[known], top[known], [low[known], high[known]], fmt="none", ecolor="black", lw=1, capsize=2
            )
        up, down = up + np.maximum(height, 0), down + np.minimum(height, 0)
    ax.axhline(0, color="black", lw=0.8)
    ax.set_xticks(place, list(parts.rows), rotation=40, ha="right")
    ax.set_ylabel("bits lost" if parts.of == "bits" else f"{parts.of} lost (points)")
    ax.legend(frameon=False, fontsize="small", ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax.figure


def _axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    if ax is not None:
        return ax
    return new_figure(size).add_subplot()
