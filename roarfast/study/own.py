"""The preset `own`: a config that fits images a user has, after a look at them."""

from __future__ import annotations

import json
import os
from pathlib import Path

from roarfast.data import DataError, Dataset, load
from roarfast.data.decode import sizes_of
from roarfast.data.folders import list_folder
from roarfast.data.load import has_splits
from roarfast.data.pack import is_pack
from roarfast.study.errors import StudyError
from roarfast.study.presets import PRESETS

NAME = "own"
_LARGEST = 64
"""Side in pixels up to which a net is trained on a CPU in minutes."""
_USUAL_SIZES = (28, 32, 64)


def config_text(data: Path, folder: Path) -> str:
    """The text of a config for the images in `data`, to be written into `folder`.

    Raises:
        StudyError: They cannot be used as they are; the message says what to do.
    """
    if not data.exists():
        raise StudyError(f"--data: there is nothing at {data}")
    try:
        if not has_splits(data):
            # `load` explains how to make splits for this kind of source.
            load(data, "train")
        size = _size(data)
        train, test = (load(data, split, size=size) for split in ("train", "test"))
    except (DataError, OSError, ValueError) as error:
        raise StudyError(f"--data: {error}") from None
    return _fill_in(train, test, os.path.relpath(data.resolve(), folder.resolve()), data.stem or "own", size)


def _size(data: Path) -> int | None:
    """The size to scale files to: none if all are alike and small enough."""
    if not data.is_dir() or is_pack(data):
        return None
    sides = sizes_of(list_folder(data).files)
    if len(sides) == 1 and max(next(iter(sides))) <= _LARGEST:
        return None
    shortest = min(min(side) for side in sides)
    return max((size for size in _USUAL_SIZES if size <= shortest), default=shortest)


def _fill_in(train: Dataset, test: Dataset, path: str, name: str, size: int | None) -> str:
    side = max(train.image_shape[:2])
    batch = max(8, min(64, len(train) // 20))
    lines = PRESETS["demo"].splitlines()
    begin, end = lines.index("[data]"), lines.index("[explain]")
    head = [
        f"# A remove-and-retrain study of {train.name}: {train.describe()}; {len(test)} test images",
        *lines[1:begin],
    ]
    safe = "".join(c if c.isalnum() or c in "._-" else "-" for c in name).strip("-._") or "own"
    head = [line.replace('name = "demo"', f'name = "{safe}"') for line in head]
    middle = [
        "[data]",
        f'name = "{safe}"       # what the report calls it',
        f"path = {json.dumps(path)}      # holds train and test; relative to this file",
        *([f"image_size = {size}       # files are scaled and cropped to this side"] if size else []),
        "",
        "[model]",
        'name = "convnet"      # or "my_file:function" beside this file: f(num_classes) -> torch.nn.Module',
        "",
        "[train]",
        'recipe = "quick"      # every field of the recipe can be overridden here',
        f"epochs = {12 if len(train) < 5000 else 7}",
        f"batch_size = {batch}",
        "flip = false          # true where a mirrored image is as good as the image: photos yes, digits no",
        f"pad = {max(1, side // 16)}               # pixels that random crops may shift an image by",
        "",
    ]
    return "\n".join([*head, *middle, *lines[end:]]) + "\n"
