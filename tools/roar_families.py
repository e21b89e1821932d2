"""Which claims of 001 (Hooker et al.) hold in a finished run of docs/results/roar-001/study.toml.

python tools/roar_families.py RUN --out docs/results/roar-001

Writes records.csv (the accuracy of every cell), random.csv (every estimator against random pixels, rate by rate), spread.csv, claims.csv,
three figures and the page. Without RUN all of it is made again from records.csv. Intervals are 95 %, by the noise between trials that
all estimators of a rate show together (roarfast/report/discrimination.py).
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from roarfast.report.audit import ALPHA
from roarfast.report.compare import read_records
from roarfast.report.discrimination import (
    block,
    random_rows,
    random_tests,
    spread_difference,
    spread_rows,
    spreads,
)
from roarfast.report.families import FAMILIES, methods
from roarfast.report.figures.families import family_figures
from roarfast.report.grid import Panel, base_cell, panels, pretty
from roarfast.report.stats import Interval, mean_interval, t_quantile
from roarfast.report.tables import write_csv
from roarfast.report.text import percent, signed
from roarfast.study import load
from roarfast.study.errors import StudyError
from roarfast.study.records import StudyResults

COLUMNS = ("protocol", "dataset", "estimator", "postprocess", "order", "drop", "trial", "status", "accuracy")
GATE_RATE, GATE = 0.3, 0.03
QUARTER = 0.25
"""Of what SG-SQ gains: a gain of SG alone that is no more is called none."""


@dataclass(frozen=True)
class Comparison:
    """A difference in accuracy, and what a claim says of it: `">"`, `"<"` 0, or `"not <"` what is negligible.

    That something does not happen holds only where the interval excludes it.

    Attributes:
        what: In words.
        difference: With its interval.
        says: The claim.
        p: Where it was corrected (Holm).
        negligible: Of `"not <"`: the gain that is called none, at least 0.
    """

    what: str
    difference: Interval
    says: str
    p: float = 0.0
    negligible: float = 0.0

    @property
    def claimed(self) -> str:
        """In points: `"not < −1.2"`."""
        return f"{self.says} {signed(-self.negligible) if self.negligible else 0}"

    @property
    def verdict(self) -> str:
        """`"holds"`, `"fails"` or `"open"`: the interval holds 0, or there is none."""
        low, high = self.difference.low, self.difference.high
        if math.isnan(low) or self.p >= ALPHA:
            return "open"
        if self.says == "not <":
            return "fails" if high < 0 else "holds" if low >= -self.negligible else "open"
        right, wrong = (low > 0, high < 0) if self.says == ">" else (high < 0, low > 0)
        return "holds" if right else "fails" if wrong else "open"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and the comparisons that test it."""

    place: str
    text: str
    paper: str
    comparisons: list[Comparison]

    @property
    def verdict(self) -> str:
        """In a few words."""
        found = [c.verdict for c in self.comparisons]
        counts = ", ".join(
            f"{found.count(v)} {w}" for v, w in (("holds", "hold"), ("fails", "fail"), ("open", "open")) if v in found
        )
        if all(v == "holds" for v in found):
            return f"holds ({len(found)} of {len(found)})"
        if "holds" not in found and "fails" not in found:
            return f"cannot be told ({counts})"
        return f"{'holds in part' if 'holds' in found else 'does not hold'} ({counts} of {len(found)})"


