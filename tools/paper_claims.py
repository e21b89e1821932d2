"""The claims of the papers, what we found, and what makes it again: the rows of docs/papers.md.

To add a claim: a `Claim` in one of the lists below. What it says of us is a function of `Results`, so that a new run changes the
page and cannot contradict it.
"""

from __future__ import annotations

from collections.abc import Iterator

from paper_results import FAILS, HOLDS, OPEN, PARTLY, Claim, Here, Missing, Results, Row, Work, judge, not_run, percent


def study(name: str, config: str, minutes: float | None, *more: str) -> Work:
    """A study whose report is committed, or whose run folder other commands read."""
    return Work(name, (f"roarfast run docs/results/{config} --data-root DATA --out RUNS/{name}", *more), minutes)


# 000: on the pitfalls of ROAR

CIFAR, TABLES = "CIFAR-10, 10,000 + 2,000", "cifar10-subset/tables"
STUDY = study(
    "cifar10-subset",
    "cifar10-subset/study.toml",
    122,
    "roarfast report RUNS/cifar10-subset --export docs/results/cifar10-subset",
)
SVHN, SVHN_TABLES = "SVHN, 5,000 + 2,000", "svhn-subset/tables"
SVHN_STUDY = study(
    "svhn-subset",
    "svhn-subset/study.toml",
    30,
    "roarfast report RUNS/svhn-subset --export docs/results/svhn-subset",
    "python tools/subset_page.py docs/results/svhn-subset",
)
CUB_PARTS = "CUB-200, 20 classes, 600 + 300 photos"
NOT_LEARNT = 0.15  # of ten classes
LEAST_R2 = 0.83  # of the paper's three data sets
CUB = "CUB-200, 20 classes, 600 + 578 photos"
CUB_STUDY = study("cub20", "cub20/study.toml", 19, "python tools/cub20.py RUNS/cub20")


def fallen(intervals: list[tuple[float, float]]) -> str:
    """Whether all differences are below 0; one whose interval holds 0 tells nothing."""
    below, above = sum(high < 0 for _, high in intervals), sum(low > 0 for low, _ in intervals)
    return HOLDS if below == len(intervals) else PARTLY if below else FAILS if above else OPEN


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
        return f"falls in {lower} of {cells}; {means}", fallen(
            [(float(row["mean_difference_low"]), float(row["mean_difference_high"])) for row in found]
        )

    return here


def smoothness(protocol: str, data: str = TABLES) -> Here:
    """R² of accuracy on total variation over the plain estimators."""

    def here(results: Results) -> tuple[str, str]:
        fits = results.rows(f"{data}/fits.csv", protocol=protocol, order="morf", x="tv_mask", points="estimators")
        shown = ", ".join(f"{float(f['r2']):.2f} at {f['drop']} (p = {float(f['p']):.2g})" for f in fits)
        significant = [float(f["slope"]) for f in fits if float(f["p"]) < 0.05]
        clear, reverse = sum(slope > 0 for slope in significant), sum(slope < 0 for slope in significant)
        if reverse:
            shown += f"; at {reverse} of {len(fits)} rates the reverse"
        return f"R² = {shown}", (HOLDS if clear == len(fits) else PARTLY if clear else FAILS if reverse else OPEN)

    return here


def grad_cam(data: str = TABLES) -> Here:
    """Is the effect of smoothing on Grad-CAM unclear in every cell?"""

    def here(results: Results) -> tuple[str, str]:
        found = results.rows(f"{data}/differences.csv", protocol="roar", order="morf", estimator="gc^2")
        known = [row for row in found if row["difference_low"] not in ("", "nan")]  # one trial has no interval
        signs = [float(row["difference_low"]) <= 0 <= float(row["difference_high"]) for row in known]
        shown = ", ".join(f"{100 * float(row['difference']):+.1f}" for row in found)
        return f"{shown} points; {sum(signs)} of {len(known)} intervals hold 0", HOLDS if all(signs) else PARTLY

    return here


