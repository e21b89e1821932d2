"""All ten estimators of Song et al. over CIFAR-10 images with resnet8, beside the same through captum."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import scipy.ndimage
import torch
from _common import HERE, Case

import roarfast as rf
from roarfast.explain import PAPER, Explainer, Normalized, Options
from roarfast.train import build_model

BATCH = 64
SEED = 1
OPTIONS = Options(noise=0.15, noise_absolute=True)
CIFAR = HERE.parent.parent / "shared" / "data" / "cifar10_test_2k.npz"


def cases(quick: bool) -> Iterator[Case]:
    """512 images; 64 with `quick`."""
    n = 64 if quick else 512
    x, source = _images(n)
    model = Normalized(build_model("resnet8", 10, seed=0), [0.49, 0.48, 0.45], [0.25, 0.24, 0.26]).eval()
    explainer = Explainer(model, PAPER, options=OPTIONS, batch_size=BATCH, seed=SEED)
    _check_memory(explainer, x[: 2 * BATCH])
    _check_same_maps(_scaled(explainer(x)), _scaled(_captum(model, x)))
    yield Case(
        op="explain",
        case=f"{n}x3x32x32 {source}, resnet8, the paper's ten estimators, batches of {BATCH}",
        ours=lambda: _scaled(explainer(x)),
        rivals={"captum": lambda: _scaled(_captum(model, x))},
        floors={} if quick else {"captum": 2.0},
        incomparable=("captum",),  # compared above, image by image
    )


def _check_same_maps(ours: np.ndarray, theirs: np.ndarray) -> None:
    """The maps are the same for the typical image, and close for all.

    A ReLU whose input is zero but for rounding falls on either side: a few pixels of `ig` on some images differ, as much
    as either differs from float64 there.
    """
    error = np.abs(ours - theirs).max(axis=(-2, -1))  # [estimators, images]
    for name, row in zip(PAPER, error):
        if not (np.median(row) <= 1e-5 and row.max() <= 0.05):
            raise AssertionError(f"{name}: median error {np.median(row):.2g}, largest {row.max():.2g}")


def _images(n: int) -> tuple[torch.Tensor, str]:
    if CIFAR.exists():
        with np.load(CIFAR, allow_pickle=False) as file:
            images = torch.from_numpy(file["images"][:n])
        return images.permute(0, 3, 1, 2).float().div(255).contiguous(), "CIFAR-10"
    return torch.rand(n, 3, 32, 32, generator=torch.Generator().manual_seed(0)), "random images"


def _scaled(maps: dict[str, torch.Tensor]) -> np.ndarray:
    """Maps of all estimators, each scaled by its largest value, so that all count in the comparison."""
    return np.stack([(maps[name] / maps[name].max()).numpy() for name in PAPER])


def _captum(model: torch.nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """One method after the other, as captum's users do, with as many rows in the model as we have."""
    parts: dict[str, list[torch.Tensor]] = {name: [] for name in PAPER}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # captum talks about hooks and internal batches
        for start in range(0, len(x), BATCH):
            batch, ids = x[start : start + BATCH], torch.arange(start, min(start + BATCH, len(x)))
            for name, a in _captum_batch(model, batch, ids).items():
                parts[name].append(a.detach())
    return {name: torch.cat(a) for name, a in parts.items()}


def _captum_batch(model: torch.nn.Module, x: torch.Tensor, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    from captum.attr import InputXGradient, IntegratedGradients, LayerAttribution, LayerGradCam, NoiseTunnel, Saliency

    with torch.no_grad():
        target = model(x).argmax(1)
    saliency = Saliency(model)

    def smooth(kind: str) -> torch.Tensor:
        with mock.patch("torch.normal", _our_noise(ids)):
            return NoiseTunnel(saliency).attribute(
                x, nt_type=kind, nt_samples=15, nt_samples_batch_size=1, stdevs=0.15, target=target, abs=False
            )

    path = IntegratedGradients(model).attribute(x, target=target, n_steps=25, internal_batch_size=BATCH)
    cam = LayerGradCam(model, model.model.layer3).attribute(x, target=target, relu_attributions=True)
    grey = x.mean(1).numpy()
    return {
        "grad": saliency.attribute(x, target=target).mean(1),
        "grad^2": saliency.attribute(x, target=target, abs=False).square().mean(1),
        "gi^2": InputXGradient(model).attribute(x, target=target).square().mean(1),
        "ig^2": path.square().mean(1),
        "sg^2": smooth("smoothgrad").square().mean(1),
        "sg-sq": smooth("smoothgrad_sq").abs().mean(1),
        "vg": smooth("vargrad").abs().mean(1),
        "gc^2": LayerAttribution.interpolate(cam, (32, 32), "bilinear").square().mean(1),
        "sobel^2": torch.from_numpy(np.stack([scipy.ndimage.sobel(a) for a in grey])).square(),
        "rand": rf.pixel_random((len(x), 32, 32), seed=SEED, index=ids, device="cpu"),
    }


def _our_noise(ids: torch.Tensor) -> Callable[[float, torch.Tensor], torch.Tensor]:
    """`torch.normal` with our numbers, so that the maps can be compared; it is as fast."""
    draw = iter(range(1000))

    def normal(mean: float, std: torch.Tensor) -> torch.Tensor:
        return mean + std * rf.philox_normal(ids, std.shape[1:], SEED, next(draw))

    return normal


def _check_memory(explainer: Explainer, x: torch.Tensor) -> None:
    """Peak memory of tensors against the stated bound: one gradient pass over a batch plus `plan.extra_bytes`."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from helpers.live_bytes import LiveBytes

    with LiveBytes() as one_pass:
        rows = x[:BATCH].clone().requires_grad_()
        torch.autograd.grad(explainer.model(rows).sum(), rows)
    with LiveBytes() as everything:
        maps = explainer(x)
    result = 2 * sum(a.numel() * a.element_size() for a in maps.values())
    bound = one_pass.peak + explainer.plan.extra_bytes(BATCH, x.shape[1:]) + result
    print(
        f"\nexplain: peak memory {everything.peak / 1e6:.1f} MB, bound {bound / 1e6:.1f} MB, "
        f"one gradient pass {one_pass.peak / 1e6:.1f} MB"
    )
    if everything.peak > bound:
        raise AssertionError("explain: the peak memory exceeds the stated bound")
