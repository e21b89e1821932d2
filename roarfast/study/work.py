"""`Work`: what a worker keeps between tasks (data, base model, fills) and how it reads what earlier tasks left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

import roarfast as rf
from roarfast._files import read_json
from roarfast._objects import is_reference, load_object
from roarfast._sealed import Damaged
from roarfast.explain.hashing import file_checksum
from roarfast.explain.store import AttributionStore
from roarfast.metrics.nulls import null_maps
from roarfast.study.config import StudyConfig
from roarfast.study.errors import ArtefactDamaged
from roarfast.study.images import shared_data
from roarfast.study.keys import Seeds
from roarfast.study.runfolder import RunFolder
from roarfast.study.selection import Selection
from roarfast.study.training import Trainer

Update = Callable[[str], None]
_FILL_CHUNK = 1 << 24  # values at a time


class Clock:
    """Seconds per stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Counts the time inside for a stage."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.add({name: time.perf_counter() - begun})

    def add(self, seconds: dict[str, float]) -> None:
        """Adds what was measured elsewhere."""
        for name, value in seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + value


class Work:
    """The state of one worker of a study, on one device."""

    def __init__(self, config: StudyConfig, folder: Path, device: str, threads: int) -> None:
        self.config, self.folder, self.device = config, RunFolder(folder), torch.device(device)
        self.seeds = Seeds(config.seed)
        if self.device.type == "cpu":
            torch.set_num_threads(threads)
            rf.set_num_threads(threads)
        self.train, self.test = shared_data(folder, config.data)
        self.trainer = Trainer(config, self.train, self.test, self.device, self.folder)
        self._base: tuple[str, nn.Module] | None = None
        self._checked: set[tuple[str, int, int]] = set()  # files whose checksums fitted: path, inode, time of change
        self.fills: dict[str, npt.NDArray[np.uint8]] = {}  # see fill_split

    def base_model(self, key: str) -> nn.Module:
        """The base model of a trial, from memory or its file.

        Raises:
            ArtefactDamaged: The file is missing or damaged.
        """
        if self._base is None or self._base[0] != key:
            path = self.folder.base_model(key)
            try:
                self._base = (key, self.trainer.load(path))
            except Damaged as error:
                path.unlink(missing_ok=True)
                raise ArtefactDamaged(str(error), "base", key=key) from None
        return self._base[1]

    def forget_base(self) -> None:
        """Lets the next use read the weights back: maps and scores come from the file, whoever trained it."""
        self._base = None

    def stored_maps(self, estimator: str, base: str, split: str) -> Any:
        """The maps of an estimator on disk, checked once.

        Raises:
            ArtefactDamaged: A file is missing or damaged.
        """
        store = AttributionStore(self.folder.maps(base, split))
        folder = store.folder(estimator)
        try:
            marks = {_mark(folder / name) for name in ("meta.json", "maps.npy", "scales.npy", "tv.npy")}
            maps = store.open(estimator, verify=not marks <= self._checked)
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            # Which of these a file gives that somebody else changed depends on where: all of them are the file's fault.
            store.delete(estimator)
            raise ArtefactDamaged(_about(error, folder), "maps", base=base, estimator=estimator) from None
        self._checked |= marks
        return maps

    def delete_damaged_maps(self, estimator: str, base: str, split: str) -> None:
        """Maps that are there and cannot be used go; those of which a part is there stay, to be gone on with."""
        if AttributionStore(self.folder.maps(base, split)).folder(estimator).exists():
            try:
                self.stored_maps(estimator, base, split)
            except ArtefactDamaged as error:
                self.trainer.notes.append(f"{error}; making it again")

    def selection(self, spec: dict[str, Any], split: str, order: str) -> Selection:
        """Which pixels the codes of a task remove."""
        # Other splits are other images: their ties and random pixels must not be those of the train images.
        baseline = spec["estimator"] if spec["map"] is None else None
        if baseline is None:
            seed = self.seeds.ties(spec["trial"], split)
        else:
            seed = self.seeds.baseline(baseline, spec["trial"], split)
        outside = {entry.name: entry.function() for entry in self.config.postprocessings}
        rule = self.config.removal.rule
        return Selection(tuple(spec["drops"]), rule, order, spec["postprocess"], seed, baseline, outside)

    def codes(self, spec: dict[str, Any], split: str) -> tuple[npt.NDArray[np.uint8], int]:
        """Codes `[N, H, W]` and the index of the drop rate of a cell.

        Raises:
            ArtefactDamaged: The file is missing or damaged.
        """
        cell = spec["cell"]
        path = self.folder.codes(spec["codes"]) / f"{split}-{cell['order']}.npy"
        try:
            mark = _mark(path)
            if mark not in self._checked and file_checksum(path) != _code_checksums(path.parent).get(path.name):
                raise ValueError(f"{path} is damaged: its checksum does not fit")
            codes = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            self.folder.delete_codes(spec["codes"])
            raise ArtefactDamaged(_about(error, path), "codes", key=spec["codes"]) from None
        self._checked.add(mark)
        j = spec["drops"].index(cell["drop"])
        codes, j = (codes, j) if codes.ndim == 3 else (codes[j], 0)
        null = cell.get("null", "own")
        if null in ("own", "model"):  # of another model: its codes are files of their own
            return codes, j
        labels = (self.train if split == "train" else self.test).labels
        return null_maps(codes, null, seed=self.seeds.null(cell["trial"], split), labels=labels), j


