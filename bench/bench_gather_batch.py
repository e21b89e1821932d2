"""gather_batch with removal, crop, flip and normalisation: beside torchvision v2 in a DataLoader, and batched torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from _common import Case

import roarfast as rf
from roarfast._torchvision import import_torchvision
from roarfast.reference.gather_batch import placement
from roarfast.train import build_model

MEAN, STD, FILL = (0.49, 0.48, 0.45), (0.25, 0.24, 0.26), (125, 122, 115)
PAD, DROP = 4, 4
STEP = "convnet step"


class Images(torch.utils.data.Dataset):
    """What a torchvision user writes: one image at a time, removed pixels filled, then the transforms."""

    def __init__(self, images: torch.Tensor, codes: torch.Tensor, length: int) -> None:
        v2 = import_torchvision("transforms.v2")
        self.images, self.codes, self.length = images, codes, length
        self.fill = torch.tensor(FILL, dtype=torch.uint8)[:, None, None]
        self.transform = v2.Compose(
            [
                v2.RandomCrop(images.shape[-1], padding=PAD),
                v2.RandomHorizontalFlip(),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(MEAN, STD),
            ]
        )

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, i: int) -> torch.Tensor:
        i %= len(self.images)
        return self.transform(torch.where(self.codes[i] <= DROP, self.fill, self.images[i]))


READ_AHEAD = 16  # batches per call of a loader with workers: they make up to 4 between calls, which then cost nothing


class Loader:
    """The next batch of a DataLoader that never ends; workers keep reading ahead, as they would in training."""

    def __init__(self, images: torch.Tensor, codes: torch.Tensor, batch: int, workers: int) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer cores than workers
            data = Images(images, codes, 10**9)
            sampler = torch.utils.data.RandomSampler(range(len(images)), replacement=True, num_samples=10**8)
            self.batches = READ_AHEAD if workers else 1
            self.iterator = iter(torch.utils.data.DataLoader(data, batch, sampler=sampler, num_workers=workers))

    def __call__(self) -> torch.Tensor:
        return [next(self.iterator) for _ in range(self.batches)][-1]


def batched_torch(images: torch.Tensor, index: torch.Tensor, codes: torch.Tensor) -> Callable[[], Any]:
    """The same batch by whole-batch torch operations: uint8 as long as possible, crop and flip in one gather."""
    size = images.shape[-1]
    drawn = [placement(0, 0, int(i), 2 * PAD, 2 * PAD) for i in index]
    rows = torch.tensor([d[0] for d in drawn])[:, None] + torch.arange(size)
    forward = torch.tensor([d[1] for d in drawn])[:, None] + torch.arange(size)
    columns = torch.where(torch.tensor([d[2] for d in drawn])[:, None], forward.flip(1), forward)
    batch = torch.arange(len(index))[:, None, None]
    fill = torch.tensor(FILL, dtype=torch.uint8)[:, None, None]
    mean, std = (torch.tensor(v)[:, None, None] * 255 for v in (MEAN, STD))

    def run() -> torch.Tensor:
        x = torch.where(codes[index][:, None] <= DROP, fill, images[index])
        x = torch.nn.functional.pad(x, (PAD,) * 4)
        x = x[batch, :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
        return x.to(torch.float32, memory_format=torch.contiguous_format).sub_(mean).div_(std)

    return run


def convnet_step(batch: int, size: int) -> Callable[[], Any]:
    """What the batch is for: one step of the smallest model, forward and backward."""
    model = build_model("convnet", 10, seed=0).to(memory_format=torch.channels_last)
    x = torch.rand(batch, 3, size, size).to(memory_format=torch.channels_last)
    labels = torch.arange(batch) % 10

    def run() -> None:
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(x), labels).backward()

    return run


def case(n: int, batch: int, size: int, floors: dict[str, float], memory: str = "NCHW", new: bool = False) -> Case:
    """Batches as the training loop makes them, written to the same memory every time; or `new` ones as the rivals make."""
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(0, 256, (n, 3, size, size), dtype=np.uint8))
    codes = torch.from_numpy(rng.integers(0, 10, (n, size, size), dtype=np.uint8))
    index = torch.from_numpy(rng.integers(0, n, batch))
    order = torch.channels_last if memory == "NHWC" else torch.contiguous_format
    out = torch.empty((batch, 3, size, size), memory_format=order)
    others: dict[str, Callable[[], Any]] = {
        f"torchvision, {w} workers": Loader(images, codes, batch, w) for w in (0, 2)
    }
    if memory == "NHWC":
        others = {STEP: convnet_step(batch, size)}
    return Case(
        "gather_batch",
        f"{batch}x3x{size}x{size}{', channels-last' if memory == 'NHWC' else ''}{', new memory' if new else ''}",
        lambda: rf.gather_batch(
            images,
            index,
            codes,
            DROP,
            FILL,
            pad=PAD,
            random_crop=True,
            flip=True,
            mean=MEAN,
            std=STD,
            out_layout=memory,
            out=None if new else out,
        ),
        {"torch, batched": batched_torch(images, index, codes), **others},
        floors,
        copy_bytes=out.nbytes,
        rtol=1e-5,
        scaled={"torchvision, 2 workers": 1 / READ_AHEAD},
        incomparable=tuple(others),  # other random numbers; tests/ops/test_gather_batch.py compares with the same ones
    )


def cases(quick: bool) -> Iterator[Case]:
    """CIFAR-sized and ImageNet-sized batches."""
    if quick:
        yield case(500, 32, 32, {})
        return
    loaders = ("torchvision, 0 workers", "torchvision, 2 workers")
    yield case(10_000, 128, 32, {"torch, batched": 5.0, **dict.fromkeys(loaders, 10.0)})
    yield case(10_000, 128, 32, {STEP: 19.0}, memory="NHWC")  # data takes at most 5 % of a training step
    for new in (False, True):
        yield case(256, 64, 224, {"torch, batched": 3.0, **dict.fromkeys(loaders, 5.0)}, new=new)
