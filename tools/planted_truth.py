"""Which score can be trusted? Planted maps on `shapes`, every score of the package, several seeds: a page and its records.

python tools/planted_truth.py                 # trains what is missing, scores what is missing, writes the page
python tools/planted_truth.py --workers 2     # seeds in two processes; a run that is stopped goes on where it was
python tools/planted_truth.py --page          # only the page, from the records
python tools/planted_truth.py --scores soundness     # only these, as records that take the place of what was there

A seed has its own base model, its own test images and its own noise in the maps, so intervals over seeds hold all three.
"""

from __future__ import annotations

import argparse
import csv
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from planted_page import write_page

import roarfast as rf
from roarfast import metrics
from roarfast.data import load
from roarfast.explain.postprocess import PostProcess
from roarfast.metrics.inputs import read_inputs
from roarfast.metrics.localisation import mass_inside, pointing_game
from roarfast.metrics.nulls import NULLS
from roarfast.metrics.planted import overlap, planted_maps
from roarfast.metrics.resampling import weighted_mean
from roarfast.train import build_model, get_recipe, train

# To 0.95: scattered pixels do no damage below 0.7, and a null without damage has no curve of equal damage.
DROPS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 0.95)
SIZES = ("small objects", "middling objects", "large objects")
_CURVE = {"rates": DROPS}
_SUBSETS = {"sizes": (0.05, 0.2, 0.5), "draws": 12}
SCORES = {
    "ROAD, both orders": ("road", _CURVE),
    "deletion": ("deletion", _CURVE),
    "insertion": ("insertion", _CURVE),
    "pixel flipping": ("pixel_flipping", _CURVE),
    "completeness": ("completeness", {"rates": (0.2, 0.4, 0.6, 0.8)}),
    "soundness": ("soundness", {"step": 0.04, "unreached": "highest"}),
    "soundness at 0.8": ("soundness", {"step": 0.04, "level": 0.8, "unreached": "highest"}),
    "sensitivity-n": ("sensitivity_n", _SUBSETS),
    "faithfulness correlation": ("faithfulness_correlation", {"size": 0.2, "draws": 12}),
    "infidelity": ("infidelity", _SUBSETS),
    "average drop": ("average_drop", {}),
    "F-Fidelity": ("f_fidelity", {"sizes": (0.1, 0.2, 0.4), "draws": 1}),
}
# The quick recipe of studies (SGD at 0.15) stays at chance for three epochs here; mirror images are shapes of no test image.
RECIPE = {"optimizer": "adam", "lr": 3e-3, "flip": False, "pad": 2, "warmup_epochs": 0.5}


