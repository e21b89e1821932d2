"""The page of `planted_truth.py`, with its tables and figure, from the records of the seeds."""

from __future__ import annotations

import csv
import re

import numpy as np

from roarfast.metrics.planted import rank_correlation
from roarfast.metrics.resampling import Estimate, trial_interval

USES_THE_MASK = ("pointing game", "Attr%")
RAW, EQUAL, MODEL = "ROAD, most relevant first", "ROAD, equal damage", "ROAD, model part"
CURVE = re.compile(r"(own|null) at [\d.]+")
SURE, UNSURE = 0.8, 0.5  # of the lower end of an interval: what the page calls trusted, and what it warns of


def read_records(folder):
    """Seed -> (accuracy, objects -> score -> map -> value); a record of some scores takes the place of what was there."""
    found = {}
    for path in sorted((folder / "records").glob("seed-*.csv"), key=lambda p: ("part" in p.stem, p.stem)):
        table = found.get(int(path.stem.split("-")[1]), (0, {}))[1]
        with path.open() as file:
            for row in csv.DictReader(file):
                accuracy, group, name = float(row.pop("accuracy")), row.pop("objects"), row.pop("map")
                for score, value in row.items():
                    if value:
                        table.setdefault(group, {}).setdefault(score, {})[name] = float(value)
        found[int(path.stem.split("-")[1])] = (accuracy, table)
    return found


def clipped(values):
    """The mean and its t-interval over seeds, which for a correlation ends at 1."""
    e = trial_interval(np.asarray(values))
    return Estimate(e.value, max(e.low, -1.0), min(e.high, 1.0), e.error)


def correlations(found, group, keep=lambda name: True):
    """Score -> rank correlation with the overlap of each seed, over the maps that are kept."""
    result = {}
    for _, table in found.values():
        truth = table[group]["overlap"]
        names = [m for m in truth if keep(m)]
        for score, by_map in table[group].items():
            if score != "overlap" and not CURVE.fullmatch(score):
                r = rank_correlation([by_map[m] for m in names], [truth[m] for m in names])
                result.setdefault(score, []).append(r)
    return result


def agreement_of_changes(found):
    """Score -> share of (map, post-processing) whose change by the post-processing has the sign of the overlap's change, of each seed."""
    result = {}
    for _, table in found.values():
        truth = table["all"]["overlap"]
        pairs = [(m, f"{m.split(' | ')[0]} | plain") for m in truth if not m.endswith("plain")]
        for score, by_map in table["all"].items():
            if score != "overlap" and not CURVE.fullmatch(score):
                same = [np.sign(by_map[a] - by_map[b]) == np.sign(truth[a] - truth[b]) for a, b in pairs]
                result.setdefault(score, []).append(float(np.mean(same)))
    return result


def nulls_of_random_maps(found):
    """Rows (map, null, mean difference, standard error over the images of all seeds)."""
    first = next(iter(found.values()))[1]["nulls"]
    for null in [n for n in first if not n.endswith("error")]:
        for name in first[null]:
            values = [t["nulls"][null][name] for _, t in found.values()]
            errors = np.array([t["nulls"][f"{null}, error"][name] for _, t in found.values()])
            yield name, null, float(np.mean(values)), float(np.sqrt((errors**2).sum()) / len(errors))


def show(e):
    """An estimate with its interval, as in tables."""
    return f"{e.value:.2f} [{e.low:.2f}, {e.high:.2f}]" if np.isfinite(e.value) else "undefined"


def show_seeds(values):
    """The estimate over seeds, or in how many a score is the same for all maps and has no order."""
    alike = int(np.isnan(values).sum())
    return show(clipped(values)) if not alike else f"one value for all maps in {alike} of {len(values)} seeds"


def listed(names):
    """Names of scores in a sentence."""
    return "; ".join(names) or "none"


