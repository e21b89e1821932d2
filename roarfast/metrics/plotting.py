"""Figures of scores."""

from __future__ import annotations

import functools
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roarfast.metrics.results import Result


def new_figure(size: tuple[float, float]) -> Figure:
    """An empty figure that a notebook shows if it is the value of a cell."""
    return _shown_by_itself()(figsize=size, layout="constrained")


@functools.cache
def _shown_by_itself() -> type[Figure]:
    from matplotlib.figure import Figure as Plain

    class Shown(Plain):
        """matplotlib teaches IPython to show figures when pyplot is imported, which nothing here needs."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

    return Shown


def plot_scores(scores: Mapping[str, Mapping[str, Result]]) -> Figure:
    """One panel per score: curves with bands where it has one, else values with intervals."""
    count = max(len(scores), 1)
    columns = min(count, 3)
    rows = -(-count // columns)
    figure = new_figure((4.2 * columns, 3.2 * rows))
    for i, (name, by_map) in enumerate(scores.items()):
        axes = figure.add_subplot(rows, columns, i + 1)
        axes.set_title(
            f"{name} ({first.better} is better)" if (first := next(iter(by_map.values()))).better != "neither" else name
        )
        for j, result in enumerate(by_map.values()):
            color = f"C{j % 10}"
            if not result.curves:
                reach = [[max(result.value - result.low, 0)], [max(result.high - result.value, 0)]]
                axes.errorbar([j], [result.value], yerr=reach, fmt="o", color=color, label=result.map, capsize=3)
                continue
            for style, (key, curve) in zip(("-", "--", ":"), result.curves.items()):
                label = result.map if len(result.curves) == 1 else f"{result.map}, {key}"
                axes.plot(curve.x, curve.value, style, color=color, label=label)
                axes.fill_between(curve.x, curve.low, curve.high, color=color, alpha=0.15, linewidth=0)
            axes.set_xlabel(result.curve.x_label)
            axes.set_ylabel(result.curve.y_label)
        axes.legend(fontsize=7)
    return figure
