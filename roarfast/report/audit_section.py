"""Section 6 of the page: counts, tests, rankings before and after k, leakage, and the caution."""

from __future__ import annotations

from roarfast.report import html
from roarfast.report.audit import Audit
from roarfast.report.figures import p_text, signed
from roarfast.report.grid import PLAIN, CellKey, mask_only, pretty
from roarfast.report.html import Cells, Td, number
from roarfast.report.sections import Material, accuracy_td
from roarfast.report.words import CAUTION, LEAKAGE, audit_sentences, names, notes


def audit_section(m: Material) -> str:
    """The HTML of the section."""
    parts = [html.note(text) for text in CAUTION]
    for a in m.audits:
        parts += [html.heading(3, a.panel.title), _panel(m, a)]
    return "".join(parts) + _leakage(m)


def _panel(m: Material, a: Audit) -> str:
    parts = [html.note(words) for words in notes(a.panel)]
    parts.append(html.bullets(audit_sentences(a)))
    if a.counts:
        parts.append(_counts(m, a))
    if a.agreements:
        parts += [_agreement(m, a), _ranks(m, a)]
    if a.changes:
        parts.append(html.details(f"All {len(a.changes)} paired comparisons", _tests(m, a)))
    return "".join(parts)


def _counts(m: Material, a: Audit) -> str:
    rows: list[Cells] = []
    groups = [(c, "") for c in a.counts] + [(c, ", random baselines") for c in a.baseline_counts]
    for c, suffix in groups:
        d = c.overall.difference
        interval = f"{signed(d.low)} to {signed(d.high)}" if d.n > 1 else "–"
        tested = c.tested > 0
        rows.append([
            c.postprocess + suffix, Td(str(c.cells), c.cells), Td(str(c.lower), c.lower),
            Td(str(c.lower_significant) if tested else "–", c.lower_significant), Td(str(c.higher), c.higher),
            Td(str(c.higher_significant) if tested else "–", c.higher_significant), Td(str(c.improved), c.improved),
            Td(signed(d.mean) if d.n else "–", d.mean), Td(interval, d.low), Td(p_text(c.overall.p), c.overall.p),
        ])  # fmt: skip
    columns = [
        "k", "(estimator,\u00a0t)", "lower", "significantly", "higher", "significantly", "score improved", "mean change",
        "95 % interval", "p of mean",
    ]  # fmt: skip
    caption = (
        "In how many (estimator, t) did k move the accuracy? Significance: paired over trials, Holm-corrected over all "
        "tests of this protocol (baselines apart). Mean change in points: averaged within each trial, then tested over trials, uncorrected."
    )
    return html.table(m.ids, caption, columns, rows)


def _agreement(m: Material, a: Audit) -> str:
    rows: list[Cells] = [
        [
            f"t = {g.drop:g}", Td(g.postprocess, css="text"), Td(str(g.estimators), g.estimators), Td(number(g.tau, 2), g.tau),
            Td(number(g.tau_between_trials, 2), g.tau_between_trials), Td(names(g.best_plain), css="text"),
            Td(names(g.best_after) + (" (changed)" if g.best_changed else ""), css="text"),
        ]
        for g in a.agreements
    ]  # fmt: skip
    caption = (
        "Does k change the ranking? Kendall's τ between the plain ranking and the ranking after k (1 the same, 0 unrelated); "
        "beside it τ between single trials of the plain ranking, which is what chance alone does. Baselines are not ranked."
    )
    columns = ["Rate", "k", "Estimators", "τ plain, k", "τ between trials", "Best plain", "Best after k"]
    return html.table(m.ids, caption, columns, rows)


def _ranks(m: Material, a: Audit) -> str:
    by_key = {(r.drop, r.postprocess, r.estimator): r for r in a.rank_rows}
    drops = sorted({r.drop for r in a.rank_rows})
    ks = [k for k in a.panel.agnostic if any(r.postprocess == k for r in a.rank_rows)]
    names = [e for e in a.panel.estimators if any(r.estimator == e for r in a.rank_rows)]
    parts = []
    for drop in drops:
        rows: list[Cells] = []
        for estimator in names:
            found = [by_key.get((drop, k, estimator)) for k in ks]
            if not any(found):
                continue
            plain = next(r.plain for r in found if r)
            row: Cells = [pretty(estimator), Td(f"{plain:g}", plain)]
            for r in found:
                row += [_moved(r.plain, r.after), _moved(r.plain, r.alone)] if r else [Td("–"), Td("–")]
            rows.append(row)
        groups = [("", 1), (PLAIN, 1), *((k, 2) for k in ks)]
        caption = f"Ranks at t = {drop:g} (1 is best): k applied to all estimators, or to this one alone while the others stay plain."
        columns = ["Estimator", "rank", *(c for _ in ks for c in ("all", "alone"))]
        parts.append(html.table(m.ids, caption, columns, rows, groups))
    return html.details("Rank of each estimator before and after k", "".join(parts), printed=True)


def _moved(before: float, after: float) -> Td:
    places = before - after
    arrow = f" (up {places:g})" if places > 0 else f" (down {-places:g})" if places < 0 else ""
    return Td(f"{after:g}{arrow}", after)


def _tests(m: Material, a: Audit) -> str:
    rows: list[Cells] = []
    leakage = mask_only(m.results, a.panel.dataset, a.panel.order)
    for c in a.changes:
        d = c.test.difference
        interval = f"{signed(d.low)} to {signed(d.high)}" if d.n > 1 else "–"
        rows.append([
            pretty(c.estimator), Td(c.postprocess, css="text"), Td(f"{c.drop:g}", c.drop), Td(str(d.n), d.n),
            Td(signed(d.mean), d.mean), Td(interval, d.low), Td(number(c.test.p, 2), c.test.p),
            Td(number(c.p_holm, 2), c.p_holm, "flag" if c.significant else ""),
        ])  # fmt: skip
        if leakage:
            cell = leakage.get(CellKey(c.estimator, c.postprocess, c.drop))
            rows[-1].append(accuracy_td(cell.accuracy(), 0) if cell else Td("–"))
    columns = ["Estimator", "k", "t", "pairs", "difference", "95 % interval", "p", "p, Holm"]
    columns += ["leakage (%)"] if leakage else []
    return html.table(m.ids, "Accuracy with k minus plain, in points, paired over trials.", columns, rows)


def _leakage(m: Material) -> str:
    parts = []
    for dataset, order in dict.fromkeys((r.dataset, r.order) for r in m.results.records if r.protocol == "mask-only"):
        cells = mask_only(m.results, dataset, order)
        if not cells:
            continue
        drops = sorted({key.drop for key in cells})
        trials = max(len(c.trials) for c in cells.values())
        rows: list[Cells] = []
        for name, k in dict.fromkeys((key.estimator, key.postprocess) for key in cells):
            found = [next((c for key, c in cells.items() if (key.estimator, key.postprocess, key.drop) == (name, k, t)), None) for t in drops]  # fmt: skip
            rows.append(
                [pretty(name), Td(k, css="text"), *(accuracy_td(c.accuracy(), trials) if c else Td("–") for c in found)]
            )
        caption = f"Leakage: accuracy (%) from the masks alone; {dataset}, {'most' if order == 'morf' else 'least'} relevant first."
        parts.append(html.table(m.ids, caption, ["Estimator", "k", *(f"t = {t:g}" for t in drops)], rows))
    body = "".join(parts) or html.paragraph("Not measured: the study has no mask-only cells (run it with --mask-only).")
    return html.heading(3, "Leakage through the masks") + html.paragraph(LEAKAGE) + body
