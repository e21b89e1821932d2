"""Does retraining tell how much was removed? The page of the falsification of 002 (3.1, Fig. 1; appendix C, Fig. 10).

python tools/falsification.py RUN --out docs/results/falsification

RUN is a finished run of the preset `falsification`. Writes records.csv (every cell), facts.csv, gates.csv (what was expected beforehand, and what
came out), figure.png and the page. Without RUN the gates, the figure and the page are made again from these.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from roarfast.report.compare import read_records
from roarfast.report.facts import coverage
from roarfast.report.figures.oracles import oracle_figure
from roarfast.report.oracles import OracleCells, Tested, difference, oracle_cells
from roarfast.report.stats import Interval
from roarfast.report.text import percent
from roarfast.study import load
from roarfast.study.errors import StudyError
from roarfast.study.records import StudyResults

RATE, PATCH_RATE, FAR = 0.7, 0.05, 5
PAPER = {
    ("roar", "center"): "60 (66 in its caption)",
    ("roar", "center+edge"): "88",
    ("no-retrain", "center"): "24",
    ("no-retrain", "center+edge"): "29",
    ("roar-clean", "edge"): "32.2",
    ("base", "none"): "88.7",
}
MEANING = {
    "roar": "retrained and tested without these pixels",
    "no-retrain": "base model, tested without these pixels",
    "mask-only": "trained and tested on the masks alone",
    "roar-clean": "retrained with black pixels, tested on whole images",
}


@dataclass(frozen=True)
class Gate:
    """What was expected before the run, in accuracy (0..1), and what came out."""

    text: str
    value: float
    low: float
    high: float
    least: float
    most: float

    @property
    def holds(self) -> bool:
        """Whether the mean over trials is where it was expected."""
        return self.least <= self.value <= self.most

    @property
    def expected(self) -> str:
        """In words."""
        if self.least == self.most:
            return f"{percent(self.least)}"
        return f"at least {percent(self.least)}" if self.most == float("inf") else f"below {percent(self.most)}"


def _gate(text: str, found: Interval, least: float = float("-inf"), most: float = float("inf")) -> Gate:
    return Gate(text, round(found.mean, 12), found.low, found.high, least, most)


def gates(one: OracleCells) -> Iterator[Gate]:
    """METRICS of the experiment: what it must show."""
    try:
        retrained, kept, masks = (one.tests[Tested(p, "morf", RATE)] for p in ("roar", "no-retrain", "mask-only"))
        clean = one.tests[Tested("roar-clean", "morf", PATCH_RATE)]["edge"]
        for cells in (retrained, kept, masks):
            cells["center"], cells["center+edge"]
    except KeyError as missing:
        raise StudyError(f"the run is not finished, or no run of the preset falsification: no cell {missing}") from None
    apart = difference(retrained["center+edge"], retrained["center"])
    yield _gate("retrained: center+edge less center, as many pixels removed", apart, least=0.10)
    for name in ("center", "center+edge"):
        yield _gate(f"base model, {name} removed", kept[name].accuracy(), most=0.40)
    yield _gate("masks alone: center, one mask for all images", masks["center"].accuracy(), 0.10, 0.10)
    yield _gate("masks alone: center+edge", masks["center+edge"].accuracy(), least=0.90)
    yield _gate(
        "base model less the one trained with black patches, on whole images", difference(one.base, clean), 0.15
    )


def interval(low: float, high: float) -> str:
    """An interval in percent; a dash from one trial."""
    return "–" if low != low else f"{percent(low)} to {percent(high)}"


def unlike(one: OracleCells) -> str:
    """Accuracies far from the paper's."""
    rows = [("base", "none", "the base model", one.base)]
    rows += [
        (t.protocol, n, f"{n}, {MEANING[t.protocol]}", c) for t, cells in one.tests.items() for n, c in cells.items()
    ]
    far = [
        f"{what} {percent(found)} % (paper {PAPER[protocol, name]})"
        for protocol, name, what, cell in rows
        if (protocol, name) in PAPER
        and abs(100 * (found := cell.accuracy().mean) - float(PAPER[protocol, name].split()[0])) > FAR
    ]
    return "; ".join(far) if far else f"no accuracy differs by more than {FAR} points"


