"""Shape, image and model parts of the damage, for studies with the nulls `swap` and `model`; intervals over trials."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from roarfast.metrics.bootstrap import trial_interval
from roarfast.metrics.damage_parts import PARTS, EstimatorParts, Parts, split
from roarfast.metrics.damage_plot import plot_parts
from roarfast.report import html, plotting
from roarfast.report.grid import slug
from roarfast.report.html import TableIds, Td
from roarfast.report.plotting import Figure
from roarfast.study.protocol import describe
from roarfast.study.records import Record, StudyResults

_ARMS = ("own", "swap", "model")
TEXT = (
    "Damage is the accuracy on whole images less that with masks removed, mean over rates. Masks of other images (null swap) "
    "do the shape part: size, blur, place. Masks of the same image by another trial's base model (null model) do the image "
    "part besides; the rest is the model part, what the map knows of this model. Intervals are 95 % over trials (Student's t); "
    "two trials share their two models, so with few trials they are rough."
)


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


def parts_rows(found: list[StudyParts]) -> list[dict[str, Any]]:
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


def parts_figure(one: StudyParts, folder: Path) -> Figure:
    """Stacked bars per estimator and post-processing."""
    with plotting.style() as new_figure:
        figure = new_figure(plotting.WIDTH, 3.6)
        plot_parts(one.table, figure.subplots())
        name = f"{slug(one.dataset)}-{slug(one.protocol)}-{one.order}-parts"
        note = f"Stacked bars of the shape, image and model parts of the damage, for {len(one.table.rows)} rows."
        return plotting.finish(figure, folder, name, f"Shape, image, model: {one.title}", note)


def parts_section(ids: TableIds, found: list[tuple[StudyParts, Figure]]) -> str:
    """The section of the page."""
    text = html.paragraph(TEXT)
    for one, picture in found:
        text += html.heading(3, one.title) + html.figure(
            ids, picture, "Points of accuracy lost, by what was lost with them."
        )
        rows: list[list[Td | str]] = [
            [Td(row.name, css="text"), *(Td(f"{100 * getattr(row, p).value:.1f}", getattr(row, p).value) for p in ("damage", *PARTS))]
            for row in one.table.rows.values()
        ]  # fmt: skip
        text += html.table(ids, f"Parts of the damage, points: {one.title}", ["estimator", "damage", *PARTS], rows)
    return text