def write_page(arguments, drops):
    """README.md, trust.csv, postprocessing.csv, nulls.csv and trust.png from the records."""
    found = read_records(arguments.out)
    if not found:
        raise SystemExit(f"no records in {arguments.out / 'records'}")
    tables = next(iter(found.values()))[1]
    groups = [g for g in tables if "overlap" in tables[g]]
    names = list(tables["all"]["overlap"])
    kinds = list(dict.fromkeys(m.split(" | ")[1] for m in names))
    trust = {g: {s: clipped(v) for s, v in correlations(found, g).items()} for g in groups}
    per_seed = {g: correlations(found, g) for g in groups}
    order = sorted(trust["all"], key=lambda s: -np.nan_to_num(trust["all"][s].value, nan=-2))
    order = [s for s in order if s != MODEL]
    within = {k: correlations(found, "all", lambda m, k=k: m.endswith(f"| {k}")) for k in kinds}
    signs = {s: clipped(v) for s, v in agreement_of_changes(found).items()}
    against = {s: trial_interval(np.subtract(per_seed["all"][s], per_seed["all"][RAW])) for s in order if s != RAW}
    nulls = list(nulls_of_random_maps(found))
    apart = [row for row in nulls if abs(row[2]) >= 2 * row[3]]
    model = max(abs(v) for _, t in found.values() for g in groups for v in t[g][MODEL].values())
    rivals = [s for s in order if s not in USES_THE_MASK]
    sure = [s for s in rivals if trust["all"][s].low > SURE]
    unsure = [s for s in rivals if not trust["all"][s].low > UNSURE]
    bins = [s for s in sure if any(not trust[g][s].low > UNSURE for g in groups[1:])]
    missing = sum(np.isnan(v) for _, t in found.values() for g in groups for v in t[g][EQUAL].values())
    ranges = {g: [np.mean([t["range"][end][g] for _, t in found.values()]) for end in ("low", "high")] for g in groups}
    e = against[EQUAL]
    better = e.low > 0
    verdict = "better" if better else "worse" if e.high < 0 else "not surely better or worse"
    equal = (
        f"Equal damage orders maps {verdict} than ROAD as it is: {e.value:+.3f} [{e.low:+.3f}, {e.high:+.3f}] of rank correlation, "
        "paired over seeds."
    )
    accuracy = [a for a, _ in found.values()]
    lines = ["# Planted truth: which score can be trusted", ""]
    lines.append(
        f"**What did not hold.** Not to be trusted here (lower end of the interval at most {UNSURE}): {listed(unsure)}. "
        + (f"Trusted over all objects, but not in every bin of sizes: {listed(bins)}. " if bins else "")
        + ("" if better else f"{equal} ")
        + (f"It is undefined for {missing} maps. " if missing else "")
        + (
            f"Of {len(nulls)} comparisons of random maps with their nulls {len(apart)} are two standard errors or more apart: "
            + "; ".join(
                f"{m.replace(' | ', ', ')} and its {n} {100 * v:+.2f} points, standard error {100 * s:.2f}"
                for m, n, v, s in apart
            )
            + ". "
            if apart
            else ""
        )
    )
    gap = trial_interval(
        np.array([t["all"][RAW]["truth | plain"] - t["all"][RAW]["shifted | plain"] for _, t in found.values()])
    )
    rolled = (
        f" The object's mask beats its rolled self by {100 * gap.value:.1f} points of ROAD accuracy [{100 * gap.low:.1f}, {100 * gap.high:.1f}] "
        f"(asked: 10)."
    )
    rand = next(row for row in nulls if row[:2] == ("rand | plain", "swap"))
    lines += [
        "",
        f"**What held.** Trusted (lower end above {SURE}): {listed(sure)}. `rand` and its `swap` are "
        f"{'indistinguishable' if abs(rand[2]) < 2 * rand[3] else '**distinguishable**'}: {100 * rand[2]:+.2f} points, standard error "
        f"{100 * rand[3]:.2f}; of all {len(nulls)} comparisons of random maps (plain and filtered) with their nulls {len(nulls) - len(apart)} are within two "
        f"standard errors (by chance one in twenty is not). The model part is {'0 to the bit' if model == 0 else f'up to {model:.2g}'} for every "
        "planted map: they ask no model. It says what a map knows of a model and not of the object, so it must not follow the overlap. "
        + ("Equal damage is defined for every map, size and seed. " if not missing else "")
        + (equal if better else "")
        + rolled,
        "",
        "![Rank correlation with the true overlap, by score](trust.png)",
        "",
        "## Rank correlation with the true overlap",
        "",
        f"Spearman's, over {len(names)} sets of maps; 95 % t-interval over {len(found)} seeds, cut at 1. The pointing game and Attr% use the object's mask "
        "themselves: yardsticks, not competitors.",
        "",
        "| score | " + " | ".join(groups) + " | minus that of ROAD, most relevant first |",
        "|---|" + "---|" * (len(groups) + 1),
    ]
    for s in order:
        gain = (
            ""
            if s == RAW or np.isnan(against[s].value)
            else f"{against[s].value:+.3f} [{against[s].low:+.3f}, {against[s].high:+.3f}]"
        )
        mark = " (uses the mask)" if s in USES_THE_MASK else ""
        lines.append(f"| {s}{mark} | " + " | ".join(show_seeds(per_seed[g][s]) for g in groups) + f" | {gain} |")
    lines += [
        "",
        "## What filters do to it",
        "",
        "The same correlation among maps with one and the same post-processing, and how often the change of a score by a filter has the sign of "
        "the overlap's change (a score that blur can buy has the wrong sign).",
        "",
        "| score | " + " | ".join(f"only {k}" for k in kinds) + " | all mixed | filters judged rightly |",
        "|---|" + "---|" * (len(kinds) + 2),
    ]
    for s in order:
        cells = [show_seeds(values) for values in (*(within[k][s] for k in kinds), per_seed["all"][s])]
        lines.append(f"| {s} | " + " | ".join(cells) + f" | {show(signs[s])} |")
    low, high = ranges["all"]
    lines += [
        "",
        "## Random maps and their nulls",
        "",
        "| maps | null | null minus own, points | standard error |",
        "|---|---|---|---|",
        *(f"| {m.replace(' | ', ', ')} | {n} | {100 * v:+.2f} | {100 * s:.2f} |" for m, n, v, s in nulls),
        "",
        "`swap` and `turn` of a random map are exchangeable with it, filtered or not; `roll` of a filtered one only nearly: a filter sees fewer pixels at the border, and "
        "the shift moves the border inside.",
        "",
        "## How",
        "",
        f"`shapes`, ten classes; {len(found)} seeds, each with a base model of its own (`{arguments.model}`, {arguments.epochs} epochs on {arguments.train_images:,} "
        f"images with Adam; test accuracy {min(accuracy):.3f} to {max(accuracy):.3f}), {arguments.images} test images of its own and its own noise. Twelve planted maps "
        f"({', '.join(m.split(' | ')[0] for m in names if m.endswith(kinds[0]))}) × {', '.join(kinds)}. Overlap: |removed ∩ object| / min(|removed|, |object|), "
        f"mean over the drop rates {', '.join(map(str, drops))}, which are also those of the curves. Objects in thirds by area.",
        "",
        f"Equal damage is taken over the range of null accuracy that the nulls of all maps reach, {low:.2f} to {high:.2f} in the mean over seeds (rates go to {drops[-1]} for "
        "that: scattered pixels do little damage below); 'own range': each map over the range of its own null. Completeness with its excess over as many random pixels; "
        "F-Fidelity with the base model fine-tuned under removal; soundness in steps of 4 %, halfway between empty and whole images and at an accuracy of 0.8 (where a group of images does not reach it, at its highest). Reference flipping is a diagnostic without "
        "a direction and is left out.",
        "",
        "Made by `python tools/planted_truth.py --workers 2`; `records/` has a file per seed, `trust.csv`, `postprocessing.csv` and `nulls.csv` the tables of this page.",
    ]
    (arguments.out / "README.md").write_text("\n".join(lines) + "\n")
    write_tables(arguments.out, found, trust, per_seed, within, signs, against, nulls)
    draw(arguments.out / "trust.png", order, {g: trust[g] for g in groups})


