"""The audit of every score: score × fill × post-processing on CIFAR-10, as a page with its tables.

python tools/audit_scores.py --train cifar10_train_10k.npz --test cifar10_test_2k.npz --workers 2
python tools/audit_scores.py --page     # only the page, from the parts

Trains base models (`convnet`), explains test images and asks of every score whether filters, powers, one outlier and a shift of the maps
"improve" it. Scores of a family ask the same questions, so a part is a family, a fill and a model; a run that is stopped goes on
with the parts that are missing.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from audit_page import write_page

import roarfast as rf
from roarfast import metrics
from roarfast.data import load
from roarfast.explain import Normalized, as_input, explain
from roarfast.metrics.auditing import FILLS
from roarfast.train import build_model, get_recipe, train

_CURVE = {"rates": (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)}
_SUBSETS = {"sizes": (0.05, 0.2, 0.5), "draws": 16}
OPTIONS = {
    "road": _CURVE,
    "deletion": _CURVE,
    "insertion": _CURVE,
    "pixel_flipping": _CURVE,
    "completeness": {"rates": (0.2, 0.4, 0.6, 0.8), "matched": False},
    "soundness": {"step": 0.05},
    "sensitivity_n": _SUBSETS,
    "infidelity": _SUBSETS,
    "faithfulness_correlation": {"size": 0.2, "draws": 16},
    "f_fidelity": {"sizes": (0.1, 0.3, 0.6), "draws": 1},
}
FAMILIES = {
    "curves": ("road", "deletion", "insertion", "pixel_flipping"),
    "completeness": ("completeness",),
    "soundness": ("soundness",),
    "subsets": ("sensitivity_n", "faithfulness_correlation", "infidelity"),
    "others": ("average_drop", "f_fidelity"),
}


def scores_of(family, fill):
    """The scores of a part, as `metrics.audit` takes them; none where a fill does not apply."""
    if family == "others":
        # One multiplies by the map and fills nothing; the other's model is fine-tuned with the mean, so that is its fill.
        return {"f_fidelity": (fill,)} if fill == "dataset_mean" else ["average_drop"] if fill == "its own" else None
    return None if fill == "its own" else {s: (fill,) for s in FAMILIES[family] if s != "road" or fill == "linear"}


def prepare(trial, arguments):
    """Base model, its fine-tuned copy and maps of a trial, made if they are not there; returns their file."""
    torch.set_num_threads(1)
    rf.set_num_threads(1)
    path = arguments.work / f"trial-{trial}.pt"
    if path.exists():
        return path
    training, test = load(arguments.train, "all"), load(arguments.test, "all")
    recipe = get_recipe("quick", model=arguments.model, epochs=arguments.epochs)
    result = train(arguments.model, training, test, recipe, seed=trial, progress="none")
    options = {"layout": "NHWC", "mean": training.mean, "std": training.std}
    tuned = metrics.finetune(result.model, training.images, training.labels, seed=trial, **options)
    images, labels = test.images[: arguments.images], test.labels[: arguments.images]
    normal = Normalized(result.model, training.mean, training.std)
    maps = explain(normal, as_input(images), arguments.estimators, labels=labels, aggregate="mean(abs)", seed=trial)
    # 16 bits of each map: powers then merge no two values, and what is left of a change is the power's own.
    for name, a in maps.items():
        a = a.double()
        maps[name] = ((65535 * a / a.amax((1, 2), keepdim=True)).round() + 1) / 65536
    part = path.with_suffix(".part")
    state = {"model": result.model.state_dict(), "tuned": tuned.state_dict(), "accuracy": result.accuracy, "maps": maps}
    torch.save(state, part)
    part.replace(path)
    print(f"trial {trial}: accuracy {result.accuracy:.3f}", flush=True)
    return path


def audit_part(task):
    """One part: its audit as a file."""
    trial, family, fill, arguments = task
    path = arguments.work / f"part-{trial}-{family}-{fill.replace(' ', '-')}.npz"
    if path.exists():
        return
    began = time.monotonic()
    torch.set_num_threads(1)
    rf.set_num_threads(1)
    training, test = load(arguments.train, "all"), load(arguments.test, "all")
    state = torch.load(arguments.work / f"trial-{trial}.pt", weights_only=True)
    model, tuned = (build_model(arguments.model, training.num_classes, 3, seed=trial).eval() for _ in range(2))
    model.load_state_dict(state["model"])
    tuned.load_state_dict(state["tuned"])
    # A set of maps is one of a model: the same estimator with another model is another one.
    maps = {f"{name}, model {trial}": a.numpy() for name, a in state["maps"].items()}
    options = OPTIONS | {"f_fidelity": OPTIONS["f_fidelity"] | {"model": tuned}}
    found = metrics.audit(
        model,
        test.images[: arguments.images],
        maps,
        labels=test.labels[: arguments.images],
        scores=scores_of(family, fill),
        options=options,
        layout="NHWC",
        mean=training.mean,
        std=training.std,
        resamples=arguments.resamples,
        progress=False,
    )
    found.save(path)
    print(f"trial {trial}: {family}, {fill}, {time.monotonic() - began:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, help="CIFAR-10 training images, .npz")
    parser.add_argument("--test", type=Path, help="its test images")
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--trials", type=int, default=2, help="base models")
    parser.add_argument("--model", default="convnet")
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument(
        "--estimators", nargs="+", default=["grad^2", "ig^2", "sg-sq", "gi^2", "gc^2", "sobel^2"], help="of the maps"
    )
    parser.add_argument("--resamples", type=int, default=300)
    parser.add_argument("--workers", type=int, default=1, help="processes of one thread")
    parser.add_argument("--work", type=Path, default=Path("runs/score-audit"), help="where models and parts are kept")
    parser.add_argument("--out", type=Path, default=Path("docs/results/score-audit"))
    parser.add_argument("--page", action="store_true", help="only write the page from the parts")
    arguments = parser.parse_args()
    if not arguments.page and not (arguments.train and arguments.test):
        parser.error("--train and --test are needed, or --page")
    arguments.work.mkdir(parents=True, exist_ok=True)
    trials = range(arguments.trials)
    if not arguments.page:
        tasks = [
            (trial, family, fill, arguments)
            for fill in ("linear", *(f for f in FILLS if f != "linear"), "its own")
            for family in FAMILIES
            for trial in trials
            if scores_of(family, fill)
        ]
        with ProcessPoolExecutor(arguments.workers, get_context("spawn")) as pool:
            list(pool.map(prepare, trials, [arguments] * len(trials)))
            list(pool.map(audit_part, tasks))
    parts = [
        metrics.join_audits([metrics.Audit.load(p) for p in sorted(arguments.work.glob(f"part-{trial}-*.npz"))])
        for trial in trials
    ]
    states = [torch.load(arguments.work / f"trial-{trial}.pt", weights_only=True) for trial in trials]
    accuracies = np.array([float(state["accuracy"]) for state in states])
    write_page(parts, accuracies, list(states[0]["maps"]), arguments.out)


if __name__ == "__main__":
    main()