def claims(by: dict[str, Panel]) -> Iterator[Claim]:
    """The claims of sections 4.2.1 to 4.2.5."""
    roar = by["roar"]
    known = methods(roar)

    def against(one: str, other: str, says: str) -> list[Comparison]:
        return [
            Comparison(
                f"{pretty(m[one])} − {pretty(m[other])}, t = {t:g}", block(roar, t).difference(m[one], m[other]), says
            )
            for m in known.values()
            if one in m and other in m
            for t in roar.main_drops
        ]

    def random(family: str, says: str) -> list[Comparison]:
        wanted = [m[family] for m in known.values() if family in m]
        return [
            Comparison(f"{pretty(r.estimator)} − random, t = {r.drop:g}", r.difference, says, r.p_holm)
            for r in random_tests(roar)
            if r.estimator in wanted
        ]

    yield Claim(
        "4.2.3",
        "raw estimators are worse than random pixels in ROAR",
        "at every t; 3.8 points or more at .9",
        random("raw", ">"),
    )
    yield Claim(
        "4.2.3", "SG-SQ is better than random pixels in ROAR", "10.8 % against 63.7 % at .9", random("SG-SQ", "<")
    )
    yield Claim(
        "4.2.3", "SG-SQ beats the raw estimator in ROAR", "57.0 points for grad at .9", against("SG-SQ", "raw", "<")
    )
    gains = {c.what.partition(" − ")[2]: max(0.0, -c.difference.mean) for c in against("SG-SQ", "raw", "<")}
    averaged = [
        replace(c, negligible=QUARTER * gains[c.what.partition(" − ")[2]]) for c in against("SG", "raw", "not <")
    ]
    yield Claim(
        "4.2.4",
        "SG alone is no better than raw grad and IG in ROAR",
        "worse by 2.5 and 2.6 at .9",
        [c for c in averaged if " − gb," not in c.what],
    )
    yield Claim(
        "4.2.4",
        "SG alone is better than raw guided backprop in ROAR",
        "at every t; 4.1 points at .9",
        [replace(c, says="<", negligible=0.0) for c in averaged if " − gb," in c.what],
    )
    yield Claim("4.2.4", "SG alone is worse than random pixels in ROAR", "at almost all t", random("SG", ">"))
    yield Claim(
        "4.2.5",
        "SQ alone is better than the raw estimator in ROAR",
        "5.5 points for grad, 8.4 for GB at .9",
        against("SQ", "raw", "<"),
    )
    yield Claim("4.2.5", "SQ alone is better than random pixels in ROAR", "slightly", random("SQ", "<"))
    if "no-retrain" in by:
        yield Claim(
            "Fig. 4", "without retraining accuracy falls further", "far higher degradation at every t", _retrained(by)
        )
    if "kar" in by:
        apart = spread_difference(spreads(roar), spreads(by["kar"]))
        yield Claim(
            "4.2.2",
            "KAR tells estimators less apart than ROAR",
            "59.6 points at .9 against 7.1 at .1",
            [
                Comparison("spread of ROAR − spread of KAR, mean over t", apart, ">"),
                Comparison("widest of ROAR − widest of KAR", _widest(by), ">"),
            ],
        )
        lowest = _lowest(by["kar"])
        if lowest:
            yield Claim("4.2.2", "GB and its SG-SQ are the worst of their families in KAR", "at every t", lowest)


def _retrained(by: dict[str, Panel]) -> list[Comparison]:
    """ROAR less no retraining, mean over the raw estimators, paired over trials."""
    roar, kept = by["roar"], by["no-retrain"]
    raw = [m["raw"] for m in methods(roar).values() if "raw" in m]
    found = []
    for t in roar.main_drops:
        one, other = block(roar, t), block(kept, t)
        rows = [one.values[one.names.index(e)] - other.values[other.names.index(e)] for e in raw]
        found.append(Comparison(f"ROAR − no retraining, raw, t = {t:g}", mean_interval(sum(rows) / len(rows)), ">"))
    return found


def _widest(by: dict[str, Panel]) -> Interval:
    """The spread at the rate where it is widest, as the paper compares them."""
    one, other = (max(spreads(by[name]), key=lambda s: s.value) for name in ("roar", "kar"))
    return spread_difference([one], [other])


def _lowest(kar: Panel) -> list[Comparison]:
    """Guided backprop, raw and as SG-SQ, less the mean of the other methods in KAR."""
    known, found = methods(kar), []
    for family in ("raw", "SG-SQ"):
        ones = {name: m[family] for name, m in known.items() if family in m}
        if "gb" in ones and len(ones) > 1:
            one = ones.pop("gb")
            for t in kar.main_drops:
                b = block(kar, t)
                others = sum(b.values[b.names.index(e)] for e in ones.values()) / len(ones)
                mean = float((b.values[b.names.index(one)] - others).mean())
                half = t_quantile(b.df) * b.sd * math.sqrt((1 + 1 / len(ones)) / b.trials) if b.df else math.nan
                what = f"{pretty(one)} − mean of {', '.join(map(pretty, ones.values()))}, t = {t:g}"
                found.append(Comparison(what, Interval(mean, mean - half, mean + half, b.sd, b.trials), "<"))
    return found


