"""Committed summaries under docs/results, claims that read them, and the commands that make them again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pages import Row, read

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
HOLDS, PARTLY, FAILS, OPEN, NOT_RUN = "holds", "holds in part", "does not hold", "cannot be told", "not run"


class Missing(Exception):
    """A summary that nobody has made yet."""


class Results:
    """The committed summaries."""

    @staticmethod
    @cache
    def table(name: str) -> tuple[Row, ...]:
        """The rows of a CSV file under docs/results.

        Raises:
            Missing: If there is no such file.
        """
        if not (RESULTS / name).exists():
            raise Missing(name)
        return tuple(read(RESULTS / name))

    @staticmethod
    @cache
    def checks() -> tuple[dict[str, str], ...]:
        """What `roarfast validate --json` printed."""
        return tuple(json.loads((RESULTS / "validate" / "claims.json").read_text()))

    @staticmethod
    @cache
    def markdown(name: str, first: str) -> tuple[Row, ...]:
        """The rows of the table of a page under docs/results whose first column is called `first`."""
        lines = iter((RESULTS / name).read_text().splitlines())
        for line in lines:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if line.startswith("|") and cells[0] == first:
                next(lines)
                found = []
                for row in lines:
                    if not row.startswith("|"):
                        break
                    found.append(dict(zip(cells, (cell.strip() for cell in row.strip("|").split("|")))))
                return tuple(found)
        raise SystemExit(f"{name} has no table whose first column is {first!r}")

    def rows(self, name: str, **where: str) -> list[Row]:
        """Rows of a CSV file whose fields are as given; at least one."""
        found = [r for r in self.table(name) if all(r[field] == value for field, value in where.items())]
        if not found:
            raise SystemExit(f"docs/results/{name} has no row with {where}")
        return found

    def one(self, name: str, field: str, **where: str) -> float:
        """A number of the only row that is as given."""
        found = self.rows(name, **where)
        if len(found) != 1:
            raise SystemExit(f"docs/results/{name} has {len(found)} rows with {where}, not one")
        return float(found[0][field])


Here = Callable[[Results], tuple[str, str]]


@dataclass(frozen=True)
class Work:
    """What makes a summary again.

    Attributes:
        name: A word for `papers.py --run --only`.
        commands: In order. `DATA` stands for the folder of the data files, `RUNS` for a folder of run folders.
        minutes: Measured on two cores, all commands together; None: not measured.
        known: What is known of its time where that was not measured.
    """

    name: str
    commands: tuple[str, ...]
    minutes: float | None = None
    known: str = "not timed"


@dataclass(frozen=True)
class Claim:
    """A claim of a paper on some data.

    Attributes:
        where: Where it stands: "Fig. 4".
        text: The claim.
        data: What it was tried on, here.
        theirs: The paper's number, with its data.
        work: What makes our number again; None where nothing here can.
        here: Our number with its interval, and the verdict.
        unless: What the row says while the summary is missing.
    """

    where: str
    text: str
    data: str
    theirs: str
    work: Work | None
    here: Here
    unless: str = "its study has not been run to the end"

    def found(self, results: Results) -> tuple[str, str]:
        """Our number, and the verdict."""
        try:
            return self.here(results)
        except Missing:
            return self.unless, NOT_RUN


def not_run(why: str) -> Here:
    """For claims that nobody has tried here."""
    return lambda results: (why, NOT_RUN)


def judge(lower: list[Row], higher: list[Row]) -> str:
    """Whether accuracies are below others, pair by pair: clearly so where their intervals over trials do not meet."""
    pairs = list(zip(lower, higher))
    below = sum(float(a["accuracy_high"]) < float(b["accuracy_low"]) for a, b in pairs)
    above = sum(float(a["accuracy_low"]) > float(b["accuracy_high"]) for a, b in pairs)
    if above:
        return PARTLY if below else FAILS
    return HOLDS if below == len(pairs) else PARTLY if below else OPEN


def with_bounds(row: Row) -> str:
    """An accuracy, and its interval over trials where there are several."""
    low, high = row["accuracy_low"], row["accuracy_high"]
    bounds = "" if {low, high} & {"", "nan"} else f" [{float(low):.3f}, {float(high):.3f}]"
    return f"{float(row['accuracy']):.3f}{bounds}"


def sign(low: float, high: float, *, below: bool = False) -> str:
    """Whether a difference is above (below) 0; an interval that holds 0 tells nothing."""
    if below:
        low, high = -high, -low
    return HOLDS if low > 0 else FAILS if high < 0 else OPEN


QUARTER = 0.25


def negligible(low: float, high: float, whole: float) -> str:
    """Whether a change is at most a quarter of the whole it is part of; one too wide to say so tells nothing.

    Refuted by an interval that is all above 0 and not below the quarter.
    """
    if high <= QUARTER * whole:
        return HOLDS
    return FAILS if low > 0 else OPEN


def of_all(found: list[str]) -> str:
    """The verdict of a claim with several comparisons."""
    if all(verdict == HOLDS for verdict in found):
        return HOLDS
    if HOLDS in found:
        return PARTLY
    return FAILS if FAILS in found else OPEN
