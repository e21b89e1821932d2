"""Maps that a user computed elsewhere: `maps:FOLDER` or `maps:FILE.npz` as an estimator, checked before they are used."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

import roarfast as rf
from roarfast._types import Numpy
from roarfast.data import Dataset
from roarfast.explain.hashing import file_checksum
from roarfast.study.errors import StudyError

PREFIX = "maps:"


def is_stored(reference: str) -> bool:
    """Whether an estimator is maps on disk rather than a function."""
    return reference.startswith(PREFIX)


def place(reference: str) -> Path:
    """The folder or file; it must be there.

    Raises:
        ValueError: It is not.
    """
    path = Path(reference.removeprefix(PREFIX))
    if not (path.is_dir() or (path.is_file() and path.suffix == ".npz")):
        raise ValueError(f"{reference!r}: there is no folder or .npz file {path}")
    return path


def checksums(reference: str) -> dict[str, str]:
    """What keys hash of stored maps: the content of their files."""
    path = place(reference)
    files = [path] if path.is_file() else sorted(path.glob("*.npy"))
    return {file.name: file_checksum(file) for file in files}


def read(reference: str, split: str, data: Dataset, aggregate: str) -> npt.NDArray[np.float32]:
    """The maps of a split, float32 `[N, H, W]`, in the order of the images.

    The `.npz` holds `train` and `test` (a folder `train.npy`, `test.npy`), `[N, H, W]` or per channel `[N, C, H, W]`. With
    `train_labels` and `test_labels` beside them the order is checked.

    Raises:
        StudyError: They are missing, of another number, size or order, or not finite.
    """
    path = place(reference)
    maps = _array(path, split)
    if maps is None:
        names = f"{split}.npy" if path.is_dir() else f"array {split!r}"
        raise StudyError(f"{path} has no {names}: the maps of the {split} images are needed")
    n, (h, w, c) = len(data), data.image_shape
    if maps.shape not in ((n, h, w), (n, c, h, w), (n, 1, h, w)) or maps.dtype.kind not in "fiu":
        raise StudyError(
            f"{path}: the maps of the {split} images must be numbers of shape {(n, h, w)} or {(n, c, h, w)}, one per image in "
            f"the order of the data, got {maps.dtype} of shape {maps.shape}"
        )
    labels = _array(path, f"{split}_labels")
    if labels is not None and (labels.shape != (n,) or (labels != data.labels).any()):
        first = int(np.flatnonzero(labels != data.labels)[0]) if labels.shape == (n,) else 0
        raise StudyError(
            f"{path}: {split}_labels are not the labels of the data (from image {first} on): the maps are in another order, or "
            "of other images"
        )
    floats = np.ascontiguousarray(maps, np.float32)
    if floats.ndim == 4:
        floats = floats[:, 0] if floats.shape[1] == 1 else rf.aggregate_channels(floats, aggregate, axis=1)
    wrong = np.flatnonzero(~np.isfinite(floats).reshape(n, -1).all(1))
    if wrong.size:
        raise StudyError(
            f"{path}: {wrong.size} maps of the {split} images are not finite, the first of image {wrong[0]}"
        )
    return floats


def order_note(reference: str) -> str | None:
    """A sentence if nothing tells whether the maps are in the order of the images."""
    path = place(reference)
    if _array(path, "test_labels") is not None:
        return None
    return f"{path} has no test_labels, so it cannot be checked that its maps are in the order of the images"


def _array(path: Path, name: str) -> Numpy | None:
    try:
        if path.is_dir():
            file = path / f"{name}.npy"
            return np.load(file, mmap_mode="r", allow_pickle=False) if file.is_file() else None
        with np.load(path, allow_pickle=False) as arrays:
            return arrays[name] if name in arrays.files else None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise StudyError(f"{path} cannot be read as maps: {name}: {str(error).splitlines()[0]}") from None
