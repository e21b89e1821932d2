"""What two splits of a dataset should not have: images in common, classes without images."""

from __future__ import annotations

import zlib

import numpy as np

from roarfast._types import Numpy
from roarfast.data.dataset import Dataset


def split_warnings(train: Dataset, test: Dataset) -> list[str]:
    """Sentences about what makes results of a study doubtful; none for sound data.

    Args:
        train: The images to train with.
        test: The images to test with, of the same classes.

    Example:
        >>> data = Dataset(np.zeros((2, 4, 4, 3), np.uint8), np.array([0, 0]), ("cat", "dog"))
        >>> for sentence in split_warnings(data, data):
        ...     print(sentence)
        2 of 2 test images (100.00 %) are also train images: accuracy on them says little
        all train images are of one class ('cat'): there is nothing to learn
        1 of 2 classes has no train image: 'dog'
        1 of 2 classes has no test image: 'dog'
    """
    found = list(dict.fromkeys((*train.notes, *test.notes)))
    if common := count_common(train, test):
        found.append(
            f"{common} of {len(test)} test images ({100 * common / len(test):.2f} %) are also train images: accuracy on "
            "them says little"
        )
    counts = [np.bincount(part.labels, minlength=part.num_classes) for part in (train, test)]
    if np.count_nonzero(counts[0]) == 1:
        found.append(
            f"all train images are of one class ({train.class_names[int(counts[0].argmax())]!r}): there is nothing to learn"
        )
    for count, which in zip(counts, ("train", "test")):
        absent = [train.class_names[i] for i in np.flatnonzero(count == 0)]
        if absent:
            verb = "has" if len(absent) == 1 else "have"
            found.append(f"{len(absent)} of {train.num_classes} classes {verb} no {which} image: {_listed(absent)}")
    single = [train.class_names[i] for i in np.flatnonzero(counts[0] == 1)]
    if single and len(train) > len(single):
        found.append(f"one train image is all there is of {_listed(single)}: a class is not learnt from one")
    unknown = int((counts[0][test.labels] == 0).sum())
    if unknown and np.count_nonzero(counts[0]) > 1:
        found.append(f"{unknown} test images are of classes without train images: no model can get them right")
    return found


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:5]) + (" …" if len(names) > 5 else "")


def count_common(train: Dataset, test: Dataset) -> int:
    """How many test images equal a train image, byte for byte."""
    if train.image_shape != test.image_shape:
        return 0
    first, second = _checksums(train), _checksums(test)
    candidates = np.flatnonzero(np.isin(second, first))
    order = np.argsort(first, kind="stable")
    ranked = first[order]
    begins = np.searchsorted(ranked, second[candidates], "left")
    ends = np.searchsorted(ranked, second[candidates], "right")
    common = 0
    for row, begin, end in zip(candidates, begins, ends):
        # Of many equal checksums (blank images) the first decide: a chance collision of CRC-32 is one in 2^32.
        same = order[begin : min(end, begin + 4)]
        common += any(np.array_equal(train.images[i], test.images[row]) for i in same)
    return common


def _checksums(data: Dataset) -> Numpy:
    """CRC-32 of each image `[N]`; packs know them."""
    if data.checksums is not None:
        return np.asarray(data.checksums)
    return np.array([zlib.crc32(np.ascontiguousarray(image).data) for image in data.images], np.uint32)
