"""The sections of the page that show results; the audit and the provenance have modules of their own."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from roarfast.report import html
from roarfast.report.audit import Audit
from roarfast.report.audit_section import audit_section
from roarfast.report.figures import p_text, signed
from roarfast.report.grid import BASELINES, PLAIN, Panel, pretty
from roarfast.report.html import Cells, Td, number, percent
from roarfast.report.material import Material, accuracy_td, new_notes
from roarfast.report.parts import parts_section
from roarfast.report.provenance import provenance_section
from roarfast.report.regression import POINT_SETS, TV_KINDS, fit_at
from roarfast.report.summary import coverage, key_lines, study_name
from roarfast.report.tv_figures import shown_rates
from roarfast.report.words import direction
from roarfast.study.records import StudyResults

RATES_PER_TABLE = 4  # with three post-processings that is 12 columns: what fits a page


def header(m: Material) -> str:
    """Title, what was run, and the findings in short."""
    datasets = ", ".join(dict.fromkeys(r.dataset for r in m.results.records))
    finished = m.results.meta.get("finished")
    state = f"finished {finished}" if finished else "not finished: this report shows what is there"
    lead = f"Data: {datasets or 'none'} · {coverage(m.results)} · {state}"
    found = key_lines(m.audits, [one for one, _ in m.leakages]) or ["No cell is finished yet."]
    return (
        f"<h1>Study report: {escape(study_name(m.results))}</h1>"
        + html.paragraph(lead, "lead")
        + _data_warnings(m)
        + '<div class="short"><strong>In short</strong>'
        + html.bullets(found)
        + "</div>"
        + _panels_table(m)
    )


def _data_warnings(m: Material) -> str:
    doubts = [str(doubt) for doubt in m.results.meta.get("data_warnings") or ()]
    if not doubts:
        return ""
    return '<div class="short"><strong>Doubtful data</strong>' + html.bullets(doubts) + "</div>"


def _panels_table(m: Material) -> str:
    if not m.audits and not m.leakages:
        return ""
    rows: list[Cells] = []
    for p in (a.panel for a in m.audits):
        # A done record per (cell, trial), against the full product of the trials: what is missing shows.
        done = sum(len(c.trials) for c in p.cells.values())
        asked = _count(m.results, p.dataset, p.protocol, p.order)
        rows.append([
            p.title, Td(f"{p.better} is better", css="text"), Td(str(len(p.estimators)), len(p.estimators)),
            Td(", ".join(p.postprocesses), css="text"), Td(_rates(p), css="text"),
            Td(str(p.n_trials), p.n_trials), Td(f"{done} of {asked}", done, "" if done == asked else "flag"),
        ])  # fmt: skip
    for one, _ in m.leakages:
        done = sum(len(c.trials) for c in one.cells.values())
        asked = _count(m.results, one.dataset, "mask-only", one.order)
        rows.append([
            one.title, Td("above chance is leakage", css="text"), Td(str(len(one.estimators)), len(one.estimators)),
            Td(", ".join(one.postprocesses), css="text"), Td(", ".join(f"{t:g}" for t in one.drops), css="text"),
            Td(str(one.n_trials), one.n_trials), Td(f"{done} of {asked}", done, "" if done == asked else "flag"),
        ])  # fmt: skip
    columns = ["Protocol", "Accuracy", "Estimators", "Post-processing", "Rates t", "Trials", "Cells done"]
    return html.table(m.ids, "What is compared. Estimators include the random baselines.", columns, rows)


def _rates(p: Panel) -> str:
    text = ", ".join(f"{t:g}" for t in p.main_drops)
    return text if p.drops == p.main_drops else f"{text}; baselines {p.drops[0]:g} to {p.drops[-1]:g}"


def _count(results: StudyResults, *wanted: str) -> int:
    return sum((r.dataset, r.protocol, r.order) == wanted for r in results.records)


def all_sections(m: Material) -> list[tuple[str, str, str]]:
    """(anchor, title, HTML) of every section."""
    parts = (
        [("parts", "8. Shape, image, model: the damage taken apart", parts_section(m.ids, list(m.parts)))]
        if m.parts
        else []
    )
    return [
        ("accuracy", "1. Accuracy against drop rate", _per_panel(m, _accuracy)),
        ("differences", "2. What post-processing changes", _difference_key() + _per_panel(m, _differences)),
        ("blur", "3. Total variation and accuracy, plain to post-processed", _per_panel(m, _arrows)),
        ("regression", "4. Total variation and accuracy over estimators", _regression_intro() + _per_panel(m, _regression)),
        ("examples", "5. Example images", _examples(m)),
        ("audit", "6. Audit: is the ranking real?", audit_section(m)),
        ("provenance", "7. Provenance", provenance_section(m)),
        *parts,
    ]  # fmt: skip


def _per_panel(m: Material, write: Callable[[Material, int], str]) -> str:
    if not m.audits:
        return html.paragraph("No cell is finished yet.")
    parts = []
    for i, a in enumerate(m.audits):
        parts.append(html.heading(3, a.panel.title))
        parts.append(write(m, i))
    return "".join(parts)


def _accuracy(m: Material, i: int) -> str:
    panel = m.audits[i].panel
    text = "".join(html.note(words) for words in new_notes(m, i))
    interval = "bars: 95 % t-interval over trials" if panel.n_trials > 1 else "no intervals from one trial"
    if any(e in BASELINES for e in panel.estimators):
        baselines = "Dashed and dotted: random baselines, the same in every panel; an estimator is worth its cost only where it beats them."
    else:
        baselines = "No random baseline was run, so nothing shows whether an estimator is better than chance."
    if panel.drops != panel.main_drops and panel.main_drops:
        baselines += " The last panel shows them at all their rates."
    caption = f"Mean over trials; {interval}. {direction(panel).capitalize()}. {baselines}"
    return text + html.figure(m.ids, m.curves[i], caption) + _accuracy_table(m, panel)


def _accuracy_table(m: Material, panel: Panel) -> str:
    rows: list[Cells] = []
    for estimator in panel.estimators:
        for k in panel.postprocesses:
            cells = [panel.get(estimator, k, t) for t in panel.drops]
            if not any(cells):
                continue
            row: Cells = [pretty(estimator), Td(k, css="text")]
            for cell in cells:
                row.append(accuracy_td(cell.accuracy(), panel.n_trials) if cell else Td("–"))
            rows.append(row)
    columns = ["Estimator", "k", *(f"t = {t:g}" for t in panel.drops)]
    caption = f"Accuracy in percent, mean ± half the 95 % interval; {panel.title}. (n) where trials are missing."
    return html.details("All accuracies as a table", html.table(m.ids, caption, columns, rows))


def _difference_key() -> str:
    return (
        '<p class="key"><span class="lower">− lower than plain</span><span class="higher">+ higher than plain</span>'
        "* significant after correction (stronger colour). Plain: accuracy in percent; others: difference in points, paired "
        "over trials. The same table as a figure: <code>figures/…-table.svg</code>.</p>"
    )


def _differences(m: Material, i: int) -> str:
    a = m.audits[i]
    panel, ks = a.panel, a.panel.postprocesses
    parts = [html.paragraph(direction(panel).capitalize() + ".")]
    if len(ks) < 2:
        parts.append(html.paragraph("Only one post-processing was run: there are no differences to show."))
    for start in range(0, len(panel.main_drops), RATES_PER_TABLE):
        drops = panel.main_drops[start : start + RATES_PER_TABLE]
        rows: list[Cells] = []
        for estimator in panel.estimators:
            if any(panel.get(estimator, k, t) for k in ks for t in drops):
                rows.append([pretty(estimator), *(difference_td(a, estimator, k, t) for t in drops for k in ks)])
        groups = [("", 1), *((f"t = {t:g}", len(ks)) for t in drops)]
        caption = f"{panel.title}: plain accuracy (%), and differences from plain (points)."
        parts.append(html.table(m.ids, caption, ["Estimator", *(k for _ in drops for k in ks)], rows, groups))
    return "".join(parts)


def difference_td(a: Audit, estimator: str, k: str, drop: float) -> Td:
    """The cell of the table of differences."""
    cell = a.panel.get(estimator, k, drop)
    if cell is None:
        return Td("–")
    accuracy = cell.accuracy()
    missing = f" ({accuracy.n})" if accuracy.n < a.panel.n_trials else ""
    if k == PLAIN:
        return Td(percent(accuracy.mean) + missing, accuracy.mean)
    change = a.change(estimator, k, drop)
    if change is None:
        return Td("no pair", title=f"accuracy {percent(accuracy.mean)} %, but no trial has plain too")
    text = signed(change.difference)
    css = {"−": "lower", "+": "higher"}.get(text[0], "zero") + (" significant" if change.significant else "")
    title = f"accuracy {percent(accuracy.mean)} %; {p_text(change.test.p)}, corrected {p_text(change.p_holm)}"
    return Td(text + ("*" if change.significant else "") + missing, change.difference, css, title)


def _arrows(m: Material, i: int) -> str:
    picture = m.arrows[i]
    if picture is None:
        return html.paragraph("No estimator has total variation for two post-processings: no arrows to draw.")
    panel = m.audits[i].panel
    order = " → ".join(panel.postprocesses)
    rates = shown_rates(panel)
    shown = "each rate t" if rates == panel.main_drops else f"{len(rates)} of the {len(panel.main_drops)} rates t"
    caption = (
        f"Arrows run {order} at {shown}. Left is smoother, "
        f"{'down' if panel.better == 'lower' else 'up'} is what this protocol calls better."
    )
    return html.figure(m.ids, picture, caption)


def _regression_intro() -> str:
    return html.paragraph(
        "Plain maps only. If total variation, which knows nothing of the model, predicts the accuracy, then the ranking of "
        "estimators is largely a ranking of blur. Mask total variation is the number to read. The total variation of min-max "
        "scaled maps, used in earlier work, is shown beside it; it is driven by outliers, because one extreme pixel sets the "
        "scale of its whole map."
    )


def _regression(m: Material, i: int) -> str:
    picture, panel = m.scatters[i], m.audits[i].panel
    if picture is None:
        return html.paragraph(
            "Fewer than three plain estimators with total variation at one rate: no line can be fitted."
        )
    rates = shown_rates(panel)
    shown = "" if rates == panel.main_drops else f"{len(rates)} of the {len(panel.main_drops)} rates. "
    caption = (
        f"{shown}Points are means over trials; hollow points are random baselines; the random block is not part of the fit. Band: 95 % "
        "confidence of the line. Spearman's p is exact up to 8 points. With this few points, which share their base models, "
        "p is a rough guide."
    )
    rows: list[Cells] = []
    for drop in panel.main_drops:
        for kind in TV_KINDS:
            for points, words in POINT_SETS.items():
                fit = fit_at(panel, kind, drop, points)
                if fit.n < 3:
                    continue
                rows.append([
                    f"t = {drop:g}", Td("masks" if kind == "tv_mask" else "maps, min-max", css="text"), Td(words, css="text"),
                    Td(str(fit.n), fit.n), *(Td(number(v, 2), v) for v in (fit.slope, fit.r2, fit.p, fit.spearman, fit.spearman_p)),
                ])  # fmt: skip
    columns = ["Rate", "Total variation of", "Points", "n", "Slope", "R²", "p", "Spearman ρ", "p of ρ"]
    table = html.table(m.ids, f"Fits of accuracy on total variation; {panel.title}.", columns, rows)
    return html.figure(m.ids, picture, caption) + html.details(
        "All fits, with and without random pixels", table, printed=True
    )


def _examples(m: Material) -> str:
    if not m.strips:
        return html.paragraph("The study kept no example images.")
    text = html.paragraph(
        "Maps are drawn from their minimum (dark) to their 99th percentile (bright). Masks: removed pixels are dark."
    )
    return text + "".join(html.figure(m.ids, s, "") for s in m.strips)
