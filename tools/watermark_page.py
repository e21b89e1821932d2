"""The page of `watermark_study.py`, with its table and figure, from the records."""

from __future__ import annotations

import csv

import numpy as np

BOX, BANDS = "ig | rect(9)", "ig | rows(4)"
PAPER = {("number", BOX): 0.92, ("number", BANDS): 0.31, ("stripes", BOX): 0.60, ("stripes", BANDS): 0.93}


class Table:
    """Values by (data, what, map, rate): a mean over models, its standard error over images, and those of single models."""

    def __init__(self, folder):
        self.rows = {}
        for path in sorted((folder / "records").glob("*.csv")):
            with path.open() as file:
                for row in csv.DictReader(file):
                    key = (row["data"], row["what"], row["map"], row["rate"])
                    self.rows.setdefault(key, []).append((float(row["value"]), float(row["error"])))

    def __call__(self, data, what, name="", rate=""):
        """Mean, lower and upper end: 1.96 mean standard errors, as if all models saw the images alike."""
        pairs = np.array(self.rows[data, what, name, str(rate)])
        mean, reach = pairs[:, 0].mean(), 1.96 * pairs[:, 1].mean()
        return mean, mean - reach, mean + reach

    def each(self, data, what, name="", rate=""):
        """The values of single models."""
        return [v for v, _ in self.rows[data, what, name, str(rate)]]

    def column(self, j):
        """What a place of the keys can be, in the order of the records."""
        return list(dict.fromkeys(key[j] for key in self.rows if key[j]))

    def maps(self, data):
        """The maps that have a curve."""
        return list(dict.fromkeys(k[2] for k in self.rows if k[:2] == (data, "ROAD")))

    def rates(self):
        """The drop rates of the curves."""
        return sorted({float(k[3]) for k in self.rows if k[1] == "ROAD"})


def spread(e):
    """A number with its interval."""
    return f"{e[0]:.3f} [{e[1]:.3f}, {e[2]:.3f}]"


def lowest(table, data, rate):
    """The map with the lowest accuracy at a rate, the box's accuracy, and by how much the box is below the next (or above the lowest)."""
    values = {m: table(data, "ROAD", m, rate)[0] for m in table.maps(data)}
    best = min(values, key=values.get)
    rival = min((m for m in values if m != BOX), key=values.get)
    return best, rival, table(data, "ROAD, minus that of the box", rival, rate)


