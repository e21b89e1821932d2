"""docs/results/parts: its page and figures, from the CSV files that tools/parts_tables.py wrote.

python tools/parts_page.py [FOLDER]
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pages import Row, rows_of

from roarfast.metrics.damage_plot import COLOURS
from roarfast.report.figures import plotting
from roarfast.report.grid import pretty

TITLES = {"cifar10-subset": "CIFAR-10", "svhn-subset": "SVHN", "cub20": "CUB-200 (20 classes)"}
NAMES = {"road": "ROAD", "deletion": "Deletion"}
"""The scores of the page."""
PARTS = ("shape", "image", "model")
NO_MODEL = ("sobel^2", "rand", "block")
ROAR_PARTS = ("damage", "shape", "class", "image")
HATCHES = {"shape": "", "image": "//", "model": "xx"}  # never by colour alone
SMOOTHING = ("gaussian(1)", "max(3)")
PHOTOS, SECOND_NETWORK, WIDE = "imagenet-photos", "lite1", "gaussian(7)"
"""The folder of the photos' tables, the other model there, and the blur that does to 224×224 pixels what σ = 1 does to 32×32."""
_BARS_OF_A_LINE = 13


class Tables:
    """The CSV files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.parts = rows_of(folder, "parts")
        self.datasets = list(dict.fromkeys(row["dataset"] for row in self.parts))

    def with_protocol(self, protocol: str) -> list[str]:
        """The data sets that were asked by it."""
        return list(dict.fromkeys(row["dataset"] for row in self.parts if row["protocol"] == protocol))

    def read(self, name: str, **where: str) -> list[Row]:
        """Rows whose fields are as given; none if there is no such file."""
        return [r for r in rows_of(self.folder, name) if all(r[field] == value for field, value in where.items())]


def points(row: Row, name: str, digits: int = 1) -> str:
    """A number of a row in points."""
    return f"{round(100 * float(row[name]), digits) + 0.0:.{digits}f}".replace("-", "−")  # + 0.0: no minus before 0


def with_interval(row: Row, name: str, digits: int = 1) -> str:
    """The same with its interval."""
    return f"{points(row, name, digits)} [{points(row, f'{name}_low', digits)}, {points(row, f'{name}_high', digits)}]"


@dataclass(frozen=True)
class Panel:
    """What a part of a figure shows: rows by estimator and post-processing, and which bars stand side by side."""

    title: str
    rows: dict[tuple[str, str], Row]
    ks: Sequence[str]

    @property
    def estimators(self) -> list[str]:
        """In the order of the table."""
        return list(dict.fromkeys(e for e, _ in self.rows))


def panels(tables: Tables, protocol: str, ks: Sequence[str]) -> list[Panel]:
    """One for each data set of a folder."""
    found = []
    for dataset in tables.with_protocol(protocol):
        wanted = (dataset, protocol, "accuracy")
        rows = {
            (r["estimator"], r["postprocess"]): r
            for r in tables.parts
            if (r["dataset"], r["protocol"], r["of"]) == wanted
        }
        base = points(next(iter(rows.values())), "base")
        found.append(Panel(f"{TITLES.get(dataset, dataset)} ({base} % with nothing removed)", rows, ks))
    return found


def photo_rows(folder: Path, name: str) -> list[Row]:
    """Rows of tools/photo_parts.py for a second trained network as the other model; none where nobody has run it."""
    return [r for r in rows_of(folder.parent / PHOTOS, name) if (r["other"], r["of"]) == (SECOND_NETWORK, "accuracy")]


def photo_panel(folder: Path) -> list[Panel]:
    """The panel of the ImageNet photos, whose blur is as wide as that of the small images."""
    rows = {(r["estimator"], r["postprocess"]): r for r in photo_rows(folder, "parts")}
    if not rows:
        return []
    base = points(next(iter(rows.values())), "base")
    return [Panel(f"ImageNet photos ({base} %), {WIDE}", rows, ("plain", WIDE))]


def figure(canvas_folder: Path, shown: Sequence[Panel], title: str, name: str) -> str:
    """Stacked bars: the bars of an estimator side by side, the accuracy left above them. Small panels share a row."""
    lines: list[list[Panel]] = []
    for panel in shown:
        if lines and len(panel.estimators) + sum(len(p.estimators) for p in lines[-1]) <= _BARS_OF_A_LINE:
            lines[-1].append(panel)
        else:
            lines.append([panel])
    with plotting.style() as new:
        canvas = new(plotting.WIDTH, 2.9 * len(lines) + 0.5)
        grid = canvas.add_gridspec(len(lines), 1)
        handles: dict[str, Any] = {}
        for place, line in zip(grid, lines):
            split = place.subgridspec(1, len(line), width_ratios=[len(p.estimators) + 1 for p in line])
            for i, panel in enumerate(line):
                _panel(canvas.add_subplot(split[i]), panel, handles, first=i == 0)
        plotting.legend(canvas, title, handles.values(), handles.keys())
        plotting.finish(canvas, canvas_folder, name, title, title)
    (canvas_folder / f"{name}.svg").unlink(missing_ok=True)
    return f"{name}.png"


def _bars(tables: Tables, protocol: str) -> str:
    ks = ("plain", "gaussian(1)")
    shown = panels(tables, protocol, ks) + (photo_panel(tables.folder) if protocol == "road" else [])
    title = f"{NAMES[protocol]}: what the lost accuracy is made of. Bars: {', '.join(ks)}; above: accuracy left (%)"
    return figure(tables.folder, shown, title, f"{protocol}-parts")


def _panel(axis: Any, panel: Panel, handles: dict[str, Any], *, first: bool) -> None:
    for i, e in enumerate(panel.estimators):
        mine = [k for k in panel.ks if (e, k) in panel.rows]
        for j, k in enumerate(mine):
            x, width = i + (j - (len(mine) - 1) / 2) * 0.84 / len(panel.ks), 0.78 / len(panel.ks)
            _bar(axis, panel.rows[e, k], x, width, handles)
    axis.axhline(0, color=plotting.BLACK, linewidth=0.8)
    axis.set_xticks(range(len(panel.estimators)), [pretty(e) for e in panel.estimators])
    if first:
        axis.set_ylabel("accuracy lost (points)")
    axis.margins(y=0.12)
    axis.grid(visible=False, axis="x")
    axis.set_title(panel.title, loc="left")


def _bar(axis: Any, row: Row, x: float, width: float, handles: dict[str, Any]) -> None:
    up = down = 0.0
    words = {"shape": "shape: any image", "image": "image: any model", "model": "model: this model"}
    for part in PARTS:
        height = 100 * float(row[part])
        style = {"color": COLOURS[part], "hatch": HATCHES[part], "edgecolor": "white", "linewidth": 0.4}
        handles[words[part]] = axis.bar(x, height, width, up if height >= 0 else down, **style)
        up, down = up + max(height, 0.0), down + min(height, 0.0)
    axis.text(x, up, f"{100 * float(row['own']):.0f}", ha="center", va="bottom", fontsize=7)


def parts_table(tables: Tables, dataset: str, protocol: str) -> list[str]:
    """One row per map."""
    lines = [
        "| estimator | k | own | shape | image | model | equal damage | change by k: own | model | equal damage |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    changes = {
        (r["estimators"], r["postprocess"]): r
        for r in tables.read("changes", dataset=dataset, protocol=protocol, of="accuracy")
    }
    for row in tables.parts:
        if (row["dataset"], row["protocol"], row["of"]) == (dataset, protocol, "accuracy"):
            e, k = row["estimator"], row["postprocess"]
            change = changes.get((e, k))
            more = [with_interval(change, n) for n in ("own", "model", "equal_damage")] if change else ["", "", ""]
            cells = [pretty(e), k, points(row, "own"), points(row, "shape"), points(row, "image")]
            cells += [with_interval(row, "model"), with_interval(row, "equal_damage"), *more]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def means(tables: Tables) -> list[str]:
    """What a filter changes in the mean over estimators."""
    lines = [
        "| data | score | k | own accuracy | shape | image | model | equal damage |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in tables.read("changes", estimators="estimators that ask the model", of="accuracy"):
        cells = [TITLES.get(row["dataset"], row["dataset"]), NAMES[row["protocol"]], row["postprocess"]]
        cells += [with_interval(row, n, 2) for n in ("own", *PARTS, "equal_damage")]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def order(tables: Tables, dataset: str, protocol: str, by: str, sign: int) -> str:
    """The plain maps, best first."""
    rows = [
        r
        for r in tables.parts
        if (r["dataset"], r["protocol"], r["of"], r["postprocess"]) == (dataset, protocol, "accuracy", "plain")
    ]
    rows.sort(key=lambda r: sign * float(r[by]))
    return ", ".join(f"{pretty(r['estimator'])} {points(r, by)}" for r in rows)


def _size(row: Row) -> str:
    title = TITLES.get(row["dataset"], row["dataset"])
    return f"{title}: {row['images']} test images, {row['trials']} base models, {row['rates']} rates"


def _change(tables: Tables, dataset: str, estimators: str, k: str) -> Row:
    (row,) = tables.read(
        "changes", dataset=dataset, protocol="road", of="accuracy", estimators=estimators, postprocess=k
    )
    return row


def _not_bought(tables: Tables, dataset: str) -> str:
    """What equal damage still lets a filter buy."""
    mean = _change(tables, dataset, "estimators that ask the model", "gaussian(1)")
    edges = _change(tables, dataset, "sobel^2", "gaussian(1)")
    why = ""
    if float(edges["equal_damage_low"]) > 0:
        why = ": blurred edges cover objects, which is knowledge of the image, and only the model part, 0 for them, says so"
    return (
        f"- {TITLES.get(dataset, dataset)}: at equal damage a Gaussian still changes maps that ask the model by "
        f"{with_interval(mean, 'equal_damage', 2)} points ({_kind(mean)}), and Sobel's edges by "
        f"{with_interval(edges, 'equal_damage')} ({_kind(edges)}){why}."
    )


def _failed_elsewhere(tables: Tables) -> str:
    """The checks of other scores that failed, in a sentence."""
    failed = [g for g in tables.read("gates") if g["protocol"] != "road" and g["holds"] == "no"]
    if not failed:
        return ""
    return (
        " Where nothing was promised: "
        + "; ".join(
            f"{NAMES[g['protocol']]}, {TITLES.get(g['dataset'], g['dataset'])}: {g['gate']} ({g['value']})"
            for g in failed
        )
        + "."
    )


def _not_bought_on_photos(folder: Path) -> list[str]:
    """The same on the photos, map by map, and what blur does there to the model part beyond shape."""
    photos = folder.parent / PHOTOS
    rows = [r for r in rows_of(photos, "claims") if r["claim"] == f"at equal damage {WIDE} raises nothing"]
    if not rows:
        return []
    said = "; ".join(f"{r['comparison'].partition(':')[0]} by {with_numbers(r)}" for r in rows if float(r["low"]) > 0)
    more = "".join(
        f" Beside {FRESH.get(r['other'], r['other'])}, {r['postprocess']} raises what masks show of the model beyond their shape (model excess) by "
        f"{with_interval(r, 'model_excess')} points: no theorem forbids that, and it is a gain that blur buys."
        for r in rows_of(photos, "parts-changes")
        if r["estimators"] == "estimators that ask the model" and float(r["model_excess_low"]) > 0
    )
    gains = f"{said} points, beyond the interval" if said else "none beyond the interval"
    return [
        f"- ImageNet photos: of {len(rows)} maps, at equal damage, {WIDE} still raises {gains}; for the others it is at most a quarter of the raw gain, or 100 photos cannot "
        f"tell.{more}"
    ]


FRESH = {"untrained": "fresh weights", "normalised": "normalised fresh weights", "lite1": "EfficientNet-Lite1"}


def with_numbers(row: Row) -> str:
    """A difference of claims.csv in points with its interval."""
    return with_interval({"x": row["difference"], "x_low": row["low"], "x_high": row["high"]}, "x")


def _kind(row: Row) -> str:
    """What the interval of equal damage says."""
    if float(row["equal_damage_low"]) > 0:
        return "a gain beyond its interval"
    return "a loss beyond its interval" if float(row["equal_damage_high"]) < 0 else "no clear change"


def _found(tables: Tables, dataset: str) -> str:
    """The result in one sentence."""
    row = _change(tables, dataset, "estimators that ask the model", "gaussian(1)")
    share = float(row["equal_damage"]) / -float(row["own"])
    return (
        f"- **{TITLES.get(dataset, dataset)}**: a Gaussian of σ = 1 lowers ROAD's accuracy by {points(row, 'own').lstrip('−')} points, which counts as better. It adds "
        f"{points(row, 'shape', 2)} points of shape, {points(row, 'image', 2)} of image and {points(row, 'model', 2)} of model. At equal damage {f'{100 * share:.0f} %' if share > 0 else 'nothing'} of the gain is left."
    )


def _found_on_photos(folder: Path) -> list[str]:
    """The same for the ImageNet photos, whose page has the rest."""
    rows = [
        r
        for r in photo_rows(folder, "parts-changes")
        if (r["estimators"], r["postprocess"]) == ("estimators that ask the model", WIDE)
    ]
    return [
        f"- **ImageNet**: {row['images']} photos, a trained EfficientNet-Lite0 explained and EfficientNet-Lite1 as the other model. {WIDE}, as wide there as σ = 1 on "
        f"32×32, changes ROAD's accuracy by {with_interval(row, 'own')} points, in the mean over grad², ig² and gc²: shape {with_interval(row, 'shape')}, "
        f"image {with_interval(row, 'image')}, model {with_interval(row, 'model')} ([page](../imagenet-photos/README.md))."
        for row in rows
    ]


def page(tables: Tables) -> str:
    """README.md."""
    gates = tables.read("gates", protocol="road")
    failed = [g for g in gates if g["holds"] == "no"]
    sizes = "; ".join(_size(next(r for r in tables.parts if r["dataset"] == d)) for d in tables.datasets)
    lines = ["# A score taken apart: shape, image, model", ""]
    if failed:
        lines += [
            "**What did not hold** (ROAD): "
            + "; ".join(f"{TITLES.get(g['dataset'], g['dataset'])}: {g['gate']} ({g['value']})" for g in failed)
            + "."
        ]
    else:
        lines += ["**What did not hold:** of what was checked on ROAD nothing." + _failed_elsewhere(tables)]
    lines += ["", "What is left:", "", *(_not_bought(tables, d) for d in tables.with_protocol("road"))]
    lines += _not_bought_on_photos(tables.folder)
    lines += [
        "",
        "A removal score falls because of a mask's *shape*, of what any model knows of the *image*, and of what the map knows of this *model* "
        f"([definitions](../../truth.md)). {sizes}; all ordered pairs of models. "
        "Intervals are 95 % over test images, resampled together for all maps and masks.",
        "",
        *(_found(tables, d) for d in tables.with_protocol("road")),
        *_found_on_photos(tables.folder),
        *_found_for_roar(tables),
        "",
        f"![Stacked bars of shape, image and model, plain and blurred]({_bars(tables, 'road')})",
        "",
        "## What a filter that knows nothing changes",
        "",
        "Mean over the estimators that ask the model, in points; own accuracy falling is what a score counts as better.",
        "",
        *means(tables),
        "",
        "## Checks",
        "",
        "| data | score | | measured | holds |",
        "|---|---|---|---|---|",
        *(
            f"| {TITLES.get(g['dataset'], g['dataset'])} | {NAMES[g['protocol']]} | {g['gate']} | {g['value']} | {g['holds']} |"
            for g in tables.read("gates")
        ),
        "",
        "Those of deletion are for comparison: a constant fill takes the image out of what the net has seen, and nothing was promised of it.",
        "",
        "## Does a score still follow the smoothness of masks?",
        "",
        "Spearman's rank correlation over all maps with the total variation of their masks (plain and filtered; 0 would be a score that smoothness cannot buy).",
        "",
        "| data | score | | correlation | p | maps |",
        "|---|---|---|---|---|---|",
        *(
            f"| {TITLES.get(r['dataset'], r['dataset'])} | {NAMES[r['protocol']]} | {r['score']} | {float(r['spearman']):.2f} | {float(r['p']):.2g} | {r['maps']} |"
            for r in tables.read("smoothness")
        ),
        "",
        "## Which estimator is best?",
        "",
        "Plain maps, ROAD; it depends on what is asked.",
        "",
        "| data | by accuracy left | by equal damage | by the model part |",
        "|---|---|---|---|",
        *(
            f"| {TITLES.get(d, d)} | {order(tables, d, 'road', 'own', 1)} | {order(tables, d, 'road', 'equal_damage', -1)} | {order(tables, d, 'road', 'model', -1)} |"
            for d in tables.datasets
        ),
        "",
        "## Where two models disagree",
        "",
        "The model part of plain maps on images where the explained and the other model predict the same class, and where they do not; t-intervals over ordered pairs "
        "(they share models, so the intervals are too narrow).",
        "",
        "| data | score | estimator | predictions differ | model part there | where they agree | all [pairs] |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {TITLES.get(r['dataset'], r['dataset'])} | {NAMES[r['protocol']]} | {pretty(r['estimator'])} | {points(r, 'differ')} % | "
            f"{points(r, 'model_differ')} | {points(r, 'model_agree')} | {with_interval(r, 'over_pairs')} |"
            for r in tables.read("pairs")
        ),
        "",
    ]
    lines += roar(tables)
    for protocol in NAMES:
        for dataset in tables.with_protocol(protocol):
            lines += [f"## {NAMES[protocol]}, {TITLES.get(dataset, dataset)}: every map", ""]
            lines += [*parts_table(tables, dataset, protocol), ""]
    lines += [
        f"![The same for deletion]({_bars(tables, 'deletion')})",
        "",
        "## Made by",
        "",
        "`roarfast run docs/results/parts/NAME.toml --data-root FOLDER_OF_THE_NPZ_FILES --out runs/NAME` for `cifar10`, `svhn`, `cub20` and `cifar10-roar`, then "
        "`python tools/parts_tables.py runs/cifar10 runs/svhn runs/cub20 --roar runs/cifar10-roar`, `python tools/photo_parts.py --data-root FOLDER_OF_THE_NPZ_FILES` "
        "and `python tools/parts_page.py`. "
        "`parts.csv` also has the parts in mean probability of the class, `by_rate.csv` every rate.",
    ]
    return "\n".join(lines) + "\n"


def roar(tables: Tables) -> list[str]:
    """The part on retraining."""
    rows = tables.read("roar")
    if not rows:
        return ["## ROAR", "", "Not run yet: `cifar10-roar.toml`.", ""]
    kept = [r for r in rows if r["protocol"] == "roar"]
    masks = {
        "own": "own",
        "swap-class": "another image of the class",
        "swap": "any other image",
        "model": "same image, another model",
    }
    lines = [
        "## ROAR: shape, image and leakage",
        "",
        f"Half of the pixels removed, {kept[0]['trials']} trials, 5,000 training images, {points(kept[0], 'base')} % with nothing removed. A retrained net never meets the explained "
        "model, so ROAR has no model part ([proposition](../../truth.md#roar-has-no-model-part)); but it can read the class off the shape of own masks. t-intervals over trials.",
        "",
        "| estimator | k | masks of | accuracy | minus own |",
        "|---|---|---|---|---|",
    ]
    for r in kept:
        difference = "" if r["null"] == "own" else with_interval(r, "minus_own")
        lines.append(
            f"| {pretty(r['estimator'])} | {r['postprocess']} | {masks[r['null']]} | {with_interval(r, 'accuracy')} | {difference} |"
        )
    alone = [r for r in rows if r["protocol"] == "mask-only"]
    if alone:
        shown = ", ".join(f"{pretty(r['estimator'])} {r['postprocess']} {points(r, 'accuracy')} %" for r in alone)
        lines += ["", f"A net that sees nothing but the masks: {shown} (chance 10 %)."]
    return [*lines, "", *_roar_parts(tables)]


def _roar_parts(tables: Tables) -> list[str]:
    """What the damage of a retrained net is made of."""
    rows = tables.read("roar-parts")
    if not rows:
        return []
    lines = [
        "Taken apart by whose masks both training and test images get: *shape* = nothing removed − any other image's; *class* = any other image's − "
        "those of another image of the class; *image* = those of another image of the class − own. Below 0 a mask that fits its image or class costs "
        "*less* than one that does not: what it hides, its outline tells. Points, t-intervals over trials.",
        "",
        *_roar_table([r for r in rows if r["what"] == "parts"]),
        "",
        "What the filter changes of these:",
        "",
        *_roar_table([r for r in rows if r["what"] == "change"]),
    ]
    return [*lines, ""]


def _roar_table(rows: Sequence[Row]) -> list[str]:
    lines = ["| estimator | k | damage | shape | class | image |", "|---|---|---|---|---|---|"]
    for r in rows:
        name = pretty(r["estimators"]) if "^" in r["estimators"] else r["estimators"]
        lines.append(f"| {name} | {r['postprocess']} | " + " | ".join(with_interval(r, n) for n in ROAR_PARTS) + " |")
    return lines


def _found_for_roar(tables: Tables) -> list[str]:
    """The results of retraining in two sentences."""
    maps = [r for r in tables.read("roar-parts", what="parts") if r["estimators"] not in NO_MODEL]
    alike = sum(float(r["image_low"]) <= 0 <= float(r["image_high"]) for r in maps)
    classes = sorted(float(r["class"]) for r in maps)
    widest = 100 * max((abs(float(r[f"image_{end}"])) for r in maps for end in ("low", "high")), default=0.0)
    return [
        f"- **ROAR** (CIFAR-10, t = 0.5, {row['trials']} trials): {row['postprocess']} adds {with_interval(row, 'damage')} points of damage, in the mean over the "
        f"estimators that ask the model: shape {with_interval(row, 'shape')}, class {with_interval(row, 'class')}, image {with_interval(row, 'image')}; of the model it has "
        f"nothing, by symmetry. The damage of masks of *another image of the same class* cannot be told from that of own ones for {alike} of {len(maps)} maps that ask the model "
        f"(intervals reach {widest:.1f} points); "
        f"those of any other image do {-100 * classes[-1]:.1f} to {-100 * classes[0]:.1f} points more, because masks that fit the class tell it to the retrained net."
        for row in tables.read("roar-parts", what="change", estimators="estimators that ask the model")
    ]


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("docs/results/parts"))
    folder = parser.parse_args().folder
    (folder / "README.md").write_text(page(Tables(folder)))
    print(folder / "README.md")


if __name__ == "__main__":
    main()
