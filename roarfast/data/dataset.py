"""`Dataset`: uint8 images with labels, and what the rest of the package needs to know about them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from roarfast._types import Numpy

_CHUNK_BYTES = 64 << 20  # statistics and hashes walk memory-mapped images in pieces of this size
_NAMES_SHOWN = 5  # of the classes


class DataError(ValueError):
    """A dataset, file or pack that is missing something, damaged or inconsistent."""


@dataclass(frozen=True, repr=False)
class Dataset:
    """Images of one split.

    Attributes:
        images: uint8 `[N, H, W, C]`; an array, or a read-only memory map of a pack.
        labels: int64 `[N]` in [0, number of classes).
        class_names: one name per class.
        name: where it came from, such as `"cifar10"` or a path.
        split: such as `"train"`.
        masks: bool `[N, H, W]`, True on the object, where the source has it (`shapes`).
        boxes: float32 `[N, 4]`, x0 y0 x1 y1 of the object in pixels of these images, where the source has it.
        checksums: uint32 `[N]`, CRC-32 of each image, where the source has it (packs).
        known_stats: (mean, std) that need not be computed.
        notes: what was noticed when it was read and a user should know, such as folders without images.

    Example:
        >>> data = Dataset(np.zeros((2, 4, 4, 3), np.uint8), np.array([0, 1]), ("cat", "dog"))
        >>> data
        Dataset('array', 'all': 2 images of 4x4x3, 2 classes: cat, dog)
        >>> len(data), data.image_shape, data.mean
        (2, (4, 4, 3), (0.0, 0.0, 0.0))
    """

    images: Numpy
    labels: Numpy
    class_names: tuple[str, ...]
    name: str = "array"
    split: str = "all"
    masks: Numpy | None = None
    boxes: Numpy | None = None
    checksums: Numpy | None = None
    known_stats: tuple[tuple[float, ...], tuple[float, ...]] | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        where = f"{self.name} ({self.split})"
        if self.images.dtype != np.uint8 or self.images.ndim != 4:
            raise DataError(
                f"{where}: images must be uint8 [N, H, W, C], got {self.images.dtype} of shape {self.images.shape}"
            )
        if 0 in self.images.shape[1:]:
            raise DataError(f"{where}: images of shape {self.images.shape[1:]} have no pixels")
        labels = np.asarray(self.labels)
        if labels.ndim != 1 or labels.dtype.kind not in "iu":
            raise DataError(f"{where}: labels must be integers [N], got {labels.dtype} of shape {labels.shape}")
        if len(labels) != len(self.images):
            raise DataError(f"{where}: {len(self.images)} images but {len(labels)} labels")
        object.__setattr__(self, "labels", np.ascontiguousarray(labels, np.int64))
        object.__setattr__(self, "class_names", tuple(str(c) for c in self.class_names))
        wrong = np.flatnonzero((self.labels < 0) | (self.labels >= len(self.class_names)))
        if wrong.size:
            raise DataError(
                f"{where}: label out of range: image {wrong[0]} has label {self.labels[wrong[0]]}, but there are "
                f"{len(self.class_names)} classes (0..{len(self.class_names) - 1}); {wrong.size} such images"
            )

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        more = [name for name in ("masks", "boxes") if getattr(self, name) is not None]
        return f"Dataset({self.name!r}, {self.split!r}: {', '.join([self.describe(), *more])})"

    def describe(self) -> str:
        """Number and shape of the images, and the classes, in a few words."""
        h, w, c = self.image_shape
        names = ", ".join(self.class_names[:_NAMES_SHOWN]) + (" …" if self.num_classes > _NAMES_SHOWN else "")
        return f"{len(self)} images of {h}x{w}x{c}, {self.num_classes} classes: {names}"

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """(H, W, C)."""
        h, w, c = self.images.shape[1:]
        return int(h), int(w), int(c)

    @property
    def num_classes(self) -> int:
        """How many classes there are, present in this split or not."""
        return len(self.class_names)

    @property
    def mean(self) -> tuple[float, ...]:
        """Mean of each channel, in units of 0..1."""
        return self._stats[0]

    @property
    def std(self) -> tuple[float, ...]:
        """Standard deviation of each channel over all pixels, in units of 0..1; 1 where a channel is constant."""
        return self._stats[1]

    @cached_property
    def _stats(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        if self.known_stats is not None:
            return self.known_stats
        channels = self.images.shape[3]
        counts = np.zeros((channels, 256), np.int64)

        def count(part: Numpy) -> None:
            for c in range(channels):
                counts[c] += np.bincount(part[..., c].reshape(-1), minlength=256)

        self._walk(count)
        return stats_from_sums(counts @ np.arange(256), counts @ np.arange(256) ** 2, counts.sum(1))

    @cached_property
    def data_hash(self) -> str:
        """Hex digest of shape, images and labels: equal data, equal hash, whatever the source."""
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr(self.images.shape).encode())
        self._walk(lambda part: digest.update(np.ascontiguousarray(part).data))
        digest.update(self.labels.astype("<i8").tobytes())
        return digest.hexdigest()

    def subset(self, index: slice | Sequence[int] | Numpy) -> Dataset:
        """The images at `index` (a slice or integers), in that order."""

        def pick(a: Numpy | None) -> Numpy | None:
            return None if a is None else a[index]

        return replace(
            self,
            images=self.images[index],
            labels=self.labels[index],
            masks=pick(self.masks),
            boxes=pick(self.boxes),
            checksums=pick(self.checksums),
            known_stats=None,
        )

    def _walk(self, visit: Callable[[Numpy], None]) -> None:
        step = max(1, _CHUNK_BYTES // max(1, int(np.prod(self.images.shape[1:]))))
        for start in range(0, len(self.images), step):
            visit(self.images[start : start + step])


def stats_from_sums(sums: Numpy, squares: Numpy, counts: Numpy) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Channel means and standard deviations in units of 0..1 from integer sums of pixels and of their squares."""
    n = np.maximum(counts, 1).astype(np.float64)
    mean = sums / n
    variance = np.maximum(squares / n - mean**2, 0)
    std = np.where(variance > 0, np.sqrt(variance), 255.0)
    return tuple(float(m) / 255 for m in mean), tuple(float(s) / 255 for s in std)
