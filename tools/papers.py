"""docs/papers.md: one row per claim of the papers and data set, with the paper's number, ours and a verdict. `make papers`.

Every number of ours is read from a committed summary under docs/results (tables of a report, of a tool, of `roarfast validate
--json`), so the page can be made again in a second; `make papers-run` prints the commands that make the summaries again.
`--check` says whether the page is what this script writes; a test calls it. Rows that nobody has run yet say so.

To add a claim: a `Claim` in one of the lists below. What it says of us is a function of `Results`, so that a new run changes the
page and cannot contradict it.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS, PAGE = ROOT / "docs" / "results", ROOT / "docs" / "papers.md"
BEGIN, END = "<!-- claims: tools/papers.py -->", "<!-- end of claims -->"
HOLDS, PARTLY, FAILS, OPEN, NOT_RUN = "holds", "holds in part", "does not hold", "cannot be told", "not run"
Row = dict[str, str]


class Results:
    """The committed summaries."""

    @staticmethod
    @cache
    def table(name: str) -> tuple[Row, ...]:
        """The rows of a CSV file under docs/results."""
        with (RESULTS / name).open(newline="") as file:
            return tuple(csv.DictReader(file))

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
class Claim:
    """A claim of a paper on some data.

    Attributes:
        where: Where it stands: "Fig. 4".
        text: The claim.
        data: What it was tried on, here.
        theirs: The paper's number, with its data.
        command: What makes our number again.
        here: Our number with its interval, and the verdict.
    """

    where: str
    text: str
    data: str
    theirs: str
    command: str
    here: Here


def not_run(why: str) -> Here:
    """For claims that nobody has tried here."""
    return lambda results: (why, NOT_RUN)


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def judge(lower: list[Row], higher: list[Row]) -> str:
    """Whether accuracies are below others, pair by pair: clearly so where their intervals over trials do not meet."""
    pairs = list(zip(lower, higher))
    below = sum(float(a["accuracy_high"]) < float(b["accuracy_low"]) for a, b in pairs)
    above = sum(float(a["accuracy_low"]) > float(b["accuracy_high"]) for a, b in pairs)
    if above:
        return PARTLY if below else FAILS
    return HOLDS if below == len(pairs) else PARTLY if below else OPEN


# 000: on the pitfalls of ROAR

CIFAR, TABLES = "CIFAR-10, 10,000 + 2,000", "cifar10-subset/tables"
STUDY = "roarfast run docs/results/cifar10-subset/study.toml"


def smoothing(protocol: str, data: str = TABLES) -> Here:
    """Does smoothing lower the accuracy? Held if the intervals of both filters are below 0."""

    def here(results: Results) -> tuple[str, str]:
        found = results.rows(f"{data}/counts.csv", protocol=protocol, order="morf", group="estimators")
        lower, cells = (sum(int(row[field]) for row in found) for field in ("lower", "cells"))
        means = ", ".join(
            f"{row['postprocess']} {100 * float(row['mean_difference']):.1f} points "
            f"[{100 * float(row['mean_difference_low']):.1f}, {100 * float(row['mean_difference_high']):.1f}]"
            for row in found
        )
        below = sum(float(row["mean_difference_high"]) < 0 for row in found)
        return f"falls in {lower} of {cells}; {means}", HOLDS if below == len(found) else PARTLY if below else FAILS

    return here


def smoothness(protocol: str) -> Here:
    """R² of accuracy on total variation over the plain estimators."""

    def here(results: Results) -> tuple[str, str]:
        fits = results.rows(f"{TABLES}/fits.csv", protocol=protocol, order="morf", x="tv_mask", points="estimators")
        shown = ", ".join(f"{float(f['r2']):.2f} at {f['drop']} (p = {float(f['p']):.2g})" for f in fits)
        clear = sum(float(f["p"]) < 0.05 and float(f["slope"]) > 0 for f in fits)
        return f"R² = {shown}", HOLDS if clear == len(fits) else PARTLY if clear else FAILS

    return here


def grad_cam(results: Results) -> tuple[str, str]:
    """Is the effect of smoothing on Grad-CAM unclear in every cell?"""
    found = results.rows(f"{TABLES}/differences.csv", protocol="roar", order="morf", estimator="gc^2")
    signs = [float(row["difference_low"]) <= 0 <= float(row["difference_high"]) for row in found]
    shown = ", ".join(f"{100 * float(row['difference']):+.1f}" for row in found)
    return f"{shown} points; {sum(signs)} of {len(found)} intervals hold 0", HOLDS if all(signs) else PARTLY


def roar_cells(results: Results, estimator: str, rates: tuple[str, ...]) -> list[Row]:
    """The plain ROAR cells of an estimator."""
    where = {"protocol": "roar", "order": "morf", "postprocess": "plain", "estimator": estimator}
    return [results.rows(f"{TABLES}/cells.csv", drop=rate, **where)[0] for rate in rates]


def blocks(results: Results) -> tuple[str, str]:
    """Random blocks against random pixels at the rates of Table 1."""
    pixels, block = (roar_cells(results, name, ("0.1", "0.3", "0.5", "0.7", "0.9")) for name in ("rand", "block"))
    parts = []
    for name, rows in (("pixels", pixels), ("block", block)):
        parts.append(f"{name} " + ", ".join(format(float(row["accuracy"]), ".3f") for row in rows))
    shown = "; ".join(parts)
    return shown, judge(block, pixels)


NO_SVHN, NO_CUB = not_run("preset `svhn-subset` exists"), not_run("no preset for two cores yet")
PITFALLS = [
    Claim("Fig. 4", "agnostic smoothing lowers the ROAR accuracy", CIFAR, "most cells, no number", STUDY, smoothing("roar")),
    Claim("Fig. 4", "… of SVHN", "SVHN", "most cells", "roarfast init --preset svhn-subset", NO_SVHN),
    Claim("Fig. 4", "… of CUB-200, where it does most", "CUB-200", "most cells", "", NO_CUB),
    Claim("Fig. 5", "agnostic smoothing lowers the ROAD accuracy", CIFAR, "most cells, no number", STUDY, smoothing("road")),
    Claim("Fig. 7", "smoother masks, lower ROAR accuracy (we: mask total variation)", CIFAR, "R² = 0.83 to 0.96 over three data sets", STUDY, smoothness("roar")),
    Claim("5", "the same for ROAD", CIFAR, "no number", STUDY, smoothness("road")),
    Claim("4.2", "what smoothing does to Grad-CAM² is inconclusive", CIFAR, "no number", STUDY, grad_cam),
    Claim("Table 1", "a random block does more damage than random pixels (ROAR, rates 0.1, 0.3, 0.5, 0.7, 0.9)", CIFAR, "CUB-200: pixels 0.756, 0.727, 0.710, 0.677, 0.620; block 0.659, 0.438, 0.282, 0.171, 0.053", STUDY, blocks),
    Claim("Table 1", "… on CUB-200", "CUB-200", "as above", "", NO_CUB),
]  # fmt: skip


# 001: ROAR


def against_random(names: dict[str, str]) -> Here:
    """Is each estimator's ROAR accuracy below that of random pixels, at 0.3 and 0.5?"""

    def here(results: Results) -> tuple[str, str]:
        rates = ("0.3", "0.5")
        random = roar_cells(results, "rand", rates)
        found = {text: roar_cells(results, name, rates) for name, text in names.items()}
        shown = "; ".join(
            f"{rate}: random {percent(float(random[i]['accuracy']))}, "
            + ", ".join(f"{text} {percent(float(rows[i]['accuracy']))}" for text, rows in found.items())
            for i, rate in enumerate(rates)
        )
        return shown, judge([row for rows in found.values() for row in rows], random * len(found))

    return here