def write_page(out):
    """README.md, summary.csv and watermark.png from the records."""
    table = Table(out)
    kinds = [k for k in ("number", "stripes", "number on blank", "real images") if k in table.column(0)]
    speed = list(csv.DictReader((out / "speed.csv").open()))
    checks = []
    for kind in ("number", "stripes"):
        accuracy = min(table.each(kind, "accuracy"))
        checks.append((accuracy >= 0.95, f"test accuracy with {kind}: at least {accuracy:.1%} (asked: 95 %)"))
    for kind, sign, words in (("number", 1, "beats"), ("stripes", -1, "loses to")):
        mean, low, high = table(kind, "Attr%, box minus bands", "ig")
        checks.append(
            (
                sign * mean >= 0.15,
                f"on {kind} `ig | rect(9)` {words} `ig | rows(4)` by {abs(mean):.3f} of Attr% [{min(abs(low), abs(high)):.3f}, {max(abs(low), abs(high)):.3f}] "
                f"(asked: 0.15)",
            )
        )
    slowest = min(float(row["images per second"]) for row in speed)
    checks.append((slowest >= 20_000, f"{slowest:,.0f} images marked per second by one process (asked: 20,000)"))
    late = [t for t in table.rates() if t >= 0.5]
    for kind, wanted in (("number", True), ("real images", False)):
        for rate in late:
            best, rival, gap = lowest(table, kind, rate)
            first = best == BOX
            sure = gap[1] > 0 if first else gap[2] < 0
            place = "the lowest" if first else f"not the lowest (that is `{best}`)"
            checks.append(
                (
                    first == wanted,
                    f"{kind}, t = {rate}: the accuracy of `rect`, {table(kind, 'ROAD', BOX, rate)[0]:.1%}, is {place} (chance: 10 %); next to it `{rival}` {100 * gap[0]:+.1f} points "
                    f"[{100 * gap[1]:+.1f}, {100 * gap[2]:+.1f}]{'' if sure else ', which may be chance'}",
                )
            )
    failed, held = ([text for good, text in checks if good == wanted] for wanted in (False, True))
    number = 7 * 5
    marked_at = [table("number", "ROAD", m, t)[0] for m in table.maps("number") if m != "rand" for t in late]
    lines = [
        "# Watermarked CIFAR-10: a box and bands",
        "",
        "**What did not hold.**" + ("" if failed else " Nothing that was asked for failed."),
    ]
    lines += [f"- {text}" for text in failed]
    lines += [
        f"- A number of {number} pixels is gone long before half of the image is: from t = {late[0]} on all maps but `rand` are between {min(marked_at):.1%} and "
        f"{max(marked_at):.1%}, and which is lowest says nothing.",
        f"- The paper's sizes of Attr% on numbers: a number here is {number} pixels of the {81} of `rect(9)`, so that a box at its place has at most {number / 81:.2f}; "
        "the paper does not say how large its numbers are.",
        "",
        "**What held.**",
        *(f"- {text}" for text in held),
        "",
        "![Attr% and ROAD accuracy by kind of data](watermark.png)",
        "",
        "## Attr%: the share of attribution on the watermark",
        "",
    ]
    marked = [k for k in kinds if k != "real images"]
    lines += [
        "| maps | " + " | ".join(marked) + " | paper, number | paper, stripes |",
        "|---|" + "---|" * (len(marked) + 2),
    ]
    for name in table.maps("number"):
        paper = [f"{PAPER[k, name]:.2f}" if (k, name) in PAPER else "" for k in ("number", "stripes")]
        cells = [spread(table(k, "Attr%", name)) for k in marked]
        lines.append(f"| {name.replace(' | ', ', ')} | " + " | ".join(cells) + " | " + " | ".join(paper) + " |")
    empty = int(table("stripes", "images without a region")[0])
    lines += ["", f"{empty} images of class 0 have no stripe and are left out.", "", "## ROAD accuracy", ""]
    lines += [
        "| data | maps | " + " | ".join(f"t = {t}" for t in table.rates()) + " |",
        "|---|---|" + "---|" * len(table.rates()),
    ]
    for kind in kinds:
        for name in table.maps(kind):
            cells = [f"{100 * table(kind, 'ROAD', name, t)[0]:.1f}" for t in table.rates()]
            lines.append(f"| {kind} | {name.replace(' | ', ', ')} | " + " | ".join(cells) + " |")
    seeds = len(table.each("number", "accuracy"))
    accuracies = ", ".join(f"{k} {100 * np.mean(table.each(k, 'accuracy')):.1f} %" for k in kinds)
    lines += [
        "",
        "## How",
        "",
        f"The 10,000 and 2,000 images of the CIFAR-10 subset with labels dealt anew and written into them, `convnet`, {seeds} base models per kind of data (test accuracy: "
        f"{accuracies}); maps of test images with signed values summed over channels, `rect(9)` and `rows(4)` made from those of `ig`. Means over models; intervals are 1.96 "
        "standard errors over images. Numbers must not be mirrored in training: a 2 of three by five pixels is then a 5. Made by "
        "`python tools/watermark_study.py --train cifar10_train_10k.npz --test cifar10_test_2k.npz --workers 2`; `summary.csv` has every number, `records/` a file per model.",
    ]
    (out / "README.md").write_text("\n".join(lines) + "\n")
    with (out / "summary.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["data", "what", "map", "rate", "mean", "low", "high", "models"])
        for key, values in table.rows.items():
            writer.writerow([*key, *(f"{v:.5f}" for v in table(*key)), len(values)])
        writer.writerows([r["data"], "images per second", "", "", r["images per second"], "", "", ""] for r in speed)
        writer.writerows(
            ["", f"check: {text}", "", "", "holds" if good else "fails", "", "", ""] for good, text in checks
        )
    draw(table, kinds, out / "watermark.png")


def draw(table, kinds, path):
    """Attr% as bars, and a panel of ROAD curves per kind of data."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4 * (len(kinds) + 1), 3.4), layout="constrained")
    axes = figure.add_subplot(1, len(kinds) + 1, 1)
    names = table.maps("number")
    marked = [k for k in kinds if k != "real images"]
    for j, kind in enumerate(marked):
        values = [table(kind, "Attr%", m)[0] for m in names]
        axes.bar(np.arange(len(names)) + 0.26 * (j - 1), values, 0.26, label=kind)
    axes.set_xticks(np.arange(len(names)), [m.replace("ig | ", "") for m in names], rotation=40, ha="right")
    axes.set_title("Attr%")
    axes.legend(fontsize=7)
    for j, kind in enumerate(kinds):
        axes = figure.add_subplot(1, len(kinds) + 1, j + 2)
        for name in table.maps(kind):
            curve = [100 * table(kind, "ROAD", name, t)[0] for t in table.rates()]
            style = "-" if "|" in name else "--"
            axes.plot(table.rates(), curve, style, lw=2 if "|" in name else 1.2, label=name.replace("ig | ", ""))
        axes.set_title(f"ROAD, {kind}")
        axes.set_xlabel("removed")
        if j == 0:
            axes.set_ylabel("accuracy, %")
            axes.legend(fontsize=7)
    figure.savefig(path, dpi=90)
