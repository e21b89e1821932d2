"""What `evaluate` returns: all scores of all maps, as text, HTML, figure and data frame."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from roarfast.metrics.plotting import plot_scores
from roarfast.metrics.record import Detail
from roarfast.metrics.resampling import Floats, Resampled
from roarfast.metrics.results import Comparison, Curve, Result, compare

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

T = TypeVar("T")


class _Named(Mapping[str, T], Generic[T]):
    """Things by name; a wrong name is an error that lists the right ones."""

    _kind = ""

    def __init__(self, items: dict[str, T]) -> None:
        self._items = items

    def __getitem__(self, name: str) -> T:
        if name not in self._items:
            raise KeyError(f"there {self._kind} {name!r}; there are {', '.join(self._items)}")
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


class ScoreResults(_Named[Result]):
    """The results of one score by the name of the maps; with a single set of maps also that result itself."""

    _kind = "are no maps"

    # What `__getattr__` finds in the only result.
    map: str
    value: float
    low: float
    high: float
    better: str
    measures: str
    per_image: Floats | None
    per_class: Floats
    resampled: Resampled
    curve: Curve
    curves: Mapping[str, Curve]
    details: Mapping[str, Detail]
    notes: tuple[str, ...]
    kind: str

    def __init__(self, score: str, results: dict[str, Result]) -> None:
        super().__init__(results)
        self.score = score

    @property
    def only(self) -> Result:
        """The result, if there is one set of maps."""
        if len(self._items) != 1:
            names = ", ".join(repr(n) for n in self._items)
            raise ValueError(f"there are several sets of maps: scores[{self.score!r}][name], name one of {names}")
        return next(iter(self._items.values()))

    def __getattr__(self, name: str) -> object:
        if name.startswith("_") or (name not in Result.__dataclass_fields__ and name != "curve"):
            raise AttributeError(name)
        return getattr(self.only, name)

    def __repr__(self) -> str:
        return f"ScoreResults({self.score!r}: {', '.join(f'{k} {v.value:.4f}' for k, v in self._items.items())})"


class Scores(_Named[ScoreResults]):
    """All scores of all maps: what `evaluate` returns."""

    _kind = "is no score"

    def __init__(
        self, results: dict[str, dict[str, Result]], count: int, aggregate: str | None, resamples: int
    ) -> None:
        super().__init__({name: ScoreResults(name, by_map) for name, by_map in results.items()})
        self.count, self.aggregate, self.resamples = count, aggregate, resamples

    @property
    def maps(self) -> list[str]:
        """The names of the maps."""
        return list(next(iter(self._items.values()))) if self._items else []

    def comparisons(self) -> list[Comparison]:
        """Which maps beat which, under every score that has a better direction."""
        return [
            c
            for by_map in self._items.values()
            if len(by_map) > 1 and next(iter(by_map.values())).better != "neither"
            for c in compare(by_map)
        ]

    def notes(self) -> list[str]:
        """What is unusual, by score and maps."""
        return [
            f"{r.score}, {r.map}: {note}"
            for by_map in self._items.values()
            for r in by_map.values()
            for note in r.notes
        ]

    def _caption(self) -> str:
        channels = f"; channels by {self.aggregate}" if self.aggregate else ""
        return f"{self.count} images, 95 % intervals over {self.resamples} resamples of them{channels}"

    def _rows(self) -> list[list[str]]:
        return [
            [r.score, r.map, _number(r.value), f"[{_number(r.low)}, {_number(r.high)}]", r.better, r.kind, r.measures]
            for by_map in self._items.values()
            for r in by_map.values()
        ]

    def _pair_rows(self) -> list[list[str]]:
        return [
            [
                c.score,
                f"{c.winner} beats {c.loser}" if c.significant else f"{c.winner} ≈ {c.loser}",
                _number(c.by),
                f"[{_number(c.low)}, {_number(c.high)}]",
                f"{c.p:.3g}",
            ]
            for c in self.comparisons()
        ]

    _head = ("score", "maps", "value", "95 % interval", "better", "kind", "measures")
    _pair_head = ("score", "on the same images", "by", "95 % interval", "p (Holm)")

    def __str__(self) -> str:
        text = [self._caption(), "", *_text_table(self._head, self._rows())]
        if pairs := self._pair_rows():
            text += ["", *_text_table(self._pair_head, pairs)]
        if notes := self.notes():
            text += ["", *(f"note: {note}" for note in notes)]
        return "\n".join(text)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The tables as a notebook shows them."""
        parts = [f"<p>{html.escape(self._caption())}</p>", _html_table(self._head, self._rows())]
        if pairs := self._pair_rows():
            parts.append(_html_table(self._pair_head, pairs))
        parts += [f"<p>note: {html.escape(note)}</p>" for note in self.notes()]
        return "\n".join(parts)

    def to_dataframe(self) -> DataFrame:
        """One row per score and maps, as a pandas data frame (needs pandas)."""
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "to_dataframe needs pandas: pip install pandas; rows() gives the same as dictionaries"
            ) from None
        return pandas.DataFrame(self.rows())

    def rows(self) -> list[dict[str, str | float]]:
        """One dictionary per score and maps."""
        keys = ("score", "map", "value", "low", "high", "better", "kind", "measures")
        return [{key: getattr(r, key) for key in keys} for by_map in self._items.values() for r in by_map.values()]

    def plot(self) -> Figure:
        """A matplotlib figure: one panel per score, curves with bands, or values with intervals."""
        return plot_scores(self)


def _number(value: float) -> str:
    return "–" if not np.isfinite(value) else f"{value:.4f}" if abs(value) < 100 else f"{value:.4g}"


def _text_table(head: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in [list(head), *rows]) for i in range(len(head))]
    lines = [list(head), ["-" * w for w in widths], *rows]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in lines]


def _html_table(head: tuple[str, ...], rows: list[list[str]]) -> str:
    def cells(row: Iterable[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in row) + "</tr>"

    return "<table>" + cells(head, "th") + "".join(cells(row, "td") for row in rows) + "</table>"
