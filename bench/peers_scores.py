"""Whole scores beside the peers' own implementations: rows of bench/peers.py.

soco installs from no registry: its rival here is its per-image loop stated again (soundness_step), with the sparse solver of
`impute_rivals.road_way`, which has the data structures and calls of the published imputation, so its cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from impute_rivals import road_way

import roarfast as rf
from roarfast import metrics
from roarfast._torchvision import import_torchvision

Fields = tuple[str, str, str, Callable[[], Any], Callable[[], Any], float, float | None]


def rows(quick: bool) -> Iterator[Fields]:
    """(op, case, rival, ours, theirs, floor, tolerance) for each comparison."""
    yield from soundness(quick)
    yield from flipping(quick)
    yield from road(quick)


def _free(channels: int, classes: int = 4) -> torch.nn.Module:
    """A model that costs nothing: what is left is masking, imputation and bookkeeping."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(channels, classes)
    ).eval()


def soundness_step(images: np.ndarray, maps: np.ndarray, labels: np.ndarray, rate: float, model: Any) -> Any:
    """One step of soco's soundness: rank, remove the least relevant, impute image by image, classify, sum attribution."""
    filled, shares = [], []
    for image, a in zip(images, maps):
        order = np.argsort(a.reshape(-1))
        mask = np.zeros(a.size, bool)
        mask[order[: int(rate * a.size)]] = True
        mask = mask.reshape(a.shape)
        filled.append(road_way(image, mask))
        shares.append(a[~mask].sum() / (a.sum() + 1e-6))
    with torch.no_grad():
        correct = model(torch.from_numpy(np.stack(filled))).argmax(1).numpy() == labels
    return np.array([correct.mean(), np.mean(shares)])


def soundness(quick: bool) -> Iterator[Fields]:
    """The gate is at 90 % removed; 50 % is reported."""
    side, count = (64 if quick else 224), 2
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (count, 3, side, side), dtype=np.uint8)
    images = pixels / np.float32(255)
    maps = rf.gaussian_filter(rng.random((count, side, side)).astype(np.float32), 3.0)
    labels, model = np.zeros(count, np.int64), _free(3)
    for middle, floor in ((0.5, 0.0), (0.9, 100.0)):
        rates = tuple(middle + 0.01 * k for k in range(-2, 2))  # steps of 1 %, as the score takes them

        def ours(rates: tuple[float, ...] = rates) -> Any:
            how = metrics.Perturbation(order="lerf", noise=0.0)
            codes = rf.rank_codes(maps, rates, order="lerf")
            found = metrics.respond(
                model, pixels, codes=codes, drops=rates, labels=labels, perturbation=how, layout="NCHW", progress=False
            )
            left = rf.code_sums(maps, codes, len(rates) + 1)[:, ::-1].cumsum(1)[:, ::-1]
            return np.stack([found.correct.mean(1), (left[:, 1:] / left[:, :1]).mean(0)], 1)

        def theirs(rates: tuple[float, ...] = rates) -> Any:
            return np.array([soundness_step(images, maps, labels, rate, model) for rate in rates])

        case = f"{len(rates)} steps at {middle:.0%} removed, {count}x3x{side}x{side}, free model"
        yield "scores soundness", case, "soco (restated)", ours, theirs, floor, 1e-3


def flipping(quick: bool) -> Iterator[Fields]:
    """Quantus' PixelFlipping: one channel, so that both flip the same pixels."""
    import quantus

    count, side, step = (16 if quick else 64), 32, 32
    rng = np.random.default_rng(1)
    pixels, a = (
        rng.integers(0, 256, (count, 1, side, side), np.uint8),
        rng.random((count, side, side)).astype(np.float32),
    )
    x = pixels / np.float32(255)
    y, model = np.zeros(count, np.int64), _free(1)
    rates = tuple((step * k + 0.5) / side**2 for k in range(1, side * side // step))

    def ours() -> Any:
        how = metrics.Perturbation(fill=0.0)
        found = metrics.respond(model, x, a, rates, labels=y, perturbation=how, layout="NCHW", progress=False)
        return np.concatenate([found.values("logit"), found.empty.of("logit")[None]]).T

    def theirs() -> Any:
        metric = quantus.PixelFlipping(
            features_in_step=step, perturb_baseline=0.0, normalise=False, abs=False, disable_warnings=True
        )
        return np.array(metric(model=model, x_batch=x, y_batch=y, a_batch=a[:, None], softmax=False))

    yield "scores PixelFlipping", f"{count}x1x32x32, 32 steps, free model", "Quantus", ours, theirs, 10.0, 1e-5


def road(quick: bool) -> Iterator[Fields]:
    """grad-cam's ROAD, most relevant first, ResNet-18 included; same masks (percentiles of maps without ties)."""
    from pytorch_grad_cam.metrics import road as theirs_road

    # Percentiles: every second of the default of its averages over them.
    count, side, percentiles = (2, 64, [50]) if quick else (16, 224, [20, 40, 60, 80])
    torch.manual_seed(0)
    model = import_torchvision("models").resnet18(num_classes=10).eval()
    rng = np.random.default_rng(2)
    x = torch.from_numpy(rng.integers(0, 256, (count, 3, side, side), np.uint8)).float() / 255
    cams = rf.gaussian_filter(rng.random((count, side, side)).astype(np.float32), 8.0)
    cams = (cams - cams.min((1, 2), keepdims=True)) / np.ptp(cams, (1, 2), keepdims=True)
    targets = [lambda out: out.softmax(-1)[0]] * count

    def ours() -> Any:
        how = metrics.Perturbation(rule="percentile")
        drops = tuple(sorted(1 - p / 100 for p in percentiles))
        labels = np.zeros(count, np.int64)
        found = metrics.respond(model, x, cams, drops, labels=labels, perturbation=how, layout="NCHW", progress=False)
        return found.values("probability").mean(0) - found.whole.of("probability")

    def theirs() -> Any:
        return theirs_road.ROADMostRelevantFirstAverage(percentiles)(x, cams, targets, model)

    case = f"{count}x3x{side}x{side}, ResNet-18, {len(percentiles)} rates"
    yield "scores ROAD", case, "grad-cam", ours, theirs, 5.0, 0.05
