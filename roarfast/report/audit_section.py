"""Section 6 of the page: counts, tests, rankings before and after k, leakage, and the caution."""

from __future__ import annotations

from roarfast.report import html
from roarfast.report.audit import Audit
from roarfast.report.figures import p_text, signed
from roarfast.report.grid import PLAIN, CellKey, mask_only, pretty
from roarfast.report.html import Cells, Td, number
from roarfast.report.leakage import leakage_line
from roarfast.report.material import Material, accuracy_td, new_notes
from roarfast.report.words import CAUTION, LEAKAGE, audit_sentences, names


def audit_section(m: Material) -> str:
    """The HTML of the section."""
    parts = [html.note(text) for text in CAUTION]
    for i, a in enumerate(m.audits):
        parts += [html.heading(3, a.panel.title), *map(html.note, new_notes(m, i)), _panel(m, a)]
    return "".join(parts) + _leakage(m)


def _panel(m: Material, a: Audit) -> str:
    parts = [html.bullets(audit_sentences(a))]
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
    for one, picture in m.leakages:
        rows: list[Cells] = []
        for name in one.estimators:
            for k in one.postprocesses:
                found = [one.cells.get(CellKey(name, k, t)) for t in one.drops]
                if any(found):
                    cells = (accuracy_td(c.accuracy(), one.n_trials) if c else Td("–") for c in found)
                    rows.append([pretty(name), Td(k, css="text"), *cells])
        caption = f"Leakage: accuracy (%) from the masks alone; {one.dataset}, {'most' if one.order == 'morf' else 'least'} relevant first."
        chance = "" if one.chance is None else f" Dashed: chance, {100 * one.chance:.1f} %."
        parts.append(html.paragraph(leakage_line(one) + "."))
        parts.append(html.figure(m.ids, picture, f"Means over {one.n_trials} trial{'s' * (one.n_trials > 1)}.{chance}"))
        parts.append(html.table(m.ids, caption, ["Estimator", "k", *(f"t = {t:g}" for t in one.drops)], rows))
    body = "".join(parts) or html.paragraph("Not measured: the study has no mask-only cells (run it with --mask-only).")
    return html.heading(3, "Leakage through the masks") + html.paragraph(LEAKAGE) + body
