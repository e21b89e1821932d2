"""metrics.respond: a curve of many rates, against its parts: one imputation and one evaluation per rate, in plain loops."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from _common import Case

import roarfast as rf
from roarfast.metrics import Perturbation, respond
from roarfast.ops.impute_linear import solve
from roarfast.train import build_model

MEAN, STD = (0.49, 0.48, 0.45), (0.25, 0.24, 0.26)
PARTS = "its evaluations and imputations"


def case(n: int, rates: int, fill: str, floors: dict[str, float]) -> Case:
    rng = np.random.default_rng(0)
    images = (
        torch.from_numpy(rf.gaussian_filter(rng.random((n, 3, 32, 32), dtype=np.float32), 2)).mul(255).to(torch.uint8)
    )
    images = images.permute(0, 2, 3, 1).contiguous()
    maps = torch.from_numpy(rf.gaussian_filter(rng.random((n, 32, 32), dtype=np.float32), 1))
    labels = torch.from_numpy(rng.integers(0, 10, n))
    drops = tuple((j + 1) / (rates + 1) for j in range(rates))
    model = build_model("convnet", 10, seed=0).eval().to(memory_format=torch.channels_last)
    codes = rf.rank_codes(maps, drops)
    options = {"mean": MEAN, "std": STD, "layout": "NHWC", "out_layout": "NHWC"}
    everyone = torch.arange(n)

    @torch.no_grad()
    def parts():
        logits = np.empty((rates, n), np.float32)
        for j in range(rates):
            if fill == "linear":
                imputed, _ = solve(
                    images, codes <= j, 2.55, 0, None, 1e-5, None, None, "gaussian", 0.0, "NHWC", "uint8", None
                )
                x = rf.gather_batch(imputed, everyone, **options)
            else:
                x = rf.gather_batch(images, everyone, codes, j, **options)
            logits[j] = model(x).gather(1, labels[:, None])[:, 0].numpy()
        return logits

    how = Perturbation(fill=fill)
    return Case(
        "respond",
        f"{n} images of 32x32, {rates} rates, convnet, {fill}",
        lambda: (
            respond(
                model,
                images,
                codes=codes,
                drops=drops,
                labels=labels,
                perturbation=how,
                layout="NHWC",
                mean=MEAN,
                std=STD,
            ).logit
        ),
        {PARTS: parts},
        floors,
        rtol=1e-3,
    )


def cases(quick: bool) -> Iterator[Case]:
    """A soundness curve within 1.3 of the cost of its parts."""
    if quick:
        yield case(16, 9, "linear", {})
        return
    yield case(256, 97, "linear", {PARTS: 1 / 1.3})
    yield case(256, 97, "dataset_mean", {PARTS: 1 / 1.3})
