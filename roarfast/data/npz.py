"""Datasets that are one `.npz` file: arrays of images and labels, with the splits named by keys."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from roarfast._types import Numpy
from roarfast.data.dataset import DataError, Dataset
from roarfast.data.packed_jpeg import check_offsets, decode_packed, moved_boxes

SPLIT_KEYS = ("train_images", "train_labels", "test_images", "test_labels")
_OTHER_KEYS = ("images", "labels", "is_train", "jpeg", "offsets", "class_names", "bbox_xyxy", "masks")
# What NumPy and zipfile raise at damaged bytes: a cut header of an array ends in the tokenizer, a flag of the archive says
# "encrypted" (RuntimeError) or an unknown compression (NotImplementedError, a RuntimeError too), a name is gone (KeyError).
_DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    KeyError,
    RuntimeError,
    SyntaxError,
    zipfile.BadZipFile,
    zlib.error,
    tokenize.TokenError,
)
_MOST_CHANNELS = 4  # RGB and alpha: an axis of at most this size beside larger ones is that of the channels


def has_split_keys(path: Path) -> bool:
    """Whether an `.npz` file says which of its images are for training; False for a file that cannot be read."""
    try:
        names = set(_members(path))
    except DataError:
        return False
    return "is_train" in names or bool(names & set(SPLIT_KEYS))


def load_npz(path: Path, split: str, size: int | None, layout: str | None = None) -> Dataset:
    """One split of an `.npz` file; `docs/data.md` lists its keys.

    Args:
        path: The file.
        split: `"train"`, `"test"` or `"all"`.
        size: Scale and centre-crop encoded images (`jpeg`) to this size.
        layout: `"NHWC"` or `"NCHW"`; without it NHWC, unless that looks wrong, which is an error.

    Raises:
        DataError: Unreadable, inconsistent, without the splits asked for, or of unclear layout.
    """
    names = _members(path)
    if split not in ("train", "test", "all"):
        raise DataError(f"{path} can have the splits train and test (and all for both), not {split!r}")
    if any(key in names for key in SPLIT_KEYS):
        missing = [key for key in SPLIT_KEYS if key not in names]
        if missing:
            raise DataError(f"{path} must hold all of {', '.join(SPLIT_KEYS)}; it lacks {', '.join(missing)}")
        parts = ("train", "test") if split == "all" else (split,)
        arrays = _read(path, [f"{part}_{kind}" for part in parts for kind in ("images", "labels")])
        pairs = [(arrays[f"{part}_images"], arrays[f"{part}_labels"]) for part in parts]
        for part, (images, labels) in zip(parts, pairs):
            _check_images(path, f"{part}_images", images, f"{part}_labels", labels)
        if len({a.shape[1:] for a, _ in pairs}) > 1:
            raise DataError(f"{path}: train_images are {pairs[0][0].shape[1:]}, test_images {pairs[1][0].shape[1:]}")
        images = pairs[0][0] if len(pairs) == 1 else np.concatenate([a for a, _ in pairs])
        labels = pairs[0][1] if len(pairs) == 1 else np.concatenate([b for _, b in pairs])
        most = max(_most(path, key, _read(path, [key])[key]) for key in ("train_labels", "test_labels"))
        return Dataset(_nhwc(path, images, layout), labels, _classes(path, names, most), name=str(path), split=split)
    if "labels" not in names or not ("images" in names or {"jpeg", "offsets"} <= set(names)):
        raise DataError(
            f"{path} must hold labels and either images or jpeg and offsets, or {', '.join(SPLIT_KEYS)}; it holds "
            f"{', '.join(sorted(names)) or 'nothing'}"
        )
    if split != "all" and "is_train" not in names:
        raise DataError(
            f"{path} does not say which of its images are for training, so it has no split {split!r}: add is_train (one bool "
            f"per image), or name the arrays {', '.join(SPLIT_KEYS)}. A file for each split (data.train and data.test in a "
            "study), or split='all', takes every image"
        )
    arrays = _read(path, [key for key in _OTHER_KEYS if key in names])
    return _whole(path, arrays, split, size, layout)


def _whole(path: Path, arrays: Mapping[str, Numpy], split: str, size: int | None, layout: str | None) -> Dataset:
    labels = arrays["labels"]
    most = _most(path, "labels", labels)
    rows = np.arange(len(labels))
    if "images" in arrays:
        _check_images(path, "images", arrays["images"], "labels", labels)
    if split != "all":
        is_train = arrays["is_train"]
        if is_train.shape != labels.shape or is_train.dtype.kind not in "biu":
            raise DataError(
                f"{path}: is_train must be one bool per image, [{len(labels)}], got {is_train.dtype} of shape {is_train.shape}"
            )
        rows = np.flatnonzero((is_train != 0) == (split == "train"))
    if "images" in arrays:
        images = _nhwc(path, arrays["images"], layout)
        images = images if len(rows) == len(images) else images[rows]
    else:
        if layout is not None:
            raise DataError(f"{path}: layout={layout!r} is for arrays of images; decoded ones are NHWC")
        check_offsets(path, arrays["jpeg"], arrays["offsets"], len(labels))
        images = decode_packed(path, arrays["jpeg"], arrays["offsets"], rows, size)
    boxes = None
    if "bbox_xyxy" in arrays:
        boxes = _boxes(path, arrays["bbox_xyxy"], len(labels))[rows]
        if "images" not in arrays and size is not None:
            boxes = moved_boxes(arrays["jpeg"], arrays["offsets"], rows, boxes, size)
    masks = None
    if "masks" in arrays and "images" in arrays:
        if arrays["masks"].dtype != bool or arrays["masks"].shape != (len(labels), *images.shape[1:3]):
            raise DataError(
                f"{path}: masks must be bool [N, H, W], ({len(labels)}, {images.shape[1]}, {images.shape[2]}), got "
                f"{arrays['masks'].dtype} of shape {arrays['masks'].shape}"
            )
        masks = arrays["masks"][rows]
    classes = _classes(path, list(arrays), most)
    return Dataset(images, labels[rows], classes, name=str(path), split=split, boxes=boxes, masks=masks)


def _members(path: Path) -> list[str]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return list(file.files)
    except (*_DAMAGE, AttributeError) as error:
        # NumPy takes whatever is no array for a pickle, and advises to allow that.
        why = "it holds something else" if "allow_pickle" in str(error) else error
        raise DataError(f"{path} is not a readable .npz file: {why}") from error


def _read(path: Path, keys: list[str]) -> dict[str, Numpy]:
    """The arrays of some keys; what nobody asks for is not read."""
    key = ""
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {}
            for key in keys:
                found[key] = file[key]
                if not isinstance(found[key], np.ndarray):  # NumPy hands out the bytes of what is no array
                    raise ValueError("it is no array")
            return found
    except MemoryError as error:
        raise DataError(f"{path}: {key} does not fit the memory: {error}") from error
    except _DAMAGE as error:
        if "allow_pickle" in str(error):  # NumPy's advice would run whatever the file says
            raise DataError(
                f"{path}: {key} holds Python objects, which are not read, since reading them can run code: store numbers "
                "(class_names: np.array([...], dtype=str))"
            ) from None
        raise DataError(f"{path} is not a readable .npz file: {key}: {error}") from error


def _most(path: Path, key: str, labels: Numpy) -> int:
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        hint = (
            " (names of classes go to class_names, and labels count them from 0)" if labels.dtype.kind in "US" else ""
        )
        raise DataError(f"{path}: {key} must be integers [N], got {labels.dtype} of shape {labels.shape}{hint}")
    return int(labels.max(initial=0))


def _classes(path: Path, names: list[str], most: int) -> tuple[str, ...]:
    if "class_names" in names:
        return tuple(str(name) for name in np.atleast_1d(_read(path, ["class_names"])["class_names"]))
    return tuple(map(str, range(most + 1)))


def _boxes(path: Path, boxes: Numpy, count: int) -> Numpy:
    if boxes.shape != (count, 4) or boxes.dtype.kind not in "iuf":
        raise DataError(
            f"{path}: bbox_xyxy must be numbers [N, 4], ({count}, 4), got {boxes.dtype} of shape {boxes.shape}"
        )
    return boxes.astype(np.float32)


def _check_images(path: Path, key: str, images: Numpy, labels_key: str, labels: Numpy) -> None:
    if images.dtype != np.uint8 or images.ndim not in (3, 4):
        hint = "; scale them to 0..255 first: a study stores a byte per value" if images.dtype != np.uint8 else ""
        raise DataError(
            f"{path}: {key} must be uint8 [N, H, W, C] or [N, H, W], got {images.dtype} of shape {images.shape}{hint}"
        )
    _most(path, labels_key, labels)
    if len(images) != len(labels):
        raise DataError(f"{path}: {len(images)} images but {len(labels)} labels ({key}, {labels_key})")


def _nhwc(path: Path, images: Numpy, layout: str | None) -> Numpy:
    if layout not in (None, "NHWC", "NCHW"):
        raise ValueError(f"layout must be 'NHWC' or 'NCHW', got {layout!r}")
    if images.ndim == 3:
        return images[..., None]
    _, first, _, last = images.shape
    if layout is None and first <= _MOST_CHANNELS < last:
        raise DataError(
            f"{path}: images of shape {images.shape} look like [N, C, H, W], but [N, H, W, C] is read: pass layout='NCHW' "
            "(data.layout in a study) or transpose them with images.transpose(0, 2, 3, 1); if they really are "
            f"{first}x{images.shape[2]} pixels with {last} channels, pass layout='NHWC'"
        )
    if layout != "NCHW":
        return images
    if last <= _MOST_CHANNELS < first:
        raise DataError(
            f"{path}: layout='NCHW' does not fit images of shape {images.shape}: they look like [N, H, W, C], which needs none"
        )
    return np.ascontiguousarray(images.transpose(0, 2, 3, 1))
