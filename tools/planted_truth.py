"""Which score can be trusted? Planted maps on `shapes`, every score of the package, several seeds: a page and its records.

python tools/planted_truth.py                 # trains what is missing, scores what is missing, writes the page
python tools/planted_truth.py --seeds 0 1     # only these; a run that is stopped goes on where it was
python tools/planted_truth.py --page          # only the page, from the records
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
import torch

import roarfast as rf
from roarfast import metrics
from roarfast.data import load
from roarfast.explain.postprocess import PostProcess
from roarfast.metrics.inputs import read_inputs
from roarfast.metrics.localisation import mass_inside, pointing_game
from roarfast.metrics.planted import overlap, planted_maps, trust_table
from roarfast.metrics.resampling import trial_interval, weighted_mean
from roarfast.train import build_model, get_recipe, train

DROPS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
SIZES = ("small objects", "middling objects", "large objects")
_CURVE = {"rates": DROPS}
_SUBSETS = {"sizes": (0.05, 0.2, 0.5), "draws": 12}
SCORES = {
    "ROAD, both orders": ("road", _CURVE),
    "deletion": ("deletion", _CURVE),
    "insertion": ("insertion", _CURVE),
    "pixel flipping": ("pixel_flipping", _CURVE),
    "completeness": ("completeness", {"rates": (0.2, 0.4, 0.6, 0.8)}),
    "soundness": ("soundness", {"step": 0.1}),
    "sensitivity-n": ("sensitivity_n", _SUBSETS),
    "faithfulness correlation": ("faithfulness_correlation", {"size": 0.2, "draws": 12}),
    "infidelity": ("infidelity", _SUBSETS),
}
USES_THE_MASK = ("pointing game", "Attr%")


def score_maps(model, data, maps, groups, options):
    """Rows (group, map, score, value), more is better; every model response is shared by all groups of images."""
    inputs = read_inputs(data.images, layout="NHWC", **options)
    problem = metrics.Problem(
        model, inputs, torch.from_numpy(data.labels).long(), 0, torch.arange(len(data)), None, {"progress": False}
    )
    weights = np.stack([np.isin(np.arange(len(data)), rows).astype(np.float64) for rows in groups.values()])
    own, null, rows = {}, {}, []

    def put(name, score, values):
        rows.extend((group, name, score, float(v)) for group, v in zip(groups, values))

    for name, a in maps.items():
        tensor = torch.from_numpy(a)
        for label, (score, settings) in SCORES.items():
            record = metrics.get_score(score)
            outcome = record.run(problem, tensor, **settings)
            put(name, label, (-1 if record.better == "lower" else 1) * outcome.resample()(weights))
            if score == "road":
                own[name] = outcome.curves["morf"].responses
            if score == "completeness":
                put(name, "completeness, excess", weighted_mean(outcome.curves["excess"].values.mean(0))(weights))
        how = metrics.Perturbation()
        null[name] = problem.respond(torch.from_numpy(metrics.null_maps(a, "swap")), DROPS, how)
        put(name, "ROAD, most relevant first", -weighted_mean(own[name].values().mean(0))(weights))
        put(name, "ROAD, probability", -weighted_mean(own[name].values("probability").mean(0))(weights))
        put(name, "ROAD, excess over swap", weighted_mean((null[name].values() - own[name].values()).mean(0))(weights))
        put(name, "pointing game", weighted_mean(pointing_game(a, data.masks).hit.astype(float))(weights))
        put(name, "Attr%", weighted_mean(mass_inside(a, data.masks))(weights))
        put(name, "overlap", weighted_mean(overlap(a, data.masks, DROPS).mean(0))(weights))
        print(f"  {name}", flush=True)
    for group, chosen in groups.items():
        base = own[name].whole.of("accuracy")[chosen]
        pick = {k: v.values()[:, chosen] for k, v in own.items()}, {k: v.values()[:, chosen] for k, v in null.items()}
        # Maps whose null does no damage have no curve: the range is that of the maps which have one.
        hurt = [k for k in maps if metrics.common_low([pick[1][k]], base) < base.mean() - 0.05]
        low = metrics.common_low([pick[1][k] for k in hurt], base) if hurt else np.nan
        for k in maps:
            value = np.nan
            if k in hurt:
                value = metrics.equal_damage(pick[0][k], pick[1][k], base, low=low, resamples=0).score.value
            rows.append((group, k, "ROAD, equal damage", float(value)))
    return rows


def base_model(seed, training, test, arguments):
    """The base model of a seed, trained or read, and its test accuracy."""
    path = arguments.models / f"planted-{seed}.pt"
    recipe = get_recipe("quick", model=arguments.model, epochs=arguments.epochs)
    if not path.exists():
        result = train(arguments.model, training, test, recipe, seed=seed, progress="none")
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"model": result.model.state_dict(), "accuracy": result.accuracy}, path)
    state = torch.load(path, weights_only=True)
    model = build_model(arguments.model, training.num_classes, 3, seed=seed)
    model.load_state_dict(state["model"])
    return model.eval(), float(state["accuracy"])


def read_records(folder):
    """Seed -> (accuracy, group -> score -> map -> value)."""
    found = {}
    for path in sorted((folder / "records").glob("seed-*.csv")):
        table = {}
        with path.open() as file:
            for row in csv.DictReader(file):
                accuracy = float(row["accuracy"])
                table.setdefault(row["objects"], {}).setdefault(row["score"], {})[row["map"]] = float(row["value"])
        found[int(path.stem.split("-")[1])] = (accuracy, table)
    return found


def trusted(found, group):
    """The table of a group: maps without a value (equal damage of a map whose null is harmless) are left out."""
    result = []
    for score in next(iter(found.values()))[1][group]:
        if score == "overlap":
            continue
        scores, truth, left_out = [], [], 0
        for _, table in found.values():
            known = {k: v for k, v in table[group][score].items() if not np.isnan(v)}
            left_out += len(table[group][score]) - len(known)
            scores.append({score: known})
            truth.append({k: table[group]["overlap"][k] for k in known})
        result.append((trust_table(scores, truth)[0], left_out))
    return sorted(result, key=lambda row: -np.nan_to_num(row[0].correlation.value, nan=-2))


def write_page(arguments, found, test):
    """README.md and trust.csv from the records."""
    accuracy = [a for a, _ in found.values()]
    names = list(next(iter(found.values()))[1]["all"]["overlap"])
    seeds = len(found)
    gap = trial_interval(np.array([t["all"]["ROAD, excess over swap"]["rand | plain"] for _, t in found.values()]))
    apart = abs(gap.value) >= 2 * gap.error if seeds > 1 else False
    whole = trusted(found, "all")
    below = [row.score for row, _ in whole if not row.correlation.low > 0]
    lines = ["# Planted truth: which score can be trusted", "", "## What did not hold", ""]
    lines.append(
        f"- Scores whose order is not surely that of the overlap (interval reaches 0): {', '.join(below) or 'none'}."
    )
    lines.append(
        f"- `rand` and its `swap` are {'**distinguishable**' if apart else 'indistinguishable, as they must be'}: "
        f"{100 * gap.value:.2f} points, standard error {100 * gap.error:.2f} over {seeds} seeds."
    )
    dropped = sum(left for row, left in whole if row.score == "ROAD, equal damage")
    lines.append(
        f"- Equal damage is undefined for {dropped} of {seeds * len(names)} maps: their null does less than 5 points of damage, "
        "so there is no range to compare over; it is judged on the others."
    )
    lines += ["", (arguments.out / "reading.md").read_text().strip()] if (arguments.out / "reading.md").exists() else []
    lines += [
        "", "## How", "",
        f"`shapes`, {len(test)} test images, `{arguments.model}` ({arguments.epochs} epochs on {arguments.train_images} images; test accuracy "
        f"{min(accuracy):.3f} to {max(accuracy):.3f}, {seeds} seeds of models and of the maps' noise). {len(names)} planted maps: twelve × "
        f"{', '.join(arguments.postprocess)}. Drop rates {', '.join(map(str, DROPS))}. Spearman's rank correlation of each score with "
        "the overlap of the removed pixels with the object at the same rates; 95 % t-interval over seeds. Made by "
        "`python tools/planted_truth.py`; records beside this page.", "",
        "The pointing game and Attr% use the object's mask themselves: yardsticks, not competitors. The model part is 0 for all of "
        "these maps by construction, they ask no model; it says what a map knows of a model, not of the object, so it must not "
        "follow the overlap.", "",
    ]  # fmt: skip
    groups = list(next(iter(found.values()))[1])
    tables = {group: trusted(found, group) for group in groups}
    lines += ["## Rank correlation with the true overlap", "", "| score | " + " | ".join(groups) + " |"]
    lines.append("|---|" + "---|" * len(groups))
    by_score = {g: {row.score: row.correlation for row, _ in table} for g, table in tables.items()}
    for row, _ in tables["all"]:
        cells = [by_score[g][row.score] for g in groups]
        shown = [f"{e.value:.3f} [{e.low:.3f}, {e.high:.3f}]" if np.isfinite(e.value) else "undefined" for e in cells]
        mark = " (uses the mask)" if row.score in USES_THE_MASK else ""
        lines.append(f"| {row.score}{mark} | " + " | ".join(shown) + " |")
    (arguments.out / "README.md").write_text("\n".join(lines) + "\n")
    with (arguments.out / "trust.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["objects", "score", "rank correlation", "low", "high", *(f"seed {s}" for s in found)])
        for group, table in tables.items():
            for row, _ in table:
                e = row.correlation
                writer.writerow([group, row.score, *(f"{v:.4f}" for v in (e.value, e.low, e.high, *row.per_seed))])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--train-images", type=int, default=10_000)
    parser.add_argument(
        "--model", default="small", help="'small' (three convolutions, in this file) or a model by name"
    )
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--postprocess", nargs="+", default=["plain", "gaussian(1)", "max(3)"])
    parser.add_argument("--models", type=Path, default=Path("runs/planted-truth"), help="where base models are kept")
    parser.add_argument("--out", type=Path, default=Path("docs/results/planted-truth"))
    parser.add_argument("--threads", type=int, default=1, help="beside other work one is best")
    parser.add_argument("--page", action="store_true", help="only write the page from the records")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rf.set_num_threads(arguments.threads)
    test = load("shapes", "test", n=arguments.images)
    area = test.masks.mean((1, 2))
    bins = np.digitize(area, np.quantile(area, [1 / 3, 2 / 3]))
    groups = {"all": np.arange(len(test))} | {name: np.flatnonzero(bins == i) for i, name in enumerate(SIZES)}
    (arguments.out / "records").mkdir(parents=True, exist_ok=True)
    for seed in [] if arguments.page else arguments.seeds:
        path = arguments.out / "records" / f"seed-{seed}.csv"
        if path.exists():
            continue
        training = load("shapes", "train", n=arguments.train_images)
        model, accuracy = base_model(seed, training, load("shapes", "test", n=1000), arguments)
        print(f"seed {seed}: accuracy {accuracy:.3f}", flush=True)
        chains = [PostProcess.parse(k) for k in arguments.postprocess]
        planted = planted_maps(test.images, test.masks, seed=seed)
        maps = {f"{name} | {k}": k(a) for name, a in planted.items() for k in chains}
        rows = score_maps(model, test, maps, groups, {"mean": training.mean, "std": training.std})
        part = path.with_suffix(".part")
        with part.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["accuracy", "objects", "map", "score", "value"])
            writer.writerows((f"{accuracy:.4f}", *row[:3], f"{row[3]:.5f}") for row in rows)
        part.replace(path)
    if found := read_records(arguments.out):
        write_page(arguments, found, test)


if __name__ == "__main__":
    main()
