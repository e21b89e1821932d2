"""Images, masks, maps and a small model on which peers and ours are compared: for golden files and for live peers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

SHAPES = [(3, 1, 1), (1, 1, 7), (3, 2, 2), (1, 4, 4), (4, 9, 5), (1, 28, 28), (3, 32, 32), (3, 31, 47), (1, 64, 64)]
# The larger shapes do not come with every kind of mask, to keep the files small.
SOME = {
    (3, 32, 32): ("few", "smooth", "most", "all"),
    (3, 31, 47): ("half", "smooth", "nearly"),
    (1, 64, 64): ("few", "smooth"),
}
REMOVED = ["none", "one", "few", "half", "smooth", "most", "nearly", "all"]
RANGES = {"unit": (0.0, 1.0), "normal": (-2.0, 2.5), "bytes": (0.0, 255.0)}


class Case(NamedTuple):
    """One image and what is removed of it."""

    name: str
    image: np.ndarray  # [C, H, W] float64: multiples of 1/256 of the range, so that files compress and dtypes agree
    removed: np.ndarray  # bool [H, W]
    span: float  # of the values


def removed_pixels(kind: str, h: int, w: int, rng: np.random.Generator) -> np.ndarray:
    """Which pixels go."""
    if kind == "smooth":
        y, x = np.mgrid[:h, :w]
        wave = np.sin(3 * y / max(h - 1, 1) + 1) * np.cos(4 * x / max(w - 1, 1))
        return wave > np.median(wave)
    share = {"none": 0.0, "one": 0.0, "few": 0.01, "half": 0.5, "most": 0.9, "nearly": 0.99, "all": 1.0}[kind]
    count = 1 if kind == "one" else int(share * h * w)
    removed = np.zeros(h * w, bool)
    removed[rng.permutation(h * w)[:count]] = True
    return removed.reshape(h, w)


def image_cases() -> Iterator[Case]:
    """The shapes with the kinds of mask; ranges in turn."""
    for i, (c, h, w) in enumerate(SHAPES):
        for j, kind in enumerate(REMOVED):
            if kind not in SOME.get((c, h, w), REMOVED):
                continue
            rng = np.random.default_rng([i, j])
            scale = list(RANGES)[(i + j) % 3]
            low, high = RANGES[scale]
            levels = rng.integers(0, 257, (c, h, w)) / 256
            yield Case(
                f"{c}x{h}x{w}-{kind}-{scale}", low + (high - low) * levels, removed_pixels(kind, h, w, rng), high - low
            )


def large_case(share: float = 0.5, side: int = 224) -> Case:
    """An image of 3 × 224 × 224 whose removed pixels form smooth blobs."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[:side, :side] / side
    map_ = sum(np.sin(2 * np.pi * (a * y + b * x) + p) for a, b, p in rng.uniform(-3, 3, (6, 3)))
    image = rng.integers(0, 257, (3, side, side)) / 256
    return Case(f"large-{share}", image, map_ >= np.quantile(map_, 1 - share), 1.0)


def bound(case: Case, dtype: str, tol: float) -> float:
    """Level A and B: tol of the range plus 2 units in the last place of the largest value."""
    largest = max(float(np.abs(case.image).max()), 1.0)
    return tol * case.span + 2 * largest * float(np.finfo(dtype).eps)


def maps(n: int, h: int, w: int) -> np.ndarray:
    """float32 `[n, h, w]` in [0, 1]: plain, with 60 % zeros, log-spaced, constant, in turn."""
    rng = np.random.default_rng([n, h, w])
    result = rng.random((n, h, w))
    for i in range(n):
        if i % 4 == 1:
            result[i] = np.maximum(result[i] - 0.6, 0)
        elif i % 4 == 2:
            result[i] = np.exp(-20 * result[i])
        elif i % 4 == 3 and n > 4:
            result[i] = 0.5
    return result.astype(np.float32)


def waves(channels: int) -> tuple[np.ndarray, np.ndarray]:
    """(images `[13, C, 20, 22]`, maps without ties `[13, 1, 20, 22]`) on which `small_model` errs more and more."""
    rng = np.random.default_rng(channels)
    y, x = np.mgrid[:20, :22]
    wave = np.stack([np.sin((y * (i % 4 + 1) + x * (i % 3 + 1)) * 0.15 * (i + 1)) for i in range(13)])[:, None]
    images = 4 * wave * rng.standard_normal((13, channels, 1, 1)) + rng.random((13, channels, 20, 22))
    maps = rng.permuted(np.tile(np.arange(440) / 440, (13, 1)), axis=1).reshape(13, 1, 20, 22)
    return images.astype(np.float32), maps.astype(np.float32)


def state_digest() -> str:
    """Of the global generators of NumPy and, if loaded, torch."""
    import sys

    state: Any = np.random.get_state()  # noqa: NPY002
    digest = hashlib.sha256(state[1].tobytes() + str(state[2:]).encode())
    if "torch" in sys.modules:
        import torch

        digest.update(torch.random.get_rng_state().numpy().tobytes())
    return digest.hexdigest()[:24]


def seed_everything(seed: int) -> None:
    """Seeds the global generators of NumPy and torch."""
    import torch

    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


def small_model(channels: int, classes: int = 5) -> Any:
    """A convolutional classifier with fixed weights, in evaluation mode; counts its forward passes in `calls`."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0
            self.body = torch.nn.Sequential(
                torch.nn.Conv2d(channels, 8, 3, padding=1),
                torch.nn.ReLU(),
                torch.nn.AdaptiveAvgPool2d(4),
                torch.nn.Flatten(),
                torch.nn.Linear(128, classes),
            )

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return self.body(x)

    net = Net().eval()
    rng = np.random.default_rng(channels)
    with torch.no_grad():
        for parameter in net.parameters():
            values = rng.standard_normal(tuple(parameter.shape)) * 0.3
            parameter.copy_(torch.from_numpy(values.astype(np.float32)))
    return net