def gate(roar: Panel) -> tuple[Interval, bool]:
    """Signed grad above grad² at t = 0.3 in ROAR: expected 3 points or more."""
    found = block(roar, GATE_RATE).difference("grad", "grad^2")
    return found, found.mean >= GATE


def shown(found: Interval) -> str:
    """A difference in points with its interval."""
    bounds = "" if math.isnan(found.low) else f" [{signed(found.low)}, {signed(found.high)}]"
    return signed(found.mean) + bounds


def page(by: dict[str, Panel], made: Sequence[Claim], results: StudyResults, figures: Sequence[str]) -> str:
    """The page, its verdicts first."""
    roar, (difference, passed) = by["roar"], gate(by["roar"])
    base = base_cell(results, roar.dataset).accuracy()

    def group(*heads: str) -> str:
        return "; ".join(f"{c.text} ({c.place}): {c.verdict}" for c in made if c.verdict.split(" (")[0] in heads)

    expected = f"signed grad is {shown(difference)} points above grad² in ROAR at t = {GATE_RATE:g} (expected at least {100 * GATE:g})"
    lines = ["# Raw, averaged, squared: 001 on a subset of CIFAR-10", ""]
    failed = "; ".join(filter(None, [group("does not hold"), "" if passed else expected]))
    lines += [f"**Did not hold:** {failed or 'nothing'}.", ""]
    for title, heads in (
        ("Held in part", ["holds in part"]),
        ("Cannot be told", ["cannot be told"]),
        ("Held", ["holds"]),
    ):
        said = "; ".join(filter(None, [group(*heads), expected if passed and title == "Held" else ""]))
        lines += [f"**{title}:** {said}.", ""] if said else []
    counts = {v: sum(t.verdict == v for t in random_tests(roar)) for v in ("better", "worse", "open")}
    lines += [
        f"What was run: [study.toml](study.toml), {roar.n_trials} trials, base models of {percent(base.mean)} % accuracy; signed maps of "
        f"the predicted class, channels by their mean. Of {sum(counts.values())} tests of an estimator against random pixels in ROAR (Holm's "
        f"correction over the estimators of a rate), {counts['better']} found it better, {counts['worse']} worse, {counts['open']} neither.",
        "",
        "Made by `roarfast run docs/results/roar-001/study.toml --data-root FOLDER_OF_THE_NPZ_FILES --out RUN` and `python "
        "tools/roar_families.py RUN`.",
        "",
    ]
    lines += [line for name in figures for line in (f"![{name}]({name})", "")]
    for protocol, panel in by.items():
        lines += [
            f"## Accuracy, {panel.title}",
            "",
            "| estimator | " + " | ".join(f"t = {t:g}" for t in panel.main_drops) + " |",
        ]
        lines += ["|---" * (len(panel.main_drops) + 1) + "|"]
        marks = {
            (t.estimator, t.drop): {"better": " *", "worse": " ×", "open": ""}[t.verdict] for t in random_tests(panel)
        }
        for e in panel.estimators:
            cells = [
                percent(c.accuracy().mean) + marks.get((e, t), "") if (c := panel.get(e, "plain", t)) else "–"
                for t in panel.main_drops
            ]
            lines.append(f"| {pretty(e)} | " + " | ".join(cells) + " |")
        way = f"{panel.better} is better" + ("; what is kept, not removed" if protocol == "kar" else "")
        lines += [
            "",
            f"Percent, mean over trials; {way}. * better, × worse than random pixels (Holm's correction over the estimators of a rate).",
            "",
        ]
    lines += [
        "## How far estimators are apart",
        "",
        "| protocol | t | spread [95 % interval] | by chance | highest | lowest |",
        "|---|---|---|---|---|---|",
    ]
    for row in spread_rows(list(by.values())):
        bounds = "" if math.isnan(row["low"]) else f" [{percent(row['low'])}, {percent(row['high'])}]"
        lines.append(
            f"| {row['title']} | {row['drop']:g} | {percent(row['spread'])}{bounds} | {percent(row['chance'])} | {pretty(row['highest'])} | "
            f"{pretty(row['lowest'])} |"
        )
    lines += [
        "",
        "Highest less lowest accuracy of the twelve estimators, in points, and what twelve equal ones would show by noise alone.",
        "",
    ]
    lines += [
        "## Claims",
        "",
        "| claim | in the paper | comparison | points [95 % interval] | claimed | |",
        "|---|---|---|---|---|---|",
    ]
    for claim in made:
        for j, one in enumerate(claim.comparisons):
            first = (f"{claim.text} ({claim.place}): **{claim.verdict}**", claim.paper) if j == 0 else ("", "")
            lines.append(
                f"| {first[0]} | {first[1]} | {one.what} | {shown(one.difference)} | {one.claimed} | {one.verdict} |"
            )
    return "\n".join([*lines, ""])