def roar_cells(results: Results, estimator: str, rates: tuple[str, ...], data: str = TABLES) -> list[Row]:
    """The plain ROAR cells of an estimator."""
    where = {"protocol": "roar", "order": "morf", "postprocess": "plain", "estimator": estimator}
    return [results.rows(f"{data}/cells.csv", drop=rate, **where)[0] for rate in rates]


def blocks(rates: tuple[str, ...] = ("0.1", "0.3", "0.5", "0.7", "0.9"), data: str = TABLES) -> Here:
    """Random blocks against random pixels, at the rates of Table 1."""

    def here(results: Results) -> tuple[str, str]:
        pixels, block = (roar_cells(results, name, rates, data) for name in ("rand", "block"))
        parts = []
        for name, rows in (("pixels", pixels), ("block", block)):
            parts.append(f"{name} " + ", ".join(format(float(row["accuracy"]), ".3f") for row in rows))
        if any(float(row["accuracy"]) < NOT_LEARNT for row in block):
            return "; ".join(parts) + "; where it is at chance the net learnt nothing in the epochs that it had", OPEN
        known = [(b, p) for b, p in zip(block, pixels) if "nan" not in (b["accuracy_low"], p["accuracy_low"])]
        if known:
            return "; ".join(parts), judge([b for b, _ in known], [p for _, p in known])
        lower = sum(float(b["accuracy"]) < float(p["accuracy"]) for b, p in zip(block, pixels))
        return "; ".join(parts) + "; one trial", HOLDS if lower == len(rates) else PARTLY if lower else FAILS

    return here


def birds_smoothed(protocol: str) -> Here:
    """What filters do on CUB-200, from the tables of tools/cub20.py: one trial, intervals over estimators."""

    def here(results: Results) -> tuple[str, str]:
        found = results.rows("cub20/summary.csv", what="smoothing", protocol=protocol)
        lower, cells = (sum(int(row[field]) for row in found) for field in ("fallen", "cells"))
        means = ", ".join(
            f"{row['postprocess']} {100 * float(row['value']):.1f} points [{100 * float(row['low']):.1f}, {100 * float(row['high']):.1f}]"
            for row in found
        )
        return f"falls in {lower} of {cells}; {means}", fallen(
            [(float(row["low"]), float(row["high"])) for row in found]
        )

    return here


def birds_smooth(results: Results) -> tuple[str, str]:
    """R² of accuracy and mask total variation over maps, plain and filtered."""
    fits = results.rows("cub20/summary.csv", what="correlation", protocol="roar")
    shown = ", ".join(f"{float(f['value']) ** 2:.2f} at {f['drop']} (p = {float(f['p']):.2g})" for f in fits)
    clear = sum(float(f["p"]) < 0.05 and float(f["value"]) > 0 for f in fits)
    most = max(float(f["high"]) for f in fits) ** 2
    weaker = FAILS if most < LEAST_R2 else OPEN
    return f"R² = {shown}, at most {most:.2f}; filtered maps included", (
        HOLDS if clear == len(fits) else PARTLY if clear else weaker
    )


def birds_blocks(results: Results) -> tuple[str, str]:
    """Table 1 on its own data; intervals over test photos."""
    parts = []
    for name, text in (("rand", "pixels"), ("block", "block")):
        rows = results.rows("cub20/table1.csv", removed=name)
        parts.append(f"{text} " + ", ".join(format(float(row["accuracy"]), ".3f") for row in rows))
    below = [float(row["gap_high"]) < 0 for row in results.rows("cub20/table1.csv", removed="block")]
    return "; ".join(parts), HOLDS if all(below) else PARTLY if any(below) else FAILS


def gates(dataset: str, text: str, protocol: str = "road") -> Here:
    """Checks of docs/results/parts whose words begin so."""

    def here(results: Results) -> tuple[str, str]:
        rows = results.table("parts/gates.csv")
        found = [r for r in rows if (r["dataset"], r["protocol"]) == (dataset, protocol) and text in r["gate"]]
        if not found:
            raise Missing(dataset)
        held = sum(row["holds"] == "yes" for row in found)
        shown = "; ".join(f"{row['gate']}: {row['value']}" for row in found)
        return shown, HOLDS if held == len(found) else PARTLY if held else FAILS

    return here


