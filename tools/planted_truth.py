"""Which score can be trusted? Planted maps on `shapes`, every score, several seeds: a page and a table.

python tools/planted_truth.py --seeds 5 --images 400 --out docs/results/planted-truth
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

from roarfast import metrics
from roarfast.data import load
from roarfast.explain.postprocess import PostProcess
from roarfast.metrics.bootstrap import trial_interval
from roarfast.metrics.localisation import mass_inside, pointing_game
from roarfast.metrics.planted import overlap, planted_maps, trust_table
from roarfast.train import get_recipe, train

DROPS = (0.05, 0.1, 0.2, 0.3, 0.5)


def scores_of(model, data, maps, options):
    """Score name -> map name -> value, more is better."""
    table = {}

    def put(score, name, value):
        table.setdefault(score, {})[name] = float(value)

    own, null = {}, {}
    for name, a in maps.items():
        how = {"labels": data.labels, "progress": False, **options}
        own[name] = metrics.respond(model, data.images, a, DROPS, **how)
        null[name] = metrics.respond(model, data.images, metrics.null_maps(a, "swap"), DROPS, **how)
        put("ROAD, accuracy", name, -own[name].curve().mean())
        put("ROAD, probability", name, -own[name].curve("probability").mean())
        put("ROAD, excess over swap", name, metrics.excess(own[name], null[name]).mean())
        zero = metrics.Perturbation(fill="dataset_mean")
        put(
            "deletion, mean fill",
            name,
            -metrics.respond(model, data.images, a, DROPS, perturbation=zero, **how).curve("probability").mean(),
        )
        blur = metrics.Perturbation(fill="blur", keep=True)
        put(
            "insertion, blur",
            name,
            metrics.respond(model, data.images, a, DROPS, perturbation=blur, **how).curve("probability").mean(),
        )
        put("pointing game", name, pointing_game(a, data.masks).ratio)
        put("Attr%", name, np.nanmean(mass_inside(a, data.masks)))
    for name, curve in metrics.equal_damages(own, null, resamples=0).items():
        put("ROAD, equal damage", name, curve.score.value)
    return table, {name: float(np.nanmean(overlap(a, data.masks, DROPS))) for name, a in maps.items()}


def write(arguments, chains, groups, found, accuracy, gaps):
    """The page and its tables, after every seed: a run that is stopped leaves what it has found."""
    seeds = len(accuracy)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / "trust.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["objects", "score", "rank correlation", "low", "high", *(f"seed {s}" for s in range(seeds))])
        for group, (scores, truth) in found.items():
            for row in trust_table(scores, truth):
                e = row.correlation
                writer.writerow([group, row.score, *(f"{v:.4f}" for v in (e.value, e.low, e.high, *row.per_seed))])
    with (arguments.out / "scores.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["seed", "map", "overlap", *found["all"][0][0]])
        for seed, (table, truth) in enumerate(zip(*found["all"])):
            for name, covered in truth.items():
                writer.writerow([seed, name, f"{covered:.4f}", *(f"{table[s][name]:.4f}" for s in table)])
    lines = [
        "# Planted truth: which score can be trusted", "",
        f"`shapes`, {arguments.images} test images, `convnet` ({arguments.epochs} epochs on {arguments.train_images} images, test accuracy "
        f"{min(accuracy):.3f} to {max(accuracy):.3f}), {seeds} seeds; twelve planted maps × {', '.join(map(str, chains))}; drop rates "
        f"{', '.join(map(str, DROPS))}. Rank correlation of each score with the true overlap of the removed pixels with the object; "
        "95 % t-interval over seeds (of models and of the maps' noise). Made by `python tools/planted_truth.py`.", "",
    ]  # fmt: skip
    for group, (scores, truth) in found.items():
        lines += [
            f"## {group.capitalize()} ({len(groups[group])} images)",
            "",
            "| score | rank correlation | interval |",
            "|---|---|---|",
        ]
        for row in trust_table(scores, truth):
            e = row.correlation
            known = not np.isnan(e.value)
            lines.append(
                f"| {row.score} | {e.value:.3f} | [{e.low:.3f}, {e.high:.3f}] |"
                if known
                else f"| {row.score} | undefined | the null of a map does no damage: no common range |"
            )
        lines.append("")
    gap = trial_interval(np.array(gaps))
    lines += [
        "## Random maps and their null", "",
        f"Excess of `rand` over its `swap`: {100 * gap.value:.2f} points, standard error {100 * gap.error:.2f} over {seeds} seeds. "
        "The two are exchangeable; a difference beyond two standard errors would be a fault.", "",
        "The model part is 0 for all planted maps by construction: they ask no model. It measures what a map knows of a model, not "
        "of the object, so it must not follow the overlap.", "",
    ]  # fmt: skip
    (arguments.out / "README.md").write_text("\n".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--train-images", type=int, default=10_000)
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--postprocess", nargs="+", default=["plain", "gaussian(1)", "max(3)"])
    parser.add_argument("--sizes", action="store_true", help="also by the size of the object, in three bins")
    parser.add_argument("--out", type=Path, default=Path("docs/results/planted-truth"))
    arguments = parser.parse_args()
    training, test = load("shapes", "train", n=arguments.train_images), load("shapes", "test", n=arguments.images)
    chains = [PostProcess.parse(k) for k in arguments.postprocess]
    sizes = np.quantile(test.masks.mean((1, 2)), [1 / 3, 2 / 3])
    bins = np.digitize(test.masks.mean((1, 2)), sizes)
    groups = {"all": np.arange(len(test))}
    if arguments.sizes:
        names = ("small objects", "middling objects", "large objects")
        groups |= {name: np.flatnonzero(bins == i) for i, name in enumerate(names)}
    found = {group: ([], []) for group in groups}
    accuracy, gaps = [], []
    recipe = get_recipe("quick", model="convnet", epochs=arguments.epochs)
    for seed in range(arguments.seeds):
        result = train("convnet", training, test, recipe, seed=seed, progress="none")
        options = {"mean": training.mean, "std": training.std}
        planted = planted_maps(test.images, test.masks, seed=seed)
        maps = {f"{name} | {k}": k(a) for name, a in planted.items() for k in chains}
        for group, rows in groups.items():
            table, truth = scores_of(result.model, test.subset(rows), {n: a[rows] for n, a in maps.items()}, options)
            found[group][0].append(table)
            found[group][1].append(truth)
        accuracy.append(result.accuracy)
        gaps.append(found["all"][0][-1]["ROAD, excess over swap"]["rand | plain"])
        print(f"seed {seed}: accuracy {result.accuracy:.3f}", flush=True)
        write(arguments, chains, groups, found, accuracy, gaps)


if __name__ == "__main__":
    main()
