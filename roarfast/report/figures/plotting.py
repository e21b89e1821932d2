"""What all figures share: colours, fonts, writing SVG and PNG, and labels that do not cover each other."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from roarfast._files import write_atomic

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.container import Container
    from matplotlib.figure import Figure as MplFigure
    from matplotlib.transforms import Bbox
    from matplotlib.typing import RcKeyType

Floats = npt.NDArray[np.float64]
NewFigure: TypeAlias = "Callable[[float, float], MplFigure]"
"""(width, height) in inches → a figure."""
Handle: TypeAlias = "Artist | Container"
"""What a legend shows: a line, a patch, or all bars of a kind."""

# Okabe and Ito's colours: told apart by readers with any of the common colour-vision deficiencies.
BLACK, ORANGE, GREEN = "#000000", "#E69F00", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#5F6368"
K_STYLES = ((BLUE, "o", "-"), (VERMILION, "s", "-"), (GREEN, "^", "-"), (PURPLE, "D", "-"), (ORANGE, "v", "-"))
"""Colour, marker and line of plain, max, gaussian and further post-processings: never colour alone."""
MAP_STYLES = tuple(zip((BLUE, VERMILION, GREEN, PURPLE, ORANGE, "#56B4E9", "#8B6D00", BLACK), "os^DvPX*"))
"""Colour and marker of the estimators in one plot of all of them, best first."""
BASELINE_STYLES = {"rand": (GREY, (0, (4, 2))), "block": (BLACK, (0, (1, 1.2)))}

WIDTH = 8.4  # inches: scaled to the 800 pixels of a web page, text of 9 points stays readable
_PNG_DPI = 180
_PNG_COLOURS = 128  # flat colours and greys: a palette shows no difference and takes a third of the bytes

_SETTINGS: dict[RcKeyType, object] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E3E5E8",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "svg.fonttype": "none",  # text stays text: it can be read out, searched and copied
    "svg.hashsalt": "roarfast",  # the same figure gives the same file
}


@dataclass(frozen=True)
class Figure:
    """A finished figure: its file name, what it shows in words, and its SVG for the page (PNG path for pictures)."""

    name: str
    title: str
    description: str
    svg: str = ""
    png: bytes = b""


@contextmanager
def style() -> Iterator[NewFigure]:
    """The report's settings, and a function (width, height) → figure that needs no display or pyplot state."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as MplFigure

    def new_figure(width: float, height: float) -> MplFigure:
        figure = MplFigure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        return figure

    with matplotlib.rc_context(_SETTINGS):
        yield new_figure


def finish(figure: MplFigure, folder: Path, name: str, title: str, description: str) -> Figure:
    """Writes `<name>.svg` and `<name>.png` and returns the figure for the page."""
    folder.mkdir(parents=True, exist_ok=True)
    freeze_layout(figure)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    write_atomic(folder / f"{name}.svg", svg)
    write_atomic(folder / f"{name}.png", _small_png(figure))
    return Figure(name, title, description, inline_svg(svg, name))


def _small_png(figure: MplFigure) -> bytes:
    from PIL import Image

    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=_PNG_DPI)
    palette = Image.open(drawn).convert("RGB").quantize(_PNG_COLOURS, dither=Image.Dither.NONE)
    palette.save(small, format="png", optimize=True, dpi=(_PNG_DPI, _PNG_DPI))
    return small.getvalue()


def freeze_layout(figure: MplFigure) -> None:
    """Solves the layout once: matplotlib would draw each file twice to do it again, half the time of a figure."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)


def inline_svg(svg: str, name: str) -> str:
    """The `<svg>` element alone, its ids prefixed (several figures share a page) and its size left to the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}--', svg)
    svg = re.sub(r'href="#', f'href="#{name}--', svg)
    svg = re.sub(r"url\(#", f"url(#{name}--", svg)
    head, body = svg.split(">", 1)
    width = re.search(r'width="([\d.]+)pt"', head)
    head = re.sub(r'\s(width|height)="[^"]*"', "", head)
    natural = f' style="max-width:{float(width.group(1)) * 4 / 3:.0f}px"' if width else ""
    return f'{head}{natural} aria-hidden="true" focusable="false">{body}'


