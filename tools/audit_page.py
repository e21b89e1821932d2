"""The page of `audit_scores.py`, with its tables, from the audits of the trials."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import replace

import numpy as np

from roarfast.metrics import Estimate, holm, join_audits
from roarfast.metrics.audit_results import BETWEEN
from roarfast.metrics.auditing import FILLS, SCORES

ORDER_BASED = ("road", "deletion", "insertion", "pixel_flipping")
BLUR = ("max(3)", "gaussian(1)")
_OWN = {
    "road": "linear",
    "completeness": "linear",
    "soundness": "linear",
    "average_drop": "its own",
    "insertion": "blur",
    "pixel_flipping": "zero",
}


def usual(score):
    """The fill that a score is used with by default."""
    return _OWN.get(score, "dataset_mean")


def place(score, fill):
    """Where a score with a fill stands in the tables."""
    scores, fills = [*SCORES, "average_drop", "f_fidelity"], [*FILLS, "its own"]
    return scores.index(score), fills.index(fill)


def p_value(e):
    """Two-sided p of "no change", by the normal law and the spread of the resamples."""
    if not e.error > 0:
        return 1.0 if e.value == 0 else math.nan
    return math.erfc(abs(e.value) / e.error / math.sqrt(2))


def shown(cell, sure):
    """A cell of the table; bold where Holm's p is below 0.05."""
    if cell.why or not (cell.improved or cell.worsened):
        return str(cell)
    text = f"{cell.improved}/{cell.maps}, {cell.change_with_interval()}"
    return f"**{text}**" if sure else text


def tau(e):
    """Kendall's τ with its interval."""
    if not np.isfinite(e.value):
        return "undefined"
    return f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]"


def write_page(parts, accuracies, names, out):
    """README.md, audit.csv, values.csv, agreement.csv and trials.csv.

    Args:
        parts: The audit of each trial.
        accuracies: Of the base models.
        names: The estimators.
        out: The folder.
    """
    found = join_audits(parts)
    found = replace(found, cells=tuple(sorted(found.cells, key=lambda c: place(c.score, c.fill))))
    out.mkdir(parents=True, exist_ok=True)
    cells = found.cells
    adjusted = holm([p_value(c.change) if not c.why else math.nan for c in cells])
    sure = {(c.score, c.fill, c.k): p < 0.05 for c, p in zip(cells, adjusted)}
    by = {(c.score, c.fill, c.k): c for c in cells}
    kinds = list(dict.fromkeys(c.k for c in cells))
    rows = list(dict.fromkeys((c.score, c.fill) for c in cells))
    # Agreement is between scores that see the same maps: of one model, with the mean over models.
    pairs = {plain: mean_agreement([p.agreement(plain=plain) for p in parts]) for plain in (False, True)}
    trials = {}
    if len(parts) > 1:
        renamed = [without_trial(p) for p in parts]
        trials = {plain: renamed[0].agreement_with(renamed[1], plain=plain) for plain in (False, True)}
    lines = ["# Which scores can be bought: the audit of every score", ""]
    lines += what_it_says(cells, sure, by, kinds, pairs[False], trials.get(False, {}))
    lines += [
        "",
        "## Every score",
        "",
        f"How many of {len(names) * len(parts)} sets of maps score better with the post-processing, and the mean change (positive: looks better) with its 95 % interval over "
        "images; bold where Holm's p over all cells is below 0.05. `unchanged`: not by a bit. `no interval`: nearly all resamples lie to one side of the change. `roll` moves maps "
        "off their images: a score should fall.",
        "",
        "| score | fill | " + " | ".join(f"`{k}`" for k in kinds) + " |",
        "|---|---|" + "---|" * len(kinds),
    ]
    for key in rows:
        lines.append(f"| {key[0]} | {key[1]} | " + " | ".join(shown(by[*key, k], sure[*key, k]) for k in kinds) + " |")
    lines += ["", *agreement_tables(pairs, trials)]
    lines += [
        "",
        "## How",
        "",
        f"CIFAR-10 subset, `convnet`, {len(parts)} base models ({', '.join(f'{a:.1%}' for a in accuracies)} of the test images), {found.count} test images, maps "
        f"{', '.join(f'`{n}`' for n in names)} of each model, plain and with {len(kinds)} post-processings that ask neither model nor image. Seven fills where a fill applies: `road` "
        "is the one with linear imputation by definition, `average_drop` multiplies by the map, `f_fidelity` takes the fill its model is fine-tuned with. "
        "Intervals of soundness are too narrow where false features come first ([scores](../../scores.md)). "
        f"Made by `python tools/audit_scores.py --train cifar10_train_10k.npz --test cifar10_test_2k.npz --workers 2 --images {found.count}`; tables in the CSV files beside.",
    ]
    (out / "README.md").write_text("\n".join(lines) + "\n")
    (out / "audit.csv").write_text(with_holm(found.to_csv(), adjusted))
    save(
        out / "values.csv",
        ["score", "fill", "map", "plain", *kinds],
        [
            [*key, m, *(f"{table[name]:.5g}" for name in (m, *(f"{m}{BETWEEN}{k}" for k in kinds)))]
            for key, table in found.values.items()
            for m in table
            if BETWEEN not in m
        ],
    )
    header = ["score", "fill", "score 2", "fill 2", "maps", "tau", "low", "high"]
    kind = {False: "all", True: "plain"}
    # Of 1,200 pairs those that are compared: scores with their usual fills, and the fills of one score.
    compared = [
        [*a, *b, kind[p], *numbers(e)]
        for p in pairs
        for (a, b), e in pairs[p].items()
        if a[0] == b[0] or (a[1] == usual(a[0]) and b[1] == usual(b[0]))
    ]
    save(out / "agreement.csv", header, compared)
    save(
        out / "trials.csv",
        ["score", "fill", "maps", "tau", "low", "high"],
        [[*k, kind[p], *numbers(e)] for p in trials for k, e in trials[p].items()],
    )


