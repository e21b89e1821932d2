"""The claims of the papers, what we found, and what makes it again: the rows of docs/papers.md.

To add a claim: a `Claim` in one of the lists below. What it says of us is a function of `Results`, so that a new run changes the
page and cannot contradict it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from statistics import NormalDist, mean, stdev

from paper_results import (
    FAILS,
    HOLDS,
    OPEN,
    PARTLY,
    Claim,
    Here,
    Missing,
    Results,
    Row,
    Work,
    judge,
    negligible,
    not_run,
    of_all,
    sign,
    with_bounds,
)


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


def fallen(intervals: Sequence[tuple[float, float]]) -> str:
    """Whether all differences are below 0; one whose interval holds 0 tells nothing."""
    return of_all([sign(low, high, below=True) for low, high in intervals])


def fisher(r: float, n: int) -> tuple[float, float]:
    """The 95 % interval of a correlation (Fisher's z)."""
    half = NormalDist().inv_cdf(0.975) / math.sqrt(n - 3)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def squared(low: float, high: float) -> str:
    """R² of a correlation between these."""
    ends = sorted((low * low, high * high))
    return f"[{0.0 if low < 0 < high else ends[0]:.2f}, {ends[1]:.2f}]"


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
        shown = ", ".join(
            f"{float(f['r2']):.2f} {squared(*fisher(math.copysign(float(f['r2']) ** 0.5, float(f['slope'])), int(f['n'])))} "
            f"at {f['drop']} (p = {float(f['p']):.2g})"
            for f in fits
        )
        significant = [float(f["slope"]) for f in fits if float(f["p"]) < 0.05]
        clear, reverse = sum(slope > 0 for slope in significant), sum(slope < 0 for slope in significant)
        if reverse:
            shown += f"; at {reverse} of {len(fits)} rates the reverse"
        return f"R² = {shown}", (HOLDS if clear == len(fits) else PARTLY if clear else FAILS if reverse else OPEN)

    return here


def unmoved(rows: Sequence[Row], others: str = "the other maps") -> tuple[str, str]:
    """Is the effect of smoothing on Grad-CAM² unclear in every cell, and clearly not what it does to the other maps?"""
    own = [row for row in rows if row["estimator"] == "gc^2"]
    known = [row for row in own if row["low"] not in ("", "nan")]  # one trial has no interval
    moved = apart = 0
    for row in known:
        low, high = float(row["low"]), float(row["high"])
        usual = mean(
            float(r["difference"])
            for r in rows
            if r["estimator"] != "gc^2" and (r["postprocess"], r["drop"]) == (row["postprocess"], row["drop"])
        )
        moved += not low <= 0 <= high
        apart += not low <= usual <= high
    shown = ", ".join(
        f"{100 * float(r['difference']):+.1f}"
        + (f" [{100 * float(r['low']):+.1f}, {100 * float(r['high']):+.1f}]" if r in known else "")
        for r in own
    )
    said = (
        f"{shown} points; {len(known) - moved} of {len(known)} intervals hold 0, {apart} exclude what {others} change"
    )
    return said, FAILS if moved == len(known) else PARTLY if moved or 0 < apart < len(
        known
    ) else HOLDS if apart else OPEN


def grad_cam(data: str = TABLES) -> Here:
    """What filters do to Grad-CAM² beside the other maps, over trials."""

    def here(results: Results) -> tuple[str, str]:
        found = results.rows(f"{data}/differences.csv", protocol="roar", order="morf")
        return unmoved([r | {"low": r["difference_low"], "high": r["difference_high"]} for r in found])

    return here


def birds_grad_cam(results: Results) -> tuple[str, str]:
    """The same on CUB-200, over test photos."""
    return unmoved(results.rows("cub20/smoothing.csv", protocol="roar"))


def smoothed_both(data: str) -> Here:
    """In how many cells do filters lower both the accuracy and the masks' total variation (Fig. 6, 8, 9)?"""

    def here(results: Results) -> tuple[str, str]:
        name = f"{data}/cells.csv" if data.endswith("tables") else f"{data}/records.csv"
        rows = [r for r in results.rows(name, protocol="roar", order="morf") if r["tv_mask"]]
        plain = {(r["estimator"], r["drop"]): r for r in rows if r["postprocess"] == "plain"}
        pairs = [(r, plain[r["estimator"], r["drop"]]) for r in rows if r["postprocess"] in ("max(3)", "gaussian(1)")]

        def both(chosen: list[tuple[Row, Row]]) -> int:
            return sum(all(float(r[n]) < float(p[n]) for n in ("tv_mask", "accuracy")) for r, p in chosen)

        cam = [pair for pair in pairs if pair[0]["estimator"] == "gc^2"]
        rest = [pair for pair in pairs if pair not in cam]
        held, low = both(rest), more_than_half(both(rest), len(rest))
        return (
            f"both fall in {held} of {len(rest)} cells ({both(cam)} of {len(cam)} of Grad-CAM²); cells are not independent",
            HOLDS if low else PARTLY if 2 * held > len(rest) else FAILS,
        )

    return here


def more_than_half(count: int, n: int) -> bool:
    """Whether a fair coin gives so many heads in at most one of forty series."""
    return sum(math.comb(n, k) for k in range(count, n + 1)) / 2**n <= 0.025


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
            parts.append(f"{name} " + ", ".join(with_bounds(row) for row in rows))
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


def birds_smooth(protocol: str) -> Here:
    """R² of accuracy and mask total variation over maps, plain and filtered."""

    def here(results: Results) -> tuple[str, str]:
        fits = results.rows("cub20/summary.csv", what="correlation", protocol=protocol)
        shown = ", ".join(
            f"{float(f['value']) ** 2:.2f} {squared(float(f['low']), float(f['high']))} at {f['drop']} (p = {float(f['p']):.2g})"
            for f in fits
        )
        clear = sum(float(f["p"]) < 0.05 and float(f["value"]) > 0 for f in fits)
        most = max(float(f["high"]) for f in fits) ** 2
        weaker = FAILS if protocol == "roar" and most < LEAST_R2 else OPEN
        return f"R² = {shown}; filtered maps included", (HOLDS if clear == len(fits) else PARTLY if clear else weaker)

    return here


def birds_blocks(results: Results) -> tuple[str, str]:
    """Table 1 on its own data; intervals over test photos."""
    parts = []
    for name, text in (("rand", "pixels"), ("block", "block")):
        rows = results.rows("cub20/table1.csv", removed=name)
        parts.append(
            f"{text} "
            + ", ".join(f"{float(r['accuracy']):.3f} [{float(r['low']):.3f}, {float(r['high']):.3f}]" for r in rows)
        )
    below = [float(row["gap_high"]) < 0 for row in results.rows("cub20/table1.csv", removed="block")]
    return "; ".join(parts), HOLDS if all(below) else PARTLY if any(below) else FAILS


def parts_change(dataset: str, field: str, estimators: str) -> Here:
    """What filters change of a part of ROAD's damage: at most a quarter of what they change of the damage?"""

    def here(results: Results) -> tuple[str, str]:
        found = [
            r
            for r in results.table("parts/changes.csv")
            if (r["dataset"], r["protocol"], r["of"], r["estimators"]) == (dataset, "road", "accuracy", estimators)
        ]
        if not found:
            raise Missing(dataset)
        return small_part(found, field)

    return here


def small_part(rows: Sequence[Row], field: str) -> tuple[str, str]:
    """Whether what each row changes of a part is at most a quarter of what it changes of the damage."""
    shown = "; ".join(
        f"{r['postprocess']} changes it by {interval(r, field)} of {interval(r, 'damage')}, so by at most "
        f"{100 * max(0.0, float(r[field + '_high'])) / float(r['damage']):.1f} % of that"
        for r in rows
    )
    return shown, of_all(
        [negligible(float(r[field + "_low"]), float(r[field + "_high"]), float(r["damage"])) for r in rows]
    )


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
PHOTOS = "100 ImageNet photos, a trained EfficientNet-Lite0"
PHOTO_PARTS = "50 ImageNet photos, EfficientNet-Lite0"


def interval(row: Row, name: str) -> str:
    """Points of a row with their interval."""
    value, low, high = (100 * float(row[name + end]) for end in ("", "_low", "_high"))
    return f"{value:+.1f} points [{low:+.1f}, {high:+.1f}]"


def retrained_parts(results: Results) -> tuple[str, str]:
    """What a Gaussian adds to ROAR's damage: shape, and little that masks know of their images?"""
    (row,) = results.rows("parts/roar-parts.csv", what="change", estimators="estimators that ask the model")
    shown = ", ".join(f"{name} {interval(row, name)}" for name in ("damage", "shape", "class", "image"))
    found = [sign(float(row["shape_low"]), float(row["shape_high"]))]
    found += [
        negligible(float(row[n + "_low"]), float(row[n + "_high"]), float(row["damage"])) for n in ("class", "image")
    ]
    return f"a Gaussian adds: {shown}", of_all(found)


def retrained_with_others(results: Results) -> tuple[str, str]:
    """Masks of another trial's model beside own ones, both retrained on: alike to a quarter of the damage?"""
    (row,) = results.rows("parts/roar.csv", protocol="roar", null="model")
    (own,) = results.rows(
        "parts/roar.csv", protocol="roar", null="own", estimator=row["estimator"], postprocess="plain"
    )
    low, high = float(row["minus_own_low"]), float(row["minus_own_high"])
    damage = float(own["base"]) - float(own["accuracy"])
    return (
        f"accuracy with another model's masks − own, grad²: {interval(row, 'minus_own')} of {100 * damage:.1f} points of damage",
        of_all([negligible(low, high, damage), negligible(-high, -low, damage)]),
    )


def photos_model_part(field: str, other: str) -> Here:
    """What blur changes of the model part on photos, or of it beyond the shape of either model's masks."""

    def here(results: Results) -> tuple[str, str]:
        rows = results.rows(
            "imagenet-photos/parts-changes.csv", other=other, estimators="estimators that ask the model"
        )
        return small_part(rows, field)

    return here


def photos_even(results: Results) -> tuple[str, str]:
    """What blur changes on photos at equal damage, map by map."""
    found, shares = [], []
    for k in ("gaussian(1)", "gaussian(7)"):
        even = results.rows("imagenet-photos/claims.csv", claim=f"at equal damage {k} raises nothing")
        raw = results.rows("imagenet-photos/claims.csv", claim=f"{k} lowers ROAD most relevant first")
        gains = [mean(factor * float(row["difference"]) for row in rows) for factor, rows in ((1, even), (-1, raw))]
        shares.append(f"{k} {100 * gains[0]:+.1f} of {100 * gains[1]:+.1f} points in the mean over {len(even)} maps")
        worst = max(even, key=lambda row: float(row["low"]))
        shares[-1] += (
            f", most for {worst['comparison'].partition(':')[0]} {100 * float(worst['difference']):+.1f} "
            f"[{100 * float(worst['low']):+.1f}, {100 * float(worst['high']):+.1f}]"
        )
        found += [
            negligible(float(row["low"]), float(row["high"]), -float(one["difference"]))
            for row, one in zip(even, raw, strict=True)
        ]
    held, failed = found.count(HOLDS), found.count(FAILS)
    shares.append(f"{held} of {len(found)} maps clearly within a quarter, {failed} beyond it or more than 0")
    return "; ".join(shares), of_all(found)


def in_bits(protocol: str) -> Here:
    """Conjecture 3.3 in its own quantity: bits left of the class."""

    def here(results: Results) -> tuple[str, str]:
        rows = results.rows(f"{SVHN_TABLES}/bits_counts.csv", protocol=protocol, order="morf")
        names = {"bits": "", "scaled_bits": " (after temperature scaling)"}
        shown = "; ".join(
            f"{r['postprocess']} {float(r['mean_difference']):+.2f} [{float(r['mean_difference_low']):+.2f}, "
            f"{float(r['mean_difference_high']):+.2f}]{names[r['measure']]}"
            for r in rows
        )
        bounds = [(float(r["mean_difference_low"]), float(r["mean_difference_high"])) for r in rows]
        return (
            f"bits: {shown}; falls in {sum(int(r['lower']) for r in rows)} of {sum(int(r['cells']) for r in rows)}",
            fallen(bounds),
        )

    return here


def most_on_birds(results: Results) -> tuple[str, str]:
    """Does smoothing do more on CUB-200 than on the other two?"""
    shown, bounds = [], {}
    for name, rows, fields in (
        (
            "CIFAR-10",
            results.rows(f"{TABLES}/counts.csv", protocol="roar", order="morf", group="estimators"),
            "mean_difference",
        ),
        (
            "SVHN",
            results.rows(f"{SVHN_TABLES}/counts.csv", protocol="roar", order="morf", group="estimators"),
            "mean_difference",
        ),
        ("CUB-200", results.rows("cub20/summary.csv", what="smoothing", protocol="roar"), ""),
    ):
        keys = (fields, f"{fields}_low", f"{fields}_high") if fields else ("value", "low", "high")
        found = {r["postprocess"]: tuple(float(r[k]) for k in keys) for r in rows}
        bounds[name] = found
        shown.append(
            f"{name} "
            + ", ".join(f"{k} {100 * v:+.1f} [{100 * a:+.1f}, {100 * b:+.1f}]" for k, (v, a, b) in found.items())
        )
    verdicts = [
        HOLDS if birds[2] < other[1] else FAILS if birds[1] > other[2] else OPEN
        for name, others in bounds.items()
        if name != "CUB-200"
        for k, other in others.items()
        if (birds := bounds["CUB-200"][k])
    ]
    return "points: " + "; ".join(shown), of_all(verdicts)


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
    Claim("Fig. 4", "… of CUB-200", CUB, "most cells", CUB_STUDY, birds_smoothed("roar")),
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
    Claim("Fig. 7", "… on CUB-200", CUB, R2, CUB_STUDY, birds_smooth("roar")),
    Claim("5", "the same for ROAD", CIFAR, "no number", STUDY, smoothness("road")),
    Claim("5", "… on SVHN", SVHN, "no number", SVHN_STUDY, smoothness("road", SVHN_TABLES)),
    Claim("5", "… on CUB-200", CUB, "no number", CUB_STUDY, birds_smooth("road")),
    Claim("Fig. 8", "filters lower both the total variation of masks and the ROAR accuracy, but for Grad-CAM²", CIFAR, "most cells, no number", STUDY, smoothed_both(TABLES)),
    Claim("Fig. 9", "… on SVHN", SVHN, "most cells", SVHN_STUDY, smoothed_both(SVHN_TABLES)),
    Claim("Fig. 6", "… on CUB-200", CUB, "most cells", CUB_STUDY, smoothed_both("cub20")),
    Claim("Fig. 10", "the relation of Fig. 7 holds for estimators that are not squared", "none", "a figure", None, not_run("the presets `paper-*` have these estimators; the studies here have only the gradient so")),
    Claim("Conjecture 3.3", "smoothing lowers I(X'; Y), in bits that a retrained net still finds (ROAR)", SVHN, "no number", SVHN_STUDY, in_bits("roar")),
    Claim("Conjecture 3.3", "… and without retraining (ROAD)", SVHN, "no number", SVHN_STUDY, in_bits("road")),
    Claim("4.2", "smoothing does most on CUB-200", "the three of Fig. 4", "no number", CUB_STUDY, most_on_birds),
    Claim("4.2", "what smoothing does to Grad-CAM² is inconclusive", CIFAR, "no number", STUDY, grad_cam()),
    Claim("4.2", "… on SVHN", SVHN, "no number", SVHN_STUDY, grad_cam(SVHN_TABLES)),
    Claim("4.2", "… on CUB-200", CUB, "no number", CUB_STUDY, birds_grad_cam),
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
    Claim("Theorem 3.1", "smoothing adds no knowledge of the model: the model part of ROAD's damage does not grow (mean over gradient estimators)", CIFAR, "no number", PARTS, parts_change("cifar10-subset", "model", "gradient estimators")),
    Claim("Theorem 3.1", "… on SVHN", "SVHN, 10,000 + 1,000", "no number", PARTS, parts_change("svhn-subset", "model", "gradient estimators")),
    Claim("Theorem 3.1", "… on CUB-200", CUB_PARTS, "no number", PARTS, parts_change("cub20", "model", "gradient estimators")),
    Claim("Theorem 3.1", "… on ImageNet photos", f"{PHOTO_PARTS} beside EfficientNet-Lite1", "no number", PHOTO_STUDY, photos_model_part("model", "lite1")),
    Claim("Theorem 3.1", "… on ImageNet photos", f"{PHOTO_PARTS} beside fresh weights", "no number", PHOTO_STUDY, photos_model_part("model", "untrained")),
    Claim("Theorem 3.1", "… on ImageNet photos", f"{PHOTO_PARTS} beside fresh weights, normalised", "no number", PHOTO_STUDY, photos_model_part("model", "normalised")),
    Claim("ours", "smoothing does not raise the model part beyond the shape of either model's masks (excess)", f"{PHOTO_PARTS} beside EfficientNet-Lite1", "none", PHOTO_STUDY, photos_model_part("model_excess", "lite1")),
    Claim("ours", "smoothing does not raise the model part beyond the shape of either model's masks (excess)", f"{PHOTO_PARTS} beside fresh weights", "none", PHOTO_STUDY, photos_model_part("model_excess", "untrained")),
    Claim("ours", "smoothing does not raise the model part beyond the shape of either model's masks (excess)", f"{PHOTO_PARTS} beside fresh weights, normalised", "none", PHOTO_STUDY, photos_model_part("model_excess", "normalised")),
    Claim("6", "the paper has no remedy; ours: at equal damage smoothing buys at most a quarter of what it buys of ROAD", CIFAR, "none", PARTS, parts_change("cifar10-subset", "equal_damage", "estimators that ask the model")),
    Claim("6", "… on SVHN", "SVHN, 10,000 + 1,000", "none", PARTS, parts_change("svhn-subset", "equal_damage", "estimators that ask the model")),
    Claim("6", "… on CUB-200", CUB_PARTS, "none", PARTS, parts_change("cub20", "equal_damage", "estimators that ask the model")),
    Claim("6", "… on ImageNet photos, each map by itself", PHOTOS, "none", PHOTO_STUDY, photos_even),
    Claim(
        "4",
        "what smoothing gains in ROAR is the shape of masks; of class and image at most a quarter of it",
        ROAR_PARTS,
        "no number",
        PARTS,
        retrained_parts,
    ),
    Claim(
        "ours",
        "ROAR never meets the explained model: masks of another one do the same damage, to a quarter of it",
        ROAR_PARTS,
        "none",
        PARTS,
        retrained_with_others,
    ),
    Claim("all", "the grids as the paper has them", "whole data sets", "Fig. 4 to 10", None, not_run("hundreds of trainings of ResNet-18 and ResNet-50 need GPUs; the presets `paper-*` run end to end for a few steps")),
]  # fmt: skip


