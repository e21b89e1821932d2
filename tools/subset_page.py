"""The page of a study of the questions of Song et al. (Figures 4 to 7 and 9, Table 1), from the tables that `roarfast report --export` wrote.

python tools/subset_page.py docs/results/svhn-subset

What did not hold comes first. Figures that the page does not show, and columns of records.csv that say nothing of the result, are
removed: the report makes them again.
"""

from __future__ import annotations

import argparse
import csv
import math
from dataclasses import dataclass
from pathlib import Path

from pages import Row, opening, read
from scipy import stats

PROTOCOLS = {"roar": ("ROAR", "Fig. 4"), "road": ("ROAD", "Fig. 5")}
LEAST_R2 = 0.83
"""Of accuracy on total variation, over the paper's three data sets."""
BASE_GATE = 0.8
"""What the base models should reach, set before the study."""
COLUMNS = (
    "protocol",
    "estimator",
    "postprocess",
    "order",
    "drop",
    "trial",
    "accuracy",
    "true_class_probability",
    "cross_entropy",
    "removed_fraction",
    "tv_mask",
)
"""What is kept of records.csv."""
NOT_LEARNT = 0.15
"""Of ten classes: an accuracy that a net has before it has learnt anything."""
FIGURES = {"arrows": "from plain to post-processed", "scatter": "accuracy against total variation (Fig. 7)"}


@dataclass(frozen=True)
class Fit:
    """Accuracy on the masks' total variation at one rate: R² and its interval (Fisher's z)."""

    protocol: str
    drop: str
    r: float
    n: int
    p: float

    @classmethod
    def of(cls, row: Row) -> Fit:
        """That of a row of fits.csv."""
        r = math.copysign(math.sqrt(float(row["r2"])), float(row["slope"]))
        return cls(row["protocol"], row["drop"], r, int(row["n"]), float(row["p"]))

    @property
    def bounds(self) -> tuple[float, float]:
        """Of r."""
        half = float(stats.norm.ppf(0.975)) / math.sqrt(self.n - 3)
        return math.tanh(math.atanh(self.r) - half), math.tanh(math.atanh(self.r) + half)

    @property
    def text(self) -> str:
        """In words."""
        low, high = self.bounds
        return (
            f"R² = {self.r**2:.2f} at {self.drop} (r = {self.r:+.2f} [{low:+.2f}, {high:+.2f}], {self.n} estimators, "
            f"p = {self.p:.2g})"
        )


