"""`CellWork`: what a protocol is given to compute a cell; and what removed pixels become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import roarfast as rf
from roarfast.data.device import DeviceDataset
from roarfast.study.fills import find as find_fill
from roarfast.study.protocol import Protocol
from roarfast.study.protocols import find
from roarfast.study.records import Cell
from roarfast.study.selection import apply_codes
from roarfast.study.tasks import CellsTask
from roarfast.study.training import Modified, mask_images
from roarfast.study.work import Clock, Update, Work
from roarfast.train.records import Removal

if TYPE_CHECKING:
    from torch import nn

    from roarfast._types import Numpy

Scores = dict[str, float]


@dataclass(frozen=True)
class CellWork:
    """A cell to be computed, and everything at hand for it.

    Attributes:
        work: Config, data, device, seeds, trainer.
        task: Its cell, or the cells of its curve; the keys of codes and base model.
        clock: Takes seconds per stage.
        on_update: Takes a line of progress.
    """

    work: Work
    task: CellsTask
    clock: Clock
    on_update: Update

    @property
    def cell(self) -> Cell:
        """The cell; the first of a curve."""
        return self.task.cell

    @property
    def protocol(self) -> Protocol:
        """The record of its protocol."""
        return find(self.cell.protocol)

    @property
    def base_model(self) -> nn.Module:
        """The base model of its trial."""
        return self.work.base_model(self.task.base)

    def codes(self, split: str) -> tuple[npt.NDArray[np.uint8], int]:
        """Rank codes `[N, H, W]` of a split, `[N, C, H, W]` where features are ranked, and the index of the cell's rate in them."""
        return self.work.codes(self.task, self.cell, split)

    def modified(self, split: str) -> DeviceDataset:
        """The images of a split with their codes and what takes the place of removed pixels."""
        w = self.work
        codes, rate_index = self.codes(split)
        if self.protocol.imputes:
            other: Numpy | None = impute_split(
                w, self.cell, self.task.codes.drops, split, codes, rate_index, self.clock, self.on_update
            )
        else:
            other = fill_split(w, split, self.clock)
        whole = w.trainer.whole.train if split == "train" else w.trainer.whole.test
        with self.clock.stage("data"):
            return whole.with_codes(codes, other)

    def removal(self) -> Removal:
        """Which pixels of `modified` images are replaced, and by which constant if it is one."""
        rate_index = self.codes("test")[1]
        return Removal(rate_index, self.protocol.keeps, None if self.protocol.imputes else fill_value(self.work))

    def fit(self, data: Modified) -> Scores:
        """Trains from scratch, or with `train.start = "base"` from the base model, and scores the model."""
        w = self.work
        name = w.folder.cell_model(self.task.key).stem
        # All cells of a trial start from the same weights and see the same batches: differences are due to the pixels.
        seed = w.seeds.retrain(self.cell.trial)
        start = self.base_model if w.config.train.start == "base" else None
        model, scores = w.trainer.fit(name, seed, self.clock.add, self.on_update, data, start)
        if w.config.run.keep_models:
            w.trainer.save(model, w.folder.model(name))
        w.trainer.forget(name)
        return scores

    def retrained(self) -> Scores:
        """Scores of a model trained from scratch on modified images, and tested on such."""
        return self.fit(Modified(self.modified("train"), self.modified("test"), self.removal()))

    def trained_with_black_pixels(self) -> Scores:
        """Scores of a model trained from scratch on images whose removed pixels are black, and tested on whole ones."""
        w = self.work
        codes, rate_index = self.codes("train")
        with self.clock.stage("data"):
            modified = w.trainer.whole.train.with_codes(codes, None)
        black = (0.0,) * w.train.image_shape[2]
        removal = Removal(rate_index, self.protocol.keeps, black, whole_test=True)
        return self.fit(Modified(modified, w.trainer.whole.test, removal))

    def trained_on_masks(self) -> Scores:
        """Scores of a model trained and tested on the masks alone."""
        sets = []
        for split, data in (("train", self.work.train), ("test", self.work.test)):
            codes, rate_index = self.codes(split)
            with self.clock.stage("data"):
                sets.append(DeviceDataset(mask_images(data, apply_codes(codes, rate_index)), self.work.device))
        return self.fit(Modified(sets[0], sets[1]))


def fill_value(work: Work) -> tuple[float, ...] | None:
    """What a removed pixel becomes, per channel, in units of 0..255; None if that depends on the image."""
    return find_fill(work.config.removal.fill).values(work.train)


def fill_split(work: Work, split: str, clock: Clock) -> npt.NDArray[np.uint8] | None:
    """Images `[N, H, W, C]` from which removed pixels are taken, for fills that depend on the image; None for constants.

    None of these fills depends on the mask, so one set serves every cell.
    """
    fill = find_fill(work.config.removal.fill)
    if fill.constant is not None:
        return None
    if split not in work.fills:
        with clock.stage("impute"):
            work.fills[split] = fill.replacements(work.split(split), work.seeds.fill(split), work.train)
    return work.fills[split]


def impute_split(
    work: Work,
    cell: Cell,
    drops: tuple[float, ...],
    split: str,
    codes: npt.NDArray[np.uint8],
    rate_index: int,
    clock: Clock,
    on_update: Update,
) -> npt.NDArray[np.float16]:
    """All images of a split with removed pixels imputed, float16 `[N, H, W, C]` in units of 0..255."""
    data, removal = work.split(split), work.config.removal
    on_update(f"imputing {len(data)} {split} images")
    with clock.stage("impute"):
        imputed = rf.impute_dataset(
            data.images,
            np.ascontiguousarray(codes),
            [cell.drop] if cell.estimator == "block" else list(drops),
            rate_index,
            noise=removal.noise,
            seed=work.seeds.noise(cell.trial, split),
            tol=removal.tolerance,
            layout="NHWC",
            dtype="float16",
            progress=False,
        )
    return np.asarray(imputed)
