"""The tables of one panel."""

from __future__ import annotations

import math

from roarfast.report.audit import Audit
from roarfast.report.grid import PLAIN, Cell, CellKey, Panel, pretty
from roarfast.report.leakage import Leakage
from roarfast.report.regression import FEWEST_POINTS, POINT_SETS, TV_KINDS, fit_at
from roarfast.report.stats import Interval
from roarfast.report.table import Cells, Table, Td, table
from roarfast.report.text import bounds, listed, number, p_text, percent, signed

_OF = {"tv_mask": "masks", "tv_map": "maps, min-max", "tv_map_train": "maps of train images, min-max"}
RATES_PER_TABLE = 4  # with three post-processings that is 12 columns: what fits a page


def accuracy_td(accuracy: Interval, n_trials: int) -> Td:
    """Mean ± half-width in percent, with the number of trials where some are missing."""
    text = percent(accuracy.mean)
    if not math.isnan(accuracy.half_width):
        text += f" ± {percent(accuracy.half_width)}"
    if accuracy.n < n_trials:
        text += f" ({accuracy.n})"
    return Td(text, accuracy.mean)


def count_td(value: int, css: str = "") -> Td:
    """A number of things."""
    return Td(str(value), value, css)


def accuracy_table(panel: Panel) -> Table:
    """Every accuracy, rates as columns."""
    caption = f"Accuracy in percent, mean ± half the 95 % interval; {panel.title}. (n) where trials are missing."
    rows = _by_rate(panel.cells, panel.estimators, panel.postprocesses, panel.drops, panel.n_trials)
    return table(f"{panel.slug}-accuracy", caption, ["Estimator", "k", *(f"t = {t:g}" for t in panel.drops)], rows)


def leakage_table(one: Leakage) -> Table:
    """Accuracy from the masks alone, rates as columns."""
    which = "most" if one.order == "morf" else "least"
    caption = f"Leakage: accuracy (%) from the masks alone; {one.dataset}, {which} relevant first."
    rows = _by_rate(one.cells, one.estimators, one.postprocesses, one.drops, one.n_trials)
    return table(f"{one.slug}-leakage", caption, ["Estimator", "k", *(f"t = {t:g}" for t in one.drops)], rows)


def _by_rate(
    cells: dict[CellKey, Cell], estimators: list[str], postprocesses: list[str], drops: list[float], n_trials: int
) -> list[Cells]:
    rows: list[Cells] = []
    for estimator in estimators:
        for k in postprocesses:
            found = [cells.get(CellKey(estimator, k, t)) for t in drops]
            if any(found):
                values = (accuracy_td(c.accuracy(), n_trials) if c else Td("–") for c in found)
                rows.append([pretty(estimator), Td(k, css="text"), *values])
    return rows


def difference_tables(a: Audit) -> list[Table]:
    """Plain accuracies and differences from them, a few rates per table."""
    panel, ks, found = a.panel, a.panel.postprocesses, []
    for start in range(0, len(panel.main_drops), RATES_PER_TABLE):
        drops = panel.main_drops[start : start + RATES_PER_TABLE]
        rows: list[Cells] = []
        for estimator in panel.estimators:
            if any(panel.get(estimator, k, t) for k in ks for t in drops):
                rows.append([pretty(estimator), *(difference_td(a, estimator, k, t) for t in drops for k in ks)])
        groups = [("", 1), *((f"t = {t:g}", len(ks)) for t in drops)]
        caption = f"{panel.title}: plain accuracy (%), and differences from plain (points)."
        name = f"{panel.slug}-differences" + (f"-{start // RATES_PER_TABLE + 1}" if start else "")
        found.append(table(name, caption, ["Estimator", *(k for _ in drops for k in ks)], rows, groups))
    return found


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


def fits_table(panel: Panel) -> Table:
    """Every line that was fitted."""
    rows: list[Cells] = []
    for drop in panel.main_drops:
        for kind in TV_KINDS:
            for points, words in POINT_SETS.items():
                fit = fit_at(panel, kind, drop, points)
                if fit.n < FEWEST_POINTS:
                    continue
                numbers = (fit.slope, fit.r2, fit.p, fit.spearman, fit.spearman_p)
                rows.append(
                    [
                        f"t = {drop:g}",
                        Td(_OF[kind], css="text"),
                        Td(words, css="text"),
                        count_td(fit.n),
                        *(Td(number(v, 2), v) for v in numbers),
                    ]
                )
    columns = ["Rate", "Total variation of", "Points", "n", "Slope", "R²", "p", "Spearman ρ", "p of ρ"]
    return table(f"{panel.slug}-fits", f"Fits of accuracy on total variation; {panel.title}.", columns, rows)