PARTS = Work(
    "parts",
    (
        "roarfast run docs/results/parts/cifar10.toml --data-root DATA --out RUNS/parts-cifar10",
        "roarfast run docs/results/parts/svhn.toml --data-root DATA --out RUNS/parts-svhn",
        "roarfast run docs/results/parts/cub20.toml --data-root DATA --out RUNS/parts-cub20",
        "roarfast run docs/results/parts/cifar10-roar.toml --data-root DATA --out RUNS/parts-cifar10-roar",
        "python tools/parts_tables.py RUNS/parts-cifar10 RUNS/parts-svhn RUNS/parts-cub20 --roar RUNS/parts-cifar10-roar",
        "python tools/parts_page.py",
    ),
    known="the last of these studies 69 minutes beside other work, the others not timed",
)
PHOTO_STUDY = Work(
    "imagenet-photos",
    (
        "roarfast run docs/results/imagenet-photos/study.toml --data-root DATA --out RUNS/imagenet-photos",
        "python tools/photo_parts.py --data-root DATA",
        "python tools/photo_page.py RUNS/imagenet-photos --data-root DATA",
    ),
    known="the study 83 minutes beside other work, the second command 36 minutes of one core",
)
ROAR_PARTS = "CIFAR-10, 5,000 + 2,000, five trials"


def interval(row: Row, name: str) -> str:
    """Points of a row with their interval."""
    value, low, high = (100 * float(row[name + end]) for end in ("", "_low", "_high"))
    return f"{value:+.1f} points [{low:+.1f}, {high:+.1f}]"


def retrained_parts(results: Results) -> tuple[str, str]:
    """What a Gaussian adds to ROAR's damage: shape, or something that masks know of their images."""
    (row,) = results.rows("parts/roar-parts.csv", what="change", estimators="estimators that ask the model")
    shown = ", ".join(f"{name} {interval(row, name)}" for name in ("damage", "shape", "class", "image"))
    rises, knows = float(row["shape_low"]) > 0, max(float(row["class_low"]), float(row["image_low"])) > 0
    return f"a Gaussian adds: {shown}", HOLDS if rises and not knows else PARTLY if rises else FAILS


def retrained_with_others(results: Results) -> tuple[str, str]:
    """Masks of another trial's model beside own ones, both retrained on."""
    (row,) = results.rows("parts/roar.csv", protocol="roar", null="model")
    low, high = float(row["minus_own_low"]), float(row["minus_own_high"])
    return (
        f"accuracy with another model's masks − own, grad²: {interval(row, 'minus_own')}",
        HOLDS if low <= 0 <= high else FAILS,
    )


def photos_model_part(results: Results) -> tuple[str, str]:
    """What blur changes of the model part on photos, with the second trained network as the other model."""
    rows = results.rows("imagenet-photos/parts-changes.csv", other="lite1", estimators="estimators that ask the model")
    shown = "; ".join(f"{row['postprocess']} {interval(row, 'model')} of {interval(row, 'damage')}" for row in rows)
    return f"changes the model part by {shown}", FAILS if any(float(row["model_low"]) > 0 for row in rows) else HOLDS


