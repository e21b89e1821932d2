"""`Work`: what a worker keeps between tasks (data, base model, fills), and how it reads what earlier tasks left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

import roarfast as rf
from roarfast._files import read_json
from roarfast._sealed import Damaged
from roarfast.data import Dataset
from roarfast.explain.hashing import file_checksum
from roarfast.explain.oracles import ORACLES
from roarfast.explain.store import AttributionStore, StoredMaps
from roarfast.metrics.inputs import Inputs, read_inputs
from roarfast.metrics.nulls import NULLS, null_maps
from roarfast.study.images import shared_data
from roarfast.study.keys import Seeds
from roarfast.study.records import Cell
from roarfast.study.runfolder import RunFolder
from roarfast.study.schema import StudyConfig
from roarfast.study.selection import Selection
from roarfast.study.tasks import ArtefactDamaged, CellsTask, CodesTask, Damage
from roarfast.study.training import Trainer

Update = Callable[[str], None]
ScalarT = TypeVar("ScalarT", bound=np.generic)


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

    def __init__(self, config: StudyConfig, folder: RunFolder, device: str, threads: int) -> None:
        self.config, self.folder, self.device = config, folder, torch.device(device)
        self.seeds = Seeds(config.seed)
        if self.device.type == "cpu":
            torch.set_num_threads(threads)
            rf.set_num_threads(threads)
        self.train, self.test = shared_data(folder, config.data)
        self.trainer = Trainer(config, self.train, self.test, self.device, self.folder)
        self._base: tuple[str, nn.Module] | None = None
        self.tested: tuple[nn.Module, nn.Module] | None = None  # the base model, and as `curves` tests it
        self._inputs: Inputs | None = None
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
                raise ArtefactDamaged(str(error), Damage("base", key)) from None
        return self._base[1]

    def forget_base(self) -> None:
        """Lets the next use read the weights back: maps and scores come from the file, whoever trained it."""
        self._base = None

    def stored_maps(self, estimator: str, base: str, split: str) -> StoredMaps:
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
            raise ArtefactDamaged(_about(error, folder), Damage("maps", base=base, estimator=estimator)) from None
        self._checked |= marks
        return maps

    def delete_damaged_maps(self, estimator: str, base: str, split: str) -> None:
        """Maps that are there and cannot be used go; those of which a part is there stay, to be gone on with."""
        if AttributionStore(self.folder.maps(base, split)).folder(estimator).exists():
            try:
                self.stored_maps(estimator, base, split)
            except ArtefactDamaged as error:
                self.trainer.notes.append(f"{error}; making it again")

    def split(self, name: str) -> Dataset:
        """The train or test images."""
        return self.train if name == "train" else self.test

    def selection(self, codes: CodesTask, split: str, order: str) -> Selection:
        """Which pixels the codes of a task remove."""
        # Other splits are other images: their ties and random pixels must not be those of the train images.
        baseline = codes.estimator if codes.map is None else None
        if baseline is None or baseline in ORACLES:
            seed = self.seeds.ties(codes.trial, split)
        else:
            seed = self.seeds.baseline(baseline, codes.trial, split)
        outside = {entry.name: entry.function() for entry in self.config.postprocessings}
        labels, classes = self.split(split).labels, self.train.num_classes
        apart = baseline == "rand" and self.config.explain.ranks_features
        return Selection(
            codes.drops,
            codes.rule,
            order,
            codes.postprocess,
            seed,
            baseline,
            outside,
            labels,
            classes,
            self.train.image_shape[2] if apart else 1,
        )

    def codes(self, task: CellsTask, cell: Cell, split: str) -> tuple[npt.NDArray[np.uint8], int]:
        """Codes `[N, H, W]` (or `[N, C, H, W]`) and the index of the drop rate of a cell in them; of `block`, those of this rate alone.

        Raises:
            ArtefactDamaged: The file is missing or damaged.
        """
        key = task.codes.key
        path = self.folder.codes_file(key, split, cell.order)
        try:
            mark = _mark(path)
            if mark not in self._checked and file_checksum(path) != self._code_checksums(key).get(path.name):
                raise ValueError(f"{path} is damaged: its checksum does not fit")
            codes = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            self.folder.delete_codes(key)
            raise ArtefactDamaged(_about(error, path), Damage("codes", key)) from None
        self._checked.add(mark)
        j = task.codes.drops.index(cell.drop)
        codes, j = (codes[j], 0) if task.codes.estimator == "block" else (codes, j)
        return self.moved(codes, cell, split), j

    def moved(self, rows: npt.NDArray[ScalarT], cell: Cell, split: str) -> npt.NDArray[ScalarT]:
        """Codes or maps `[N, H, W]` as the null of a cell moves them; those of another model are files of their own."""
        if cell.null not in NULLS:
            return rows
        if rows.ndim == 4:  # the channels of an image together
            return np.stack([self.moved(rows[:, channel], cell, split) for channel in range(rows.shape[1])], 1)
        return null_maps(rows, cell.null, seed=self.seeds.null(cell.trial, split), labels=self.split(split).labels)

    @property
    def inputs(self) -> Inputs:
        """The test images for `roarfast.metrics.respond`, normalised as those of training are."""
        if self._inputs is None:
            images, train = np.ascontiguousarray(self.test.images), self.train
            self._inputs = read_inputs(images, layout="NHWC", mean=train.mean, std=train.std)
        return self._inputs

    def _code_checksums(self, key: str) -> dict[str, object]:
        info = read_json(self.folder.codes_info(key))
        found = info.get("checksums") if isinstance(info, dict) else None
        return found if isinstance(found, dict) else {}


def _mark(path: Path) -> tuple[str, int, int]:
    """Tells a file from what it becomes when somebody writes to it or replaces it."""
    facts = path.stat()
    return str(path), facts.st_ino, facts.st_mtime_ns


def _about(error: Exception, path: Path) -> str:
    """The message of an error, with the file it is about."""
    if isinstance(error, FileNotFoundError):
        return f"{path} is missing or not complete"
    return str(error) if str(path) in str(error) else f"{path} is damaged: {error}"
