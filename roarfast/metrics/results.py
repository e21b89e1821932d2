"""What `evaluate` returns: numbers with intervals, curves, comparisons; as text, HTML, figure and data frame."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from roarfast.metrics.record import Line, Outcome, Score
from roarfast.metrics.resampling import bootstrap, holm, interval, two_sided, weighted_mean
from roarfast.metrics.responses import Responses

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A curve with a band of 95 % over resampled images.

    Attributes:
        x: float64 `[R]`.
        value: float64 `[R]`.
        low: float64 `[R]`.
        high: float64 `[R]`.
        x_label: What x is.
        y_label: What the value is.
        responses: What it was computed from.
    """

    x: Floats
    value: Floats
    low: Floats
    high: Floats
    x_label: str
    y_label: str
    responses: Responses | None = None

    @classmethod
    def of(cls, line: Line, count: int, seed: int) -> Curve:
        """The curve of single samples' values, with its band."""
        mean = weighted_mean(line.values)
        n = line.values.shape[1]
        draws = bootstrap(mean, n, count, seed)
        low, high = interval(draws) if len(draws) else (np.full(len(line.x), np.nan),) * 2
        value = line.mean if line.mean is not None else mean(np.ones((1, n)))[0] if n else np.full(len(line.x), np.nan)
        return cls(line.x, np.asarray(value), low, high, line.x_label, line.y_label, line.responses)


@dataclass(frozen=True)
class Result:
    """One score of one set of maps.

    Attributes:
        score: The score's name.
        map: The maps' name.
        value: The score.
        low: Lower end of its 95 % interval over resampled images.
        high: Upper end.
        better: `"higher"`, `"lower"` or `"neither"`.
        measures: What the score measures.
        per_image: float64 `[N]` whose mean is the score; None for scores that are no mean.
        per_class: float64 `[classes]`, the score of the images of each class; NaN without images.
        draws: float64 `[B]`, the score under each resample; equal resamples for all maps.
        curves: By name.
        details: Other numbers of the score.
        notes: What is unusual.
    """

    score: str
    map: str
    value: float
    low: float
    high: float
    better: str
    measures: str
    per_image: Floats | None
    per_class: Floats
    draws: Floats = field(repr=False)
    curves: Mapping[str, Curve] = field(repr=False)
    details: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def curve(self) -> Curve:
        """The score's own curve."""
        if not self.curves:
            raise AttributeError(f"score {self.score!r} has no curve")
        return next(iter(self.curves.values()))

    @classmethod
    def of(
        cls, score: Score, name: str, outcome: Outcome, labels: npt.NDArray[np.int64], count: int, seed: int
    ) -> Result:
        """A score's outcome with intervals."""
        n = len(labels)
        statistic = outcome.resample()
        draws = bootstrap(statistic, n, count, seed)
        low, high = interval(draws)
        value = float(statistic(np.ones((1, n)))[0]) if n else float("nan")
        classes = int(labels.max()) + 1 if n else 0
        member = np.eye(classes)[labels].T if n else np.zeros((0, 0))
        some = member.sum(1) > 0 if n else np.zeros(0, bool)
        per_class = np.full(classes, np.nan)
        if some.any():
            per_class[some] = statistic(member[some])
        curves = {key: Curve.of(line, count, seed) for key, line in outcome.curves.items()}
        return cls(
            score.name, name, value, low, high, score.better, score.measures, outcome.per_image, per_class, draws,
            curves, dict(outcome.details), outcome.notes,
        )  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """Whether one set of maps beats another under a score, on the same images.

    Attributes:
        score: The score's name.
        winner: The better maps.
        loser: The other ones.
        by: How much better, >= 0.
        low: Lower end of the 95 % interval of that.
        high: Upper end.
        p: p-value of "no difference", corrected by Holm for all pairs of this score.
        significant: Whether p < 0.05.
    """

    score: str
    winner: str
    loser: str
    by: float
    low: float
    high: float
    p: float
    significant: bool


def compare(results: Mapping[str, Result]) -> list[Comparison]:
    """All pairs of maps under one score, paired over images."""
    names = list(results)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    found = []
    for a, b in pairs:
        one, two = results[a], results[b]
        sign = -1.0 if one.better == "lower" else 1.0
        difference, draws = sign * (one.value - two.value), sign * (one.draws - two.draws)
        flip = -1.0 if difference < 0 else 1.0
        low, high = interval(flip * draws)
        found.append(
            (one.score, *((a, b) if flip > 0 else (b, a)), flip * difference, low, high, two_sided(difference, draws))
        )
    corrected = holm(np.array([row[-1] for row in found]))
    return [Comparison(*row[:-1], p=float(p), significant=bool(p < 0.05)) for row, p in zip(found, corrected)]


