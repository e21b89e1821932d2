"""Ten lines for the terminal, and the counts they share with the page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from roarfast.report.audit import Audit, audit
from roarfast.report.grid import panels
from roarfast.report.leakage import Leakage, leakage_line, leakages
from roarfast.report.regression import FEWEST_POINTS, fit_at
from roarfast.report.text import duration, p_text
from roarfast.report.times import times
from roarfast.report.words import audit_sentences, flat_note, standings
from roarfast.study.records import StudyResults

MAX_LINES = 10


def coverage(results: StudyResults) -> str:
    """How many cells there are, by status."""
    counts = Counter(r.status for r in results.records)
    text = f"{counts['done']} of {len(results.records)} cells done"
    others = [f"{counts[s]} {s}" for s in ("failed", "running", "pending") if counts[s]]
    return ", ".join([text, *others])


def study_name(results: StudyResults) -> str:
    """The name in the config, or the datasets."""
    name = (results.meta.get("config") or {}).get("name")
    return str(name or ", ".join(dict.fromkeys(r.dataset for r in results.records)) or "empty study")


def regression_line(one: Audit) -> str:
    """How much of the accuracy mask TV alone explains, at the highest rate with a fit; empty if there is none."""
    for drop in reversed(one.panel.main_drops):
        fit = fit_at(one.panel, "tv_mask", drop)
        if fit.n >= FEWEST_POINTS and not math.isnan(fit.r2):
            return (
                f"The total variation of the masks alone explains {100 * fit.r2:.0f} % of how accuracy varies over {fit.n} plain "
                f"maps at t = {drop:g} (R² = {fit.r2:.2f}, {p_text(fit.p)})."
            )
    return ""


def key_lines(audits: list[Audit], leaks: Sequence[Leakage] = ()) -> list[str]:
    """The main findings, most important first, without the first and the last line of the terminal summary."""
    lines = []
    for one in audits:
        lines.append(standings(one.panel))
        found = audit_sentences(one)
        lines.append(found[0])
        if flat_note(one.panel):
            lines.append(flat_note(one.panel))
            continue
        if len(audits) <= 2:
            lines += [s for s in (regression_line(one), *found[-1:]) if s and s != found[0]]
    return lines + [leakage_line(one) + "." for one in leaks]


def summary(results: StudyResults, report: Path | None = None) -> str:
    """At most ten lines for the terminal: what was run, what came out, the caution, and where the report is.

    Args:
        results: Of the study.
        report: Path of the HTML file, for the last line.
    """
    audits = [audit(panel) for panel in panels(results)]
    t = times(results.meta)
    time = f"; {duration(t.total)} of work, {t.share} of it overhead around the model's passes" if t.total else ""
    first = f"{study_name(results)}: {coverage(results)}{time}"
    caution = "Caution: a filter that sees only the map cannot add knowledge of the model; where it helps, the score rewards blur."
    last = [f"Report: {report}"] if report else []
    room = MAX_LINES - 2 - len(last)
    found = key_lines(audits, leakages(results)) or ["No finished cell yet."]
    if len(found) > room:
        found = [*found[: room - 1], f"… {len(found) - room + 1} more lines in the report"]
    return "\n".join([first, *found, caution, *last])
