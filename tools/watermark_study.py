"""Watermarked CIFAR-10 (002, section 3.2 and appendix D): the same map moved to a box or to bands, where the class is a number or stripes.

python tools/watermark_study.py --train cifar10_train_10k.npz --test cifar10_test_2k.npz --workers 2
python tools/watermark_study.py --page     # only the page, from the records

For each kind of data and each seed: a base model, maps of test images, Attr% and ROAD. One record per kind and seed; a run that is stopped
goes on where it was.
"""

from __future__ import annotations

import argparse
import csv
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from watermark_page import write_page

import roarfast as rf
from roarfast import metrics
from roarfast.data import load
from roarfast.data.watermark import watermark
from roarfast.explain import Normalized, as_input, explain
from roarfast.explain.postprocess import PostProcess
from roarfast.metrics.localisation import mass_inside
from roarfast.train import get_recipe, train

DROPS = (0.1, 0.3, 0.5, 0.7, 0.9)
ESTIMATORS = ("ig", "gc", "grad", "deepshap", "rand")
BOX, BANDS = "rect(9)", "rows(4)"  # 60 of 224 pixels at 32; a band per bit of ten classes
# Numbers must not be mirrored: a 2 of three by five pixels is then a 5.
_MARKED = {
    "epochs": 3,
    "optimizer": "adam",
    "lr": 3e-3,
    "flip": False,
    "pad": 0,
    "random_crop": False,
    "warmup_epochs": 0.5,
}
KINDS = {
    "number": ({"kind": "number"}, _MARKED),
    "number on blank": ({"kind": "number", "canvas": "blank"}, _MARKED),
    "stripes": ({"kind": "stripes"}, _MARKED),
    "real images": (None, {}),
}


def images_of(kind, arguments):
    """Both splits of a kind of data."""
    marks = KINDS[kind][0]
    for split, path in (("train", arguments.train), ("test", arguments.test)):
        data = replace(load(path, "all"), split=split)
        yield data if marks is None else watermark(data, **marks)


def measure_speed(arguments):
    """Images marked per second by one process with nothing beside it here: the fastest of five times the training images."""
    path = arguments.out / "speed.csv"
    if path.exists():
        return
    data, lines = load(arguments.train, "all"), ["data,images,images per second"]
    for kind, (marks, _) in KINDS.items():
        if marks is not None:
            taken = []
            for _ in range(5):
                began = time.perf_counter()
                watermark(data, **marks)
                taken.append(time.perf_counter() - began)
            lines.append(f"{kind},{len(data)},{len(data) / min(taken):.0f}")
    path.write_text("\n".join(lines) + "\n")


def score_kind(task):
    """The record of a kind and a seed: rows (what, map, rate, value, standard error over images)."""
    kind, seed, arguments = task
    torch.set_num_threads(1)
    rf.set_num_threads(1)
    path = arguments.out / "records" / f"{kind.replace(' ', '-')}-{seed}.csv"
    if path.exists():
        return
    began = time.monotonic()
    training, test = images_of(kind, arguments)
    recipe = get_recipe("quick", model="convnet", **KINDS[kind][1])
    result = train("convnet", training, test, recipe, seed=seed, progress="none")
    model, data = result.model, test.subset(np.arange(min(arguments.images, len(test))))
    rows = [("accuracy", "", "", result.accuracy, 0.0)]
    normal = Normalized(model, training.mean, training.std)
    # Signed values, as in 002: the mean over a band is not that of sizes.
    maps = explain(normal, as_input(data.images), ESTIMATORS, labels=data.labels, aggregate="sum(raw)", seed=seed)
    sets = {name: a.numpy() for name, a in maps.items()}
    for k in (BOX, BANDS):
        sets[f"ig | {k}"] = PostProcess.parse(k)(sets["ig"])
    print(f"{kind}, seed {seed}: accuracy {result.accuracy:.3f}, maps, {time.monotonic() - began:.0f} s", flush=True)

    def put(what, name, rate, values):
        known = values[np.isfinite(values)]
        rows.append((what, name, rate, known.mean(), known.std(ddof=1) / np.sqrt(len(known))))

    if data.masks is not None:
        inside = {name: mass_inside(a, data.masks) for name, a in sets.items()}
        for name, values in inside.items():
            put("Attr%", name, "", values)
        put("Attr%, box minus bands", "ig", "", inside[f"ig | {BOX}"] - inside[f"ig | {BANDS}"])
        rows.append(("images without a region", "", "", float((~data.masks.any((1, 2))).sum()), 0.0))
    answers = {
        name: metrics.respond(
            model,
            data.images,
            a,
            DROPS,
            labels=data.labels,
            layout="NHWC",
            mean=training.mean,
            std=training.std,
            seed=seed,
            progress=False,
        ).values()
        for name, a in sets.items()
    }
    for name, values in answers.items():
        for j, rate in enumerate(DROPS):
            put("ROAD", name, rate, values[j])
            if name != f"ig | {BOX}":
                put("ROAD, minus that of the box", name, rate, values[j] - answers[f"ig | {BOX}"][j])
    part = path.with_suffix(".part")
    with part.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["data", "seed", "what", "map", "rate", "value", "error"])
        writer.writerows((kind, seed, *row[:3], f"{row[3]:.6g}", f"{row[4]:.3g}") for row in rows)
    part.replace(path)
    print(f"{kind}, seed {seed}: {time.monotonic() - began:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, help="CIFAR-10 training images, .npz")
    parser.add_argument("--test", type=Path, help="its test images")
    parser.add_argument("--images", type=int, default=1000, help="test images that are explained")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("docs/results/watermark"))
    parser.add_argument("--page", action="store_true", help="only write the page from the records")
    arguments = parser.parse_args()
    if not arguments.page and not (arguments.train and arguments.test):
        parser.error("--train and --test are needed, or --page")
    (arguments.out / "records").mkdir(parents=True, exist_ok=True)
    if not arguments.page:
        measure_speed(arguments)
        tasks = [(kind, seed, arguments) for seed in arguments.seeds for kind in reversed(KINDS)]
        with ProcessPoolExecutor(arguments.workers, get_context("spawn")) as pool:
            list(pool.map(score_kind, tasks))
    write_page(arguments.out)


if __name__ == "__main__":
    main()