def grid_of_axes(new_figure: NewFigure, count: int) -> tuple[MplFigure, list[Axes]]:
    """A figure with `count` small axes, with few gaps in the last row; tick labels of y at the left only."""
    columns = _columns(count)
    rows = -(-count // columns)
    width, height = WIDTH / max(columns, 3), {3: 2.1, 4: 1.9, 5: 1.75}.get(columns, 2.3)
    figure = new_figure(max(columns * width, 0.8 * WIDTH), rows * height + 0.9)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for i, axis in enumerate(axes):
        axis.tick_params(labelleft=i % columns == 0)
        axis.set_visible(i < count)
    return figure, list(axes[:count])


def two_columns(new_figure: NewFigure, count: int, height: float) -> tuple[MplFigure, list[Axes]]:
    """A figure with `count` large axes, at most two beside each other; `height` is that of a row in inches."""
    columns = min(count, 2)
    rows = -(-count // columns)
    figure = new_figure(WIDTH, height * rows + 0.4)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[count:]:
        axis.set_visible(False)
    return figure, list(axes[:count])


def _columns(count: int) -> int:
    """3 to 5 columns: whole rows first, then few rows."""
    if count <= 5:
        return max(count, 1)
    return min((3, 4, 5), key=lambda c: -count % c + 0.6 * -(-count // c))


def legend(figure: MplFigure, title: str, handles: Iterable[Handle], labels: Iterable[str]) -> None:
    """What the figure shows, and below it the keys of its lines and points.

    The title is that of the legend: matplotlib's layout would put a title of the figure over the legend.
    """
    listed: list[Any] = list(handles)  # matplotlib takes containers, but its types do not say so
    figure.legend(
        listed,
        list(labels),
        loc="outside upper left",
        ncols=min(len(listed), 6 if figure.get_figwidth() > 8 else 4),
        title="\n".join(wrap(title, int(12.1 * figure.get_figwidth()), break_on_hyphens=False)),
        alignment="left",
        columnspacing=1.4,
        handlelength=1.8,
        borderaxespad=0.2,
        title_fontproperties={"weight": "bold", "size": 9.5},
    )


def percent_axis(axis: Axis) -> None:
    """Ticks of an accuracy axis in percent."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.4g}"))


def y_limits(values: Sequence[float]) -> tuple[float, float]:
    """Room for the values, with a margin; intervals may leave it, so that two trials do not flatten all curves."""
    low, high = min(values), max(values)
    margin = max(0.08 * (high - low), 0.01)
    return max(low - margin, -0.02), min(high + margin, 1.02)


def place_labels(
    axes: Axes, points: Sequence[tuple[float, float]], labels: Sequence[str], avoid: Sequence[tuple[float, float]] = ()
) -> None:
    """Writes a label near each point, at the first of several offsets that covers no label or point (greedy).

    Sizes are estimated from the number of characters, which is close enough for names and needs no drawing.
    """
    figure = cast("MplFigure", axes.figure)  # `style` makes no figures inside figures
    freeze_layout(figure)  # data and pixels can be converted from here on
    axes.get_xlim(), axes.get_ylim()  # applies pending autoscaling
    to_pixels = axes.transData.transform
    scale = figure.dpi / 72
    every_point = to_pixels(np.array([*points, *avoid], np.float64).reshape(-1, 2))
    box = axes.get_window_extent()
    taken: list[tuple[float, float, float, float]] = []
    height, per_character, font = 9 * scale, 4.5 * scale, 7.5
    directions: Sequence[tuple[int, int]] = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1))
    order = np.argsort([-y for _, y in points], kind="stable")
    for i in order:
        width = per_character * len(labels[i])
        x, y = every_point[i]
        best: tuple[float, tuple[float, float]] | None = None
        for distance in (5, 9, 14, 20, 28, 38):
            for direction in directions:
                dx = direction[0] * distance * scale
                dy = direction[1] * (distance * scale + (height / 2 if direction[0] == 0 else 0))
                left = x + dx - (width if direction[0] < 0 else width / 2 if direction[0] == 0 else 0)
                bottom = y + dy - height / 2
                rectangle = (left, bottom, left + width, bottom + height)
                cost = _cost(rectangle, taken, every_point, box) + distance * 0.01
                if best is None or cost < best[0]:
                    best = (cost, (left, bottom))
            if best is not None and best[0] < 1:
                break
        assert best is not None
        left, bottom = best[1]
        taken.append((left, bottom, left + width, bottom + height))
        offset = ((left - x) / scale, (bottom + height / 2 - y) / scale)
        far = max(abs(offset[0] + width / 2 / scale) - width / 2 / scale, abs(offset[1])) > 12
        arrow = {"arrowstyle": "-", "color": "#9AA0A6", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2} if far else None
        axes.annotate(
            labels[i],
            points[i],
            offset,
            textcoords="offset points",
            fontsize=font,
            va="center",
            ha="left",
            arrowprops=arrow,
            annotation_clip=False,
            zorder=6,
            bbox={"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.2},
        ).set_in_layout(False)


def _cost(rectangle: tuple[float, ...], taken: Sequence[tuple[float, ...]], points: Floats, box: Bbox) -> float:
    left, bottom, right, top = rectangle
    overlaps = sum(left < r and right > lft and bottom < t and top > b for lft, b, r, t in taken)
    radius = 4.0
    inside = (points[:, 0] > left - radius) & (points[:, 0] < right + radius)
    covered = int((inside & (points[:, 1] > bottom - radius) & (points[:, 1] < top + radius)).sum())
    outside = left < box.x0 or right > box.x1 + 10 or bottom < box.y0 or top > box.y1
    return float(3 * overlaps + 2 * covered + 4 * outside)
