"""Section 7 of the page: what was run on what, for how long, what was really removed, and what failed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from html import escape
from typing import Any

from roarfast.report import html
from roarfast.report.grid import pretty
from roarfast.report.html import Cells, Td
from roarfast.report.material import Material
from roarfast.report.summary import duration
from roarfast.report.times import LEGACY, MAX_OVERHEAD, NAMES, OVERHEAD, PASSES, share, times
from roarfast.study.records import Record

TOLERANCE = 0.01
"""A really removed fraction further than this from the nominal one is flagged (exact counts stay within one pixel)."""


def provenance_section(m: Material) -> str:
    """The HTML of the section."""
    meta = m.results.meta
    parts = [_time(m), _removed(m), _failures(m)]
    for key, title in (("versions", "Versions"), ("hardware", "Hardware"), ("seeds", "Seeds")):
        rows: list[Cells] = [[name, Td(value, css="text")] for name, value in flat(meta.get(key) or {})]
        parts.append(html.heading(3, title))
        parts.append(
            html.table(m.ids, f"{title}.", ["What", "Value"], rows) if rows else html.paragraph("Not recorded.")
        )
    config = m.config_text or json.dumps(meta.get("config") or {}, indent=2, ensure_ascii=False, default=str)
    parts += [
        html.heading(3, "Config"),
        html.details("The config of this study", f"<pre>{escape(config)}</pre>", printed=True),
    ]
    return "".join(parts)


def flat(value: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested dicts as (dotted name, text)."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{prefix}.{key}" if prefix else str(key))
    elif isinstance(value, (list, tuple)):
        yield prefix or "value", ", ".join(map(str, value))
    else:
        yield prefix or "value", "none" if value is None else str(value)


def _time(m: Material) -> str:
    meta = m.results.meta
    t = times(meta)
    if not t.total:
        return html.heading(3, "Time") + html.paragraph("No times were recorded.")
    verdict = "within" if t.high <= MAX_OVERHEAD else "above" if t.low > MAX_OVERHEAD else "perhaps above"
    words = [
        f"{duration(t.total)} of work by all workers together, from {meta.get('started') or '?'} to "
        f"{meta.get('finished') or 'not finished'}. Overhead: {share(t)} of it, {verdict} the aim of "
        f"{100 * MAX_OVERHEAD:.0f} %. Overhead is all work that is not a model at work: passes of training, of evaluation and "
        "of the estimators are no overhead, everything else is, as listed here."
    ]
    if t.unknown:
        words.append(
            "This run did not time the passes of the estimators apart from the rest of making maps: the lower number counts "
            "all of it as passes, the higher one all of it as overhead."
        )
    if t.waiting is not None:
        of_workers = 100 * t.waiting / (t.total + t.waiting)
        words.append(
            f"Besides, workers waited {duration(t.waiting)} ({of_workers:.1f} % of their time) for tasks that needed others "
            "to finish first; runs that were killed are not in this number."
        )
    rows: list[Cells] = []
    for group, stages, meanings in (
        ("passes", t.passes, PASSES),
        ("passes and overhead", {name: meta["stage_seconds"].get(name, 0.0) for name in LEGACY}, LEGACY),
        ("overhead", t.rest, OVERHEAD),
    ):
        for name, seconds in sorted(stages.items(), key=lambda item: -item[1]):
            if seconds or group != "passes and overhead":
                rows.append([
                    NAMES.get(name, name), Td(group, css="text"), Td(f"{seconds:.1f}", seconds),
                    Td(f"{100 * seconds / t.total:.1f}", seconds), Td(meanings.get(name, ""), css="text wide"),
                ])  # fmt: skip
    columns = ["Stage", "Counts as", "Seconds", "Percent", "What it is"]
    table = html.table(m.ids, "Time per stage, summed over workers.", columns, rows)
    return html.heading(3, "Time") + "".join(html.paragraph(text) for text in words) + table


def _removed(m: Material) -> str:
    rows: list[Cells] = []
    flagged = 0
    for a in m.audits:
        p = a.panel
        for key, cell in p.cells.items():
            nominal = p.nominal_removed(key.drop)
            test, train = cell.mean("removed_fraction"), cell.mean("removed_fraction_train")
            off = max((abs(v - nominal) for v in (test, train) if not math.isnan(v)), default=0.0)
            if off <= TOLERANCE:
                continue
            flagged += 1
            rows.append([
                pretty(key.estimator), Td(p.title, css="text"), Td(key.postprocess, css="text"), Td(f"{100 * nominal:.1f}", nominal),
                Td(html.percent(test), test, "flag" if abs(test - nominal) > TOLERANCE else ""),
                Td(html.percent(train), train, "flag" if abs(train - nominal) > TOLERANCE else ""),
            ])  # fmt: skip
    total = sum(len(a.panel.cells) for a in m.audits)
    text = (
        f"In {flagged} of {total} cells the fraction really removed differs from the nominal one by more than "
        f"{100 * TOLERANCE:.0f} point. Maps with many equal values do that under the rules percentile and strict; accuracies of "
        "such cells are not comparable with others at the same rate."
        if flagged
        else f"In all {total} cells the fraction really removed is within {100 * TOLERANCE:.0f} point of the nominal one."
    )
    body = html.heading(3, "Really removed fractions") + html.paragraph(text)
    if rows:
        columns = ["Estimator", "Protocol", "k", "Nominal", "Test", "Train"]
        body += html.table(m.ids, "Cells that removed more or less than asked (percent of pixels).", columns, rows)
    return body + html.paragraph("The fractions of every cell are in tables/cells.csv.")


def _failures(m: Material) -> str:
    """One row per distinct error: a base model that fails takes hundreds of cells with it."""
    by_error: dict[str, list[Record]] = {}
    for record in m.results.records:
        if record.status == "failed":
            by_error.setdefault(_last_line(record.error), []).append(record)
    head = html.heading(3, "Failed cells")
    if not by_error:
        return head + html.paragraph("None.")
    rows: list[Cells] = []
    for error, records in by_error.items():
        r = records[0]
        first = (
            f"{r.protocol} {r.order} {pretty(r.estimator)} {r.postprocess} t = {r.drop:g}, trial {r.trial}, {r.dataset}"
        )
        rows.append([Td(error, css="text"), Td(str(len(records)), len(records)), Td(first, css="text")])
    caption = (
        "Errors (last line), how many cells they cost, and the first of these; tracebacks are in tables/records.csv."
    )
    return head + html.table(m.ids, caption, ["Error", "Cells", "First cell"], rows)


def _last_line(error: str | None) -> str:
    lines = (error or "").strip().splitlines()
    return lines[-1][:200] if lines else "no message"