R2 = "R² = 0.83 to 0.96 over three data sets"
TABLE_1 = "CUB-200: pixels 0.756, 0.727, 0.710, 0.677, 0.620; block 0.659, 0.438, 0.282, 0.171, 0.053"
PITFALLS = [
    Claim(
        "Fig. 4",
        "agnostic smoothing lowers the ROAR accuracy",
        CIFAR,
        "most cells, no number",
        STUDY,
        smoothing("roar"),
    ),
    Claim("Fig. 4", "… of SVHN", SVHN, "most cells", SVHN_STUDY, smoothing("roar", SVHN_TABLES)),
    Claim("Fig. 4", "… of CUB-200, where it does most", CUB, "most cells", CUB_STUDY, birds_smoothed("roar")),
    Claim(
        "Fig. 5",
        "agnostic smoothing lowers the ROAD accuracy",
        CIFAR,
        "most cells, no number",
        STUDY,
        smoothing("road"),
    ),
    Claim("Fig. 5", "… of SVHN", SVHN, "most cells", SVHN_STUDY, smoothing("road", SVHN_TABLES)),
    Claim("Fig. 5", "… of CUB-200", CUB, "most cells", CUB_STUDY, birds_smoothed("road")),
    Claim(
        "Fig. 7", "smoother masks, lower ROAR accuracy (we: mask total variation)", CIFAR, R2, STUDY, smoothness("roar")
    ),
    Claim("Fig. 7", "… on SVHN", SVHN, R2, SVHN_STUDY, smoothness("roar", SVHN_TABLES)),
    Claim("Fig. 7", "… on CUB-200", CUB, R2, CUB_STUDY, birds_smooth),
    Claim("5", "the same for ROAD", CIFAR, "no number", STUDY, smoothness("road")),
    Claim("5", "… on SVHN", SVHN, "no number", SVHN_STUDY, smoothness("road", SVHN_TABLES)),
    Claim("4.2", "what smoothing does to Grad-CAM² is inconclusive", CIFAR, "no number", STUDY, grad_cam()),
    Claim("4.2", "… on SVHN", SVHN, "no number", SVHN_STUDY, grad_cam(SVHN_TABLES)),
    Claim(
        "Table 1",
        "a random block does more damage than random pixels (ROAR, rates 0.1, 0.3, 0.5, 0.7, 0.9)",
        CIFAR,
        TABLE_1,
        STUDY,
        blocks(),
    ),
    Claim(
        "Table 1",
        "… on SVHN (rates 0.1, 0.3, 0.5)",
        SVHN,
        TABLE_1,
        SVHN_STUDY,
        blocks(("0.1", "0.3", "0.5"), SVHN_TABLES),
    ),
    Claim("Table 1", "… on CUB-200", CUB, "as above", CUB_STUDY, birds_blocks),
    Claim(
        "Theorem 3.1",
        "smoothing adds no knowledge of the model (ROAD's damage taken apart)",
        CIFAR,
        "no number",
        PARTS,
        gates("cifar10-subset", "does not raise the model part"),
    ),
    Claim(
        "Theorem 3.1",
        "… on SVHN",
        "SVHN, 10,000 + 1,000",
        "no number",
        PARTS,
        gates("svhn-subset", "does not raise the model part"),
    ),
    Claim(
        "Theorem 3.1", "… on CUB-200", CUB_PARTS, "no number", PARTS, gates("cub20", "does not raise the model part")
    ),
    Claim(
        "Theorem 3.1",
        "… on ImageNet photos",
        "50 ImageNet photos, EfficientNet-Lite0 and -Lite1",
        "no number",
        PHOTO_STUDY,
        photos_model_part,
    ),
    Claim(
        "6",
        "the paper has no remedy; ours: at equal damage smoothing buys at most a quarter of what it buys of ROAD",
        CIFAR,
        "none",
        PARTS,
        gates("cifar10-subset", "at equal damage"),
    ),
    Claim("6", "… on SVHN", "SVHN, 10,000 + 1,000", "none", PARTS, gates("svhn-subset", "at equal damage")),
    Claim("6", "… on CUB-200", CUB_PARTS, "none", PARTS, gates("cub20", "at equal damage")),
    Claim(
        "4",
        "what smoothing gains in ROAR is the shape of masks, not knowledge of the image",
        ROAR_PARTS,
        "no number",
        PARTS,
        retrained_parts,
    ),
    Claim(
        "ours",
        "ROAR never meets the explained model: masks of another one do the same damage",
        ROAR_PARTS,
        "none",
        PARTS,
        retrained_with_others,
    ),
]


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