def little_left(results: Results) -> tuple[str, str]:
    """The accuracy with 90 % of the pixels gone at random, beside that with none."""
    base = [float(row["accuracy"]) for row in results.rows(f"{TABLES}/records.csv", protocol="base")]
    whole, left = sum(base) / len(base), float(roar_cells(results, "rand", ("0.9",))[0]["accuracy"])
    return f"{percent(left)}, with nothing removed {percent(whole)}", HOLDS if left > whole / 2 else FAILS


RAW = not_run("signed estimators were not run")
ROAR = [
    Claim("Fig. 5", "raw gradient, guided backprop and IG are no better than random pixels", CIFAR, "at 0.9: 67.5 and 67.8 % against 63.7 %", "", RAW),
    Claim("Fig. 5", "squared and averaged (SG-SQ) they are far better than random", CIFAR, "at 0.9: 10.8 % (gradient), 17 % (GB) against 63.7 %", STUDY, against_random({"sg-sq": "SG-SQ", "vg": "VarGrad"})),
    Claim("Fig. 6", "squaring alone makes an estimator slightly better than random", CIFAR, "no number", STUDY, against_random({"grad^2": "Grad²", "ig^2": "IG²"})),
    Claim("Fig. 5, right", "KAR spreads estimators less than ROAR", CIFAR, "no number", "", not_run("no KAR cells in our studies")),
    Claim("4.2.1", "after removing 90 % at random a net still trains to a high accuracy", CIFAR, "ImageNet: 63.7 %", STUDY, little_left),
    Claim("all", "the grid of ImageNet", "ImageNet", "Fig. 4 to 6", "roarfast init --preset roar-imagenet", not_run("hundreds of trainings of ResNet-50 need GPUs")),
]  # fmt: skip


