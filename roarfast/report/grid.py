"""Records arranged for the report: panels (one protocol on one dataset) of cells, a cell holding its trials."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from roarfast.explain.oracles import ORACLES
from roarfast.report.stats import Better, Interval, mean_interval
from roarfast.report.table import Row
from roarfast.study.protocol import Protocol
from roarfast.study.protocols import describe, position
from roarfast.study.records import Record, StudyResults

PLAIN = "plain"
BASELINES = {"rand": "random pixels", "block": "random block"}
"""Estimators that know nothing of the model: what any other must be compared with."""

BITS = {"bits": "cross_entropy", "scaled_bits": "scaled_cross_entropy"}
"""Bits of a record, up to the entropy of the classes: the cross entropy of which they are made."""

_POSTPROCESS_ORDER = (PLAIN, "max", "gaussian")


@dataclass(frozen=True)
class CellKey:
    """Which cell of a panel: estimator, post-processing, drop rate."""

    estimator: str
    postprocess: str
    drop: float


@dataclass
class Cell:
    """The finished trials of one cell, by trial number."""

    trials: dict[int, Record] = field(default_factory=dict)

    def values(self, name: str) -> list[float]:
        """A field of every trial that has it, in the order of trials; see `field_of`."""
        return list(self.by_trial(name).values())

    def by_trial(self, name: str) -> dict[int, float]:
        """Trial → a field, for those that have it."""
        found = ((t, field_of(self.trials[t], name)) for t in sorted(self.trials))
        return {t: value for t, value in found if value is not None}

    def mean(self, name: str) -> float:
        """Mean of a field over trials; NaN if no trial has it."""
        values = self.values(name)
        return math.fsum(values) / len(values) if values else math.nan

    def interval(self, name: str) -> Interval:
        """Mean of a field and its 95 % interval over trials."""
        return mean_interval(self.values(name))

    def accuracy(self) -> Interval:
        """Mean accuracy and its 95 % interval over trials."""
        return self.interval("accuracy")


@dataclass
class Panel:
    """One protocol and order on one dataset: everything in it is comparable."""

    dataset: str
    protocol: str
    order: str
    both_orders: bool
    base_cell: Cell
    cells: dict[CellKey, Cell]

    @property
    def base(self) -> Interval:
        """Accuracy of the base models, nothing removed."""
        return self.base_cell.accuracy()

    @property
    def base_by_trial(self) -> dict[int, float]:
        """Trial → accuracy of its base model."""
        return {trial: float(r.accuracy or 0) for trial, r in self.base_cell.trials.items()}

    @property
    def whole(self) -> float:
        """The rate at which nothing is removed: 0, or 1 where it counts what is kept."""
        return 1.0 if self.record.keeps else 0.0

    @property
    def trials(self) -> list[int]:
        """The trials of all cells."""
        return sorted({t for cell in self.cells.values() for t in cell.trials})

    @property
    def record(self) -> Protocol:
        """The protocol."""
        return describe(self.protocol)

    @property
    def title(self) -> str:
        """As in "ROAD (most relevant first), cifar10"."""
        order = order_words(self.order) or (" (most relevant first)" if self.both_orders else "")
        return f"{self.record.title}{order}, {self.dataset}"

    @property
    def identity(self) -> tuple[str, str, str]:
        """Data set, protocol, order."""
        return self.dataset, self.protocol, self.order

    @property
    def slug(self) -> str:
        """Part of file names and anchors."""
        return slug("-".join(self.identity))

    @property
    def row(self) -> Row:
        """The first columns of its rows in CSV files."""
        return {"dataset": self.dataset, "protocol": self.protocol, "order": self.order}

    @property
    def better(self) -> Better:
        """Which way is better in this panel."""
        return self.record.better(self.order)

    @property
    def rate_name(self) -> str:
        """What the drop rate of this protocol counts."""
        return self.record.rate_name

    def nominal_removed(self, drop: float) -> float:
        """The fraction that should be removed at a drop rate."""
        return self.record.removed(drop)

    @property
    def estimators(self) -> list[str]:
        """In the order of the study, baselines last."""
        return baselines_last(k.estimator for k in self.cells)

    @property
    def postprocesses(self) -> list[str]:
        """Plain, max…, gaussian…, then others in the order of the study."""
        return postprocesses_in(self.cells)

    @property
    def agnostic(self) -> list[str]:
        """The post-processings other than plain."""
        return [k for k in self.postprocesses if k != PLAIN]

    @property
    def drops(self) -> list[float]:
        """All drop rates, ascending."""
        return drops_in(self.cells)

    @property
    def main_drops(self) -> list[float]:
        """Drop rates at which something other than a baseline was run (all rates if there are only baselines).

        Without the one at which nothing is removed, unless it is the only one: all maps are equal there.
        """
        found = {k.drop for k in self.cells if k.estimator not in BASELINES} or set(self.drops)
        return sorted(found - {self.whole}) or sorted(found)

    @property
    def n_trials(self) -> int:
        """The largest number of finished trials of any cell."""
        return most_trials(self.cells.values())

    def get(self, estimator: str, postprocess: str, drop: float) -> Cell | None:
        """The cell, or None if no trial of it is finished."""
        return self.cells.get(CellKey(estimator, postprocess, drop))

    def curve(self, estimator: str, postprocess: str, name: str = "accuracy") -> list[tuple[float, Interval]]:
        """(rate, field of the records) in ascending order, with the point at which nothing is removed."""
        cells = {t: c for t in self.drops if (c := self.get(estimator, postprocess, t))}
        if cells and self.base_cell.trials:
            cells[self.whole] = self.base_cell
        found = ((t, cells[t].interval(name)) for t in sorted(cells))
        return [(t, value) for t, value in found if value.n]

    def complete_estimators(self, postprocesses: Iterable[str], drop: float) -> list[str]:
        """Estimators (no baselines) that have every one of these post-processings at this rate."""
        wanted = list(postprocesses)
        real = (e for e in self.estimators if e not in BASELINES)
        return [e for e in real if all(self.get(e, k, drop) for k in wanted)]


def baselines_last(names: Iterable[str]) -> list[str]:
    """Each estimator once, in the order given, baselines last."""
    found = list(dict.fromkeys(names))
    return [e for e in found if e not in BASELINES] + [e for e in BASELINES if e in found]


def postprocesses_in(cells: Iterable[CellKey]) -> list[str]:
    """Plain, max…, gaussian…, then others in the order given."""
    return sorted(dict.fromkeys(k.postprocess for k in cells), key=postprocess_position)


def drops_in(cells: Iterable[CellKey]) -> list[float]:
    """All drop rates, ascending."""
    return sorted({k.drop for k in cells})


def most_trials(cells: Iterable[Cell]) -> int:
    """The largest number of finished trials of any cell; 0 without cells."""
    return max((len(cell.trials) for cell in cells), default=0)


def order_words(order: str) -> str:
    """What titles say of the order in which pixels go; nothing of the usual one."""
    return " (least relevant first)" if order == "lerf" else ""


def field_of(record: Record, name: str) -> float | None:
    """A field or an extra score of a record; of `bits` and `scaled_bits`, the cross entropy in bits, in negative."""
    if name in BITS:
        nats = field_of(record, BITS[name])
        return None if nats is None else -nats / math.log(2)
    value = getattr(record, name) if hasattr(record, name) else record.extra.get(name)
    return None if value is None else float(value)


def panels(results: StudyResults) -> list[Panel]:
    """The panels of a study; records without a finished accuracy, `base` and `mask-only` records and oracles are not in them."""
    done = [
        r for r in without_oracles(results).records if r.status == "done" and r.null == "own" and usable(r.accuracy)
    ]
    groups: dict[tuple[str, str, str], dict[CellKey, Cell]] = {}
    for record in done:
        if record.protocol == "base" or describe(record.protocol).shown != "panel":
            continue
        cells = groups.setdefault((record.dataset, record.protocol, record.order), {})
        cell = cells.setdefault(CellKey(record.estimator, record.postprocess, rate(record.drop)), Cell())
        cell.trials[record.trial] = record
    datasets = list(dict.fromkeys(d for d, _, _ in groups))
    ordered = sorted(groups, key=lambda g: (datasets.index(g[0]), position(g[1]), g[2] == "lerf"))
    return [
        Panel(d, p, o, {(d, p, "morf"), (d, p, "lerf")} <= set(groups), base_cell(results, d), groups[d, p, o])
        for d, p, o in ordered
    ]


def without_oracles(results: StudyResults) -> StudyResults:
    """The results of estimators and baselines: masks that see the label are shown apart (`report.oracles`)."""
    curves = [c for c in results.curves if c.estimator not in ORACLES]
    return StudyResults([r for r in results.records if r.estimator not in ORACLES], results.meta, curves)


def base_cell(results: StudyResults, dataset: str) -> Cell:
    """The base models of all trials: nothing removed."""
    base = (r for r in results.records if r.protocol == "base" and r.dataset == dataset)
    return Cell({r.trial: r for r in base if r.accuracy is not None and usable(r.accuracy)})


def mask_only(results: StudyResults, dataset: str, order: str) -> dict[CellKey, Cell]:
    """Cells of networks that saw the masks of estimators alone: what accuracy they reach is leaked by the masks."""
    cells: dict[CellKey, Cell] = {}
    for r in without_oracles(results).records:
        if (r.protocol, r.status, r.dataset, r.order, r.null) == (
            "mask-only",
            "done",
            dataset,
            order,
            "own",
        ) and usable(r.accuracy):
            cells.setdefault(CellKey(r.estimator, r.postprocess, rate(r.drop)), Cell()).trials[r.trial] = r
    return cells


def usable(value: float | None) -> bool:
    """Whether a number was recorded (not None, not NaN)."""
    return value is not None and not math.isnan(value)


def rate(drop: float) -> float:
    """A drop rate without the noise of arithmetic, so that 0.1 + 0.2 and 0.3 are one column."""
    return round(float(drop), 6)


def slug(text: str) -> str:
    """Letters, digits, dots and dashes only."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-")


def pretty(estimator: str) -> str:
    """An estimator's name for people: `grad^2@mean(raw)` becomes grad², mean(raw)."""
    return estimator.replace("^2", "²").replace("@", ", ")


def postprocess_position(name: str) -> int:
    """Where a post-processing stands: plain, max, gaussian, others."""
    head = re.split(r"[(|]", name, maxsplit=1)[0]
    if "|" in name or head not in _POSTPROCESS_ORDER:
        return len(_POSTPROCESS_ORDER)
    return _POSTPROCESS_ORDER.index(head)