class ScoreResults(Mapping[str, Result]):
    """The results of one score by the name of the maps; with a single set of maps also that result itself."""

    def __init__(self, score: str, results: dict[str, Result]) -> None:
        self.score = score
        self._results = results

    def __getitem__(self, name: str) -> Result:
        if name not in self._results:
            raise KeyError(f"there are no maps {name!r}; there are {', '.join(self._results)}")
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def only(self) -> Result:
        """The result, if there is one set of maps."""
        if len(self._results) != 1:
            names = ", ".join(repr(n) for n in self._results)
            raise ValueError(f"there are several sets of maps: scores[{self.score!r}][name], name one of {names}")
        return next(iter(self._results.values()))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or (name not in Result.__dataclass_fields__ and name != "curve"):
            raise AttributeError(name)
        return getattr(self.only, name)

    def __repr__(self) -> str:
        return f"ScoreResults({self.score!r}: {', '.join(f'{k} {v.value:.4f}' for k, v in self._results.items())})"


class Scores(Mapping[str, ScoreResults]):
    """All scores of all maps: what `evaluate` returns."""

    def __init__(
        self, results: dict[str, dict[str, Result]], count: int, aggregate: str | None, resamples: int
    ) -> None:
        self._results = {name: ScoreResults(name, by_map) for name, by_map in results.items()}
        self.count, self.aggregate, self.resamples = count, aggregate, resamples

    def __getitem__(self, name: str) -> ScoreResults:
        if name not in self._results:
            raise KeyError(f"there is no score {name!r}; there are {', '.join(self._results)}")
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def maps(self) -> list[str]:
        """The names of the maps."""
        return list(next(iter(self._results.values()))) if self._results else []

    def comparisons(self) -> list[Comparison]:
        """Which maps beat which, under every score that has a better direction."""
        return [
            c for by_map in self._results.values() if len(by_map) > 1 and next(iter(by_map.values())).better != "neither"
            for c in compare(by_map)
        ]  # fmt: skip

    def notes(self) -> list[str]:
        """What is unusual, by score and maps."""
        return [
            f"{r.score}, {r.map}: {note}"
            for by_map in self._results.values()
            for r in by_map.values()
            for note in r.notes
        ]

    def _caption(self) -> str:
        channels = f"; channels by {self.aggregate}" if self.aggregate else ""
        return f"{self.count} images, 95 % intervals over {self.resamples} resamples of them{channels}"

    def _rows(self) -> list[list[str]]:
        return [
            [r.score, r.map, _number(r.value), f"[{_number(r.low)}, {_number(r.high)}]", r.better, r.measures]
            for by_map in self._results.values() for r in by_map.values()
        ]  # fmt: skip

    def _pair_rows(self) -> list[list[str]]:
        return [
            [c.score, f"{c.winner} beats {c.loser}" if c.significant else f"{c.winner} ≈ {c.loser}", _number(c.by),
             f"[{_number(c.low)}, {_number(c.high)}]", f"{c.p:.3g}"]
            for c in self.comparisons()
        ]  # fmt: skip

    _head = ("score", "maps", "value", "95 % interval", "better", "measures")
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

    def to_dataframe(self) -> Any:
        """One row per score and maps, as a pandas data frame (needs pandas)."""
        try:
            import pandas
        except ImportError:
            raise ImportError(
                "to_dataframe needs pandas: pip install pandas; rows() gives the same as dictionaries"
            ) from None
        return pandas.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per score and maps."""
        keys = ("score", "map", "value", "low", "high", "better", "measures")
        return [{key: getattr(r, key) for key in keys} for by_map in self._results.values() for r in by_map.values()]

    def plot(self) -> Any:
        """A matplotlib figure: one panel per score, curves with bands, or values with intervals."""
        from roarfast.metrics.plotting import plot_scores

        return plot_scores(self)


def _number(value: float) -> str:
    return "–" if not np.isfinite(value) else f"{value:.4f}" if abs(value) < 100 else f"{value:.4g}"


def _text_table(head: tuple[str, ...], rows: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in [list(head), *rows]) for i in range(len(head))]
    lines = [list(head), ["-" * w for w in widths], *rows]
    return ["  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in lines]


def _html_table(head: tuple[str, ...], rows: list[list[str]]) -> str:
    def cells(row: Any, tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in row) + "</tr>"

    return "<table>" + cells(head, "th") + "".join(cells(row, "td") for row in rows) + "</table>"
