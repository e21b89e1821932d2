"""The audit: did post-processing that knows nothing of the model change the score, and with it the ranking?

An agnostic k (a blur, a maximum filter) sees the map only. By the data processing inequality it cannot add
information about the model, so a benchmark that scores k(map) better rewards something else.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from roarfast.report.grid import BASELINES, BITS, PLAIN, Cell, CellKey, Panel
from roarfast.report.stats import Interval, PairedTest, holm, kendall_tau, mean_interval, paired_test, ranks
from roarfast.report.table import Row

ALPHA = 0.05


@dataclass(frozen=True)
class Change:
    """What k did to one (estimator, t): the paired difference in accuracy (or bits), and p corrected over the panel."""

    estimator: str
    postprocess: str
    drop: float
    test: PairedTest
    p_holm: float

    @property
    def difference(self) -> float:
        """Mean with k minus plain, over the trials that have both."""
        return self.test.difference.mean

    @property
    def significant(self) -> bool:
        """Whether the corrected p is below 5 %."""
        return self.p_holm < ALPHA


@dataclass(frozen=True)
class Count:
    """Over (estimator, t): how often k moved the accuracy (or the bits), and how often significantly. Baselines apart."""

    postprocess: str
    cells: int
    lower: int
    higher: int
    improved: int
    tested: int
    lower_significant: int
    higher_significant: int
    overall: PairedTest  # difference averaged over all (estimator, t) inside each trial, then paired over trials
    overall_cells: int

    @property
    def row(self) -> Row:
        """Its columns in CSV files."""
        mean = self.overall.difference
        return {
            "postprocess": self.postprocess,
            "cells": self.cells,
            "lower": self.lower,
            "higher": self.higher,
            "improved": self.improved,
            "tested": self.tested,
            "lower_significant": self.lower_significant,
            "higher_significant": self.higher_significant,
            "mean_difference": mean.mean,
            "mean_difference_low": mean.low,
            "mean_difference_high": mean.high,
            "p": self.overall.p,
            "cells_in_mean": self.overall_cells,
        }


@dataclass(frozen=True)
class RankRow:
    """Rank (1 = best) of an estimator at one rate: all plain; all after k; only this one after k, the others plain."""

    drop: float
    postprocess: str
    estimator: str
    plain: float
    after: float
    alone: float


@dataclass(frozen=True)
class Agreement:
    """Kendall's τ between the plain ranking and the one after k, and between single trials of the plain ranking."""

    drop: float
    postprocess: str
    estimators: int
    tau: float
    best_plain: tuple[str, ...]  # several if they tie
    best_after: tuple[str, ...]
    tau_between_trials: float

    @property
    def best_changed(self) -> bool:
        """Whether none of the best plain estimators is among the best after k."""
        return not set(self.best_plain) & set(self.best_after)


@dataclass(frozen=True)
class Audit:
    """Everything the audit section of one panel shows.

    `bits` are the counts in bits of class information that the tested models have left (Conjecture 3.3 of Song et al.
    speaks of these), by name: `bits`, and `scaled_bits` after temperature scaling; only what the records have.
    """

    panel: Panel
    changes: list[Change]
    counts: list[Count]
    baseline_counts: list[Count]
    rank_rows: list[RankRow]
    agreements: list[Agreement]
    bits: dict[str, list[Count]] = field(default_factory=dict)

    def change(self, estimator: str, postprocess: str, drop: float) -> Change | None:
        """The change of one cell, or None if plain or k is missing there."""
        wanted = (estimator, postprocess, drop)
        return next((c for c in self.changes if (c.estimator, c.postprocess, c.drop) == wanted), None)


def audit(panel: Panel) -> Audit:
    """Audits one panel. Its tests of estimators form one family for Holm's correction, those of baselines another."""
    changes = _changes(panel)
    real = [c for c in changes if c.estimator not in BASELINES]
    random = [c for c in changes if c.estimator in BASELINES]
    return Audit(
        panel,
        changes,
        [_count(panel, k, real) for k in panel.agnostic if any(c.postprocess == k for c in real)],
        [_count(panel, k, random) for k in panel.agnostic if any(c.postprocess == k for c in random)],
        list(_rank_rows(panel)),
        list(_agreements(panel)),
        {name: counts for name in BITS if (counts := _bits_counts(panel, name))},
    )


def _bits_counts(panel: Panel, name: str) -> list[Count]:
    """One count per k; its tests are a family of their own."""
    changes = [c for c in _changes(panel, name) if c.estimator not in BASELINES]
    return [_count(panel, k, changes, name) for k in panel.agnostic if any(c.postprocess == k for c in changes)]


def _paired(plain: Cell, processed: Cell, name: str = "accuracy") -> tuple[list[float], list[float]]:
    """A field of the trials that both cells have."""
    before, after = plain.by_trial(name), processed.by_trial(name)
    common = sorted(before.keys() & after.keys())
    return [before[t] for t in common], [after[t] for t in common]