def _mark(path: Path) -> tuple[str, int, int]:
    """Tells a file from what it becomes when somebody writes to it or replaces it."""
    facts = path.stat()
    return str(path), facts.st_ino, facts.st_mtime_ns


def _code_checksums(folder: Path) -> dict[str, Any]:
    info = read_json(folder / "info.json")
    found = info.get("checksums") if isinstance(info, dict) else None
    return found if isinstance(found, dict) else {}


def _about(error: Exception, path: Path) -> str:
    """The message of an error, with the file it is about."""
    if isinstance(error, FileNotFoundError):
        return f"{path} is missing or not complete"
    return str(error) if str(path) in str(error) else f"{path} is damaged: {error}"


def fill_value(work: Work) -> tuple[float, ...] | None:
    """What a removed pixel becomes, per channel, in units of 0..255; None if that depends on the image."""
    fill = work.config.removal.fill
    channels = work.train.image_shape[2]
    if fill == "dataset_mean":
        return tuple(255 * m for m in work.train.mean)
    if fill == "zero":
        return (0.0,) * channels
    if isinstance(fill, str):
        return None
    values = tuple(float(v) for v in fill)
    if len(values) not in (1, channels):
        raise ValueError(f"removal.fill has {len(values)} values, but the images have {channels} channels")
    return values * channels if len(values) == 1 else values


def fill_split(work: Work, split: str, clock: Clock) -> npt.NDArray[np.uint8] | None:
    """Images `[N, H, W, C]` from which removed pixels are taken, for fills that depend on the image; None for constants.

    None of these fills depends on the mask, so one set serves every cell.
    """
    if fill_value(work) is not None:
        return None
    if split not in work.fills:
        with clock.stage("impute"):
            work.fills[split] = fill_images(work, split)
    return work.fills[split]


def fill_images(work: Work, split: str) -> npt.NDArray[np.uint8]:
    """Every pixel of every image of a split as it is when removed."""
    data = work.train if split == "train" else work.test
    n, h, w, c = data.images.shape
    filled = np.empty((n, h, w, c), np.uint8)
    fill = work.config.removal.fill
    outside = load_object(fill) if isinstance(fill, str) and is_reference(fill) else None
    step = max(1, _FILL_CHUNK // (h * w * c))
    for start in range(0, n, step):
        images = np.ascontiguousarray(data.images[start : start + step])
        rows = np.arange(start, start + len(images))
        if outside is not None:
            filled[start : start + step] = _checked(fill, outside(images, work.seeds.fill(split), rows), images)
            continue
        filled[start : start + step] = rf.fill(
            images,
            np.ones(images.shape[:3], bool),
            fill,
            layout="NHWC",
            noise_mean=255 * float(np.mean(work.train.mean)),
            noise_std=255 * float(np.mean(work.train.std)),
            seed=work.seeds.fill(split),
            index=rows,
        )
    return filled


def _checked(name: Any, filled: Any, images: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    filled = np.asarray(filled)
    if filled.shape != images.shape or filled.dtype != np.uint8:
        raise ValueError(
            f"the fill {name!r} must return uint8 images {images.shape}, got {filled.dtype} {filled.shape}"
        )
    return filled


def impute_split(
    work: Work,
    spec: dict[str, Any],
    split: str,
    codes: npt.NDArray[np.uint8],
    rate_index: int,
    clock: Clock,
    on_update: Update,
) -> npt.NDArray[np.float16]:
    """All images of a split with removed pixels imputed, float16 `[N, H, W, C]` in units of 0..255."""
    data, removal = work.train if split == "train" else work.test, work.config.removal
    on_update(f"imputing {len(data)} {split} images")
    with clock.stage("impute"):
        imputed = rf.impute_dataset(
            data.images,
            np.ascontiguousarray(codes),
            [spec["cell"]["drop"]] if spec["cell"]["estimator"] == "block" else spec["drops"],
            rate_index,
            noise=removal.noise,
            seed=work.seeds.noise(spec["cell"]["trial"], split),
            tol=removal.tolerance,
            layout="NHWC",
            dtype="float16",
            progress=False,
        )
    return np.asarray(imputed)
