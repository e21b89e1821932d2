"""What workers do for cells: `CellWork` is what a protocol is given, the functions below are the built-in protocols."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from roarfast.data.device import DeviceDataset
from roarfast.study.protocol import Protocol, find
from roarfast.study.selection import apply_codes
from roarfast.study.training import Modified, mask_images
from roarfast.study.work import Clock, Update, Work, fill_split, fill_value, impute_split
from roarfast.train.loop import Removal

Scores = dict[str, float]


@dataclass(frozen=True)
class CellWork:
    """A cell to be computed, and everything at hand for it.

    Attributes:
        work: Config, data, device, seeds, trainer.
        key: Of the cell.
        spec: Its task: `cell`, `codes`, `drops`, `base`.
        clock: Takes seconds per stage.
        on_update: Takes a line of progress.
    """

    work: Work
    key: str
    spec: dict[str, Any]
    clock: Clock
    on_update: Update

    @property
    def protocol(self) -> Protocol:
        """The record of its protocol."""
        return find(self.spec["cell"]["protocol"])

    @property
    def base_model(self) -> Any:
        """The base model of its trial."""
        return self.work.base_model(self.spec["base"])

    def codes(self, split: str) -> tuple[npt.NDArray[np.uint8], int]:
        """Rank codes `[N, H, W]` of a split, and the index of the cell's rate in them."""
        return self.work.codes(self.spec, split)

    def modified(self, split: str) -> DeviceDataset:
        """The images of a split with their codes and what takes the place of removed pixels."""
        w = self.work
        codes, rate_index = self.codes(split)
        if self.protocol.imputes:
            other: Any = impute_split(w, self.spec, split, codes, rate_index, self.clock, self.on_update)
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
        """Trains from scratch and scores the model."""
        w, name = self.work, f"cell-{self.key[:16]}"
        # All cells of a trial start from the same weights and see the same batches: differences are due to the pixels.
        seed = w.seeds.retrain(self.spec["cell"]["trial"])
        model, scores = w.trainer.fit(name, seed, self.clock.add, self.on_update, data)
        if w.config.run.keep_models:
            w.trainer.save(model, w.folder.model(name))
        w.trainer.forget(name)
        return scores


def retrain(cell: CellWork) -> Scores:
    """`roar`, `kar`, `road-retrain`: modify train and test images, train from scratch, test."""
    return cell.fit(Modified(cell.modified("train"), cell.modified("test"), cell.removal()))


def test_base(cell: CellWork) -> Scores:
    """`road`, `no-retrain`: modify the test images, test the base model."""
    data = cell.modified("test")
    with cell.clock.stage("evaluation"):
        return cell.work.trainer.score(cell.base_model, data, cell.removal())


def train_on_masks(cell: CellWork) -> Scores:
    """`mask-only`: train on the masks alone; accuracy above chance is class information that the mask itself carries."""
    sets = []
    for split, data in (("train", cell.work.train), ("test", cell.work.test)):
        codes, rate_index = cell.codes(split)
        with cell.clock.stage("data"):
            sets.append(DeviceDataset(mask_images(data, apply_codes(codes, rate_index)), cell.work.device))
    return cell.fit(Modified(sets[0], sets[1]))
