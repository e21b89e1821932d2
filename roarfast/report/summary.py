"""Ten lines for the terminal, and the findings they share with the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

from roarfast.metrics.resampling import Estimate
from roarfast.report.audit import Audit, audit
from roarfast.report.facts import base_text, coverage, data_text, doubts, model_text, study_name
from roarfast.report.grid import Panel, panels, without_oracles
from roarfast.report.leakage import Leakage, leakage_line, leakages
from roarfast.report.oracles import OracleCells, oracle_cells, oracle_lines
from roarfast.report.parts import StudyParts, parts_line, study_parts
from roarfast.report.power import power_sentence
from roarfast.report.regression import FEWEST_POINTS, fit_at
from roarfast.report.scores import Score, random_sentence, scores, spread
from roarfast.report.text import duration, p_text
from roarfast.report.times import times
from roarfast.report.words import audit_sentences, flat_note, standings
from roarfast.study.records import StudyResults

MAX_LINES = 10


def scored_panels(
    found: Sequence[Panel], images: Callable[[Panel], dict[tuple[str, str], Estimate]] | None = None
) -> list[tuple[Panel, list[Score]]]:
    """Panels with their scores.

    Args:
        found: The panels.
        images: Gives differences to random pixels with intervals over images, where they are known.
    """
    by_identity = {p.identity: p for p in found}
    other = {"morf": "lerf", "lerf": "morf"}
    opposite = [by_identity.get((p.dataset, p.protocol, other.get(p.order, ""))) for p in found]
    return [(p, scores(p, o, images=images(p) if images else None)) for p, o in zip(found, opposite)]


def regression_line(one: Audit) -> str:
    """How much of the accuracy mask TV alone explains, at the highest rate with a fit; empty if there is none."""
    for drop in reversed(one.panel.main_drops):
        fit = fit_at(one.panel, "tv_mask", drop)
        if fit.n >= FEWEST_POINTS and not math.isnan(fit.r2):
            return (
                f"The total variation of the masks (how ragged they are) alone explains {100 * fit.r2:.0f} % of how accuracy varies "
                f"over {fit.n} plain maps at t = {drop:g} (R² = {fit.r2:.2f}, {p_text(fit.p)})."
            )
    return ""


def key_lines(
    audits: Sequence[Audit],
    found: Sequence[list[Score]],
    parts: Sequence[StudyParts] = (),
    leaks: Sequence[Leakage] = (),
    masks: Sequence[OracleCells] = (),
) -> list[str]:
    """The main findings, most important first, without the first and the last line of the terminal summary.

    Args:
        audits: Of every panel.
        found: Scores of every panel; none where it was said already whether they beat random pixels.
        parts: The damage taken apart.
        leaks: What the masks alone give away.
        masks: Those that see the label.
    """
    lines, details = [], []
    for i, one in enumerate(audits):
        verdict = random_sentence(found[i]) if found else ""
        lines.append(standings(one.panel) + (f". {verdict}" if verdict else "."))
        if flat_note(one.panel):
            lines.append(flat_note(one.panel))
            continue
        sentences = audit_sentences(one)
        details.append((f"{one.panel.title}: " if len(audits) > 1 else "") + sentences[0])
        if len(audits) <= 2:
            details += [s for s in (regression_line(one), *sentences[-1:]) if s and s != sentences[0]]
    lines += [parts_line(one) for one in parts if one.better == "lower"]
    told = [line for one in masks for line in oracle_lines(one)]
    return lines + details + [leakage_line(one) + "." for one in leaks] + told


def power_lines(audits: Sequence[Audit], found: Sequence[list[Score]]) -> list[str]:
    """What each panel could have shown; the same sentence once."""
    said: dict[str, str] = {}
    for one, mine in zip(audits, found):
        sentence = power_sentence(spread(mine), one.panel.n_trials)
        if sentence:
            said.setdefault(sentence, one.panel.title)
    several = len(said) > 1
    return [f"{title}. {sentence}" if several else sentence for sentence, title in said.items()]


def summary(results: StudyResults, report: Path | None = None) -> str:
    """At most ten lines for the terminal: what was run, what came out, the caution, and where the report is.

    Args:
        results: Of the study.
        report: Path of the HTML file, for the last line.

    Example:
        >>> print(summary(load("runs/mine")))  # doctest: +SKIP
    """
    audits, masks = [audit(panel) for panel in panels(results)], oracle_cells(results)
    scored = [mine for _, mine in scored_panels([a.panel for a in audits])]
    t = times(results.meta)
    time = f"; {duration(t.total)} of work" if t.total else ""
    base = f"Base accuracy {base_text(results)}; {data_text(results)}; {model_text(results)}" if audits or masks else ""
    first = [f"{study_name(results)}: {coverage(results)}{time}", *([base] if base else [])]
    first += [f"Warning: {doubt}" for doubt in doubts(results)[:2]]
    caution = "Caution: a filter that sees only the map cannot add knowledge of the model; where it helps, the score rewards blur."
    last = [*([caution] if audits else []), *([f"Report: {report}"] if report else [])]
    room = MAX_LINES - len(first) - len(last)
    parts = study_parts(without_oracles(results))
    found = key_lines(audits, scored, parts, leakages(results), masks) or ["No finished cell yet."]
    if len(found) > room:
        found = [*found[: room - 1], f"… {len(found) - room + 1} more lines in the report"]
    return "\n".join([*first, *found, *last])
