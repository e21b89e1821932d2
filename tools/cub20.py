"""The page of the study of birds (preset cub20): Table 1 of Song et al., and what smoothing does to ROAR and ROAD.

roarfast run docs/results/cub20/study.toml --data-root FOLDER_OF_THE_NPZ_FILE --workers 2 --out runs/cub20
python tools/cub20.py runs/cub20    (tables from the run folder, then page and figures)
python tools/cub20.py               (page and figures again from the tables)

Nothing that shows an image is written.
"""

from __future__ import annotations

import argparse
from itertools import product
from pathlib import Path

import numpy as np
from pages import Row, read, write_rows
from scipy import stats

from roarfast.study.results import load

RATES = (0.1, 0.3, 0.5, 0.7, 0.9)
PAPER = {
    "rand": dict(zip(RATES, (0.7556, 0.7269, 0.7099, 0.6772, 0.6195))),
    "block": dict(zip(RATES, (0.6586, 0.4384, 0.2815, 0.1705, 0.0533))),
}
"""Table 1: ROAR on CUB-200."""
PROTOCOLS = ("roar", "road")
FILTERS = ("max(3)", "gaussian(1)")
COLUMNS = (
    "protocol",
    "estimator",
    "postprocess",
    "order",
    "drop",
    "trial",
    "accuracy",
    "true_class_probability",
    "tv_mask",
)
SUMMARY = ("what", "protocol", "postprocess", "drop", "value", "low", "high", "cells", "fallen", "p")


def interval(accuracy: float, images: int) -> tuple[float, float]:
    """95 % interval of an accuracy over test images (Wilson)."""
    found = stats.binomtest(round(accuracy * images), images).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


def difference(a: float, b: float, images: int) -> tuple[float, float]:
    """95 % interval of a - b (Newcombe) as if of two sets of images; they are the same, so it is too wide if anything."""
    (la, ua), (lb, ub) = interval(a, images), interval(b, images)
    return a - b - float(np.hypot(a - la, ub - b)), a - b + float(np.hypot(ua - a, b - lb))


def mean_interval(values: list[float]) -> tuple[float, float, float]:
    """Mean and its 95 % interval (Student's t); none of a single value."""
    mean = float(np.mean(values))
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)) if len(values) > 1 else float("nan")
    return mean, mean - half, mean + half


class Cells:
    """Accuracies and total variations of masks by cell, means over trials."""

    def __init__(self, records: list[Row]) -> None:
        self._rows: dict[tuple[str, ...], list[Row]] = {}
        for row in records:
            key = (row["protocol"], row["estimator"], row["postprocess"], f"{float(row['drop']):g}")
            self._rows.setdefault(key, []).append(row)

    def get(self, protocol: str, estimator: str, postprocess: str, drop: float, what: str = "accuracy") -> float | None:
        """The mean over trials; None where the cell was not run."""
        rows = self._rows.get((protocol, estimator, postprocess, f"{drop:g}"))
        return float(np.mean([float(row[what]) for row in rows])) if rows else None

    def estimators(self) -> list[str]:
        """Those that look at the image or the model, in the order of the records."""
        return [e for e in dict.fromkeys(key[1] for key in self._rows) if e not in ("none", *PAPER)]


def table1(cells: Cells, images: int) -> list[dict[str, object]]:
    """Random pixels and blocks beside the paper's numbers; the gap is block minus pixels."""
    found = []
    for drop in RATES:
        pixels, block = (cells.get("roar", name, "plain", drop) for name in ("rand", "block"))
        if pixels is None or block is None:
            continue
        low, high = difference(block, pixels, images)
        gap = {"gap": block - pixels, "gap_low": low, "gap_high": high}
        for name, accuracy in (("rand", pixels), ("block", block)):
            edges = dict(zip(("low", "high"), interval(accuracy, images)))
            row = {"removed": name, "drop": drop, "paper": PAPER[name][drop], "accuracy": accuracy, **edges, **gap}
            found.append(row | {"paper_gap": PAPER["block"][drop] - PAPER["rand"][drop], "images": images})
    return found


def smoothing(cells: Cells, images: int) -> list[dict[str, object]]:
    """Filtered minus plain, per protocol, estimator, filter and rate."""
    found = []
    for protocol, estimator, postprocess, drop in product(PROTOCOLS, cells.estimators(), FILTERS, RATES):
        plain, filtered = (cells.get(protocol, estimator, k, drop) for k in ("plain", postprocess))
        if plain is not None and filtered is not None:
            low, high = difference(filtered, plain, images)
            row = {"protocol": protocol, "estimator": estimator, "postprocess": postprocess, "drop": drop}
            row |= {"plain": plain, "accuracy": filtered, "difference": filtered - plain}
            found.append(row | {"low": low, "high": high, "images": images})
    return found


def summary(cells: Cells, images: int, differences: list[dict[str, object]]) -> list[dict[str, object]]:
    """The base model, what each filter does on average, and accuracy against the total variation of masks."""
    base = cells.get("base", "none", "plain", 0)
    if base is None:
        raise SystemExit("the run has no base model yet")
    rows = [("base", "base", "plain", 0.0, base, *interval(base, images), 1, "", "")]
    for protocol, postprocess in product(PROTOCOLS, FILTERS):
        own = [r for r in differences if (r["protocol"], r["postprocess"]) == (protocol, postprocess)]
        by = {e: [r["difference"] for r in own if r["estimator"] == e] for e in cells.estimators()}
        if own:
            fallen = sum(r["difference"] < 0 for r in own)
            found = mean_interval([float(np.mean(values)) for values in by.values() if values])
            rows.append(("smoothing", protocol, postprocess, "", *found, len(own), fallen, ""))
    for protocol, drop in product(PROTOCOLS, RATES):
        names = product(cells.estimators(), ("plain", *FILTERS))
        asked = [[cells.get(protocol, e, k, drop, what) for what in ("tv_mask", "accuracy")] for e, k in names]
        points = np.array([pair for pair in asked if None not in pair], float)
        if len(points) > 3 and np.ptp(points, axis=0).all():
            fit = stats.pearsonr(*points.T)
            edges = map(float, fit.confidence_interval())
            rows.append(("correlation", protocol, "", drop, float(fit[0]), *edges, len(points), "", float(fit[1])))
    return [dict(zip(SUMMARY, row)) for row in rows]


def main() -> None:
    from cub20_page import figures, page

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?", help="run folder; without it the tables in --out are used")
    parser.add_argument("--images", type=int, default=578, help="test images of the run")
    parser.add_argument("--out", type=Path, default=Path("docs/results/cub20"))
    arguments = parser.parse_args()
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    if arguments.run is not None:
        done = [record for record in load(arguments.run) if record.status == "done" and record.null == "own"]
        write_rows(out / "records.csv", [{name: getattr(record, name) for name in COLUMNS} for record in done])
        cells = Cells(read(out / "records.csv"))
        differences = smoothing(cells, arguments.images)
        write_rows(out / "table1.csv", table1(cells, arguments.images))
        write_rows(out / "smoothing.csv", differences)
        write_rows(out / "summary.csv", summary(cells, arguments.images, differences))
    (out / "README.md").write_text(page(out))
    figures(out)


if __name__ == "__main__":
    main()
