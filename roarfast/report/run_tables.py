"""Tables about the run as a whole: what was compared, where the time went, what was really removed, what failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from roarfast._types import Json
from roarfast.report.audit import Audit
from roarfast.report.grid import Panel, pretty
from roarfast.report.leakage import Leakage
from roarfast.report.panel_tables import count_td
from roarfast.report.table import Cells, Table, Td, table
from roarfast.report.text import percent, rates
from roarfast.report.times import LEGACY, NAMES, OVERHEAD, PASSES, times
from roarfast.study.records import Record, StudyResults

TOLERANCE = 0.01
"""A really removed fraction further than this from the nominal one is flagged (exact counts stay within one pixel)."""


def compared_table(results: StudyResults, audits: Sequence[Audit], leakages: Sequence[Leakage]) -> Table:
    """Which protocols were run with what, and how many cells of each are done."""
    rows: list[Cells] = []
    for p in (a.panel for a in audits):
        wanted = (p.dataset, p.protocol, p.order)
        rows.append(_compared(results, p, f"{p.better} is better", _rates(p), wanted))
    for one in leakages:
        wanted = (one.dataset, "mask-only", one.order)
        rows.append(_compared(results, one, "above chance is leakage", rates(one.drops), wanted))
    columns = ["Protocol", "Accuracy", "Estimators", "Post-processing k", "Rates t", "Trials", "Cells done"]
    caption = (
        "What was compared. Estimators (methods that make attribution maps) include the random baselines; a trial has its own base "
        "model; a cell is one estimator, post-processing, rate and trial."
    )
    return table("compared", caption, columns, rows)


def _compared(results: StudyResults, one: Panel | Leakage, way: str, rate_text: str, wanted: tuple[str, ...]) -> Cells:
    # A done record per (cell, trial), against the full product of the trials: what is missing shows.
    done = sum(len(c.trials) for c in one.cells.values())
    asked = sum((r.dataset, r.protocol, r.order) == wanted for r in results.records)
    return [
        one.title,
        Td(way, css="text"),
        count_td(len(one.estimators)),
        Td(", ".join(one.postprocesses), css="text"),
        Td(rate_text, css="text"),
        count_td(one.n_trials),
        Td(f"{done} of {asked}", done, "" if done == asked else "flag"),
    ]


def _rates(p: Panel) -> str:
    text = rates(p.main_drops)
    return text if p.drops == p.main_drops else f"{text}; baselines {p.drops[0]:g} to {p.drops[-1]:g}"


def times_table(meta: Mapping[str, Any]) -> Table:
    """Seconds per stage."""
    t = times(meta)
    rows: list[Cells] = []
    for group, stages, meanings in (
        ("passes", t.passes, PASSES),
        ("passes and overhead", {name: meta["stage_seconds"].get(name, 0.0) for name in LEGACY}, LEGACY),
        ("overhead", t.rest, OVERHEAD),
    ):
        for name, seconds in sorted(stages.items(), key=lambda item: -item[1]):
            if seconds or group != "passes and overhead":
                rows.append(
                    [
                        NAMES.get(name, name),
                        Td(group, css="text"),
                        Td(f"{seconds:.1f}", seconds),
                        Td(f"{100 * seconds / t.total:.1f}", seconds),
                        Td(meanings.get(name, ""), css="text wide"),
                    ]
                )
    columns = ["Stage", "Counts as", "Seconds", "Percent", "What it is"]
    return table("time", "Time per stage, summed over workers.", columns, rows)


def removed_table(audits: Sequence[Audit]) -> Table:
    """Cells whose really removed fraction is not the nominal one."""
    rows: list[Cells] = []
    for p in (a.panel for a in audits):
        for key, cell in p.cells.items():
            nominal = p.nominal_removed(key.drop)
            found = [cell.mean("removed_fraction"), cell.mean("removed_fraction_train")]
            asked = [0.0 if p.record.whole_test else nominal, nominal]
            off = [abs(v - one) > TOLERANCE for v, one in zip(found, asked)]  # NaN is no difference
            if any(off):
                rows.append(
                    [
                        pretty(key.estimator),
                        Td(p.title, css="text"),
                        Td(key.postprocess, css="text"),
                        Td(percent(nominal), nominal),
                        *(Td(percent(v), v, "flag" if o else "") for v, o in zip(found, off)),
                    ]
                )
    columns = ["Estimator", "Protocol", "k", "Nominal", "Test", "Train"]
    return table("removed", "Cells that removed more or less than asked (percent of pixels).", columns, rows)


def failures_table(results: StudyResults) -> Table:
    """One row per distinct error: a base model that fails takes hundreds of cells with it."""
    by_error: dict[str, list[Record]] = {}
    for record in results.records:
        if record.status == "failed":
            by_error.setdefault(_last_line(record.error), []).append(record)
    rows: list[Cells] = []
    for error, records in by_error.items():
        r = records[0]
        first = (
            f"{r.protocol} {r.order} {pretty(r.estimator)} {r.postprocess} t = {r.drop:g}, trial {r.trial}, {r.dataset}"
        )
        rows.append([Td(error, css="text"), count_td(len(records)), Td(first, css="text")])
    caption = (
        "Errors (last line), how many cells they cost, and the first of these; tracebacks are in tables/records.csv."
    )
    return table("failures", caption, ["Error", "Cells", "First cell"], rows)


def _last_line(error: str | None) -> str:
    lines = (error or "").strip().splitlines()
    return lines[-1][:200] if lines else "no message"


def facts_table(name: str, facts: dict[str, Json]) -> Table:
    """Versions, hardware or seeds."""
    rows: list[Cells] = [[key, Td(value, css="text")] for key, value in flat(facts)]
    return table(name, f"{name.capitalize()}.", ["What", "Value"], rows)


def flat(value: object, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested dicts as (dotted name, text)."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, (list, tuple)):
        yield prefix or "value", ", ".join(map(str, value))
    else:
        yield prefix or "value", "none" if value is None else str(value)
