"""Sentences of the report that depend on numbers, shared by the page and the terminal."""

from __future__ import annotations

import math

from roarfast.report.audit import ALPHA, Audit, Count
from roarfast.report.bits import bits_sentence
from roarfast.report.grid import BASELINES, PLAIN, Panel, pretty
from roarfast.report.text import listed, number, p_text, percent, signed

FLAT = 0.05
"""If not even the lowest accuracy is this far below that of whole images, there is nothing to rank."""


def direction(panel: Panel) -> str:
    """Which way is better, and why."""
    return f"{panel.better} accuracy is better: {panel.record.why_better(panel.order)}"


def trials_note(panel: Panel) -> str:
    """What the number of trials allows to say; empty if there is nothing to add."""
    n = panel.n_trials
    if n == 1:
        return "One trial only: no interval and no test can be given, and any difference may be chance."
    if n == 2:
        return (
            "Two trials: an interval is the mean ± 12.7 standard errors and may leave the axes, and a paired test rarely "
            "reaches significance however large the effect; where one does, two differences happened to be nearly equal. Read the "
            "mean change over all estimators rather than single stars."
        )
    if n == 3:
        return (
            "Three trials: intervals are wide (4.3 standard errors), and after correction few tests can be significant."
        )
    return ""


def flat_note(panel: Panel) -> str:
    """A warning where removal changed next to nothing, so that the ranking is noise; empty otherwise."""
    if panel.better == "higher" or math.isnan(panel.base.mean):
        return ""
    lowest = min(cell.accuracy().mean for cell in panel.cells.values())
    if panel.base.mean - lowest >= FLAT:
        return ""
    return (
        f"No accuracy lies more than {100 * FLAT:.0f} points below that of whole images ({percent(panel.base.mean)} %): either "
        "the models learned too little or the removal makes no difference. Rankings and differences here are mostly noise."
    )


def notes(panel: Panel) -> list[str]:
    """What to know before reading the results of a panel."""
    found = [panel.record.note] if panel.record.note else []
    return [*found, *(text for text in (flat_note(panel), trials_note(panel)) if text)]


def audit_sentences(audit: Audit) -> list[str]:
    """What the audit found, in plain words."""
    panel = audit.panel
    if not panel.agnostic:
        return ["Only plain maps were run: there is no post-processing to audit."]
    if not audit.counts:
        return ["No estimator has both plain and post-processed results at the same rate: nothing can be compared."]
    sentences = [_count_sentence(panel, audit.counts)]
    sentences += [_overall_sentence(c) for c in audit.counts if c.overall_cells]
    sentences += [words for words in [bits_sentence(audit)] if words]
    for name, words in BASELINES.items():
        changes = [c for c in audit.changes if c.estimator == name]
        if changes:
            lower, significant = (
                sum(c.difference < 0 for c in changes),
                sum(c.difference < 0 and c.significant for c in changes),
            )
            sentences.append(
                f"The same filters on the baseline {words}, which knows nothing of the model: lower in {lower} of "
                f"{len(changes)} (t, k), {significant} of them significantly."
            )
    return sentences + _rank_sentences(audit)


def _count_sentence(panel: Panel, counts: list[Count]) -> str:
    def add(name: str) -> int:
        return sum(getattr(c, name) for c in counts)

    effect = "improves" if panel.better == "lower" else "worsens"
    tested = add("tested") > 0

    def times(which: str, whole: str = "") -> str:
        found, significant = add(which), add(f"{which}_significant")
        return f"{found or 'none'}{whole}" + (f", {significant} of them significantly" if tested and found else "")

    how = (
        f" (paired t-tests over trials, {100 * ALPHA:.0f} % level, Holm-corrected over {add('tested')} tests)."
        if tested
        else "; with fewer than two paired trials, none can be tested."
    )
    whole = f" of {add('cells')} (estimator, t, k)"
    return (
        f"Post-processing that sees the map only ({', '.join(panel.agnostic)}: called k here) lowered accuracy, which {effect} the score, in "
        f"{times('lower', whole)}; "
        f"raised it in {times('higher')}{how}"
    )


def _overall_sentence(count: Count) -> str:
    d = count.overall.difference
    text = f"{count.postprocess}: on average {signed(d.mean)} points over {count.overall_cells} (estimator, t)"
    if d.n < 2:
        return text + " (one trial: no interval)."
    return text + f", 95 % interval {signed(d.low)} to {signed(d.high)} over {d.n} trials, {p_text(count.overall.p)}."


def _rank_sentences(audit: Audit) -> list[str]:
    if not audit.agreements:
        return ["There is no ranking to compare: fewer than two estimators have both plain and post-processed results."]
    taus = [a.tau for a in audit.agreements if not math.isnan(a.tau)]
    changed = sum(a.best_changed for a in audit.agreements)
    sentences = []
    if taus:
        trials = [a.tau_between_trials for a in audit.agreements if not math.isnan(a.tau_between_trials)]
        yardstick = (
            f" (single trials of the plain ranking agree with {number(sum(trials) / len(trials), 2)} on average)"
            if trials
            else ""
        )
        sentences.append(
            f"Ranking before and after k applied to all: Kendall's τ from {number(min(taus), 2)} to {number(max(taus), 2)}{yardstick}; "
            f"another estimator comes first in {changed} of {len(audit.agreements)} (t, k)."
        )
    jump = max(audit.rank_rows, key=lambda r: r.plain - r.alone)
    if jump.plain - jump.alone > 0:
        sentences.append(
            f"If only one author filters: {pretty(jump.estimator)} with {jump.postprocess} at t = {jump.drop:g} rises from "
            f"rank {jump.plain:g} to {jump.alone:g} among plain maps, with no more knowledge of the model."
        )
    return sentences


def standings(panel: Panel) -> str:
    """Best plain estimator at the highest common rate, with the baselines."""
    for drop in reversed(panel.main_drops):
        plain = {e: c.accuracy().mean for e in panel.estimators if (c := panel.get(e, PLAIN, drop))}
        real = {e: a for e, a in plain.items() if e not in BASELINES}
        if not real:
            continue
        top = (min if panel.better == "lower" else max)(real.values())
        parts = [f"best plain estimator {listed([pretty(e) for e in real if real[e] == top])} {percent(top)} %"]
        parts += [f"{words} {percent(plain[b])} %" for b, words in BASELINES.items() if b in plain]
        if not math.isnan(panel.base.mean):
            parts.append(f"nothing removed {percent(panel.base.mean)} %")
        return f"{panel.title}, t = {drop:g} ({panel.better} is better): " + ", ".join(parts)
    return f"{panel.title}: baselines only"
