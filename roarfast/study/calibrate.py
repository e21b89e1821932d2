"""A short calibration for `--dry-run`: seconds per image of every kind of work, on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import roarfast as rf
from roarfast.study.config import StudyConfig
from roarfast.study.images import load_data

_SAMPLE = 256


def calibrate(config: StudyConfig, device: str) -> dict[str, Any]:
    """Times a few batches of training, evaluation, gradients, codes and imputation.

    Returns:
        Seconds per image (`train`, `evaluate`, `gradient`, `codes`, `impute`), the sizes of the study, and `passes`:
        a function from estimators to gradient passes per image.
    """
    from roarfast.explain import Plan
    from roarfast.explain.names import parse_all
    from roarfast.train import build_model

    if device == "cpu":
        torch.set_num_threads(config.run.threads)
        rf.set_num_threads(config.run.threads)
    train, test = load_data(config.data)
    recipe = config.resolved_recipe()
    model = build_model(config.model.name, train.num_classes, train.image_shape[2], seed=0, **config.model.options).to(
        device
    )
    n = min(_SAMPLE, len(train), len(test), recipe.batch_size)
    x = (torch.from_numpy(np.ascontiguousarray(train.images[:n])).permute(0, 3, 1, 2).float() / 255).to(device)
    y = torch.from_numpy(train.labels[:n]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    def gradient() -> None:
        leaf = x.clone().requires_grad_()
        torch.autograd.grad(model(leaf).amax(1).sum(), leaf)

    def evaluate() -> None:
        with torch.no_grad():
            model(x)

    maps = np.random.default_rng(0).random((n, *train.image_shape[:2]), np.float32)
    images = np.ascontiguousarray(train.images[:n].transpose(0, 3, 1, 2), np.float32) / 255
    options = config.explain_options()
    outside = [entry.name for entry in config.estimators]
    pace: dict[str, Any] = {"train": _seconds(step) / n}
    model.eval()
    pace |= {
        "evaluate": _seconds(evaluate) / n,
        "gradient": _seconds(gradient) / n,
        "codes": 2 * _seconds(lambda: rf.rank_codes(maps, [0.1, 0.3, 0.5])) / n,
        "impute": _seconds(lambda: rf.impute_linear(images, maps > 0.5)) / n,
        "train_images": len(train),
        "test_images": len(test),
        "epochs": recipe.epochs,
        "passes": lambda estimators: max(1, Plan(parse_all(estimators, outside), options, predict=True).backwards),
    }
    return pace


def _seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    call()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    return min(times)