# 001: ROAR


def against_random(names: dict[str, str]) -> Here:
    """Is each estimator's ROAR accuracy below that of random pixels, at 0.3 and 0.5?"""

    def here(results: Results) -> tuple[str, str]:
        rates = ("0.3", "0.5")
        random = roar_cells(results, "rand", rates)
        found = {text: roar_cells(results, name, rates) for name, text in names.items()}
        shown = "; ".join(
            f"{rate}: random {with_bounds(random[i])}, "
            + ", ".join(f"{text} {with_bounds(rows[i])}" for text, rows in found.items())
            for i, rate in enumerate(rates)
        )
        return shown, judge([row for rows in found.values() for row in rows], random * len(found))

    return here


def little_left(results: Results) -> tuple[str, str]:
    """The accuracy with 90 % of the pixels gone at random, beside that with none."""
    base = [float(row["accuracy"]) for row in results.rows(f"{TABLES}/records.csv", protocol="base")]
    whole, row = mean(base), roar_cells(results, "rand", ("0.9",))[0]
    half = sign(float(row["accuracy_low"]) - whole / 2, float(row["accuracy_high"]) - whole / 2)
    return f"{with_bounds(row)}, with nothing removed {whole:.3f}; high: more than half of that", half


def beside_random(estimators: Sequence[str], says: str, folder: str) -> Here:
    """Estimators against random pixels in ROAR, rate by rate, corrected over estimators (Holm): "better" or "worse"."""

    def here(results: Results) -> tuple[str, str]:
        rows = [
            r
            for r in results.rows(f"{folder}/random.csv", protocol="roar", order="morf")
            if r["estimator"] in estimators
        ]
        shown = ", ".join(
            f"{r['estimator']} at {r['drop']} {100 * float(r['difference']):+.1f}"
            + (f" [{100 * float(r['low']):+.1f}, {100 * float(r['high']):+.1f}]" if r["low"] else "")
            for r in rows
        )
        verdicts = [HOLDS if r["verdict"] == says else OPEN if r["verdict"] == "open" else FAILS for r in rows]
        counts = ", ".join(f"{sum(r['verdict'] == word for r in rows)} {word}" for word in ("better", "worse", "open"))
        return f"points: {shown}; {counts}", of_all(verdicts)

    return here


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
        verdict = next(word for word in (PARTLY, HOLDS, FAILS, OPEN) if rows[0]["verdict"].startswith(word))
        return f"points{where}: {shown}; {held} of {len(rows)} comparisons hold", verdict

    return here