def what_it_says(cells, sure, by, kinds, pairs, trials):
    """The first paragraphs."""
    bought = {}
    for c in cells:
        if c.k in BLUR and sure[c.score, c.fill, c.k] and c.change.value > 0:
            bought.setdefault(c.score, []).append(c)
    moved = [c for c in cells if c.score in ORDER_BASED and c.k.startswith("power") and (c.improved or c.worsened)]
    rolled = [c for c in cells if c.k == "roll" and not c.why and not (c.change.high < 0)]
    powers = sorted({c.score for c in cells if c.k.startswith("power") and sure[c.score, c.fill, c.k]})
    outliers = sorted({c.score for c in cells if c.k == "outlier" and sure[c.score, c.fill, c.k]})
    blank = sorted({f"{c.score} with {c.fill}: {c.why}" for c in cells if c.why})
    lowered = sorted({f"{c.score} ({c.fill})" for c in cells if c.note})
    chance = [(a, b) for (a, b), e in pairs.items() if a[1] == usual(a[0]) and b[1] == usual(b[0]) and not e.low > 0]
    lines = ["**What did not hold.**", ""]
    for score, found in bought.items():
        fills = sorted({c.fill for c in found})
        lines.append(
            f"- `{score}` is bought by a filter that knows nothing, with {len(fills)} of its fills: {', '.join(fills)}."
        )
    lines.append(
        f"- A transform that loses nothing (a power) moves {', '.join(powers) or 'no score'}; one pixel moves {', '.join(outliers) or 'no score'}."
    )
    if moved:
        lines.append(f"- A power moves {len(moved)} cells of scores that see the order only.")
    lines.append(
        f"- Moving maps off their images does not surely lower {len(rolled)} of {sum(c.k == 'roll' for c in cells)} scores and fills"
        + (": " + ", ".join(f"{c.score} ({c.fill})" for c in rolled) if rolled else "")
        + "."
    )
    if chance:
        lines.append(
            "- With their usual fills these order the maps no more alike than chance (interval of Kendall's τ reaches 0): "
            + "; ".join(f"{a[0]} and {b[0]}" for a, b in chance)
            + "."
        )
    fills = {k: e for k, e in pairs.items() if k[0][0] == k[1][0] == "deletion" and np.isfinite(e.value)}
    if fills:
        (a, b), worst = min(fills.items(), key=lambda item: item[1].value)
        lines.append(
            f"- The fill decides: deletion with {a[1]} and with {b[1]} agree with τ = {tau(worst)}; {sum(not e.low > 0 for e in fills.values())} of {len(fills)} pairs of fills no better than chance."
        )
    lines += ["", "**What held.**", ""]
    worse = sorted({c.score for c in cells if c.k in BLUR and sure[c.score, c.fill, c.k] and c.change.value < 0})
    never = [s for s in dict.fromkeys(c.score for c in cells) if s not in bought]
    lines.append(
        f"- Never surely bought by a filter: {', '.join(never) or 'none'}. A filter surely worsens (for a fill): {', '.join(worse) or 'none'}."
    )
    if not moved:
        lines.append(f"- A power changes {', '.join(ORDER_BASED)} not by a bit, with any fill.")
    if trials:
        own = [e.value for k, e in trials.items() if k[1] == usual(k[0]) and np.isfinite(e.value)]
        lines.append(
            f"- Two base models order the maps alike: τ between them from {min(own):.2f} to {max(own):.2f} for the scores with their usual fills."
        )
    lines.append(
        f"- {len(cells) - sum(bool(c.why) for c in cells)} of {len(cells)} cells have a value{'; without: ' + '; '.join(blank) if blank else ''}."
    )
    if lowered:
        lines.append(
            f"- Soundness is taken at the highest accuracy that the curves of all maps reach where halfway between empty and whole images is out of reach: {', '.join(lowered)}."
        )
    return lines


