"""Is an estimator better than random pixels at each rate, and how far apart are estimators (Hooker et al., 3.1, 4.2.2)?

Trials are blocks: within one, all cells share the base model and the batches. The noise of a cell is what is left of the accuracies
[estimators, trials] of a rate without the means of estimators and of trials, pooled over the estimators. So two trials of thirteen
estimators give twelve degrees of freedom, where a paired test of each estimator alone would have one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from roarfast.report.audit import ALPHA
from roarfast.report.grid import BASELINES, PLAIN, CellKey, Panel, pretty
from roarfast.report.stats import Floats, Interval, holm, t_p, t_quantile
from roarfast.report.table import Cells, Row, Table, Td, table
from roarfast.report.text import number, percent, signed

_DRAWS, _SEED = 4000, 0
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Block:
    """The plain accuracies of a rate, `values` `[E, T]`, for the trials that all of its estimators have."""

    names: tuple[str, ...]
    values: Floats

    @property
    def trials(self) -> int:
        """How many."""
        return int(self.values.shape[1])

    @property
    def df(self) -> int:
        """Degrees of freedom of the noise."""
        return (len(self.names) - 1) * (self.trials - 1)

    @property
    def sd(self) -> float:
        """The noise of a cell; NaN if there is nothing to tell it from."""
        if self.df < 1:
            return math.nan
        left = (
            self.values - self.values.mean(1, keepdims=True) - self.values.mean(0, keepdims=True) + self.values.mean()
        )
        sd = math.sqrt(float((left**2).sum()) / self.df)
        return sd if sd > _ROUNDING else 0.0

    def difference(self, one: str, other: str) -> Interval:
        """The accuracy of an estimator less that of another, with its 95 % interval by the noise of all of them."""
        mean = float((self.values[self.names.index(one)] - self.values[self.names.index(other)]).mean())
        half = t_quantile(self.df) * self.error if self.df else math.nan
        return Interval(mean, mean - half, mean + half, self.sd, self.trials)

    @property
    def error(self) -> float:
        """The standard error of a difference between two estimators."""
        return math.sqrt(2 / self.trials) * self.sd


def block(panel: Panel, drop: float) -> Block:
    """All plain maps of a rate, baselines too."""
    cells = {e: c for e in panel.estimators if (c := panel.cells.get(CellKey(e, PLAIN, drop)))}
    common = sorted(set.intersection(*(set(c.trials) for c in cells.values()))) if cells else []
    values = [[float(c.trials[t].accuracy or 0.0) for t in common] for c in cells.values()]
    return Block(tuple(cells), np.array(values, np.float64).reshape(len(cells), len(common)))


@dataclass(frozen=True)
class RandomTest:
    """An estimator less random pixels at a rate, in accuracy."""

    estimator: str
    drop: float
    difference: Interval
    p: float
    p_holm: float
    better: bool
    """Whether the difference points the way that is better."""

    @property
    def verdict(self) -> str:
        """`"better"`, `"worse"`, or `"open"`: it may be chance, or could not be tested."""
        if math.isnan(self.p_holm) or self.p_holm >= ALPHA:
            return "open"
        return "better" if self.better else "worse"


def random_tests(panel: Panel) -> list[RandomTest]:
    """Every estimator against random pixels at every rate; Holm's correction over the estimators of a rate."""
    found = []
    for drop in panel.main_drops:
        cells = block(panel, drop)
        if "rand" not in cells.names or cells.trials == 0:
            continue
        differences = {name: cells.difference(name, "rand") for name in cells.names if name not in BASELINES}
        ps = [t_p(d.mean / cells.error, cells.df) if cells.error > 0 else math.nan for d in differences.values()]
        for (name, d), p, corrected in zip(differences.items(), ps, holm(ps)):
            better = d.mean < 0 if panel.better == "lower" else d.mean > 0
            found.append(RandomTest(name, drop, d, p, float(corrected), better))
    return found


def random_table(panel: Panel) -> Table | None:
    """Differences to random pixels, rates as columns; None where nothing can be tested."""
    tests = random_tests(panel)
    if not any(not math.isnan(t.p) for t in tests):
        return None
    rates = sorted({t.drop for t in tests})
    by = {(t.estimator, t.drop): t for t in tests}
    rows: list[Cells] = [
        [pretty(e), *(_difference_td(by[e, t]) if (e, t) in by else Td("–") for t in rates)]
        for e in dict.fromkeys(t.estimator for t in tests)
    ]
    caption = (
        f"{panel.title}: accuracy less that of random pixels, in points, rate by rate; {panel.better} is better. * better, × worse than "
        f"random pixels at the {100 * ALPHA:.0f} % level (t-tests with the noise of all estimators of a rate, Holm's correction over them)."
    )
    return table(f"{panel.slug}-random", caption, ["Estimator", *(f"t = {t:g}" for t in rates)], rows)


def _difference_td(test: RandomTest) -> Td:
    mark = {"better": " *", "worse": " ×", "open": ""}[test.verdict]
    d = test.difference
    hint = "" if math.isnan(d.low) else f"{signed(d.low)} to {signed(d.high)}, p {number(test.p_holm, 2)}"
    return Td(signed(d.mean) + mark, d.mean, "flag" if mark else "", title=hint)