def write(out: Path, results: StudyResults) -> list[Claim]:
    """Everything but records.csv, from the records."""
    by = {p.protocol: p for p in panels(results) if p.order == "morf"}
    if "roar" not in by or len(methods(by["roar"])) < 2 or "rand" not in by["roar"].estimators:
        have = (
            ", ".join(f"{name} of {', '.join(panel.estimators)}" for name, panel in by.items())
            or "nothing that is finished"
        )
        raise StudyError(
            f"there must be ROAR cells of rand and of two methods or more, each in two of {', '.join(FAMILIES)}; these results have {have}"
        )
    missing = {e for e in ("grad", "grad^2") if by["roar"].get(e, "plain", GATE_RATE) is None}
    if missing:
        raise StudyError(f"no finished ROAR cell of {' and '.join(sorted(missing))} at t = {GATE_RATE:g}")
    made = list(claims(by))
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for figure in family_figures(list(by.values()), Path(folder)):
            name = f"{figure.name.partition('families-')[2]}.png"
            (out / name).write_bytes((Path(folder) / f"{figure.name}.png").read_bytes())
            figures.append(name)
    write_csv(out / "random.csv", random_rows(list(by.values())))
    write_csv(out / "spread.csv", spread_rows(list(by.values())))
    found, passed = gate(by["roar"])
    rows = [
        {
            "place": c.place,
            "claim": c.text,
            "verdict": c.verdict,
            "comparison": one.what,
            "difference": one.difference.mean,
            "low": one.difference.low,
            "high": one.difference.high,
            "says": one.claimed,
            "found": one.verdict,
        }
        for c in made
        for one in c.comparisons
    ]
    rows.append(
        {
            "place": "4.2.5",
            "claim": "signed grad at least 3 points above grad^2 in ROAR at 0.3",
            "verdict": "holds" if passed else "does not hold",
            "comparison": "grad − grad², t = 0.3",
            "difference": found.mean,
            "low": found.low,
            "high": found.high,
            "says": ">= 0.03",
            "found": "holds" if passed else "fails",
        }
    )
    write_csv(out / "claims.csv", rows)
    (out / "README.md").write_text(page(by, made, results, figures))
    return made


def write_records(results: StudyResults, path: Path) -> None:
    """The accuracy of every finished cell, and nothing else of it."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        rows.writerows([getattr(r, name) for name in COLUMNS] for r in results.records if r.status == "done")


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="a run of docs/results/roar-001/study.toml")
    parser.add_argument("--out", type=Path, default=Path("docs/results/roar-001"))
    given = parser.parse_args(arguments)
    records = given.out / "records.csv"
    try:
        given.out.mkdir(parents=True, exist_ok=True)
        if given.run is not None:
            write_records(load(given.run), records)
        made = write(given.out, read_records(records.read_text(), {}, str(records)))
    except (StudyError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for claim in made:
        print(f"{claim.place}: {claim.text}: {claim.verdict}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