def agreement_tables(pairs, trials):
    """Between scores with their usual fills, between the fills of each score, and between base models."""
    lines = [
        "## Agreement between scores",
        "",
        "Kendall's τ with its 95 % interval over images, mean over base models; every score with its usual fill. Resampled images are noisier than the images: a τ near 1 can be above its interval.",
        "",
    ]
    lines += ["| score | score | all maps | plain maps |", "|---|---|---|---|"]
    for (a, b), e in pairs[False].items():
        if a[1] == usual(a[0]) and b[1] == usual(b[0]):
            plain = pairs[True].get((a, b))
            lines.append(f"| {a[0]} ({a[1]}) | {b[0]} ({b[1]}) | {tau(e)} | {tau(plain) if plain else ''} |")
    lines += [
        "",
        "## Agreement between fills of deletion",
        "",
        "| | " + " | ".join(FILLS) + " |",
        "|---|" + "---|" * len(FILLS),
    ]
    for one in FILLS:
        row = []
        for two in FILLS:
            key = (("deletion", one), ("deletion", two))
            e = pairs[False].get(key) or pairs[False].get(key[::-1])
            row.append("" if e is None else tau(e))
        lines.append(f"| {one} | " + " | ".join(row) + " |")
    scores = list(dict.fromkeys(a[0] for a, _ in pairs[False]))
    lines += [
        "",
        "Over all pairs of fills of a score: the lowest and the highest τ, and how many pairs agree no better than chance.",
        "",
    ]
    lines += ["| score | lowest | highest | no better than chance |", "|---|---|---|---|"]
    for score in scores:
        own = [e for (a, b), e in pairs[False].items() if a[0] == b[0] == score and np.isfinite(e.value)]
        if own:
            low, high = (f(own, key=lambda e: e.value) for f in (min, max))
            lines.append(f"| {score} | {tau(low)} | {tau(high)} | {sum(not e.low > 0 for e in own)} of {len(own)} |")
    if trials:
        lines += [
            "",
            "## Agreement between base models",
            "",
            "The order a score gives the maps of one model, against that of the maps of the other: the yardstick.",
            "",
        ]
        lines += ["| score | fill | all maps | plain maps |", "|---|---|---|---|"]
        for key, e in trials[False].items():
            plain = trials[True].get(key)
            lines.append(f"| {key[0]} | {key[1]} | {tau(e)} | {tau(plain) if plain else ''} |")
    return lines


def without_trial(audit):
    """The audit with the names of its maps as if there were one model, for comparison with that of another."""

    def plain(name):
        return re.sub(r", model \d+", "", name)

    return replace(
        audit,
        values={k: {plain(m): v for m, v in t.items()} for k, t in audit.values.items()},
        resampled={k: {plain(m): v for m, v in t.items()} for k, t in audit.resampled.items()},
    )


def mean_agreement(tables):
    """The mean of τ and of the ends of its interval over trials: intervals are over images, of which the trials share all."""
    by = {}
    for table in tables:
        for a, b, e in table:
            key = (a, b) if place(*a) < place(*b) else (b, a)
            by.setdefault(key, []).append((e.value, e.low, e.high))
    by = dict(sorted(by.items(), key=lambda item: (place(*item[0][0]), place(*item[0][1]))))
    return {key: Estimate(*np.mean(values, 0).tolist()) for key, values in by.items()}


def with_holm(text, adjusted):
    """The CSV of cells with a column of Holm's p."""
    head, *body = text.splitlines()
    return "\n".join([f"{head},holm p", *(f"{row},{p:.3g}" for row, p in zip(body, adjusted, strict=True))]) + "\n"


def numbers(e):
    """An estimate for a CSV file."""
    return [f"{v:.4f}" for v in (e.value, e.low, e.high)]


def save(path, header, rows):
    """A CSV file."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