def page(one: OracleCells, found: list[Gate], facts: str) -> str:
    """The page: what did not hold first."""
    failed = [g for g in found if not g.holds]
    held = [g for g in found if g.holds]

    def told(gate: Gate) -> str:
        return f"{gate.text}: {percent(gate.value)} (expected {gate.expected})"

    lines = ["# Falsification: masks that see the label", ""]
    lines += [
        "**Did not hold:** " + ("; ".join(map(told, failed)) if failed else "nothing of what was expected here") + ".",
        "",
    ]
    lines += [f"**Not as in the paper:** {unlike(one)}.", ""]
    lines += ["**Held:** " + ("; ".join(map(told, held)) if held else "nothing") + ".", ""]
    lines += [
        "002 (3.1, appendix C) asks whether the accuracy after retraining tells how much was removed. Its masks explain nothing: "
        "`center` is one disk, the same for every image; `center+edge` removes exactly as many pixels, 5 % of them a patch at a place of "
        "the border that depends on the label; `edge` is that patch alone. A network that is retrained reads the class from the patch.",
        "",
        facts,
        "",
        "![Accuracy with each oracle's masks](figure.png)",
        "",
        "## Accuracies",
        "",
        f"Percent, mean over {one.n_trials} trials, each with its own base model; 95 % t-intervals over trials.",
        "",
        "| masks | test | removed | accuracy | 95 % interval | single trials | paper |",
        "|---|---|---|---|---|---|---|",
    ]
    base = one.base.accuracy()
    rows = [("none", "base model, whole images", "0", one.base, PAPER["base", "none"])]
    for test, cells in one.tests.items():
        rows += [
            (
                f"`{name}`",
                MEANING.get(test.protocol, test.protocol),
                f"{100 * test.drop:g} %",
                cell,
                PAPER.get((test.protocol, name), "–"),
            )
            for name, cell in cells.items()
        ]
    for name, what, removed, cell, paper in rows:
        accuracy = cell.accuracy()
        single = ", ".join(percent(v) for v in cell.values("accuracy"))
        bounds = interval(accuracy.low, accuracy.high)
        lines.append(f"| {name} | {what} | {removed} | {percent(accuracy.mean)} | {bounds} | {single} | {paper} |")
    lines += [
        "",
        "## What was expected beforehand",
        "",
        "| | expected | found | 95 % interval | |",
        "|---|---|---|---|---|",
    ]
    for g in found:
        verdict = "holds" if g.holds else "**does not hold**"
        lines.append(f"| {g.text} | {g.expected} | {percent(g.value)} | {interval(g.low, g.high)} | {verdict} |")
    lines += [
        "",
        f"Base model on whole images: {percent(base.mean)} %. The paper trains on 50,000 images for 35 epochs and says neither the "
        "size of its regions nor the fill of its Figure 1; here the disk is 70 % of the pixels in the mean colour, the patch 5 %. "
        "Its Figure 10 has black pixels, and so does `roar-clean`.",
        "",
        "Made by `roarfast init study.toml --preset falsification`, `roarfast run study.toml --data-root FOLDER_OF_THE_NPZ_FILES --out "
        "RUN` and `python tools/falsification.py RUN`.",
        "",
    ]
    return "\n".join(lines)


def facts_of(results: StudyResults) -> dict[str, str]:
    """How much there was to compute."""
    begun, ended = results.meta.get("started"), results.meta.get("finished")
    clock = "" if not begun or not ended else f"{(_time(ended) - _time(begun)).total_seconds() / 60:.1f}"
    work = sum(results.meta.get("stage_seconds", {}).values())
    return {"cells": coverage(results), "work_minutes": f"{work / 60:.1f}", "clock_minutes": clock}


def _time(text: object) -> datetime:
    return datetime.fromisoformat(str(text))


def facts_text(facts: dict[str, str]) -> str:
    """The same in a sentence."""
    clock = (
        f", {facts['clock_minutes']} on the clock of two cores (expected at most 10)" if facts["clock_minutes"] else ""
    )
    return (
        f"What was run: the preset `falsification`, {facts['cells']}; {facts['work_minutes']} minutes of work{clock}."
    )


def write(out: Path, results: StudyResults, facts: dict[str, str]) -> list[Gate]:
    """Figure, gates and page from the records; returns the gates."""
    masks = oracle_cells(results)
    if not masks:
        raise StudyError("there is no finished cell of an oracle (center, edge, center+edge) in these results")
    found = list(gates(masks[0]))
    with tempfile.TemporaryDirectory() as folder:
        figure = oracle_figure(masks[0], Path(folder))
        (out / "figure.png").write_bytes((Path(folder) / f"{figure.name}.png").read_bytes())
    with (out / "gates.csv").open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["gate", "value", "low", "high", "expected", "holds"])
        rows.writerows([g.text, *(f"{v:.6g}" for v in (g.value, g.low, g.high)), g.expected, g.holds] for g in found)
    (out / "README.md").write_text(page(masks[0], found, facts_text(facts)))
    return found


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="a finished run of the preset falsification")
    parser.add_argument("--out", type=Path, default=Path("docs/results/falsification"))
    given = parser.parse_args(arguments)
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        records, facts = given.out / "records.csv", given.out / "facts.csv"
        if given.run is not None:
            results = load(given.run)
            results.to_csv(records)
            made = facts_of(results)
            with facts.open("w", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([list(made), list(made.values())])
        results = read_records(records.read_text(), {}, str(records))
        with facts.open(newline="") as file:
            found = write(given.out, results, next(csv.DictReader(file)))
    except (StudyError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for gate in found:
        print(
            f"{'holds' if gate.holds else 'DOES NOT HOLD'}: {gate.text}: {percent(gate.value)} (expected {gate.expected})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