FAMILIES = "CIFAR-10, 4,500 + 2,000"
FAMILY_STUDY = study("roar-001", "roar-001/study.toml", 28, "python tools/roar_families.py RUNS/roar-001")


def family(text: str, last: str = "t = 0.9") -> Here:
    """A claim of tools/roar_families.py: the comparisons at the largest rate, and how many of all of them hold."""

    def here(results: Results) -> tuple[str, str]:
        rows = results.rows("roar-001/claims.csv", claim=text)
        shown = ", ".join(
            f"{row['comparison'].removesuffix(f', {last}')} {100 * float(row['difference']):+.1f} "
            f"[{100 * float(row['low']):+.1f}, {100 * float(row['high']):+.1f}]"
            for row in rows
            if row["comparison"].endswith(last) or not any(other["comparison"].endswith(last) for other in rows)
        )
        where = " at 0.9" if any(row["comparison"].endswith(last) for row in rows) else ""
        held = sum(row["found"] == "holds" for row in rows)
        verdict = next(word for word in (PARTLY, HOLDS, FAILS, OPEN) if rows[0]["verdict"].startswith((word, "open")))
        return f"points{where}: {shown}; {held} of {len(rows)} comparisons hold", verdict

    return here


ROAR = [
    Claim("Fig. 5", "raw gradient, guided backprop and IG are worse than random pixels", FAMILIES, "at 0.9: 67.5 and 67.8 % against 63.7 %", FAMILY_STUDY, family("raw estimators are worse than random pixels in ROAR")),
    Claim("Fig. 5", "squared and averaged (SG-SQ) they are far better than random", FAMILIES, "at 0.9: 10.8 % (gradient), 17 % (GB) against 63.7 %", FAMILY_STUDY, family("SG-SQ is better than random pixels in ROAR")),
    Claim("Fig. 5", "… with two trials of the seed paper's estimators", CIFAR, "as above", STUDY, against_random({"sg-sq": "SG-SQ", "vg": "VarGrad"})),
    Claim("4.2.3", "SG-SQ beats the raw estimator", FAMILIES, "57.0 points for the gradient at 0.9", FAMILY_STUDY, family("SG-SQ beats the raw estimator in ROAR")),
    Claim("4.2.4", "averaging over noise alone (SG) does not help", FAMILIES, "gradient 2.5 points worse at 0.9; GB gains", FAMILY_STUDY, family("SG alone is no better than the raw estimator in ROAR")),
    Claim("4.2.5", "squaring alone beats the raw estimator", FAMILIES, "5.5 points for the gradient, 8.4 for GB at 0.9", FAMILY_STUDY, family("SQ alone is better than the raw estimator in ROAR")),
    Claim("Fig. 6", "squaring alone makes an estimator slightly better than random", CIFAR, "no number", STUDY, against_random({"grad^2": "Grad²", "ig^2": "IG²"})),
    Claim("Fig. 4", "without retraining accuracy falls further", FAMILIES, "far further at every rate", FAMILY_STUDY, family("without retraining accuracy falls further")),
    Claim("4.2.2", "KAR spreads estimators less than ROAR", FAMILIES, "7.1 points at 0.1 against 59.6 at 0.9", FAMILY_STUDY, family("KAR tells estimators less apart than ROAR")),
    Claim("4.2.1", "after removing 90 % at random a net still trains to a high accuracy", CIFAR, "ImageNet: 63.7 %", STUDY, little_left),
    Claim("all", "the grid of ImageNet", "ImageNet", "Fig. 4 to 6", None, not_run("hundreds of trainings of ResNet-50 need GPUs")),
]  # fmt: skip


# 002 and 004: the claims of tools/score_claims.py, and what else there is

