"""`from_torch`: a map-style dataset of torch or torchvision as uint8 images, read once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from roarfast._types import Numpy
from roarfast.data.dataset import DataError, Dataset
from roarfast.data.decode import stack_images, to_8_bits

_FULL_RANGE_TOLERANCE = 1e-3  # floats of ToTensor are multiples of 1/255, up to rounding


def from_torch(source: Any, name: str = "dataset", split: str = "all", n: int | None = None) -> Dataset:
    """Read a dataset whose items are (image, label).

    Images may be Pillow's, arrays (uint8 `[H, W, C]` or `[H, W]`) or tensors (`[C, H, W]`; uint8, or floats in [0, 1] as
    `ToTensor` makes them). Transforms that normalise or augment belong to the training recipe, not to the dataset.

    Args:
        source: Has a length and items; `torch.utils.data.Dataset`, or a list.
        name: What messages and reports call it.
        split: Such as `"train"`.
        n: Only the first n images.

    Raises:
        DataError: An item is something else; the message names it.

    Example:
        >>> items = [(np.zeros((4, 4, 3), np.uint8), 0), (np.ones((4, 4, 3), np.uint8), 1)]
        >>> from_torch(items, "mine")
        Dataset('mine', 'all': 2 images of 4x4x3, 2 classes: 0, 1)
    """
    if not (hasattr(source, "__getitem__") and hasattr(source, "__len__")):
        raise DataError(
            f"{name} must have a length and items (a map-style torch dataset), got {type(source).__name__}; write an "
            "iterable one to an .npz file"
        )
    images, labels = [], []
    count = len(source) if n is None else min(n, len(source))
    if count == 0:
        raise DataError(f"{name} ({split}) has no items")
    for i in range(count):
        item = source[i]
        if not isinstance(item, tuple | list) or len(item) < 2:
            raise DataError(f"{name}[{i}] must be (image, label), got {_kind(item)}")
        images.append(_to_uint8(item[0], f"{name}[{i}]"))
        labels.append(_to_label(item[1], f"{name}[{i}]"))
    classes = getattr(source, "classes", None)
    if not isinstance(classes, tuple | list):
        classes = [str(i) for i in range(max(labels) + 1)]
    stacked = stack_images(images, [f"{name}[{i}]" for i in range(count)])
    return Dataset(stacked, np.array(labels, np.int64), tuple(map(str, classes)), name=name, split=split)


def make_torch(
    factory: Callable[..., object], name: str, split: str, root: str | Path | None, download: bool
) -> object:
    """An instance of a torchvision-like class for a split, from what its signature takes.

    `train: bool` or `split: str` chooses the split; `root` and `download` are passed if they are taken.

    Raises:
        DataError: It takes neither `train` nor `split`, or cannot be made.
    """
    taken = inspect.signature(factory).parameters
    arguments: dict[str, object] = {}
    if "train" in taken:
        arguments["train"] = split == "train"
    elif "split" in taken:
        arguments["split"] = split
    else:
        raise DataError(f"{name} takes neither train= nor split=: name a function f(split) that returns the dataset")
    if "root" in taken:
        if root is None:
            raise DataError(f"{name} needs data.root, the folder of its files")
        arguments["root"] = str(root)
    if download and "download" in taken:
        arguments["download"] = True
    try:
        return factory(**arguments)
    except Exception as error:  # whatever somebody else's class raises
        shown = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        raise DataError(f"{name}({shown}): {type(error).__name__}: {error}") from None


def _kind(value: object) -> str:
    shape = getattr(value, "shape", None)
    dtype = getattr(value, "dtype", None)
    return type(value).__name__ + (f" of {dtype} {tuple(shape)}" if shape is not None else "")


def _to_uint8(image: Any, where: str) -> Numpy:
    """`[H, W, C]`."""
    tensor = type(image).__module__.split(".")[0] == "torch" or hasattr(image, "detach")
    if tensor:
        array = image.detach().cpu().numpy()
        if array.ndim == 3:
            array = array.transpose(1, 2, 0)
    elif isinstance(image, np.ndarray):
        array = image
    elif hasattr(image, "getbands"):  # Pillow
        narrow = to_8_bits(image, where)
        array = np.asarray(narrow if narrow.mode in ("L", "RGB") else narrow.convert("RGB"))
    else:
        raise DataError(f"{where}: the image must be a Pillow image, an array or a tensor, got {_kind(image)}")
    array = array[..., None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[2] > 4:
        layout = "[C, H, W]" if tensor else "[H, W, C]"
        raise DataError(f"{where}: the image must be {layout} with at most 4 channels, got {_kind(image)}")
    if array.dtype.kind == "f":
        if not (array.min() >= -_FULL_RANGE_TOLERANCE and array.max() <= 1 + _FULL_RANGE_TOLERANCE):
            raise DataError(
                f"{where}: floats must lie in [0, 1], as ToTensor makes them, got {array.min():g} to {array.max():g}: leave out "
                "Normalize, a study normalises by its recipe"
            )
        array = np.rint(np.clip(array, 0, 1) * 255).astype(np.uint8)
    if array.dtype != np.uint8:
        raise DataError(f"{where}: the image must be uint8, or floats in [0, 1], got {_kind(image)}")
    return np.ascontiguousarray(array)


def _to_label(label: Any, where: str) -> int:
    try:
        number = int(label)
    except (TypeError, ValueError):
        number = -1
    if number < 0 or number != label:
        raise DataError(f"{where}: the label must be a class number from 0, got {label!r}")
    return number