class Scoring:
    """Scores the maps of one seed; rows (group, map, score, value) with more is better."""

    def __init__(self, model, tuned, data, groups, options):
        self.data, self.groups, self.tuned = data, groups, tuned
        inputs = read_inputs(data.images, layout="NHWC", **options)
        self.problem = metrics.Problem(
            model, inputs, torch.from_numpy(data.labels).long(), 0, torch.arange(len(data)), None, {"progress": False}
        )
        everyone = np.arange(len(data))
        self.weights = np.stack([np.isin(everyone, rows).astype(np.float64) for rows in groups.values()])
        self.rows, self.own, self.null = [], {}, {}

    def put(self, name, score, statistic):
        """A score of all groups of images from one statistic of weights."""
        values = statistic(self.weights)
        self.rows.extend((group, name, score, float(v)) for group, v in zip(self.groups, values))

    def mean(self, name, score, per_image):
        """A score that is the mean of one number per image."""
        self.put(name, score, weighted_mean(np.asarray(per_image, np.float64)))

    def run(self, name, a, labels):
        """The scores with these labels of one set of maps."""
        tensor = torch.from_numpy(a)
        for label in labels:
            score, settings = SCORES[label]
            record = metrics.get_score(score)
            extra = {"model": self.tuned} if score == "f_fidelity" else {}
            outcome = record.run(self.problem, tensor, **settings, **extra)
            sign, statistic = -1 if record.better == "lower" else 1, outcome.resample()
            self.put(name, label, lambda w, s=statistic, sign=sign: sign * s(w))
            if score == "completeness":
                self.mean(name, "completeness, excess", outcome.curves["excess"].values.mean(0))

    def run_parts(self, name, a, again):
        """ROAD and its parts, and what is known of the maps; `again` are the maps planted for another model."""
        tensor = torch.from_numpy(a)
        how = metrics.Perturbation()
        own = self.own[name] = self.problem.respond(tensor, DROPS, how)
        null = self.null[name] = self.problem.respond(torch.from_numpy(metrics.null_maps(a, "swap")), DROPS, how)
        other = self.problem.respond(torch.from_numpy(again), DROPS, how)
        self.mean(name, "ROAD, most relevant first", -own.values().mean(0))
        self.mean(name, "ROAD, probability", -own.values("probability").mean(0))
        self.mean(name, "ROAD, shape part", own.whole.of("accuracy") - null.values().mean(0))
        self.mean(name, "ROAD, image part (excess over swap)", (null.values() - other.values()).mean(0))
        self.mean(name, "ROAD, model part", (other.values() - own.values()).mean(0))
        self.mean(name, "pointing game", pointing_game(a, self.data.masks).hit)
        self.mean(name, "Attr%", mass_inside(a, self.data.masks))
        self.mean(name, "overlap", overlap(a, self.data.masks, DROPS).mean(0))
        if name.startswith("rand"):
            self.compare_nulls(name, a, own)

    def compare_nulls(self, name, a, own):
        """Random maps and each of their nulls: the mean difference over images, and its standard error."""
        for null in NULLS:
            moved = torch.from_numpy(metrics.null_maps(a, null, seed=1, labels=self.data.labels))
            difference = self.problem.respond(moved, DROPS, metrics.Perturbation()).values() - own.values()
            each = difference.mean(0)
            self.rows.append(("nulls", name, null, float(each.mean())))
            self.rows.append(("nulls", name, f"{null}, error", float(each.std(ddof=1) / np.sqrt(len(each)))))

    def equal_damage(self):
        """Equal damage of all maps over the range of null accuracy that all of them reach, and over each map's own."""
        for group, chosen in self.groups.items():
            base = next(iter(self.own.values())).whole.of("accuracy")[chosen]
            own = {k: v.values()[:, chosen] for k, v in self.own.items()}
            null = {k: v.values()[:, chosen] for k, v in self.null.items()}
            low = metrics.common_low(null.values(), base)
            for k in own:
                common, alone = (
                    metrics.equal_damage(own[k], null[k], base, low=bottom, resamples=0) for bottom in (low, None)
                )
                self.rows.append((group, k, "ROAD, equal damage", common.score.value))
                self.rows.append((group, k, "ROAD, equal damage, own range", alone.score.value))
                for arm, values in (("own", own[k]), ("null", null[k])):
                    self.rows += [(group, k, f"{arm} at {t}", float(v)) for t, v in zip(DROPS, values.mean(1))]
            self.rows += [("range", group, "low", low), ("range", group, "high", float(base.mean()))]