@dataclass(frozen=True)
class Spread:
    """How far the estimators (no baselines) of a rate are apart: highest less lowest accuracy.

    Noise moves it by no more than the range of the noise, in either direction: so `low` and `high`, 95 % of that range below and above it,
    hold the truth at least as often. `chance` is what as many estimators of equal accuracy show by noise alone, on average; `noise` are
    draws of it.
    """

    drop: float
    highest: str
    lowest: str
    value: float
    low: float
    high: float
    chance: float
    noise: Floats


def spreads(panel: Panel) -> list[Spread]:
    """At every rate with two estimators or more."""
    found = []
    for drop in panel.main_drops:
        cells = block(panel, drop)
        real = [i for i, name in enumerate(cells.names) if name not in BASELINES]
        if len(real) < 2 or cells.trials == 0:
            continue
        means = cells.values[real].mean(1)
        noise = _noise(cells, len(real), [_SEED, round(1e6 * drop), sum(panel.protocol.encode())])
        highest, lowest = (cells.names[real[int(i)]] for i in (means.argmax(), means.argmin()))
        value = float(np.ptp(means))
        chance = float(noise.mean()) if noise.size else math.nan
        found.append(Spread(drop, highest, lowest, value, *_bounds(value, noise), chance, noise))
    return found


def _noise(cells: Block, count: int, seed: list[int]) -> Floats:
    """Ranges of the noise of `count` means over trials, drawn with what is known of its size; none from one trial."""
    if math.isnan(cells.sd):
        return np.empty(0)
    rng = np.random.default_rng(seed)
    sd = cells.sd * np.sqrt(cells.df / rng.chisquare(cells.df, (_DRAWS, 1)))
    return np.asarray(np.ptp(rng.standard_normal((_DRAWS, count)) * sd / math.sqrt(cells.trials), axis=1))


def _bounds(value: float, noise: Floats) -> tuple[float, float]:
    if not noise.size:
        return math.nan, math.nan
    half = float(np.quantile(noise, 0.95))
    return max(0.0, value - half), value + half


def _mean_noise(found: Sequence[Spread]) -> Floats:
    some_missing = any(not s.noise.size for s in found)
    return np.empty(0) if some_missing else np.asarray(np.mean([s.noise for s in found], 0))


def mean_spread(found: Sequence[Spread]) -> tuple[float, float, float]:
    """The mean over rates and its 95 % interval."""
    value = float(np.mean([s.value for s in found]))
    return value, *_bounds(value, _mean_noise(found))


def spread_difference(one: Sequence[Spread], other: Sequence[Spread]) -> Interval:
    """The mean spread of one panel less that of another, with its 95 % interval."""
    value = mean_spread(one)[0] - mean_spread(other)[0]
    mine, theirs = _mean_noise(one), _mean_noise(other)
    if not mine.size or not theirs.size:
        return Interval(value, math.nan, math.nan, math.nan, 0)
    half = float(np.quantile(mine + theirs, 0.95))
    return Interval(value, value - half, value + half, math.nan, len(mine))


def spread_table(panels: Sequence[Panel]) -> Table | None:
    """Rows of all panels; None where no panel has two estimators."""
    rows = []
    for row in spread_rows(panels):
        rows.append(
            [
                Td(row["title"]),
                Td(f"{row['drop']:g}", row["drop"]),
                Td(percent(row["spread"]), row["spread"]),
                Td("–" if math.isnan(row["low"]) else f"{percent(row['low'])} to {percent(row['high'])}", row["low"]),
                Td(percent(row["chance"]), row["chance"]),
                Td(pretty(row["highest"]), css="text"),
                Td(pretty(row["lowest"]), css="text"),
            ]
        )
    caption = (
        "How well protocols tell estimators apart: highest less lowest accuracy of the plain maps (baselines apart), in points, with its 95 % "
        "interval by the noise between trials (wide enough at any rate), and what as many equal estimators would show by that noise alone."
    )
    columns = ["Protocol", "t", "spread", "95 % interval", "by chance", "highest", "lowest"]
    return table("spread", caption, columns, rows) if rows else None


class SpreadRow(TypedDict):
    """A row of `tables/spread.csv`."""

    title: str
    dataset: str
    protocol: str
    order: str
    drop: float
    spread: float
    low: float
    high: float
    chance: float
    highest: str
    lowest: str


def spread_rows(panels: Sequence[Panel]) -> Iterable[SpreadRow]:
    """Rows of `tables/spread.csv`."""
    for panel in panels:
        for s in spreads(panel):
            yield {
                "title": panel.title,
                "dataset": panel.dataset,
                "protocol": panel.protocol,
                "order": panel.order,
                "drop": s.drop,
                "spread": s.value,
                "low": s.low,
                "high": s.high,
                "chance": s.chance,
                "highest": s.highest,
                "lowest": s.lowest,
            }


def random_rows(panels: Sequence[Panel]) -> Iterable[Row]:
    """Rows of `tables/random.csv`."""
    for panel in panels:
        for t in random_tests(panel):
            d = t.difference
            yield panel.row | {
                "estimator": t.estimator,
                "drop": t.drop,
                "trials": d.n,
                "difference": d.mean,
                "low": d.low,
                "high": d.high,
                "p": t.p,
                "p_holm": t.p_holm,
                "verdict": t.verdict,
            }
