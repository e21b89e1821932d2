"""The images of a study: read, checked, cut to some classes, and left for the workers where they are generated."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import io
import re
from pathlib import Path
from typing import TypedDict

import numpy as np

from roarfast._files import write_atomic
from roarfast._objects import is_reference, load_object
from roarfast.data import DataError, Dataset, from_torch, load
from roarfast.data.checks import split_warnings
from roarfast.data.load import SOURCES, first, has_splits
from roarfast.data.torch_dataset import make_torch
from roarfast.study.errors import StudyError, nearest
from roarfast.study.keys import digest
from roarfast.study.runfolder import RunFolder
from roarfast.study.schema_training import DataConfig


class _Arguments(TypedDict, total=False):
    """Of `roarfast.data.load`."""

    n: int | None
    size: int | None
    seed: int
    layout: str
    root: str | None
    download: bool


@functools.lru_cache(maxsize=2)
def load_data(data: DataConfig) -> tuple[Dataset, Dataset]:
    """(train, test) of a config; errors say what to do."""
    splits = []
    given = _given(data)
    for split, size in (("train", data.train_size), ("test", data.test_size)):
        if split == "train" and data.test_only:
            continue
        source: str | Path = data.name
        if data.has_files:
            source = Path(data.root or ".") / (data.path or getattr(data, split))
        whole = data.classes or data.shuffle
        arguments: _Arguments = {"n": None if whole else size, "size": data.image_size, "seed": data.seed}
        known = SOURCES.get(data.name) if given is None else None
        if known is not None and known.generated and data.classes and size:
            arguments["n"] = -(-size // (known.per_class * len(data.classes))) * known.period
        if data.layout is not None:
            arguments["layout"] = data.layout
        if not data.has_files:
            arguments |= {"root": data.root, "download": data.download}
        which = split if data.path is not None or not data.has_files or has_splits(Path(source)) else "all"
        try:
            if given is not None:
                part = first(given[split], arguments["n"])
            elif is_reference(data.name) and not data.has_files:
                part = _outside(data, split, arguments["n"])
            else:
                part = load(source, which, **arguments)
        except (DataError, OSError, ValueError, ModuleNotFoundError) as error:
            raise StudyError(f"cannot read the {split} images: {error}") from None
        if data.shuffle:
            part = part.subset(np.random.default_rng([data.seed, split == "test"]).permutation(len(part)))
            part = part if data.classes else first(part, size)
        splits.append(_only_classes(part, data.classes, size) if data.classes else part)
        if not len(splits[-1]):
            raise StudyError(
                f"there is no {split} image in {source}: a study needs some to train on and some to test on"
            )
    if data.test_only:
        splits.insert(0, dataclasses.replace(splits[0], split="train"))
    train, test = (_normalised(part, data) for part in splits)
    if train.image_shape != test.image_shape:
        raise StudyError(
            f"train images are {train.image_shape}, test images {test.image_shape}: they must have one size"
        )
    if train.class_names != test.class_names:
        raise StudyError(f"train has {train.num_classes} classes, test {test.num_classes}, or in another order")
    return train, test


def _given(data: DataConfig) -> dict[str, Dataset] | None:
    """The images that were given in Python, by split."""
    if data.session is None:
        return None
    try:
        train, test = load_object(data.session)
    except ValueError as error:
        raise StudyError(f"the images of this study were given in Python: {error}") from None
    return {"train": dataclasses.replace(train, split="train"), "test": dataclasses.replace(test, split="test")}


def _normalised(part: Dataset, data: DataConfig) -> Dataset:
    """The images with the mean and deviation that the config gives."""
    if data.mean is None or data.std is None:
        return part
    channels = part.image_shape[2]
    for name, values in (("mean", data.mean), ("std", data.std)):
        if len(values) not in (1, channels):
            raise StudyError(f"data.{name} has {len(values)} values, but the images have {channels} channels")
    mean, std = (values * channels if len(values) == 1 else values for values in (data.mean, data.std))
    return dataclasses.replace(part, known_stats=(mean, std))


def _outside(data: DataConfig, split: str, n: int | None) -> Dataset:
    """A data set by `package.module:object`: a function of the split, a class like torchvision's, or a torch data set."""
    found = load_object(data.name)
    if inspect.isclass(found):
        found = make_torch(found, data.name, split, data.root, data.download)
    elif callable(found) and not hasattr(found, "__getitem__"):
        taken = len(inspect.signature(found).parameters)
        found = found(*(split, n, data.seed)[:taken])
    elif not isinstance(found, Dataset):
        raise ValueError(f"{data.name!r} is one data set: name a function f(split) that returns that of train or test")
    if not isinstance(found, Dataset):
        found = from_torch(found, data.name, split, n)
    return first(found, n)


