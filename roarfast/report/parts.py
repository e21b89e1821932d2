"""Shape, image and model parts of the damage, for studies with the nulls `swap` and `model`.

Intervals are over test images where the study kept what the base models answered, else over trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from roarfast.metrics.damage_curve import EqualDamage, common_low, equal_damage
from roarfast.metrics.damage_parts import PARTS, EstimatorParts, split, summarise
from roarfast.metrics.resampling import Estimate, trial_interval
from roarfast.report.answers import Answers, Floats
from roarfast.report.grid import BASELINES, PLAIN, baselines_last, order_words, postprocess_position, pretty, slug
from roarfast.report.table import Row, Table, Td, table
from roarfast.report.text import bounds, p_text, percent
from roarfast.study.null_names import is_model_null
from roarfast.study.protocols import describe
from roarfast.study.records import Record, StudyResults

_ARMS = ("own", "swap", "model")


def arm_of(null: str) -> str | None:
    """Which arm the masks of a null belong to: those of all other trials' models are one, and their mean counts."""
    return "model" if is_model_null(null) else null if null in _ARMS else None


Map = tuple[str, str]
"""(estimator, post-processing)."""


@dataclass(frozen=True)
class StudyParts:
    """The parts of all maps of one protocol and order, and their curves of equal damage."""

    dataset: str
    protocol: str
    order: str
    rows: dict[Map, EstimatorParts]
    equal: dict[Map, EqualDamage]
    rates: int
    trials: int
    images: int = 0  # 0: intervals are over trials

    @property
    def over(self) -> str:
        """What the intervals are over."""
        return "test images" if self.images else "trials"

    @property
    def title(self) -> str:
        """For headings."""
        return f"{describe(self.protocol).title}{order_words(self.order)}, {self.dataset}"

    @property
    def slug(self) -> str:
        """Part of file names."""
        return slug(f"{self.dataset}-{self.protocol}-{self.order}")

    @property
    def better(self) -> str:
        """Which accuracy is better."""
        return describe(self.protocol).better(self.order)

    @property
    def estimators(self) -> list[str]:
        """In the order of the study, baselines last."""
        return baselines_last(e for e, _ in self.rows)

    @property
    def postprocesses(self) -> list[str]:
        """Plain first."""
        return sorted(dict.fromkeys(k for _, k in self.rows), key=postprocess_position)


def study_parts(results: StudyResults, answers: Sequence[Answers] = ()) -> list[StudyParts]:
    """The parts wherever own, `swap` and `model` cells of the same rates and trials are done.

    Args:
        results: All records of the study.
        answers: What the base models answered, where it was kept.
    """
    done = [r for r in results if r.status == "done" and r.accuracy is not None]
    base = {(r.dataset, r.trial): float(r.accuracy or 0.0) for r in done if r.protocol == "base"}
    groups: dict[tuple[str, str, str], dict[Map, list[Record]]] = {}
    for r in done:
        if arm_of(r.null) and r.protocol != "base" and (r.dataset, r.trial) in base:
            maps = groups.setdefault((r.dataset, r.protocol, r.order), {})
            maps.setdefault((r.estimator, r.postprocess), []).append(r)
    found = []
    for group, members in groups.items():
        arms = {key: one for key, records in members.items() if (one := _arms(records, base)) is not None}
        images = _over_images(group, members, answers)
        if images is not None:
            found.append(images)
        elif arms:
            rows = {key: _row(key, one) for key, one in arms.items()}
            rates, trials = (max(one["own"].shape[axis] for one in arms.values()) for axis in (0, 1))
            found.append(StudyParts(*group, rows, _equal(arms), rates, trials))
    return found


def _over_images(
    group: tuple[str, str, str], members: dict[Map, list[Record]], answers: Sequence[Answers]
) -> StudyParts | None:
    """The parts of the answers to single images; None unless all of a group were kept."""
    mine: dict[tuple[Map, str, int], list[Answers]] = {}
    for a in answers:
        c = a.curve
        if (c.protocol, c.order) == group[1:] and (arm := arm_of(c.null)):
            mine.setdefault(((c.estimator, c.postprocess), arm, c.trial), []).append(a)
    splits, equal, rates, trials = {}, {}, 0, 0
    for key, records in members.items():
        numbers = sorted({r.trial for r in records})
        if not all((key, arm, t) in mine for arm in _ARMS for t in numbers):
            return None
        common = sorted(set.intersection(*(set(a.rates) for arm in _ARMS for t in numbers for a in mine[key, arm, t])))
        own, swap, model = (np.stack([_mean_at(mine[key, arm, t], common) for t in numbers]) for arm in _ARMS)
        base = np.stack([mine[key, "own", t][0].responses.whole.of("accuracy") for t in numbers])
        splits[key] = split(base, own, swap, model)
        equal[key] = (own.mean(0), swap.mean(0), base.mean(0))
        rates, trials = max(rates, len(common)), max(trials, len(numbers))
    if len({s.base.shape for s in splits.values()}) != 1 or next(iter(splits.values())).base.shape[1] < 2:
        return None
    summary = summarise({map_name(key): s for key, s in splits.items()})
    low = max(common_low([swap], base) for _, swap, base in equal.values())
    curves = {key: equal_damage(own, swap, base, low=low, resamples=200) for key, (own, swap, base) in equal.items()}
    rows = {key: summary.rows[map_name(key)] for key in splits}
    return StudyParts(*group, rows, curves, rates, trials, summary.images)


