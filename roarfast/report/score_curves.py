"""Scores without retraining: what each curve of a base-model protocol is summed up to, and which scores agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from roarfast.report.grid import BASELINES, Panel, postprocess_position, pretty
from roarfast.report.scores import Score
from roarfast.report.stats import Better, Interval, kendall_tau, mean_interval, ranks
from roarfast.report.table import Table, Td, table
from roarfast.report.text import number
from roarfast.study.protocol import Protocol
from roarfast.study.protocols import describe, position
from roarfast.study.records import StudyResults

Map = tuple[str, str]


@dataclass(frozen=True)
class CurveScore:
    """The scores of one protocol and order, by estimator and post-processing, over trials."""

    protocol: Protocol
    order: str
    maps: dict[Map, Interval]

    @property
    def title(self) -> str:
        """As in "Deletion (lerf)"."""
        return self.protocol.title + (f" ({self.order})" if self.order not in self.protocol.orders[:1] else "")

    @property
    def better(self) -> Better:
        """Which way is better."""
        return self.protocol.better_score(self.order)


def curve_scores(results: StudyResults) -> list[CurveScore]:
    """One for each protocol and order with a score and own masks, in the order of the report."""
    groups: dict[tuple[str, str], dict[Map, list[float]]] = {}
    for c in results.curves:
        if c.null == "own" and c.score is not None and describe(c.protocol).score:
            maps = groups.setdefault((c.protocol, c.order), {})
            maps.setdefault((c.estimator, c.postprocess), []).append(c.score)
    ordered = sorted(groups, key=lambda g: (position(g[0]), g[1] == "lerf"))
    return [CurveScore(describe(p), o, {m: mean_interval(v) for m, v in groups[p, o].items()}) for p, o in ordered]


def curve_score_table(found: Sequence[CurveScore]) -> Table:
    """One row per map, score and rank of each protocol."""
    maps = sorted(
        dict.fromkeys(m for one in found for m in one.maps),
        key=lambda m: (m[0] in BASELINES, postprocess_position(m[1])),
    )
    rows: list[list[Td]] = [[Td(pretty(e)), Td(k, css="text")] for e, k in maps]
    columns, groups = ["Estimator", "k"], [("", 2)]
    for one in found:
        real = [m for m in one.maps if m[0] not in BASELINES]
        places = dict(zip(real, ranks([one.maps[m].mean for m in real], one.better) if real else ()))
        for row, key in zip(rows, maps):
            score, place = one.maps.get(key), float(places.get(key, math.nan))
            row += [_score_td(score), Td("–" if math.isnan(place) else f"{place:g}", place)]
        columns += ["score", "rank"]
        groups.append((f"{one.title} ({one.better} is better)", 2))
    meanings = "; ".join(f"{one.title}: {one.protocol.score}" for one in found)
    caption = (
        f"Scores of curves, mean ± half the 95 % interval over trials; rank 1 is best, baselines apart. {meanings}."
    )
    return table("curve-scores", caption, columns, rows, groups)


def _score_td(score: Interval | None) -> Td:
    if score is None:
        return Td("–")
    half = "" if math.isnan(score.half_width) else f" ± {number(score.half_width, 2)}"
    return Td(number(score.mean) + half, score.mean)


def agreement_matrix(found: Sequence[CurveScore], scored: Sequence[tuple[Panel, list[Score]]]) -> Table | None:
    """Kendall's τ between the orders in which scores put the maps that both have; None with fewer than two scores.

    Retrained protocols take part with their areas.
    """
    signed: dict[str, dict[Map, float]] = {}
    for panel, mine in scored:
        if describe(panel.protocol).trains:
            sign = -1 if panel.better == "lower" else 1
            values = {(s.estimator, s.postprocess): sign * s.area.mean for s in mine if s.area.n}
            signed[panel.title] = {m: v for m, v in values.items() if m[0] not in BASELINES}
    for one in found:
        sign = -1 if one.better == "lower" else 1
        signed[one.title] = {m: sign * v.mean for m, v in one.maps.items() if m[0] not in BASELINES}
    if len(signed) < 2:
        return None
    rows = [[Td(a), *(_tau_td(signed[a], signed[b]) for b in signed)] for a in signed]
    caption = (
        "Which scores agree? Kendall's τ between the orders in which two scores put the maps (estimator and post-processing, baselines "
        "apart): 1 the same order, 0 unrelated, −1 reversed."
    )
    return table("score-agreement", caption, ["", *signed], rows)


def _tau_td(a: dict[Map, float], b: dict[Map, float]) -> Td:
    common = sorted(a.keys() & b.keys())
    if len(common) < 3:
        return Td("–", title=f"{len(common)} maps in common: nothing to compare")
    tau = kendall_tau([a[m] for m in common], [b[m] for m in common])
    return Td(number(tau, 2), tau, title=f"{len(common)} maps")