# 002 and 004: the claims of tools/score_claims.py, and what else there is

SCORES = "roarfast run docs/results/scores-cifar10/study.toml; python tools/score_claims.py"
SCORED = "CIFAR-10, 10,000 + 1,000"
SPOKEN = {"holds": HOLDS, "does not hold": FAILS, "partly": PARTLY, "cannot be told here": OPEN}


def scored(paper: str) -> Iterator[Claim]:
    """One row per claim of a paper in docs/results/scores-cifar10/claims.csv."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in Results.table("scores-cifar10/claims.csv"):
        if row["paper"].startswith(paper):
            found.setdefault((row["paper"], row["claim"]), []).append(row)
    for (source, text), group in found.items():

        def here(_: Results, group: list[Row] = group) -> tuple[str, str]:
            shown = "; ".join(
                f"{row['comparison']} {float(row['difference']):.3f} [{float(row['low']):.3f}, {float(row['high']):.3f}]"
                for row in group
            )
            return shown, SPOKEN[group[0]["verdict"].partition(":")[0]]

        where = source.partition(", ")[2] or "text"
        yield Claim(where, text, SCORED, "no number", SCORES, here)


def separation(results: Results) -> tuple[str, str]:
    """The means of our Table 1 of 002, in its order."""
    scores: dict[str, list[float]] = {}
    for row in results.table("scores-cifar10/separation.csv"):
        scores.setdefault(row["score"].partition("(")[0], []).append(float(row["distance"]))
    means = {name: sum(values) / len(values) for name, values in scores.items()}
    ours, others = min(means["completeness"], means["soundness"]), max(means["deletion"], means["road"])
    return ", ".join(f"{name} {value:.3f}" for name, value in means.items()), HOLDS if ours > others else FAILS


def enhanced(results: Results) -> tuple[str, str]:
    """Untrained nets whose images are moved until they are right."""
    found = [row for row in results.markdown("enhancement/README.md", "net and units") if row["epsilon"] == "0.3"]
    shown = "; ".join(f"{row['net and units']}: {row['before']} → {row['after']}" for row in found)
    high = all(float(row["after"].rstrip("%")) >= 60 for row in found)
    return shown, HOLDS if high else FAILS


def flipped(results: Results) -> tuple[str, str]:
    """Random pixels against Grad-CAM at 0.3, by fill."""
    found = [row for row in results.markdown("reference-flipping/README.md", "fill") if row["rate"] == "0.3"]
    shown = "; ".join(f"{row['fill']} {row['accuracy']}" for row in found)
    return shown, HOLDS if all(row["claim (t = 0.3 only)"].startswith("holds") for row in found) else PARTLY


def inside(results: Results) -> tuple[str, str]:
    """Random pixels of Grad-CAM's top N."""
    found = [r for r in results.markdown("reference-flipping/README.md", "N") if not r["n"].startswith("1.00")]
    both = sum(r["minus Grad-CAM"].startswith("-") and r["minus random"].startswith("-") for r in found)
    return f"below both in {both} of {len(found)} (N, n)", HOLDS if both == len(found) else PARTLY


def checked(paper: str) -> Iterator[Claim]:
    """The checks of `roarfast validate` that belong to a paper."""
    for row in Results.checks():
        if not row["source"].startswith(paper):
            continue
        verdict = {"holds": HOLDS, "differs": "differs from the print", "failed": FAILS}[row["verdict"]]
        where = row["source"].partition(", ")[2] or "text"
        found = (row["here"], verdict)

        def here(_: Results, found: tuple[str, str] = found) -> tuple[str, str]:
            return found

        yield Claim(where, row["claim"], "closed form", row["paper"], "roarfast validate", here)