def _changes(panel: Panel, name: str = "accuracy") -> list[Change]:
    found = []
    for key, cell in panel.cells.items():
        plain = panel.get(key.estimator, PLAIN, key.drop)
        if key.postprocess == PLAIN or plain is None or key.drop == panel.whole:  # nothing removed: nothing to ask
            continue
        test = paired_test(*_paired(plain, cell, name))
        if test.n:
            found.append((key, test))
    changes = []
    for group in (False, True):
        family = [(k, t) for k, t in found if (k.estimator in BASELINES) == group]
        adjusted = holm(np.array([t.p for _, t in family]))
        changes += [Change(k.estimator, k.postprocess, k.drop, t, float(p)) for (k, t), p in zip(family, adjusted)]
    return changes


def _count(panel: Panel, postprocess: str, changes: list[Change], name: str = "accuracy") -> Count:
    mine = [c for c in changes if c.postprocess == postprocess]
    lower = [c for c in mine if c.difference < 0]
    higher = [c for c in mine if c.difference > 0]
    overall, cells = _overall(panel, mine, name)
    return Count(
        postprocess,
        len(mine),
        len(lower),
        len(higher),
        len(lower if panel.better == "lower" else higher),
        sum(not math.isnan(c.p_holm) for c in mine),
        sum(c.significant for c in lower),
        sum(c.significant for c in higher),
        overall,
        cells,
    )


def _overall(panel: Panel, changes: list[Change], name: str) -> tuple[PairedTest, int]:
    """One test per k: within each trial average over the (estimator, t) that all trials have, then pair over trials.

    Cells of a trial share the base model, so they are not independent; their averages over different trials are.
    """
    trials = sorted({t for cell in panel.cells.values() for t in cell.trials})
    pairs = []
    for c in changes:
        plain = panel.cells[CellKey(c.estimator, PLAIN, c.drop)]
        processed = panel.cells[CellKey(c.estimator, c.postprocess, c.drop)]
        if c.test.n == len(trials):
            pairs.append(_paired(plain, processed, name))
    if not pairs:
        return paired_test([], []), 0
    before, after = np.mean([p[0] for p in pairs], axis=0), np.mean([p[1] for p in pairs], axis=0)
    return paired_test(before, after), len(pairs)


def _compared(panel: Panel, postprocess: str, drop: float) -> tuple[list[str], list[float], list[float]]:
    """Estimators that have both plain and k, and their mean accuracies, over the trials that all of them have.

    A failed trial of one estimator would otherwise move its mean by how hard that trial was. If no trial is common to
    all, each mean is over its own trials.
    """
    estimators = panel.complete_estimators((PLAIN, postprocess), drop)
    cells = [[panel.cells[CellKey(e, k, drop)] for e in estimators] for k in (PLAIN, postprocess)]
    common = set.intersection(*(set(c.trials) for row in cells for c in row)) if estimators else set()

    def mean(cell: Cell) -> float:
        chosen = [r.accuracy for t, r in sorted(cell.trials.items()) if t in common or not common]
        return float(np.mean([a for a in chosen if a is not None]))

    plain, after = ([mean(c) for c in row] for row in cells)
    return estimators, plain, after


def _rank_rows(panel: Panel) -> Iterable[RankRow]:
    for drop, k in itertools.product(panel.main_drops, panel.agnostic):
        estimators, plain, after = _compared(panel, k, drop)
        if len(estimators) < 2:
            continue
        rank_plain, rank_after = ranks(plain, panel.better), ranks(after, panel.better)
        for i, estimator in enumerate(estimators):
            alone = ranks([*plain[:i], after[i], *plain[i + 1 :]], panel.better)[i]
            yield RankRow(drop, k, estimator, float(rank_plain[i]), float(rank_after[i]), float(alone))


def _agreements(panel: Panel) -> Iterable[Agreement]:
    best = min if panel.better == "lower" else max
    for drop, k in itertools.product(panel.main_drops, panel.agnostic):
        estimators, plain, after = _compared(panel, k, drop)
        if len(estimators) < 2:
            continue
        yield Agreement(
            drop,
            k,
            len(estimators),
            kendall_tau(plain, after),
            tuple(e for e, a in zip(estimators, plain) if a == best(plain)),
            tuple(e for e, a in zip(estimators, after) if a == best(after)),
            _between_trials(panel, estimators, drop).mean,
        )


def _between_trials(panel: Panel, estimators: list[str], drop: float) -> Interval:
    """Mean τ over pairs of trials of the plain ranking: how far a ranking moves by chance alone."""
    cells = [panel.cells[CellKey(e, PLAIN, drop)].trials for e in estimators]
    common = sorted(set.intersection(*(set(c) for c in cells)))
    by_trial = [[float(c[t].accuracy or 0) for c in cells] for t in common]
    taus = [kendall_tau(a, b) for a, b in itertools.combinations(by_trial, 2)]
    return mean_interval([t for t in taus if not math.isnan(t)])
