"""The first table of the page: one row per map, its score in every protocol."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from roarfast.metrics.damage_parts import PARTS
from roarfast.report.grid import BASELINES, Panel, pretty
from roarfast.report.panel_tables import accuracy_td
from roarfast.report.parts import StudyParts
from roarfast.report.scores import RANDOM, Score
from roarfast.report.stats import Interval
from roarfast.report.table import Row, Table, Td, table
from roarfast.report.text import bounds, p_text, percent, signed

PANELS_PER_TABLE = 3  # more make a table that nobody sees as a whole

Scored = Sequence[tuple[Panel, list[Score]]]
"""The panels of a study, each with its scores."""


def score_tables(scored: Scored, parts: Sequence[StudyParts], only: str | None) -> list[Table]:
    """Scores of all maps; a few protocols per table.

    Args:
        scored: Panels and scores.
        parts: The damage taken apart, where the study has nulls.
        only: The post-processing whose maps are shown; None for all, with a column that names it.
    """
    tables = []
    for start in range(0, len(scored), PANELS_PER_TABLE):
        chunk = scored[start : start + PANELS_PER_TABLE]
        number = start // PANELS_PER_TABLE
        name = f"scores{'' if only else '-all'}" + (f"-{number + 1}" if number else "")
        tables.append(_score_table(name, chunk, parts, only))
    return tables


def _score_table(name: str, scored: Scored, parts: Sequence[StudyParts], only: str | None) -> Table:
    maps = list(dict.fromkeys(_maps(scored, only)))
    maps.sort(key=lambda m: m[0] in BASELINES)
    columns, groups = ["Estimator"], [("", 1)]
    if only is None:
        columns, groups = ["Estimator", "k"], [("", 2)]
    rows: list[list[Td]] = [[Td(pretty(e)), *([] if only else [Td(k, css="text")])] for e, k in maps]
    for panel, found in scored:
        by_map = {(s.estimator, s.postprocess): s for s in found}
        gaps = any(s.gap for s in found) and panel.order == "morf"
        names = ["area %", "rank", "− random", "beats it?", *(["LeRF − MoRF"] if gaps else [])]
        mine = [one for one in parts if (one.dataset, one.protocol, one.order) == panel.identity]
        names += ["shape + image + model"] if mine else []
        for row, key in zip(rows, maps):
            row += _score_cells(by_map.get(key), panel, gaps)
            if mine:
                row.append(parts_td(mine[0], key))
        columns += names
        groups.append((f"{panel.title} ({panel.better} is better)", len(names)))
    return table(name, _caption(scored, only), columns, rows, groups)


def _maps(scored: Scored, only: str | None) -> Iterable[tuple[str, str]]:
    return (
        (s.estimator, s.postprocess)
        for _, found in scored
        for s in found
        if only is None or s.postprocess == only or s.estimator in BASELINES
    )


def _score_cells(s: Score | None, panel: Panel, gaps: bool) -> list[Td]:
    if s is None:
        return [Td("–")] * (5 if gaps else 4)
    if not s.area.n:
        cells = [Td("–", title="a rate is missing, so there is no area")] + [Td("–")] * 3
    else:
        rank = Td("–" if math.isnan(s.rank) else f"{s.rank:g}", s.rank)
        cells = [accuracy_td(s.area, panel.n_trials), rank, *_random_cells(s)]
    return [*cells, points_td(s.gap)] if gaps else cells


def _random_cells(s: Score) -> list[Td]:
    return [points_td(s.random.difference if s.random else None), verdict_td(s)]


def verdict_td(s: Score) -> Td:
    """Whether it beats random pixels."""
    if s.estimator == RANDOM:
        return Td("is it", css="soft")
    if s.random is None:
        return Td("no pair")
    css = {"yes": "good", "for this model": "good", "worse": "flag"}.get(s.verdict, "")
    hint = f"{p_text(s.random.p)}, corrected {p_text(s.p_holm)}" if s.random.n > 1 else "one trial: no test"
    if s.over_images is not None:
        hint += f"; over images, for these models: {bounds(s.over_images.low, s.over_images.high)} points"
    return Td(s.verdict, css=css, title=hint)


def points_td(interval: Interval | None) -> Td:
    """A difference in points with half its interval."""
    if interval is None or not interval.n:
        return Td("–")
    half = "" if math.isnan(interval.half_width) else f" ± {percent(interval.half_width)}"
    return Td(signed(interval.mean) + half, interval.mean)


def parts_td(one: StudyParts, key: tuple[str, str]) -> Td:
    """Shape, image and model part as numbers and as a stacked bar, whose full width is the largest damage of the table."""
    row = one.rows.get(key)
    if row is None:
        return Td("–")
    values = {part: getattr(row, part).value for part in PARTS}
    full = max(sum(max(getattr(r, part).value, 0.0) for part in PARTS) for r in one.rows.values())
    widths = {part: 100 * max(value, 0.0) / full if full > 0 else 0.0 for part, value in values.items()}
    text = " + ".join(percent(v) for v in values.values())
    words = ", ".join(f"{part} {percent(v)}" for part, v in values.items())
    return Td(text, row.damage.value, "parts", f"points of accuracy lost: {words}", widths)


def _caption(scored: Scored, only: str | None) -> str:
    first = scored[0][0]
    which = f"Scores of {only} maps. " if only else "Scores of all maps; k is the post-processing of a map. "
    text = (
        f"{which}Area: mean accuracy (%) over the {first.rate_name}, t, from nothing removed to t = {_ends(p for p, _ in scored)}, "
        "± half the 95 % interval over trials. Rank: 1 is best. − random: points above (+) or below (−) random pixels, paired "
        "over trials; beats it: yes if better at the 5 % level, corrected for all maps of the protocol (Holm)."
    )
    if any(s.gap for _, found in scored for s in found):
        text += " LeRF − MoRF: area with the least relevant pixels removed first less that with the most relevant first; larger is better."
    return text


def _ends(found: Iterable[Panel]) -> str:
    ends = dict.fromkeys(f"{(p.main_drops[0] if p.record.keeps else p.main_drops[-1]):g}" for p in found)
    return " or ".join(ends)


def score_rows(scored: Scored) -> Iterable[Row]:
    """Rows of `scores.csv`."""
    for panel, found in scored:
        for s in found:
            d = s.random.difference if s.random else None
            yield panel.row | {
                "better": panel.better,
                "estimator": s.estimator,
                "postprocess": s.postprocess,
                "trials": s.area.n,
                "area": s.area.mean,
                "area_low": s.area.low,
                "area_high": s.area.high,
                "rank": s.rank,
                "minus_random": d.mean if d else math.nan,
                "minus_random_low": d.low if d else math.nan,
                "minus_random_high": d.high if d else math.nan,
                "p": s.random.p if s.random else math.nan,
                "minus_random_images_low": s.over_images.low if s.over_images else math.nan,
                "minus_random_images_high": s.over_images.high if s.over_images else math.nan,
                "p_holm": s.p_holm,
                "beats_random": s.verdict,
                "gap": s.gap.mean if s.gap else math.nan,
                "gap_low": s.gap.low if s.gap else math.nan,
                "gap_high": s.gap.high if s.gap else math.nan,
            }