def counts_table(a: Audit) -> Table:
    """How often each k moved the accuracy."""
    rows: list[Cells] = []
    groups = [(c, "") for c in a.counts] + [(c, ", random baselines") for c in a.baseline_counts]
    for c, suffix in groups:
        d = c.overall.difference
        untested = "" if c.tested else "–"
        rows.append(
            [
                c.postprocess + suffix,
                count_td(c.cells),
                count_td(c.lower),
                Td(untested or str(c.lower_significant), c.lower_significant),
                count_td(c.higher),
                Td(untested or str(c.higher_significant), c.higher_significant),
                count_td(c.improved),
                Td(signed(d.mean), d.mean),
                Td(bounds(d.low, d.high), d.low),
                Td(p_text(c.overall.p), c.overall.p),
            ]
        )
    columns = [
        "k",
        "(estimator,\u00a0t)",
        "lower",
        "significantly lower",
        "higher",
        "significantly higher",
        "score improved",
        "mean change",
        "95 % interval",
        "p of mean",
    ]
    caption = (
        "In how many (estimator, t) did k move the accuracy? Significance: paired over trials, Holm-corrected over all "
        "tests of this protocol (baselines apart). Mean change in points: averaged within each trial, then tested over trials, uncorrected."
    )
    return table(f"{a.panel.slug}-counts", caption, columns, rows)


def agreement_table(a: Audit) -> Table:
    """Rankings before and after k."""
    rows: list[Cells] = [
        [
            f"t = {g.drop:g}",
            Td(g.postprocess, css="text"),
            count_td(g.estimators),
            Td(number(g.tau, 2), g.tau),
            Td(number(g.tau_between_trials, 2), g.tau_between_trials),
            Td(_names(g.best_plain), css="text"),
            Td(_names(g.best_after) + (" (changed)" if g.best_changed else ""), css="text"),
        ]
        for g in a.agreements
    ]
    caption = (
        "Does k change the ranking? Kendall's τ between the plain ranking and the ranking after k (1 the same, 0 unrelated); "
        "beside it τ between single trials of the plain ranking, which is what chance alone does. Baselines are not ranked."
    )
    columns = ["Rate", "k", "Estimators", "τ plain, k", "τ between trials", "Best plain", "Best after k"]
    return table(f"{a.panel.slug}-agreement", caption, columns, rows)


def _names(estimators: tuple[str, ...]) -> str:
    return listed([pretty(e) for e in estimators])


def rank_tables(a: Audit) -> list[Table]:
    """Ranks at each rate, k applied to all or to one."""
    by_key = {(r.drop, r.postprocess, r.estimator): r for r in a.rank_rows}
    ks = [k for k in a.panel.agnostic if any(r.postprocess == k for r in a.rank_rows)]
    names = [e for e in a.panel.estimators if any(r.estimator == e for r in a.rank_rows)]
    found = []
    for drop in sorted({r.drop for r in a.rank_rows}):
        rows: list[Cells] = []
        for estimator in names:
            mine = [by_key.get((drop, k, estimator)) for k in ks]
            if not any(mine):
                continue
            plain = next(r.plain for r in mine if r)
            row = [Td(pretty(estimator)), Td(f"{plain:g}", plain)]
            for r in mine:
                row += [_moved(r.plain, r.after), _moved(r.plain, r.alone)] if r else [Td("–"), Td("–")]
            rows.append(row)
        groups = [("", 1), (PLAIN, 1), *((k, 2) for k in ks)]
        caption = f"Ranks at t = {drop:g} (1 is best): k applied to all estimators, or to this one alone while the others stay plain."
        columns = ["Estimator", "rank", *(c for _ in ks for c in ("all", "alone"))]
        found.append(table(f"{a.panel.slug}-ranks-{drop:g}", caption, columns, rows, groups))
    return found


def _moved(before: float, after: float) -> Td:
    places = before - after
    arrow = f" (up {places:g})" if places > 0 else f" (down {-places:g})" if places < 0 else ""
    return Td(f"{after:g}{arrow}", after)


def tests_table(a: Audit, leakage: dict[CellKey, Cell]) -> Table:
    """Every paired comparison with plain; beside it what the masks leak, where that was measured."""
    rows: list[Cells] = []
    for c in a.changes:
        d = c.test.difference
        row = [
            Td(pretty(c.estimator)),
            Td(c.postprocess, css="text"),
            Td(f"{c.drop:g}", c.drop),
            count_td(d.n),
            Td(signed(d.mean), d.mean),
            Td(bounds(d.low, d.high), d.low),
            Td(number(c.test.p, 2), c.test.p),
            Td(number(c.p_holm, 2), c.p_holm, "flag" if c.significant else ""),
        ]
        if leakage:
            cell = leakage.get(CellKey(c.estimator, c.postprocess, c.drop))
            row.append(accuracy_td(cell.accuracy(), 0) if cell else Td("–"))
        rows.append(row)
    columns = ["Estimator", "k", "t", "pairs", "difference", "95 % interval", "p", "p, Holm"]
    columns += ["leakage (%)"] if leakage else []
    caption = f"{a.panel.title}: accuracy with k minus plain, in points, paired over trials."
    return table(f"{a.panel.slug}-tests", caption, columns, rows)