SQUARED = ["grad^2", "gi^2", "ig^2"]
ROAR = [
    Claim("Fig. 5", "raw gradient, guided backprop and IG are worse than random pixels", FAMILIES, "at 0.9: 67.5 and 67.8 % against 63.7 %", FAMILY_STUDY, family("raw estimators are worse than random pixels in ROAR")),
    Claim("Fig. 5", "squared and averaged (SG-SQ) they are far better than random", FAMILIES, "at 0.9: 10.8 % (gradient), 17 % (GB) against 63.7 %", FAMILY_STUDY, family("SG-SQ is better than random pixels in ROAR")),
    Claim("Fig. 5", "… of the estimators of Song et al., two trials", CIFAR, "as above", STUDY, against_random({"sg-sq": "SG-SQ", "vg": "VarGrad"})),
    Claim("Fig. 5", "… on SVHN", SVHN, "as above", SVHN_STUDY, beside_random(["sg-sq", "vg"], "better", SVHN_TABLES)),
    Claim("4.2.3", "SG-SQ beats the raw estimator", FAMILIES, "57.0 points for the gradient at 0.9", FAMILY_STUDY, family("SG-SQ beats the raw estimator in ROAR")),
    Claim("4.2.4", "averaging over noise alone (SG) does not help gradient and IG, to a quarter of what SG-SQ gains", FAMILIES, "2.5 and 2.6 points worse at 0.9", FAMILY_STUDY, family("SG alone is no better than raw grad and IG in ROAR")),
    Claim("4.2.4", "averaging over noise alone helps guided backprop", FAMILIES, "at every rate, 4.1 points at 0.9", FAMILY_STUDY, family("SG alone is better than raw guided backprop in ROAR")),
    Claim("Fig. 6", "averaged alone they stay worse than random pixels", FAMILIES, "at almost every rate", FAMILY_STUDY, family("SG alone is worse than random pixels in ROAR")),
    Claim("4.2.5", "squaring alone beats the raw estimator", FAMILIES, "5.5 points for the gradient, 8.4 for GB at 0.9", FAMILY_STUDY, family("SQ alone is better than the raw estimator in ROAR")),
    Claim("Fig. 6", "squaring alone makes an estimator slightly better than random", FAMILIES, "no number", FAMILY_STUDY, family("SQ alone is better than random pixels in ROAR")),
    Claim("Fig. 6", "… of the estimators of Song et al., two trials", CIFAR, "no number", STUDY, against_random({"grad^2": "Grad²", "ig^2": "IG²"})),
    Claim("Fig. 6", "… on SVHN", SVHN, "no number", SVHN_STUDY, beside_random(SQUARED, "better", SVHN_TABLES)),
    Claim("Fig. 4", "without retraining accuracy falls further", FAMILIES, "far further at every rate", FAMILY_STUDY, family("without retraining accuracy falls further")),
    Claim("4.2.2", "KAR spreads estimators less than ROAR", FAMILIES, "7.1 points at 0.1 against 59.6 at 0.9", FAMILY_STUDY, family("KAR tells estimators less apart than ROAR")),
    Claim("4.2.2", "guided backprop, raw and SG-SQ, is the worst in KAR", FAMILIES, "at every rate", FAMILY_STUDY, family("GB and its SG-SQ are the worst of their families in KAR")),
    Claim("4.2.1", "after removing 90 % at random a net still trains to a high accuracy", CIFAR, "ImageNet: 63.7 %", STUDY, little_left),
    Claim("4.2.1", "… and after 99 %", "none", "ImageNet: 45.4 %", None, not_run("the rate is in no study here; `roar-imagenet` has it")),
    Claim("all", "the grid of ImageNet", "ImageNet", "Fig. 4 to 6", None, not_run("hundreds of trainings of ResNet-50 need GPUs")),
]  # fmt: skip