SCORES = study(
    "scores-cifar10",
    "scores-cifar10/study.toml",
    55,
    "python tools/score_claims.py RUNS/scores-cifar10 --out docs/results/scores-cifar10",
)
CIFAR_FILES = "--train DATA/cifar10_train_10k.npz --test DATA/cifar10_test_2k.npz"
VALIDATE = Work("validate", ("roarfast validate --json > docs/results/validate/claims.json",), 0.1)
ENHANCEMENT = Work(
    "enhancement",
    (f"python tools/enhancement.py {CIFAR_FILES} --images 300 --convnet-images 60",),
)
FLIPPING = Work(
    "reference-flipping",
    (f"python tools/reference_flipping.py {CIFAR_FILES} --images 300",),
)
SCORED = "CIFAR-10, 10,000 + 1,000"
PHOTOS = "100 ImageNet photos, a trained EfficientNet-Lite0"
SPOKEN = {"holds": HOLDS, "does not hold": FAILS, "partly": PARTLY, "cannot be told here": OPEN}


def scored(paper: str, folder: str = "scores-cifar10", data: str = SCORED, work: Work = SCORES) -> Iterator[Claim]:
    """One row per claim of a paper in the claims.csv of a folder of docs/results; one that says so if it is missing."""
    found: dict[tuple[str, str], list[Row]] = {}
    try:
        rows = Results.table(f"{folder}/claims.csv")
    except Missing:
        yield Claim(
            "all", "its scores", data, "figures", work, lambda results: ("", str(results.table(f"{folder}/claims.csv")))
        )
        return
    for row in rows:
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
        yield Claim(where, text, data, "no number", work, here)


def photos(paper: str) -> Iterator[Claim]:
    """The same of a trained network on ImageNet photos."""
    return scored(paper, "imagenet-photos", PHOTOS, PHOTO_STUDY)


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

        yield Claim(where, row["claim"], "closed form", row["paper"], VALIDATE, here)


FALSIFICATION = Work(
    "falsification",
    (
        "roarfast run roarfast/study/presets/falsification.toml --data-root DATA --out RUNS/falsification",
        "python tools/falsification.py RUNS/falsification --out docs/results/falsification",
    ),
    8.3,
)
WATERMARK = Work("watermark", (f"python tools/watermark_study.py {CIFAR_FILES} --workers 2",), 10)
MNIST = Work(
    "mnist-linear", ("python tools/mnist_linear.py --train DATA/mnist_train_10k.npz --test DATA/mnist_test_2k.npz",), 1
)
PHOTOS_TABLE_2 = Work(
    "enhancement-photos",
    ("python tools/enhancement.py --photos DATA/imagenet1k_224_jpeg.npz --threads 2",),
    known="24 minutes of processor time",
)


def falsified(*beginnings: str) -> Here:
    """What was expected beforehand of masks that see the label."""

    def here(results: Results) -> tuple[str, str]:
        found = [row for row in results.table("falsification/gates.csv") if row["gate"].startswith(beginnings)]
        held = sum(row["holds"] == "True" for row in found)
        shown = "; ".join(f"{row['gate']} {100 * float(row['value']):.1f}" for row in found)
        return shown, HOLDS if held == len(found) else PARTLY if held else FAILS

    return here


def watermarked(results: Results) -> tuple[str, str]:
    """Attr% of a box and of bands on numbers and on stripes."""
    maps = {"Rect": "ig | rect(9)", "Pooling": "ig | rows(4)"}
    shown, wins = [], {}
    for data in ("number", "stripes"):
        values = {
            n: results.one("watermark/summary.csv", "mean", data=data, what="Attr%", map=m) for n, m in maps.items()
        }
        (row,) = results.rows("watermark/summary.csv", data=data, what="Attr%, box minus bands")
        shown.append(f"{data}: " + ", ".join(f"{n} {v:.2f}" for n, v in values.items()))
        wins[data] = (float(row["low"]) > 0, float(row["high"]) < 0)
    return "; ".join(shown), HOLDS if wins["number"][0] and wins["stripes"][1] else PARTLY