def base_model(seed, training, test, arguments):
    """The base model of a seed, and its copy fine-tuned under removal, trained or read; and its test accuracy."""
    path = arguments.models / f"planted-{seed}.pt"
    if not path.exists():
        recipe = get_recipe("quick", model=arguments.model, epochs=arguments.epochs, **RECIPE)
        result = train(arguments.model, training, test, recipe, seed=seed, progress="none")
        tuned = metrics.finetune(
            result.model,
            training.images,
            training.labels,
            layout="NHWC",
            mean=training.mean,
            std=training.std,
            seed=seed,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        torch.save({"model": result.model.state_dict(), "tuned": tuned.state_dict(), "accuracy": result.accuracy}, part)
        part.replace(path)
    state = torch.load(path, weights_only=True)
    models = []
    for name in ("model", "tuned"):
        models.append(build_model(arguments.model, training.num_classes, 3, seed=seed).eval())
        models[-1].load_state_dict(state[name])
    return (*models, float(state["accuracy"]))


def score_seed(seed, arguments):
    """Scores of one seed, as a record beside the page."""
    torch.set_num_threads(arguments.threads)
    rf.set_num_threads(arguments.threads)
    chosen_scores = arguments.scores or list(SCORES)
    path = arguments.out / "records" / f"seed-{seed}{'-part' if arguments.scores else ''}.csv"
    if path.exists():
        return
    began = time.monotonic()
    training, test = load("shapes", "train", n=arguments.train_images), load("shapes", "test")
    model, tuned, accuracy = base_model(seed, training, test, arguments)
    print(f"seed {seed}: accuracy {accuracy:.3f}, {time.monotonic() - began:.0f} s", flush=True)
    area = test.masks.mean((1, 2))
    bins = np.digitize(area, np.quantile(area, [1 / 3, 2 / 3]))
    # Images of its own: those of a seed start where the one before it ends, around the test set.
    chosen = (np.arange(arguments.images) + seed * arguments.images) % len(test)
    data, bins = test.subset(chosen), bins[chosen]
    groups = {"all": np.arange(len(data))} | {name: np.flatnonzero(bins == i) for i, name in enumerate(SIZES)}
    scoring = Scoring(model, tuned, data, groups, {"mean": training.mean, "std": training.std})
    planted, again = (planted_maps(data.images, data.masks, seed=seed) for _ in range(2))
    for k in map(PostProcess.parse, arguments.postprocess):
        for name, a in planted.items():
            scoring.run(f"{name} | {k}", k(a), chosen_scores)
            if not arguments.scores:
                scoring.run_parts(f"{name} | {k}", k(a), k(again[name]))
        print(f"seed {seed}: {k}, {time.monotonic() - began:.0f} s", flush=True)
    if not arguments.scores:
        scoring.equal_damage()
    write_record(path, accuracy, scoring.rows)


def write_record(path, accuracy, rows):
    """A row per group of images and map, a column per score; blank where a score is not asked for."""
    table, scores = {}, list(dict.fromkeys(row[2] for row in rows))
    for group, name, score, value in rows:
        table.setdefault((group, name), {})[score] = f"{value:.6g}"
    part = path.with_suffix(".part")
    with part.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["accuracy", "objects", "map", *scores])
        for key, by_score in table.items():
            writer.writerow([f"{accuracy:.4f}", *key, *(by_score.get(s, "") for s in scores)])
    part.replace(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--images", type=int, default=300, help="test images per seed")
    parser.add_argument("--train-images", type=int, default=10_000)
    parser.add_argument("--model", default="convnet")
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--postprocess", nargs="+", default=["plain", "gaussian(1)", "max(3)"])
    parser.add_argument("--models", type=Path, default=Path("runs/planted-truth"), help="where base models are kept")
    parser.add_argument("--out", type=Path, default=Path("docs/results/planted-truth"))
    parser.add_argument("--workers", type=int, default=1, help="processes, each with a seed of its own")
    parser.add_argument("--threads", type=int, default=1, help="of a process")
    parser.add_argument("--scores", nargs="+", choices=list(SCORES), metavar="SCORE", help="only these")
    parser.add_argument("--page", action="store_true", help="only write the page from the records")
    arguments = parser.parse_args()
    (arguments.out / "records").mkdir(parents=True, exist_ok=True)
    if not arguments.page:
        with ProcessPoolExecutor(arguments.workers, get_context("spawn")) as pool:
            for _ in pool.map(score_seed, arguments.seeds, [arguments] * len(arguments.seeds)):
                pass
    write_page(arguments, DROPS)


if __name__ == "__main__":
    main()