# 002 and 004: the claims of tools/score_claims.py, and what else there is

SCORES = study(
    "scores-cifar10",
    "scores-cifar10/study.toml",
    17,
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
SCORED = "CIFAR-10, 10,000 + 2,000"
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
    """Our Table 1 of 002, and whether its scores are farther apart, paired over the six sets of curves."""
    scores: dict[str, dict[tuple[str, str], float]] = {}
    for row in results.table("scores-cifar10/separation.csv"):
        by = scores.setdefault(row["score"].partition("(")[0], {})
        by[row["scheme"], row["estimator"]] = float(row["distance"])
    shown = [", ".join(f"{name} {mean(values.values()):.3f}" for name, values in scores.items())]
    found = []
    for one in ("completeness", "soundness"):
        for other in ("deletion", "road"):
            gaps = [scores[one][key] - scores[other][key] for key in scores[one]]
            half = T_95[len(gaps) - 1] * stdev(gaps) / math.sqrt(len(gaps))
            found.append(sign(mean(gaps) - half, mean(gaps) + half))
            shown.append(f"{one} − {other} {mean(gaps):+.3f} [{mean(gaps) - half:+.3f}, {mean(gaps) + half:+.3f}]")
    return "; ".join(shown), of_all(found)


T_95 = {5: 2.571}
"""Student's t of an interval of 95 %, by degrees of freedom."""


def enhanced(results: Results) -> tuple[str, str]:
    """Untrained nets whose images are moved until they are right."""
    found = [row for row in results.markdown("enhancement/README.md", "net and units") if row["epsilon"] == "0.3"]
    shown = "; ".join(
        f"{row['net and units']}: {row['before']} → {row['after']} of {row['images']} images" for row in found
    )
    high = all(float(row["after"].rstrip("%")) >= 60 for row in found)
    return shown, HOLDS if high else FAILS


def stay(results: Results) -> tuple[str, str]:
    """Are maps of an enhanced image nearer to those of the untrained net than to those of the trained one?"""
    rows = results.table("enhancement/maps.csv")
    shown = "; ".join(
        f"{r['estimator']} {float(r['untrained']):.2f} against {float(r['trained']):.2f}, difference {float(r['difference']):.3f} "
        f"[{float(r['difference_low']):.3f}, {float(r['difference_high']):.3f}]"
        for r in rows
    )
    return f"rank correlation over pixels: {shown}", of_all(
        [sign(float(r["difference_low"]), float(r["difference_high"])) for r in rows]
    )


def photo_net(name: str) -> Here:
    """An untrained net whose photos are moved: right in 60 % or more afterwards, as the paper's are?"""

    def here(results: Results) -> tuple[str, str]:
        found = [row for row in results.table("enhancement/photos.csv") if row["net"] == name]
        if not found:
            raise Missing("enhancement/photos.csv")
        low, high = (float(found[0][field]) - 0.6 for field in ("after_low", "after_high"))
        return photo_shown(found[0]), sign(low, high)

    return here


def photo_shown(row: Row) -> str:
    """The accuracy of a net before and after, with its interval."""
    before, after, low, high = (100 * float(row[k]) for k in ("before", "after", "after_low", "after_high"))
    return f"{row['net']} {before:.1f} → {after:.1f} % [{low:.1f}, {high:.1f}] ({row['images']} photos)"


def flipped(results: Results) -> tuple[str, str]:
    """Random pixels against Grad-CAM at 0.3, by fill."""
    found = [row for row in results.markdown("reference-flipping/README.md", "fill") if row["rate"] == "0.3"]
    shown = "; ".join(f"{row['fill']} {row['accuracy']}" for row in found)
    return shown, HOLDS if all(row["claim (t = 0.3 only)"].startswith("holds") for row in found) else PARTLY


def inside(results: Results) -> tuple[str, str]:
    """Random pixels of Grad-CAM's top N."""
    found = [r for r in results.markdown("reference-flipping/README.md", "N") if not r["n"].startswith("1.00")]
    pairs = [[bounds(r[name]) for name in ("minus Grad-CAM", "minus random")] for r in found]
    both = sum(all(high < 0 for _, high in pair) for pair in pairs)
    highest = max(high for pair in pairs for _, high in pair)
    verdict = of_all([sign(*one, below=True) for pair in pairs for one in pair])
    return f"both intervals below 0 in {both} of {len(found)} (N, n); their highest end {highest:+.3f}", verdict


def bounds(text: str) -> tuple[float, float]:
    """The interval of "-0.338 [-0.483, -0.175]"."""
    low, high = re.findall(r"[-+.\d]+", text.partition("[")[2])
    return float(low), float(high)


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
WATERMARKED = "CIFAR-10 with watermarks"
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
    """What was expected beforehand of masks that see the label: whether the interval over trials keeps to it."""

    def here(results: Results) -> tuple[str, str]:
        found = [row for row in results.table("falsification/gates.csv") if row["gate"].startswith(beginnings)]
        shown, verdicts = [], []
        for row in found:
            value, low, high = (100 * float(row[name]) for name in ("value", "low", "high"))
            shown.append(f"{row['gate']} {value:.1f} [{low:.1f}, {high:.1f}] (expected {row['expected']})")
            limit = float(row["expected"].split()[-1])
            if row["expected"].startswith("at least"):
                verdicts.append(HOLDS if low >= limit else FAILS if high < limit else OPEN)
            elif row["expected"].startswith("below"):
                verdicts.append(HOLDS if high < limit else FAILS if low >= limit else OPEN)
            else:
                verdicts.append(HOLDS if low == high == limit else FAILS)
        return "; ".join(shown), of_all(verdicts)

    return here


def watermarked(results: Results) -> tuple[str, str]:
    """Attr% of a box and of bands on numbers and on stripes."""
    maps = {"Rect": "ig | rect(9)", "Pooling": "ig | rows(4)"}
    shown, wins = [], []
    for data in ("number", "stripes"):
        values = {
            n: results.one("watermark/summary.csv", "mean", data=data, what="Attr%", map=m) for n, m in maps.items()
        }
        (row,) = results.rows("watermark/summary.csv", data=data, what="Attr%, box minus bands")
        low, high = float(row["low"]), float(row["high"])
        shown.append(
            f"{data}: "
            + ", ".join(f"{n} {v:.2f}" for n, v in values.items())
            + f", difference {float(row['mean']):+.2f} [{low:+.2f}, {high:+.2f}]"
        )
        wins.append(sign(low, high, below=data == "stripes"))
    return "; ".join(shown), of_all(wins)


def rect_best(data: str) -> Here:
    """Whether a box has the lowest ROAD accuracy, or not, as it should: half of the pixels gone, and more."""

    def here(results: Results) -> tuple[str, str]:
        head = f"check: {data}, "
        found = [r for r in results.table("watermark/summary.csv") if r["what"].startswith(head)]
        return "; ".join(r["what"].removeprefix(head) for r in found), of_all(
            [HOLDS if r["mean"] == "holds" else FAILS for r in found]
        )

    return here


def cam_by_data(results: Results) -> tuple[str, str]:
    """ROAD of IG and DeepSHAP beside Grad-CAM: more damage on watermarks, less on real images."""
    shown, verdicts = [], []
    for data in ("number", "stripes", "real images"):
        counts = {HOLDS: 0, FAILS: 0, OPEN: 0}
        for name in ("ig", "deepshap"):
            for row in results.rows("watermark/summary.csv", data=data, what="ROAD", map=name):
                (cam,) = results.rows("watermark/summary.csv", data=data, what="ROAD", map="gc", rate=row["rate"])
                low, high = float(row["low"]) - float(cam["high"]), float(row["high"]) - float(cam["low"])
                verdict = sign(low, high, below=data != "real images")
                counts[verdict] += 1
                verdicts.append(verdict)
        shown.append(
            f"{data}: {counts[HOLDS]} of {sum(counts.values())} comparisons as claimed, {counts[FAILS]} the reverse"
        )
    return "; ".join(shown) + " (intervals that do not meet)", of_all(verdicts)


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
    return "; ".join(map(photo_shown, found)), of_all(
        [sign(float(row["after_low"]) - 0.6, float(row["after_high"]) - 0.6) for row in found]
    )


SOUNDNESS = [
    Claim("Fig. 1", "two masks that remove as many pixels retrain to different accuracies, if one of them sees the label", CIFAR, "0.60 and 0.88 retrained, 0.24 and 0.29 on the original model", FALSIFICATION, falsified("retrained", "base model, center", "masks alone")),
    Claim("Fig. 10", "a label-dependent patch in the training images alone spoils the accuracy on whole images", CIFAR, "0.322 against 0.887", FALSIFICATION, falsified("base model less")),
    Claim("Fig. 2b", "Rect wins on watermarked numbers and loses on stripes, Pooling the reverse (Attr%)", WATERMARKED, "Rect 0.92 and 0.60, Pooling 0.31 and 0.93", WATERMARK, watermarked),
    Claim("Fig. 3", "ROAD ranks Rect best on watermarked numbers (half of the pixels and more)", WATERMARKED, "a figure", WATERMARK, rect_best("number")),
    Claim("Fig. 3", "ROAD does not rank Rect best on real images", CIFAR, "a figure", WATERMARK, rect_best("real images")),
    Claim("Fig. 12", "by ROAD, IG and DeepSHAP are better than Grad-CAM on watermarked images and worse on real ones", WATERMARKED, "a figure", WATERMARK, cam_by_data),
    Claim("Table 1", "completeness and soundness tell modified maps apart, deletion and ROAD hardly (Hausdorff distance of curves)", "CIFAR-10, 200 test images", "0.503, 0.183, 0.019, 0.014 (ImageNet)", SCORES, separation),
    Claim("Fig. 9", "Extremal Perturbation is the most complete, IBA among the soundest", "none", "a figure", None, not_run("the estimators `experturb` and `iba` are here, in no study; InputIBA is not here")),
]  # fmt: skip
UNIFIED = [
    Claim("Table 2", "images moved a little make untrained nets right", "CIFAR-10, 300 and 60 test images", "ImageNet: AlexNet 0.1 → 64.7 %, VGG-16 0.1 → 100.0 %, MnasNet 0.1 → 64.6 %", ENHANCEMENT, enhanced),
    Claim("Table 2", "… with these nets", "ImageNet photos", "as above", PHOTOS_TABLE_2, photos_enhanced),
    Claim("Table 2", "… with one that the paper has not", "ImageNet photos", "none", PHOTOS_TABLE_2, photo_net("efficientnet-lite0")),
    Claim("Fig. 2, B", "the maps of an untrained net stay its own when its images are enhanced", "CIFAR-10, 300 test images, a small net", "figures", ENHANCEMENT, stay),
    Claim("Table 3", "a linear model can be made to point at a corner while no answer changes", "MNIST, 10,000 + 2,000", "79.51 %; pointing game 100.0 → 0.0 %", MNIST, corner),
    Claim("Fig. 1, 4", "random pixels in the mean colour do more damage than Grad-CAM's, imputed ones less (random − Grad-CAM, accuracy at 0.3)", "CIFAR-10, 300 test images", "VGG-16, ImageNet: a figure", FLIPPING, flipped),
    Claim("Fig. 6", "random pixels of Grad-CAM's top N do more damage than Grad-CAM and than random pixels", "CIFAR-10, 300 test images", "a figure", FLIPPING, inside),
    Claim("Fig. 4", "with random noise as fill, too, random pixels do more damage than Grad-CAM's; guided backprop and DeConvNet do most", "none", "a figure", None, not_run("`pixel_flipping` takes the fill and both estimators are here; in no study")),
]  # fmt: skip


def papers() -> dict[str, list[Claim]]:
    """Claims by paper."""
    return {
        "On Pitfalls of RemOve-And-Retrain": [
            *PITFALLS,
            *scored("000"),
            *(c for c in photos("000") if c.where != "Theorem 3.1"),
            *checked("000"),
        ],
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
