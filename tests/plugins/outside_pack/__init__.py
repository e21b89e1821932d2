"""A package that is not roarfast's: one thing of every kind that a study can take from outside."""

from __future__ import annotations

from typing import Any

import numpy as np

from roarfast.data import Dataset
from roarfast.data.shapes import generate
from roarfast.explain import Estimator
from roarfast.study.protocol import Protocol


def contrast(model: Any, x: Any, target: Any, scale: float = 1.0) -> Any:
    """An estimator with an option: distance of a pixel from the mean of its image; asks no model."""
    return (scale * (x - x.mean((2, 3), keepdim=True))).abs()


def _tilted(x: Any, gradients: Any, options: Any, tilt: float = 0.0) -> Any:
    return gradients.have("input") + tilt


TILTED = Estimator(
    "tilted", "the gradient plus a constant: shares the pass of all that need gradients", of_pass=_tilted
)


def shaken(maps: Any, *, seed: int, index: Any) -> Any:
    """A random post-processing, keyed by seed and sample id: each map rolled by its own offset."""
    out = np.empty_like(np.asarray(maps))
    for row, sample in enumerate(index):
        offset = int(np.random.default_rng([seed, int(sample)]).integers(maps.shape[-1]))
        out[row] = np.roll(maps[row], offset, axis=-1)
    return out


shaken.random = True  # type: ignore[attr-defined]


def mirrored(images: Any, seed: int, index: Any) -> Any:
    """A fill that needs the whole image: the pixel at the opposite side."""
    return images[:, :, ::-1]


def two_shapes(split: str, n: int | None, seed: int) -> Dataset:
    """A data set: disks and rings, shrunk to 16x16."""
    data = generate(split, 10 * (n or 40), seed)
    rows = np.flatnonzero(data.labels < 2)[: n or 40]
    return Dataset(
        np.ascontiguousarray(data.images[rows, ::2, ::2]),
        data.labels[rows],
        data.class_names[:2],
        name="two",
        split=split,
    )


def _true_class(cell: Any) -> dict[str, float]:
    """The base model on the modified test images; reports the loss of probability as a score of its own."""
    whole = cell.work.trainer.score(cell.base_model, cell.work.trainer.whole.test, None)
    scores = cell.work.trainer.score(cell.base_model, cell.modified("test"), cell.removal())
    return scores | {"lost": whole["true_class_probability"] - scores["true_class_probability"]}


LOST = Protocol("lost", "Lost probability", _true_class, trains=False, cost=0.05)
