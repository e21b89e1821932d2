"""Made-up study results for the tests of the report: accuracy falls with the drop rate and with mask TV."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from roarfast.study.results import Record, StudyResults

ESTIMATORS = ("grad", "grad^2", "gi^2", "ig^2", "sg^2", "sg-sq", "vg", "gc^2", "sobel^2")
POSTPROCESSES = ("plain", "max(3)", "gaussian(1)")
MASK_TV = {
    "grad": 0.40,
    "grad^2": 0.39,
    "gi^2": 0.37,
    "ig^2": 0.34,
    "sg^2": 0.28,
    "sg-sq": 0.22,
    "vg": 0.21,
    "gc^2": 0.06,
    "sobel^2": 0.25,
    "rand": 0.50,
    "block": 0.03,
    "sg-sq(ig)": 0.20,
}
SMOOTHING = {"plain": 1.0, "max(3)": 0.55, "gaussian(1)": 0.62, "gaussian(2)": 0.4}
ONE_RATE = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def record(
    protocol: str,
    estimator: str,
    k: str,
    drop: float,
    trial: int,
    *,
    order: str = "morf",
    dataset: str = "cifar10",
    status: str = "done",
    **values: Any,
) -> Record:
    key = hashlib.sha256(repr((protocol, dataset, estimator, k, order, drop, trial)).encode()).hexdigest()[:16]
    return Record(key, protocol, dataset, estimator, k, order, drop, trial, status, **values)


def cell(
    protocol: str, order: str, dataset: str, e: str, k: str, drop: float, trial: int, rng: np.random.Generator
) -> Record:
    smoothing = 1.0 if e == "block" else SMOOTHING[k] + (0.4 if e == "gc^2" else 0.0) * (1 - SMOOTHING[k])
    tv = MASK_TV[e] * smoothing * (0.5 + 2 * drop * (1 - drop))
    removed = 1 - drop if protocol == "kar" else drop
    quality = (sum(map(ord, e)) % 7 - 3) * 0.06  # what an estimator is worth besides its blur
    loss = 0.62 * removed**0.8 * (1.35 - 1.8 * MASK_TV[e] * smoothing + quality)
    accuracy = 0.85 - 0.2 * (dataset != "cifar10") - loss * (0.35 if order == "lerf" or protocol == "kar" else 1)
    if protocol == "mask-only":
        accuracy = 0.1 + 0.35 * (e not in ("rand", "block"))
    if protocol == "no-retrain":
        accuracy = 0.7 - 0.6 * removed - 0.1 * smoothing
    accuracy += 0.012 * np.sin(3 * trial) + rng.normal(0, 0.006)
    tied = e == "gc^2" and k == "plain"
    return record(
        protocol,
        e,
        k,
        drop,
        trial,
        order=order,
        dataset=dataset,
        accuracy=round(float(np.clip(accuracy, 0.1, 1)), 4),
        true_class_probability=float(np.clip(accuracy - 0.05, 0, 1)),
        removed_fraction=removed + 0.08 * tied,
        removed_fraction_train=None if protocol == "road" else removed + 0.05 * tied,
        tv_map=tv * 400 * rng.uniform(0.4, 1.3),
        tv_mask=tv,
        seconds={"training": 30.0, "evaluation": 1.0},
    )


def study(
    *,
    estimators: Sequence[str] = ESTIMATORS,
    postprocesses: Sequence[str] = POSTPROCESSES,
    trials: int = 5,
    drops: Sequence[float] = (0.3, 0.5),
    protocols: Iterable[tuple[str, str]] = (("roar", "morf"),),
    baselines: Collection[str] = ("rand", "block"),
    baseline_drops: Sequence[float] = ONE_RATE,
    baseline_postprocesses: Sequence[str] = ("plain",),
    datasets: Sequence[str] = ("cifar10",),
    seed: int = 0,
    failed: int = 0,
    missing: int = 0,
) -> StudyResults:
    """A study; `failed` cells are recorded with an error, `missing` ones not at all."""
    rng = np.random.default_rng(seed)
    records = []
    for dataset in datasets:
        for trial in range(trials):
            base = 0.85 - 0.2 * (dataset != "cifar10") + rng.normal(0, 0.005)
            records.append(record("base", "none", "plain", 0.0, trial, dataset=dataset, accuracy=base))
            for protocol, order in protocols:
                grid = [(e, k, t) for e in estimators for k in postprocesses for t in drops]
                grid += [(e, k, t) for e in baselines for k in baseline_postprocesses for t in baseline_drops]
                records += [cell(protocol, order, dataset, e, k, t, trial, rng) for e, k, t in grid]
    work = [i for i, r in enumerate(records) if r.protocol != "base"]
    broken = rng.permutation(work)[: failed + missing].tolist()
    for i in broken[:failed]:
        r = records[i]
        error = 'Traceback (most recent call last):\n  File "x.py", line 1\nRuntimeError: loss is <NaN> & stays so'
        records[i] = record(
            r.protocol,
            r.estimator,
            r.postprocess,
            r.drop,
            r.trial,
            order=r.order,
            dataset=r.dataset,
            status="failed",
            error=error,
        )
    gone = set(broken[failed:])
    return StudyResults([r for i, r in enumerate(records) if i not in gone], meta())


def meta() -> dict[str, Any]:
    return {
        "config": {"name": "synthetic", "data": {"name": "cifar10"}, "train": {"model": "convnet", "epochs": 12}},
        "versions": {"roarfast": "0.1.0", "python": "3.11.2", "numpy": "2.4.6", "torch": "2.13.0+cpu"},
        "hardware": {"cpu": "Example CPU, 2 cores", "memory": "8 GB", "gpu": None},
        "seeds": {"study": 0, "trials": [11, 12, 13]},
        "stage_seconds": {
            "training": 5400.0,
            "evaluation": 220.0,
            "map_passes": 290.0,
            "map_other": 20.0,
            "codes": 12.0,
            "impute": 95.0,
            "data": 30.0,
            "start": 5.0,
            "other": 41.0,
        },
        "started": "2026-01-02T03:04:05+00:00",
        "finished": "2026-01-02T04:46:13+00:00",
    }


def write_examples(folder: Path, estimators: Sequence[str] = ESTIMATORS, size: int = 32, images: int = 3) -> None:
    """`examples/<slug>.npz` as a study writes them."""
    rng = np.random.default_rng(0)
    target = folder / "examples"
    target.mkdir(parents=True, exist_ok=True)
    y, x = np.mgrid[:size, :size] / size - 0.5
    pictures = rng.integers(0, 60, (images, size, size, 3)) + 150 * (np.hypot(y, x) < 0.3)[None, :, :, None]
    pictures = pictures.astype(np.uint8)
    drops = np.array([0.1, 0.3, 0.5])
    for e in estimators:
        maps = rng.standard_normal((images, size, size)) ** 2 * np.exp(-(x**2 + y**2) * 8)
        smooth = (maps + np.roll(maps, 1, 1) + np.roll(maps, 1, 2)) / 3
        processed = np.stack([maps, np.maximum(maps, np.roll(maps, 1, 1)), smooth])
        thresholds = np.quantile(processed, 1 - drops, axis=(2, 3))
        mask = processed[:, None] >= thresholds.transpose(1, 0, 2)[..., None, None]
        modified = np.where(mask[..., None], 120, pictures[None, None]).astype(np.uint8)
        name = e.replace("(", ".").replace(")", "").replace("^", ".")
        np.savez(
            target / f"{name}.npz",
            images=pictures,
            map=maps.astype(np.float32),
            processed=processed.astype(np.float32),
            mask=mask,
            modified=modified,
            postprocess=np.array(POSTPROCESSES),
            drops=drops,
        )