def share_data(folder: RunFolder, data: DataConfig) -> None:
    """Leaves generated images for the workers, which would take seconds each to make them again, and those only Python has."""
    known = SOURCES.get(data.name)
    if data.session is None and (known is None or not known.generated or data.has_files):
        return
    path = _shared_data(folder, data)
    train, test = load_data(data)
    buffer = io.BytesIO()
    np.savez(
        buffer,
        class_names=np.array(test.class_names),
        train_images=train.images,
        train_labels=train.labels,
        test_images=test.images,
        test_labels=test.labels,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, buffer.getvalue())


def shared_data(folder: RunFolder, data: DataConfig) -> tuple[Dataset, Dataset]:
    """What `share_data` left, or else the same from its source."""
    path = _shared_data(folder, data)
    if not path.is_file():
        return load_data(data)
    with np.load(path, allow_pickle=False) as arrays:
        names = tuple(str(name) for name in arrays["class_names"])
        train, test = (
            _normalised(
                Dataset(arrays[f"{split}_images"], arrays[f"{split}_labels"], names, name=data.name, split=split), data
            )
            for split in ("train", "test")
        )
    return train, test


def forget_shared_data(folder: RunFolder) -> None:
    """Deletes what `share_data` left, now or in a run that was killed; nothing else."""
    shared = folder.shared
    if shared.is_symlink() or not shared.is_dir():
        return
    for file in shared.iterdir():
        if _SHARED_FILE.fullmatch(file.name):
            file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # somebody put a file of theirs into it: it stays
        shared.rmdir()


_SHARED_FILE = re.compile(r"[0-9a-f]{16,64}\.npz|\.[0-9a-f]{16,64}\.npz\.\d+\.tmp")


def _shared_data(folder: RunFolder, data: DataConfig) -> Path:
    return folder.shared_images(digest(data.model_dump(mode="json")))


def _only_classes(data: Dataset, classes: tuple[str, ...], size: int | None) -> Dataset:
    """The first `size` images of some classes, which are numbered in the order given."""
    for name in classes:
        if name not in data.class_names:
            raise StudyError(f"data.classes: there is no class {name!r}{nearest(name, data.class_names)}")
    numbers = [data.class_names.index(name) for name in classes]
    chosen = data.subset(np.flatnonzero(np.isin(data.labels, numbers))[:size])
    table = np.full(data.num_classes, -1)
    table[numbers] = np.arange(len(numbers))
    return dataclasses.replace(chosen, labels=table[chosen.labels], class_names=classes)


@functools.lru_cache(maxsize=2)
def data_warnings(data: DataConfig) -> tuple[str, ...]:
    """What makes the images of a config doubtful, for the start of a run and the report."""
    if data.test_only:
        return load_data(data)[1].notes
    found = split_warnings(*load_data(data))
    if data.train is not None and data.train == data.test and not has_splits(Path(data.root or ".") / data.train):
        raise StudyError(f"data.train and data.test are the same file, {data.train}: {found[0]}")
    return tuple(found)
