"""One number per map: the area under its accuracy curve, its rank, and whether it beats random pixels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from roarfast.metrics.resampling import Estimate
from roarfast.report.audit import ALPHA
from roarfast.report.grid import BASELINES, PLAIN, Panel, pretty
from roarfast.report.stats import Interval, PairedTest, holm, mean_interval, paired_test, ranks
from roarfast.report.text import bounds, listed

RANDOM = "rand"
"""The baseline that every estimator is compared with: it needs no model and no image."""


@dataclass(frozen=True)
class Score:
    """The score of one estimator and post-processing.

    Attributes:
        estimator: Its name.
        postprocess: What was done to its maps.
        area: Mean accuracy over t, by the trapezoidal rule from nothing removed on; interval over trials.
        rank: Among the estimators with the same post-processing, 1 is best; NaN for baselines.
        random: The area minus that of random pixels, paired over trials; None where there are none to compare with.
        p_holm: Of that difference, corrected over all estimators and post-processings of the panel.
        gap: Area of least relevant first minus that of most relevant first; None without both.
        better: Which way is better.
        over_images: The area minus that of random pixels with an interval over test images, for these models; None where what
            they answered was not kept.
    """

    estimator: str
    postprocess: str
    area: Interval
    rank: float
    random: PairedTest | None
    p_holm: float
    gap: Interval | None
    better: str
    over_images: Estimate | None = None

    @property
    def advantage(self) -> float:
        """By how much it is better than random pixels; NaN if nothing can be said."""
        if self.random is None:
            return math.nan
        return self.random.difference.mean * (-1 if self.better == "lower" else 1)

    @property
    def beats_random(self) -> bool:
        """Whether that is shown, at the 5 % level after correction."""
        return self.advantage > 0 and self.p_holm < ALPHA

    @property
    def beats_random_here(self) -> bool:
        """Whether it does for these very models: the interval over images leaves 0 out on the right side."""
        if self.over_images is None:
            return False
        return self.over_images.high < 0 if self.better == "lower" else self.over_images.low > 0

    @property
    def verdict(self) -> str:
        """In a word or two."""
        if math.isnan(self.advantage) or self.estimator == RANDOM:
            return ""
        if self.advantage <= 0:
            return "worse" if self.p_holm < ALPHA else "no"
        if self.random is not None and self.random.n < 2 and self.beats_random_here:
            return "for this model"
        return "yes" if self.beats_random else "not shown"


def areas(panel: Panel, estimator: str, postprocess: str, rates: Sequence[float] = ()) -> dict[int, float]:
    """Trial → mean accuracy over t, for the trials that have every one of `rates`, or of those at which estimators were run.

    Where the base model's accuracy is known, the curve starts there: with nothing removed every map scores the same.
    """
    wanted = rates or panel.main_drops
    cells = [panel.get(estimator, postprocess, t) for t in wanted]
    if not all(cells):
        return {}
    found = {}
    for trial in sorted(set.intersection(*(set(c.trials) for c in cells if c))):
        points = {t: float(c.trials[trial].accuracy or 0) for t, c in zip(wanted, cells) if c}
        if set(panel.base_by_trial) >= set(panel.trials):
            points[panel.whole] = panel.base_by_trial[trial]
        found[trial] = _mean_height(points)
    return found


def _mean_height(points: dict[float, float]) -> float:
    x, y = np.array(sorted(points)), np.array([points[t] for t in sorted(points)])
    if len(x) == 1:
        return float(y[0])
    return float(((x[1:] - x[:-1]) * (y[1:] + y[:-1]) / 2).sum() / (x[-1] - x[0]))


def scores(
    panel: Panel,
    opposite: Panel | None = None,
    rates: Sequence[float] = (),
    images: Mapping[tuple[str, str], Estimate] | None = None,
) -> list[Score]:
    """The scores of a panel, in its own order; those with a missing rate have no area.

    Args:
        panel: The panel.
        opposite: The panel with the other order of removal, for the gap.
        rates: Of the areas; by default those at which estimators were run.
        images: Differences to random pixels with intervals over images, by estimator and post-processing.
    """
    by_map = {
        (e, k): areas(panel, e, k, rates)
        for k in panel.postprocesses
        for e in panel.estimators
        if any(panel.get(e, k, t) for t in panel.drops)
    }
    random = by_map.get((RANDOM, PLAIN), {})
    tests = {key: _against(random, mine) for key, mine in by_map.items() if key[0] != RANDOM}
    family = [key for key, test in tests.items() if test is not None and key[0] not in BASELINES]
    adjusted = dict(zip(family, holm(np.array([tests[key].p for key in family]))))  # type: ignore[union-attr]
    found = []
    for (e, k), mine in by_map.items():
        test = tests.get((e, k))
        p = adjusted.get((e, k), test.p if test else math.nan)
        gap = _gap(panel, mine, areas(opposite, e, k, rates)) if opposite else None
        found.append(
            Score(
                e,
                k,
                mean_interval(list(mine.values())),
                math.nan,
                test,
                float(p),
                gap,
                panel.better,
                (images or {}).get((e, k)),
            )
        )
    return _ranked(found, panel)


def _ranked(found: list[Score], panel: Panel) -> list[Score]:
    ranked = []
    for k in panel.postprocesses:
        real = [s for s in found if s.postprocess == k and s.estimator not in BASELINES and s.area.n]
        places = dict(
            zip((s.estimator for s in real), ranks([s.area.mean for s in real], panel.better) if real else ())
        )
        for s in found:
            if s.postprocess == k:
                place = float(places.get(s.estimator, math.nan))
                ranked.append(replace(s, rank=place))
    return ranked


def _against(random: dict[int, float], mine: dict[int, float]) -> PairedTest | None:
    common = sorted(random.keys() & mine.keys())
    return paired_test([random[t] for t in common], [mine[t] for t in common]) if common else None


def _gap(panel: Panel, mine: dict[int, float], other: dict[int, float]) -> Interval | None:
    common = sorted(mine.keys() & other.keys())
    sign = -1 if panel.order == "lerf" else 1
    return mean_interval([sign * (other[t] - mine[t]) for t in common]) if common else None


def random_sentence(found: Sequence[Score]) -> str:
    """Whether anything beats random pixels, among the plain maps; empty where they were not compared."""
    plain = [
        s for s in found if s.postprocess == PLAIN and s.estimator not in BASELINES and not math.isnan(s.advantage)
    ]
    if not plain:
        if any(s.estimator not in BASELINES for s in found) and not any(s.estimator == "rand" for s in found):
            return "Not known: random pixels were not removed here. Add the estimator rand to the grid; the run then only grows."
        return ""
    best = max(plain, key=lambda s: s.advantage)
    assert best.random is not None
    d = best.random.difference
    if best.advantage <= 0:
        worse = f"{abs(100 * best.advantage):.1f}"
        how = "does as they do" if worse == "0.0" else f"is {worse} points worse on average over t"
        return f"No estimator beats random pixels: the best, {pretty(best.estimator)}, {how}."
    winners = [pretty(s.estimator) for s in sorted(plain, key=lambda s: -s.advantage) if s.beats_random]
    if winners:
        return f"{len(winners)} of {len(plain)} plain estimators beat random pixels (averaged over t, Holm-corrected): {listed(winners)}."
    here = [pretty(s.estimator) for s in sorted(plain, key=lambda s: -s.advantage) if s.verdict == "for this model"]
    if here:
        return f"One trial: for this model {len(here)} of {len(plain)} plain estimators beat random pixels (95 % interval over test images): {listed(here)}."
    why = (
        f"95 % interval of the difference {bounds(d.low, d.high)}"
        if d.n > 1
        else "one trial: the difference may be chance"
    )
    if d.n > 1 and (d.high < 0 or d.low > 0):
        why += "; corrected for the number of maps (Holm) it may be chance"
    return (
        f"No estimator is shown to beat random pixels: the best, {pretty(best.estimator)}, is {100 * best.advantage:.1f} points better "
        f"on average over t ({why})."
    )


def spread(found: Sequence[Score]) -> float:
    """Standard deviation over trials of the difference to random pixels, pooled over estimators; NaN with one trial."""
    variances = [
        s.random.difference.sd**2 for s in found if s.random and s.random.n > 1 and s.estimator not in BASELINES
    ]
    return math.sqrt(float(np.mean(variances))) if variances else math.nan
