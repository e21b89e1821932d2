"""Fills of studies, one record each: what takes the place of removed pixels, whatever the mask.

One of your own is `package.module:object` in the config: a `Fill`, or a function `f(images, seed, index) -> images`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import roarfast as rf
from roarfast import _philox as philox
from roarfast._objects import is_reference, load_object
from roarfast._types import Numpy
from roarfast.data import Dataset
from roarfast.study.errors import nearest

Images = npt.NDArray[np.uint8]
Numbers = tuple[float, ...]
_CHUNK = 1 << 24  # values at a time


@dataclass(frozen=True)
class Fill:
    """A fill: a constant, or images of the same size from which removed pixels are taken.

    Attributes:
        name: As in configs.
        constant: Of the training images: one value per channel, in 0..255.
        images: `f(images uint8 [B, H, W, C], seed, index int64 [B], train) -> uint8 [B, H, W, C]`; what is random in it is
            drawn from the seed and the sample ids alone. `train` are the training images.
    """

    name: str
    constant: Callable[[Dataset], Numbers] | None = None
    images: Callable[[Images, int, npt.NDArray[np.int64], Dataset], npt.ArrayLike] | None = None

    def __post_init__(self) -> None:
        if (self.constant is None) == (self.images is None):
            raise ValueError(f"the fill {self.name!r} must have either a constant or images")

    def values(self, train: Dataset) -> Numbers | None:
        """What a removed pixel becomes, per channel, in units of 0..255; None if that depends on the image."""
        if self.constant is None:
            return None
        values, channels = self.constant(train), train.image_shape[2]
        if len(values) not in (1, channels):
            raise ValueError(f"removal.fill has {len(values)} values, but the images have {channels} channels")
        return values * channels if len(values) == 1 else values

    def replacements(self, data: Dataset, seed: int, train: Dataset) -> Images:
        """Every pixel of every image `[N, H, W, C]` as it is when removed."""
        assert self.images is not None
        n, h, w, c = data.images.shape
        filled = np.empty((n, h, w, c), np.uint8)
        step = max(1, _CHUNK // (h * w * c))
        for start in range(0, n, step):
            images = np.ascontiguousarray(data.images[start : start + step])
            found = np.asarray(self.images(images, seed, np.arange(start, start + len(images)), train))
            if found.shape != images.shape or found.dtype != np.uint8:
                raise ValueError(
                    f"the fill {self.name!r} must return uint8 images {images.shape}, got {found.dtype} {found.shape}"
                )
            filled[start : start + step] = found
        return filled


def _op(name: str) -> Fill:
    """A fill that `roarfast.fill` has."""

    def images(images: Images, seed: int, index: npt.NDArray[np.int64], train: Dataset) -> Numpy:
        return rf.fill(
            images,
            np.ones(images.shape[:3], bool),
            name,
            layout="NHWC",
            noise_mean=255 * float(np.mean(train.mean)),
            noise_std=255 * float(np.mean(train.std)),
            seed=seed,
            index=index,
        )

    return Fill(name, images=images)


SAMPLE = 2000
"""Training images of which `sample_mean` is the mean, as in Hooker et al. 2019."""


def _sample_mean(train: Dataset) -> Numbers:
    """The mean of 2,000 random training images (of all, if there are fewer), per channel."""
    order = np.argsort(philox.words(0, 0, len(train), philox.FILL_SAMPLE), kind="stable")
    chosen = np.sort(order[:SAMPLE])
    return tuple(float(v) for v in np.asarray(train.images[chosen]).mean((0, 1, 2), dtype=np.float64))


FILLS: dict[str, Fill] = {
    fill.name: fill
    for fill in (
        Fill("dataset_mean", constant=lambda train: tuple(255 * m for m in train.mean)),
        Fill("sample_mean", constant=_sample_mean),
        Fill("zero", constant=lambda train: (0.0,)),
        _op("image_mean"),
        _op("blur"),
        _op("noise"),
    )
}
"""Name → record."""


@functools.cache
def find(value: str | tuple[int, ...]) -> Fill:
    """The fill of `removal.fill`: a name, numbers, or `package.module:object`.

    Raises:
        ValueError: If there is none.
    """
    if not isinstance(value, str):
        numbers = tuple(float(v) for v in value)
        return Fill("numbers", constant=lambda train: numbers)
    if value in FILLS:
        return FILLS[value]
    if not is_reference(value):
        *names, last = map(repr, FILLS)
        raise ValueError(
            f"must be {', '.join(names)} or {last}, one or three numbers in 0..255, or 'package.module:function', "
            f"got {value!r}{nearest(value, FILLS).split('; allowed')[0]}"
        )
    found = load_object(value)
    if isinstance(found, Fill):
        return found
    if not callable(found):
        raise ValueError(f"{value!r} is neither a roarfast.study.fills.Fill nor a function")
    return Fill(value, images=lambda images, seed, index, train: found(images, seed, index))