SOUNDNESS = [
    Claim("Fig. 1", "two masks that remove the same information retrain to different accuracies", CIFAR, "0.60 and 0.88 retrained, 0.24 and 0.29 on the original model", "", not_run("oracle masks exist; no preset yet")),
    Claim("Table 1", "completeness and soundness tell modified maps apart, deletion and ROAD hardly (Hausdorff distance of curves)", "CIFAR-10, 200 test images", "0.503, 0.183, 0.019, 0.014 (ImageNet)", SCORES, separation),
    Claim("Fig. 8, 9", "the same on ImageNet", "ImageNet photos", "figures", "roarfast init --preset soco-imagenet", not_run("the preset has not been run")),
]  # fmt: skip
UNIFIED = [
    Claim("Table 2", "images moved a little make untrained nets right", "CIFAR-10, 300 and 60 test images", "ImageNet: AlexNet 0.1 → 64.7 %, VGG-16 0.1 → 100.0 %, MnasNet 0.1 → 64.6 %", "python tools/enhancement.py --images 300 --convnet-images 60", enhanced),
    Claim("Table 2", "… with these nets", "ImageNet photos", "as above", "", not_run("not tried at 224²")),
    Claim("Fig. 1, 4", "random pixels in the mean colour do more damage than Grad-CAM's, imputed ones less (random − Grad-CAM, accuracy at 0.3)", "CIFAR-10, 300 test images", "VGG-16, ImageNet: a figure", "python tools/reference_flipping.py --images 300", flipped),
    Claim("Fig. 6", "random pixels of Grad-CAM's top N do more damage than Grad-CAM and than random pixels", "CIFAR-10, 300 test images", "a figure", "python tools/reference_flipping.py --images 300", inside),
]  # fmt: skip


def papers() -> dict[str, list[Claim]]:
    """Claims by paper."""
    return {
        "On Pitfalls of RemOve-And-Retrain": [*PITFALLS, *scored("000"), *checked("000")],
        "A Benchmark for Interpretability Methods (ROAR)": ROAR,
        "A Dual-Perspective Approach (soundness and completeness)": [*SOUNDNESS, *scored("002"), *checked("002")],
        "A Unified Study of Explanation Evaluation Metrics": [*UNIFIED, *scored("004"), *checked("004")],
    }


def cell(text: str) -> str:
    """Text in a Markdown table."""
    return text.replace("|", "\\|")


def page_part() -> str:
    """What stands between the marks of the page."""
    results, lines = Results(), []
    counts: dict[str, int] = {}
    failed = []
    numbers: dict[str, int] = {}  # of commands, which are too long for a column
    for title, claims in papers().items():
        lines += [f"### {title}", "", "| | claim | data | paper | here | | by |", "|---|---|---|---|---|---|---|"]
        for claim in claims:
            found, verdict = claim.here(results)
            counts[verdict] = counts.get(verdict, 0) + 1
            if verdict == FAILS:
                failed.append(f"{claim.text} ({title.partition(' (')[0]}, {claim.where}; {claim.data})")
            number = str(numbers.setdefault(claim.command, len(numbers) + 1)) if claim.command else ""
            fields = [claim.where, claim.text, claim.data, claim.theirs, found, f"**{verdict}**", number]
            lines.append("| " + " | ".join(cell(field) for field in fields) + " |")
        lines.append("")
    lines += ["### Commands", "", *(f"{number}. `{command}`" for command, number in numbers.items())]
    tally = ", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items(), key=lambda item: -item[1]))
    intro = f"Of {sum(counts.values())} rows: {tally}. **What did not hold:** {'; '.join(failed) or 'nothing'}."
    return "\n".join([intro, "", *lines]).rstrip() + "\n"


def whole_page() -> str:
    """The page with the part between the marks made anew."""
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{page_part()}{END}{after}"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit with 1 if the page is not what this writes")
    parser.add_argument("--commands", action="store_true", help="print the commands that make the summaries again")
    args = parser.parse_args()
    if args.commands:
        print("\n".join(dict.fromkeys(c.command for claims in papers().values() for c in claims if c.command)))
        return
    page = whole_page()
    if args.check:
        sys.exit(0 if page == PAGE.read_text() else "docs/papers.md is not what its summaries give: make papers")
    PAGE.write_text(page)
    print(PAGE)


if __name__ == "__main__":
    main()