def corner(results: Results) -> tuple[str, str]:
    """Table 3 of 004: accuracy and pointing game before and after."""
    before, after = (
        results.rows("mnist-linear/table.csv", input="shifted", map=m)[0] for m in ("standard", "manipulated")
    )
    shown = f"{float(before['accuracy']):.1f} and {float(after['accuracy']):.1f} %; {float(before['pointing']):.1f} → {float(after['pointing']):.1f} %"
    same = after["changed"] == "0" and float(after["pointing"]) == 0 and float(before["pointing"]) > 95
    return f"{shown}; {after['changed']} predictions changed", HOLDS if same else PARTLY


def photos_enhanced(results: Results) -> tuple[str, str]:
    """Table 2 of 004 with its own nets, at 224²."""
    nets = ("alexnet", "vgg16", "mnasnet1_0")
    found = [row for row in results.table("enhancement/photos.csv") if row["net"] in nets]
    if len(found) < len(nets):
        raise Missing("enhancement/photos.csv")
    shown = "; ".join(
        f"{r['net']} {100 * float(r['before']):.1f} → {100 * float(r['after']):.1f} % ({r['images']} photos)"
        for r in found
    )
    return shown, HOLDS if all(float(row["after"]) >= 0.6 for row in found) else PARTLY


SOUNDNESS = [
    Claim("Fig. 1", "two masks that remove as many pixels retrain to different accuracies, if one of them sees the label", CIFAR, "0.60 and 0.88 retrained, 0.24 and 0.29 on the original model", FALSIFICATION, falsified("retrained", "base model, center", "masks alone")),
    Claim("Fig. 10", "a label-dependent patch in the training images alone spoils the accuracy on whole images", CIFAR, "0.322 against 0.887", FALSIFICATION, falsified("base model less")),
    Claim("Fig. 2b", "Rect wins on watermarked numbers and loses on stripes, Pooling the reverse (Attr%)", "CIFAR-10 with watermarks", "Rect 0.92 and 0.60, Pooling 0.31 and 0.93", WATERMARK, watermarked),
    Claim("Table 1", "completeness and soundness tell modified maps apart, deletion and ROAD hardly (Hausdorff distance of curves)", "CIFAR-10, 200 test images", "0.503, 0.183, 0.019, 0.014 (ImageNet)", SCORES, separation),
]  # fmt: skip
UNIFIED = [
    Claim("Table 2", "images moved a little make untrained nets right", "CIFAR-10, 300 and 60 test images", "ImageNet: AlexNet 0.1 → 64.7 %, VGG-16 0.1 → 100.0 %, MnasNet 0.1 → 64.6 %", ENHANCEMENT, enhanced),
    Claim("Table 2", "… with these nets", "ImageNet photos", "as above", PHOTOS_TABLE_2, photos_enhanced),
    Claim("Table 3", "a linear model can be made to point at a corner while no answer changes", "MNIST, 10,000 + 2,000", "79.51 %; pointing game 100.0 → 0.0 %", MNIST, corner),
    Claim("Fig. 1, 4", "random pixels in the mean colour do more damage than Grad-CAM's, imputed ones less (random − Grad-CAM, accuracy at 0.3)", "CIFAR-10, 300 test images", "VGG-16, ImageNet: a figure", FLIPPING, flipped),
    Claim("Fig. 6", "random pixels of Grad-CAM's top N do more damage than Grad-CAM and than random pixels", "CIFAR-10, 300 test images", "a figure", FLIPPING, inside),
]  # fmt: skip


def papers() -> dict[str, list[Claim]]:
    """Claims by paper."""
    return {
        "On Pitfalls of RemOve-And-Retrain": [*PITFALLS, *scored("000"), *photos("000"), *checked("000")],
        "A Benchmark for Interpretability Methods (ROAR)": ROAR,
        "A Dual-Perspective Approach (soundness and completeness)": [
            *SOUNDNESS,
            *scored("002"),
            *photos("002"),
            *checked("002"),
        ],
        "A Unified Study of Explanation Evaluation Metrics": [
            *UNIFIED,
            *scored("004"),
            *photos("004"),
            *checked("004"),
        ],
    }
