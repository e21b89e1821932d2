"""Masks that see the label (`roarfast.explain.oracles`), apart from the estimators: they explain nothing (Li et al., 3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from roarfast.explain.oracles import ORACLES
from roarfast.report.grid import Cell, base_cell, most_trials, order_words, rate, slug, usable
from roarfast.report.panel_tables import accuracy_td
from roarfast.report.stats import Interval, mean_interval
from roarfast.report.table import Table, Td, table
from roarfast.report.text import bounds, percent, signed
from roarfast.study.protocols import describe, position
from roarfast.study.records import StudyResults


@dataclass(frozen=True)
class Tested:
    """What was done with masks: protocol, order, rate."""

    protocol: str
    order: str
    drop: float

    @property
    def title(self) -> str:
        """As in "ROAR, t = 0.7"."""
        return f"{describe(self.protocol).title}{order_words(self.order)}, t = {self.drop:g}"


@dataclass(frozen=True)
class OracleCells:
    """The finished cells of oracles on one data set."""

    dataset: str
    base: Cell
    tests: dict[Tested, dict[str, Cell]]

    @property
    def title(self) -> str:
        """As in "Masks that see the label, cifar10"."""
        return f"Masks that see the label, {self.dataset}"

    @property
    def slug(self) -> str:
        """Part of file names."""
        return slug(f"{self.dataset}-oracles")

    @property
    def names(self) -> list[str]:
        """The oracles, in the order of `ORACLES`."""
        return [name for name in ORACLES if any(name in cells for cells in self.tests.values())]

    @property
    def n_trials(self) -> int:
        """The largest number of finished trials of any cell."""
        return most_trials(cell for cells in self.tests.values() for cell in cells.values())

    def apart(self, test: Tested) -> Interval | None:
        """Accuracy with `center+edge` less that with `center`, paired over trials; None where one of them is missing."""
        cells = self.tests[test]
        if not {"center", "center+edge"} <= set(cells):
            return None
        return difference(cells["center+edge"], cells["center"])

    def below_base(self, cell: Cell) -> Interval:
        """Accuracy of a cell less that of the base model on whole images, paired over trials."""
        return difference(cell, self.base)


def difference(one: Cell, other: Cell) -> Interval:
    """The accuracy of one less that of the other, over the trials that both have."""
    common = sorted(one.trials.keys() & other.trials.keys())
    return mean_interval([float(one.trials[t].accuracy or 0) - float(other.trials[t].accuracy or 0) for t in common])


def oracle_cells(results: StudyResults) -> list[OracleCells]:
    """One for each data set with finished cells of oracles, with their own masks."""
    groups: dict[str, dict[Tested, dict[str, Cell]]] = {}
    for r in results.records:
        if r.estimator in ORACLES and (r.status, r.null) == ("done", "own") and usable(r.accuracy):
            cells = groups.setdefault(r.dataset, {}).setdefault(Tested(r.protocol, r.order, rate(r.drop)), {})
            cells.setdefault(r.estimator, Cell()).trials[r.trial] = r
    return [
        OracleCells(dataset, base_cell(results, dataset), {test: tests[test] for test in sorted(tests, key=_place)})
        for dataset, tests in groups.items()
    ]


def _place(test: Tested) -> tuple[int, bool, float]:
    return position(test.protocol), test.order == "lerf", test.drop


def oracle_lines(one: OracleCells) -> list[str]:
    """One sentence per test."""
    base = one.base.accuracy()
    found = []
    for test, cells in one.tests.items():
        said = ", ".join(f"{name} {percent(cells[name].accuracy().mean)} %" for name in ORACLES if name in cells)
        apart = one.apart(test)
        if apart is not None and apart.n:
            said += f" ({signed(apart.mean)} points by the place of a patch that depends on the label)"
        found.append(f"Masks that see the label, {test.title}: {said}; nothing removed {percent(base.mean)} %.")
    return found


def oracle_table(one: OracleCells) -> Table:
    """Every accuracy, with differences to whole images and between the two disks."""
    rows = []
    for row in oracle_rows([one]):
        cell = one.tests[Tested(row["protocol"], row["order"], row["drop"])][row["oracle"]]
        below = one.below_base(cell)
        rows.append(
            [
                Td(row["oracle"]),
                Td(describe(row["protocol"]).title, css="text"),
                Td(f"{row['drop']:g}", row["drop"]),
                accuracy_td(cell.accuracy(), one.n_trials),
                Td(signed(below.mean), below.mean),
                Td(bounds(below.low, below.high), below.low),
            ]
        )
    columns = ["Oracle", "Protocol", "t", "accuracy %", "− base", "95 % interval"]
    caption = (
        f"{one.title}: accuracy, and its difference to the base model on whole images in points, paired over trials."
    )
    return table(f"{one.slug}", caption, columns, rows)


class OracleRow(TypedDict):
    """A row of `tables/oracles.csv`."""

    dataset: str
    protocol: str
    order: str
    drop: float
    oracle: str
    trials: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    base: float
    difference: float
    difference_low: float
    difference_high: float


def oracle_rows(found: Sequence[OracleCells]) -> Iterable[OracleRow]:
    """Rows of `tables/oracles.csv`."""
    for one in found:
        base = one.base.accuracy()
        for test, cells in one.tests.items():
            for name in (name for name in ORACLES if name in cells):
                accuracy, below = cells[name].accuracy(), one.below_base(cells[name])
                yield {
                    "dataset": one.dataset,
                    "protocol": test.protocol,
                    "order": test.order,
                    "drop": test.drop,
                    "oracle": name,
                    "trials": accuracy.n,
                    "accuracy": accuracy.mean,
                    "accuracy_low": accuracy.low,
                    "accuracy_high": accuracy.high,
                    "base": base.mean,
                    "difference": below.mean,
                    "difference_low": below.low,
                    "difference_high": below.high,
                }
