"""Shape, image and model parts of the damage, for studies with the nulls `swap` and `model`; intervals over trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from roarfast.metrics.damage_parts import PARTS, EstimatorParts, Parts, split
from roarfast.metrics.resampling import trial_interval
from roarfast.report.grid import slug
from roarfast.report.table import Table, Td, table
from roarfast.study.protocol import describe
from roarfast.study.records import Record, StudyResults

_ARMS = ("own", "swap", "model")


@dataclass(frozen=True)
class StudyParts:
    """The parts of all estimators and post-processings of one protocol and order."""

    dataset: str
    protocol: str
    order: str
    table: Parts

    @property
    def title(self) -> str:
        """For headings."""
        return f"{describe(self.protocol).title}, {self.order}"

    @property
    def slug(self) -> str:
        """Part of file names."""
        return slug(f"{self.dataset}-{self.protocol}-{self.order}-parts")


def study_parts(results: StudyResults) -> list[StudyParts]:
    """The parts wherever own, `swap` and `model` cells of the same rates and trials are done."""
    done = [r for r in results if r.status == "done" and r.accuracy is not None]
    base = {r.trial: float(r.accuracy or 0.0) for r in done if r.protocol == "base"}
    groups: dict[tuple[str, str, str], dict[str, list[Record]]] = {}
    for r in done:
        if r.null in _ARMS and r.protocol != "base" and r.trial in base:
            name = r.estimator if r.postprocess == "plain" else f"{r.estimator} {r.postprocess}"
            groups.setdefault((r.dataset, r.protocol, r.order), {}).setdefault(name, []).append(r)
    found = []
    for group, members in groups.items():
        rows, rates = {}, {}
        for name, records in members.items():
            if (row := _row(name, records, base)) is not None:
                rows[name], rates[name] = row
        if rows:
            shared = tuple(sorted(set.union(*map(set, rates.values()))))
            trials = max(len({r.trial for r in records}) for records in members.values())
            found.append(StudyParts(*group, Parts({}, rows, shared, "accuracy", "mean", 0, trials)))
    return found


def _row(name: str, records: list[Record], base: dict[int, float]) -> tuple[EstimatorParts, list[float]] | None:
    values = {(r.null, r.drop, r.trial): r.accuracy for r in records}
    trials = sorted({r.trial for r in records})
    rates = [d for d in sorted({r.drop for r in records}) if all((a, d, t) in values for a in _ARMS for t in trials)]
    if not rates:
        return None
    # One "image" per trial: its accuracy.
    own, swap, model = (np.array([[[values[a, d, t]] for d in rates] for t in trials], np.float64) for a in _ARMS)
    parts = split(np.array([[base[t]] for t in trials]), own, swap, model)
    over = {part: trial_interval(parts.part(part)[:, 0]) for part in ("damage", *PARTS)}
    row = EstimatorParts(
        name, float(parts.base.mean()), float(parts.own.mean()), **over, p=math.nan, p_holm=math.nan, over_trials=over
    )
    return row, rates


def parts_rows(found: Sequence[StudyParts]) -> list[dict[str, Any]]:
    """Rows of `parts.csv`."""
    table = []
    for one in found:
        for row in one.table.rows.values():
            record: dict[str, Any] = {"dataset": one.dataset, "protocol": one.protocol, "order": one.order}
            record |= {"estimator": row.name, "trials": one.table.trials, "rates": len(one.table.rates)}
            record |= {"base": row.base, "own": row.own}
            for part in ("damage", *PARTS):
                e = row.over_trials[part]
                record |= {part: e.value, f"{part}_low": e.low, f"{part}_high": e.high}
            table.append(record)
    return table


def parts_table(one: StudyParts) -> Table:
    """The parts in points."""
    names = ("damage", *PARTS)
    rows = [
        [Td(row.name, css="text"), *(Td(f"{100 * getattr(row, p).value:.1f}", getattr(row, p).value) for p in names)]
        for row in one.table.rows.values()
    ]
    return table(one.slug, f"Parts of the damage, points: {one.title}.", ["Estimator", *names], rows)