class Study:
    """The tables of a study, and what they say."""

    def __init__(self, folder: Path) -> None:
        tables = folder / "tables"
        self.counts = [r for r in read(tables / "counts.csv") if r["group"] == "estimators" and r["order"] == "morf"]
        fits = [
            r
            for r in read(tables / "fits.csv")
            if (r["order"], r["x"], r["points"]) == ("morf", "tv_mask", "estimators")
        ]
        self.fits = [Fit.of(row) for row in fits if int(row["n"]) > 3]
        self.cells = [r for r in read(tables / "cells.csv") if r["order"] == "morf"]
        self.differences = [r for r in read(tables / "differences.csv") if r["order"] == "morf"]
        self.agreement = [r for r in read(tables / "agreement.csv") if r["order"] == "morf"]
        self.random = [r for r in read(tables / "random.csv") if (r["protocol"], r["order"]) == ("roar", "morf")]
        self.base = [float(r["accuracy"]) for r in read(tables / "records.csv") if r["protocol"] == "base"]

    def claims(self) -> dict[bool | None, list[str]]:
        """What did not hold (False), what cannot be told (None) and what held (True)."""
        lists: dict[bool | None, list[str]] = {False: [], None: [], True: []}
        mean = sum(self.base) / len(self.base)
        lists[mean >= BASE_GATE].append(
            f"base models reach {100 * BASE_GATE:.0f} %: {', '.join(f'{100 * a:.1f} %' for a in self.base)}"
        )
        for row in self.counts:
            if row["protocol"] in PROTOCOLS:
                name, place = PROTOCOLS[row["protocol"]]
                low, high = float(row["mean_difference_low"]), float(row["mean_difference_high"])
                lists[True if high < 0 else False if low > 0 else None].append(
                    f"{row['postprocess']} lowers the {name} accuracy ({place}): {interval(row, 'mean_difference')} points "
                    f"over trials, falls in {row['lower']} of {row['cells']} cells"
                )
        for fit in self.fits:
            if fit.protocol in PROTOCOLS:
                place = " (Fig. 7)" if fit.protocol == "roar" else ""
                lists[None if fit.p >= 0.05 else fit.r > 0].append(
                    f"smoother masks, lower {PROTOCOLS[fit.protocol][0]} accuracy{place}: {fit.text}"
                )
                if max(fit.bounds) ** 2 < LEAST_R2 and fit.protocol == "roar":
                    lists[False].append(
                        f"the paper's R² of {LEAST_R2} or more (Fig. 7), ROAR at {fit.drop}: {fit.text}"
                    )
        for protocol, (name, _) in PROTOCOLS.items():
            own = [
                r
                for r in self.differences
                if (r["protocol"], r["estimator"]) == (protocol, "gc^2") and int(r["pairs"]) > 1
            ]
            clear = [r for r in own if float(r["difference_low"]) > 0 or float(r["difference_high"]) < 0]
            if own:
                but = ", ".join(f"{r['postprocess']} at {r['drop']} {interval(r, 'difference')}" for r in clear)
                lists[not clear].append(
                    f"what smoothing does to GC² is inconclusive (4.2), {name}: {len(own) - len(clear)} of {len(own)} intervals "
                    "hold 0" + (f"; not {but}" if but else "")
                )
        for drop, pixels, block in self.baselines("roar"):
            gap = 100 * (float(block["accuracy"]) - float(pixels["accuracy"]))
            bounds = block["accuracy_high"], pixels["accuracy_low"]
            apart = all(bounds) and float(bounds[0]) < float(bounds[1])  # none of one trial
            text = f"a random block does more damage than random pixels at {drop} (Table 1): {gap:+.1f} points"
            if float(block["accuracy"]) < NOT_LEARNT:  # pixels that are gone, or a net that had no time?
                lists[None].append(f"{text}, but without the block the net learnt nothing in the epochs that it had")
            else:
                lists[True if apart else False if gap > 0 else None].append(text)
        for drop in dict.fromkeys(r["drop"] for r in self.random if int(r["trials"]) > 1):
            said = [r["verdict"] for r in self.random if r["drop"] == drop]
            better, worse = said.count("better"), said.count("worse")
            lists[True if better == len(said) else False if worse else None].append(
                f"estimators do more damage than random pixels at {drop} (ROAR, Holm's correction over the estimators): "
                f"{better} of {len(said)} do, {worse} do less"
            )
        if stuck := [r for r in self.cells if r["protocol"] == "roar" and float(r["accuracy"]) < NOT_LEARNT]:
            named = dict.fromkeys(f"{r['estimator']} {r['postprocess']} at {r['drop']}" for r in stuck)
            lists[False].append(f"every retrained net learns: these end at chance, {', '.join(named)}")
        return lists

    def baselines(self, protocol: str) -> list[tuple[str, Row, Row]]:
        """Rates with random pixels and a random block."""
        own = {
            (r["estimator"], r["drop"]): r
            for r in self.cells
            if (r["protocol"], r["postprocess"]) == (protocol, "plain")
        }
        drops = sorted({drop for _, drop in own}, key=float)
        return [(d, own["rand", d], own["block", d]) for d in drops if ("rand", d) in own and ("block", d) in own]

    def accuracies(self, protocol: str) -> list[str]:
        """A table: one row per estimator and post-processing, one column per rate."""
        own = [r for r in self.cells if r["protocol"] == protocol]
        drops = sorted({r["drop"] for r in own}, key=float)
        lines = [
            f"| {PROTOCOLS[protocol][0]} | k | "
            + " | ".join(f"{d}, accuracy (%) | total variation" for d in drops)
            + " |",
            "|---" * (2 + 2 * len(drops)) + "|",
        ]
        for estimator, k in dict.fromkeys((r["estimator"], r["postprocess"]) for r in own):
            found = {r["drop"]: r for r in own if (r["estimator"], r["postprocess"]) == (estimator, k)}
            columns = [
                f"{100 * float(found[d]['accuracy']):.1f} | {float(found[d]['tv_mask']):.3f}" if d in found else "– | –"
                for d in drops
            ]
            lines.append(f"| {estimator} | {k} | " + " | ".join(columns) + " |")
        return lines

    def rankings(self) -> list[str]:
        """Does the ranking survive the filters?"""
        return [
            f"- {PROTOCOLS[r['protocol']][0]}, {r['drop']}, {r['postprocess']}: τ = {float(r['kendall_tau']):.2f}"
            + (
                f"; between trials {float(r['kendall_tau_between_trials']):.2f}"
                if r["kendall_tau_between_trials"] not in ("", "nan")
                else ""
            )
            + f"; best {r['best_plain']}, then {r['best_after']}"
            for r in self.agreement
            if r["protocol"] in PROTOCOLS
        ]


