"""Datasets that are folders of image files: CUB-200-2011 in its official layout, and one folder per class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from roarfast._types import Numpy
from roarfast.data.dataset import DataError, Dataset
from roarfast.data.decode import SUFFIXES, decode_image, image_files, map_parallel, stack_images, transform_box

SPLIT_NAMES = ("train", "test", "val", "valid", "validation")
_CUB_FILES = ("images.txt", "image_class_labels.txt", "train_test_split.txt", "bounding_boxes.txt", "classes.txt")


@dataclass(frozen=True)
class Listing:
    """Image files with labels: what a folder holds before anything is decoded."""

    files: list[Path]
    labels: Numpy  # int64 [N]
    class_names: tuple[str, ...]
    splits: list[str]  # one per file
    boxes: Numpy | None = None  # float64 [N, 4] x0 y0 x1 y1 in the original image
    notes: tuple[str, ...] = ()  # what was left out


def is_cub(folder: Path) -> bool:
    """Whether a folder has the index files of CUB-200-2011."""
    return all((folder / name).is_file() for name in ("images.txt", "train_test_split.txt"))


def list_cub(folder: Path) -> Listing:
    """Read the index files of CUB-200-2011 (`images.txt`, `train_test_split.txt`, `bounding_boxes.txt`, …)."""
    missing = [name for name in _CUB_FILES if not (folder / name).is_file()]
    if missing:
        raise DataError(f"not the layout of CUB-200-2011: {folder} has no {', '.join(missing)}")
    paths = dict(_rows(folder / "images.txt", 2))
    labels = dict(_rows(folder / "image_class_labels.txt", 2))
    is_train = dict(_rows(folder / "train_test_split.txt", 2))
    boxes = {row[0]: row[1:] for row in _rows(folder / "bounding_boxes.txt", 5)}
    class_names = tuple(name for _, name in sorted(_rows(folder / "classes.txt", 2), key=lambda row: int(row[0])))
    for name, table in (
        ("image_class_labels.txt", labels),
        ("train_test_split.txt", is_train),
        ("bounding_boxes.txt", boxes),
    ):
        absent = [k for k in paths if k not in table]
        if absent:
            raise DataError(f"{folder / name}: no line for image {absent[0]} ({paths[absent[0]]})")
    keys = sorted(paths, key=int)
    xywh = np.array([[float(v) for v in boxes[k]] for k in keys]).reshape(-1, 4)
    return Listing(
        [folder / "images" / paths[k] for k in keys],
        np.array([int(labels[k]) - 1 for k in keys], np.int64),
        class_names,
        ["train" if is_train[k] == "1" else "test" for k in keys],
        np.concatenate([xywh[:, :2], xywh[:, :2] + xywh[:, 2:]], 1),
    )


def _rows(path: Path, columns: int) -> list[list[str]]:
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        row = line.split(maxsplit=columns - 1)
        if len(row) != columns:
            raise DataError(f"{path}:{number}: expected {columns} columns, got {line!r}")
        rows.append(row)
    return rows


def list_image_folder(folder: Path) -> Listing:
    """`folder/<split>/<class>/…` where there are folders named like splits, else `folder/<class>/…` (split "all")."""
    children = sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith("."))
    split_folders = [p for p in children if p.name in SPLIT_NAMES]
    roots = {p.name: p for p in split_folders} if split_folders else {"all": folder}
    class_names = sorted({c.name for root in roots.values() for c in root.iterdir() if c.is_dir() and _has_images(c)})
    if not class_names:
        raise DataError(
            f"no images found in {folder}: expected one folder per class with files of "
            f"{', '.join(sorted(SUFFIXES))}, directly or below folders named {', '.join(SPLIT_NAMES)}"
        )
    files: list[Path] = []
    labels: list[int] = []
    splits: list[str] = []
    for split, root in roots.items():
        for label, name in enumerate(class_names):
            found = image_files(root / name) if (root / name).is_dir() else []
            files += found
            labels += [label] * len(found)
            splits += [split] * len(found)
    return Listing(files, np.array(labels, np.int64), tuple(class_names), splits, notes=_left_out(roots, class_names))


def _left_out(roots: dict[str, Path], class_names: list[str]) -> tuple[str, ...]:
    """Sentences about folders without images, and images outside the folders of classes."""
    notes = []
    for root in roots.values():
        for folder in sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith(".")):
            if folder.name not in class_names:
                notes.append(f"{folder} has no images, so it is no class")
        loose = [p.name for p in root.iterdir() if p.is_file() and p.suffix.lower() in SUFFIXES]
        if loose:
            notes.append(
                f"{len(loose)} images lie in {root} itself, in no folder of a class, and are left out ({min(loose)} …)"
            )
    return tuple(notes)


def _has_images(folder: Path) -> bool:
    return any(p.suffix.lower() in SUFFIXES for p in folder.rglob("*"))


def list_folder(folder: Path) -> Listing:
    """The listing of either kind of folder; also one that holds CUB's as `CUB_200_2011`."""
    for candidate in (folder, folder / "CUB_200_2011"):
        if is_cub(candidate):
            return list_cub(candidate)
    return list_image_folder(folder)


def load_folder(folder: Path, split: str, size: int | None) -> Dataset:
    """Decode one split of a folder into memory."""
    listing = list_folder(folder)
    available = sorted(set(listing.splits))
    if split != "all" and split not in available:
        raise DataError(_no_such_split(folder, split, available))
    rows = [i for i, s in enumerate(listing.splits) if split in ("all", s)]
    files = [listing.files[i] for i in rows]
    images = stack_images(list(map_parallel(lambda f: decode_image(f, size), files)), files)
    boxes = None
    if listing.boxes is not None:
        boxes = np.stack([_box(listing.boxes[i], listing.files[i], size) for i in rows])
    return Dataset(
        images,
        listing.labels[rows],
        listing.class_names,
        name=str(folder),
        split=split,
        boxes=boxes,
        notes=listing.notes,
    )


def _no_such_split(folder: Path, split: str, available: list[str]) -> str:
    if available == ["all"]:
        return (
            f"{folder} has no split {split!r}: its folders are classes. Move them below {folder / 'train'} and "
            f"{folder / 'test'}, or keep a folder of classes for each split and name both (data.train and data.test in a "
            "study). split='all' takes every image"
        )
    other = next(name for name in available if name != "train") if available != ["train"] else "…"
    return (
        f"{folder} has no split {split!r}; it has {', '.join(available)}. In a study, data.train = "
        f'"{folder.name}/train" and data.test = "{folder.name}/{other}" name the folders. split=\'all\' takes every image'
    )


def _box(box: Numpy, file: Path, size: int | None) -> Numpy:
    from PIL import Image

    if size is None:
        return box.astype(np.float32)
    with Image.open(file) as image:
        return transform_box(box, image.size, size)