def write_tables(out, found, trust, per_seed, within, signs, against, nulls):
    """The CSV files beside the page."""

    def save(name, header, rows):
        with (out / name).open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header)
            writer.writerows([f"{v:.4f}" if isinstance(v, float) else v for v in row] for row in rows)

    save(
        "trust.csv",
        ["objects", "score", "rank correlation", "low", "high", *(f"seed {s}" for s in found)],
        [[g, s, e.value, e.low, e.high, *per_seed[g][s]] for g in trust for s, e in trust[g].items()],
    )
    rows = []
    for s in trust["all"]:
        for k, by_score in within.items():
            e = clipped(by_score[s])
            rows.append([s, f"rank correlation, only {k}", e.value, e.low, e.high])
        rows.append([s, "filters judged rightly", signs[s].value, signs[s].low, signs[s].high])
        if s in against:
            rows.append([s, f"minus {RAW}", against[s].value, against[s].low, against[s].high])
    save("postprocessing.csv", ["score", "what", "value", "low", "high"], rows)
    save(
        "nulls.csv",
        ["map", "null", "difference", "standard error", "within two"],
        [[m, n, f"{v:.6f}", f"{e:.6f}", abs(v) < 2 * e] for m, n, v, e in nulls],
    )


def draw(path, order, trust):
    """Correlations with intervals, a row per score, a colour per group of objects."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 0.32 * len(order) + 1.2), layout="constrained")
    axes = figure.add_subplot()
    for j, (group, by_score) in enumerate(trust.items()):
        e = [by_score[s] for s in order]
        value = np.array([x.value for x in e])
        reach = np.array([[x.value - x.low for x in e], [x.high - x.value for x in e]])
        at = -np.arange(len(order)) + 0.18 * (1 - j)
        axes.errorbar(value, at, xerr=np.nan_to_num(reach), fmt="o" if j == 0 else ".", ms=5, lw=1, label=group)
    axes.set_yticks(-np.arange(len(order)), [s + (" *" if s in USES_THE_MASK else "") for s in order])
    axes.axvline(0, color="black", lw=0.8)
    axes.set_xlabel("rank correlation with the true overlap (* uses the mask)")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize=8, loc="upper left")
    figure.savefig(path, dpi=90)