def _mean_at(answers: Sequence[Answers], rates: Sequence[float]) -> Floats:
    """1 for right and 0 for wrong, `[R, N]`, mean over the models whose masks were used."""
    return np.mean([a.responses.values()[[a.rates.index(d) for d in rates]] for a in answers], 0)


def _arms(records: list[Record], base: dict[tuple[str, int], float]) -> dict[str, Floats] | None:
    """Accuracies `[R, T]` with each kind of masks at the rates that have all of them, and `[T]` with nothing removed."""
    found: dict[tuple[str | None, float, int], list[float]] = {}
    for r in records:
        found.setdefault((arm_of(r.null), r.drop, r.trial), []).append(float(r.accuracy or 0.0))
    values = {key: float(np.mean(accuracies)) for key, accuracies in found.items()}
    trials = sorted({r.trial for r in records})
    rates = [d for d in sorted({r.drop for r in records}) if all((a, d, t) in values for a in _ARMS for t in trials)]
    if not rates:
        return None
    arms = {a: np.array([[values[a, d, t] for t in trials] for d in rates], np.float64) for a in _ARMS}
    return arms | {"base": np.array([base[records[0].dataset, t] for t in trials])}


def _row(key: Map, arms: dict[str, Floats]) -> EstimatorParts:
    # Every trial is one "image": its accuracy.
    own, swap, model = (arms[a].T[:, :, None] for a in _ARMS)
    parts = split(arms["base"][:, None], own, swap, model)
    over = {part: trial_interval(parts.part(part)[:, 0]) for part in ("damage", *PARTS)}
    return EstimatorParts(
        map_name(key),
        float(parts.base.mean()),
        float(parts.own.mean()),
        **over,
        p=math.nan,
        p_holm=math.nan,
        over_trials=over,
    )


def _equal(arms: dict[Map, dict[str, Floats]]) -> dict[Map, EqualDamage]:
    """Over the range of null accuracy that all maps reach, so that they can be compared."""
    whole = next(iter(arms.values()))["base"]
    same = {key: one for key, one in arms.items() if len(one["base"]) == len(whole)}
    low = common_low([one["swap"] for one in same.values()], whole)
    return {key: equal_damage(one["own"], one["swap"], one["base"], low=low, resamples=0) for key, one in same.items()}


def map_name(key: Map) -> str:
    """As in "grad²" or "grad² gaussian(1)"."""
    return pretty(key[0]) if key[1] == PLAIN else f"{pretty(key[0])} {key[1]}"


def parts_rows(found: Sequence[StudyParts]) -> list[Row]:
    """Rows of `parts.csv`."""
    rows = []
    for one in found:
        for key, row in one.rows.items():
            record: Row = {"dataset": one.dataset, "protocol": one.protocol, "order": one.order}
            record |= {"estimator": key[0], "postprocess": key[1], "trials": one.trials, "rates": one.rates}
            record |= {"base": row.base, "own": row.own}
            for part in ("damage", *PARTS):
                e = row.over_trials[part]
                record |= {part: e.value, f"{part}_low": e.low, f"{part}_high": e.high}
                over = getattr(row, part) if one.images else Estimate(e.value)
                record |= {f"{part}_images_low": over.low, f"{part}_images_high": over.high}
            equal = one.equal.get(key)
            rows.append(record | {"equal_damage": equal.score.value if equal else math.nan})
    return rows


def parts_table(one: StudyParts) -> Table:
    """The parts in points, with their intervals over trials."""
    names = ("damage", *PARTS)
    rows = []
    for key, row in one.rows.items():
        estimates = [getattr(row, part) for part in names]
        cells = [Td(percent(e.value), e.value, title=f"95 % interval {bounds(e.low, e.high)}") for e in estimates]
        equal = one.equal.get(key)
        value = equal.score.value if equal else math.nan
        rows.append(
            [
                Td(pretty(key[0])),
                Td(key[1], css="text"),
                Td(percent(row.own), row.own),
                *cells,
                Td(bounds(row.model.low, row.model.high), row.model.low),
                Td(p_text(row.p_holm) if one.images else "–", row.p_holm),
                Td(percent(value), value),
            ]
        )
    columns = ["Estimator", "k", "own accuracy", *names, "model, 95 % interval", "model > 0", "equal damage"]
    caption = (
        f"Parts of the damage in points, means over {one.rates} rates and {one.trials} trials: {one.title}. Intervals are over {one.over}; model > 0 is a "
        "one-sided test over images, corrected over the maps (Holm). Equal damage: how far the "
        "accuracy with a map's own masks is below that with other images' masks which do the same damage; larger is better, 0 is a map that knows nothing."
    )
    return table(f"{one.slug}-parts", caption, columns, rows)


def parts_line(one: StudyParts) -> str:
    """The parts in one sentence: means over the estimators of each post-processing."""
    said = []
    for k in one.postprocesses:
        rows = [row for (e, kk), row in one.rows.items() if kk == k and e not in BASELINES]
        if rows:
            means = [percent(float(np.mean([getattr(row, part).value for row in rows]))) for part in ("damage", *PARTS)]
            said.append(f"{k} {means[0]} = {means[1]} shape + {means[2]} image + {means[3]} model")
    if not said:
        said = ["baselines only"]
    return f"{one.title}, points of accuracy lost, mean over estimators: {'; '.join(said)}."