def interval(row: Row, name: str) -> str:
    """A difference in points with its interval."""
    return "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * float(row[f"{name}{end}"]) for end in ("", "_low", "_high")))


def page(folder: Path, title: str, data: str) -> str:
    """The page; every number is from the tables beside it."""
    study = Study(folder)
    lines = [
        f"# The questions of Song et al. on {title}",
        "",
        *opening(study.claims()),
        f"{data} {len(study.base)} base models, each with its own maps and retrained models; [study.toml](study.toml). Intervals "
        "are 95 %: of means over the trials (Student's t), of correlations over the plain estimators (Fisher's z).",
        "",
    ]
    for protocol, (name, _) in PROTOCOLS.items():
        for kind, text in FIGURES.items():
            for path in sorted((folder / "figures").glob(f"*-{protocol}-morf-{kind}.png")):
                lines += [f"![{name}: {text}](figures/{path.name})", ""]
    lines += [
        "## Rankings before and after",
        "",
        "Kendall's τ of the plain ranking with the filtered one (Fig. 9).",
        "",
    ]
    lines += [*study.rankings(), ""]
    for protocol in PROTOCOLS:
        lines += [f"## {PROTOCOLS[protocol][0]}", "", *study.accuracies(protocol), ""]
    lines += [
        "## Made by",
        "",
        f"`roarfast run docs/results/{folder.name}/study.toml --data-root FOLDER_OF_THE_NPZ_FILES --out RUN`, `roarfast report RUN "
        f"--export docs/results/{folder.name}`, `python tools/subset_page.py docs/results/{folder.name}`.",
    ]
    return "\n".join(lines) + "\n"


def drop_unused(folder: Path, text: str) -> None:
    """Removes the figures that the page does not show."""
    for path in (folder / "figures").iterdir():
        if f"figures/{path.name}" not in text:
            path.unlink()


def shorten(path: Path) -> None:
    """records.csv without keys, versions and times."""
    rows = read(path)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the report was exported to")
    parser.add_argument("--title", default="SVHN", help="the data set")
    parser.add_argument("--data", default="5,000 + 2,000 images.", help="a sentence on what was used of it")
    arguments = parser.parse_args()
    text = page(arguments.folder, arguments.title, arguments.data)
    (arguments.folder / "README.md").write_text(text)
    drop_unused(arguments.folder, text)
    shorten(arguments.folder / "tables" / "records.csv")


if __name__ == "__main__":
    main()
