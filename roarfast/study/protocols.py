"""The protocols: what is removed from which images, and which model is tested on what is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import roarfast as rf
from roarfast.data.device import DeviceDataset
from roarfast.study.identity import derive_seed
from roarfast.study.selection import apply_codes
from roarfast.study.training import Modified, mask_images
from roarfast.train.loop import Removal

if TYPE_CHECKING:
    from roarfast.study.tasks import Clock, Pipeline, Update

Scores = dict[str, float]
Protocol = Callable[["Pipeline", str, dict[str, Any], "Clock", "Update"], Scores]


def _retrain(keep: bool, impute: bool) -> Protocol:
    """`roar`, `kar`, `road-retrain`: modify train and test images, train from scratch, test."""

    def run(p: Pipeline, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> Scores:
        sets, j = [], 0
        for split, whole in (("train", p.trainer.whole.train), ("test", p.trainer.whole.test)):
            codes, j = p.codes(spec, split)
            imputed = impute_split(p, spec, split, codes, j, clock, on_update) if impute else None
            with clock.stage("data"):
                sets.append(whole.with_codes(codes, imputed))
        removal = Removal(j, keep, None if impute else fill_value(p))
        return _fit(p, key, spec, clock, on_update, Modified(sets[0], sets[1], removal))

    return run


def _on_base(impute: bool) -> Protocol:
    """`road`, `no-retrain`: modify the test images, test the base model."""

    def run(p: Pipeline, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> Scores:
        codes, j = p.codes(spec, "test")
        imputed = impute_split(p, spec, "test", codes, j, clock, on_update) if impute else None
        model = p.base_model(spec["base"])
        data = p.trainer.whole.test.with_codes(codes, imputed)
        with clock.stage("evaluation"):
            return p.trainer.score(model, data, Removal(j, False, None if impute else fill_value(p)))

    return run


def _mask_only(p: Pipeline, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> Scores:
    """Trains on the masks alone: accuracy above chance is class information that the mask itself carries."""
    sets = []
    for split, data in (("train", p.train), ("test", p.test)):
        codes, j = p.codes(spec, split)
        with clock.stage("data"):
            sets.append(DeviceDataset(mask_images(data, apply_codes(codes, j)), p.device))
    return _fit(p, key, spec, clock, on_update, Modified(sets[0], sets[1]))


def _fit(p: Pipeline, key: str, spec: dict[str, Any], clock: Clock, on_update: Update, data: Modified) -> Scores:
    # All cells of a trial start from the same weights and see the same batches: differences are due to the pixels.
    seed = derive_seed(p.config.seed, "retrain", spec["cell"]["trial"])
    name = f"cell-{key[:16]}"
    model, scores = p.trainer.fit(name, seed, clock.add, on_update, data)
    if p.config.run.keep_models:
        p.trainer.save(model, p.folder / "models" / f"{name}.pt")
    p.trainer.forget(name)
    return scores


def fill_value(p: Pipeline) -> tuple[float, ...]:
    """What a removed pixel becomes, per channel, in units of 0..255."""
    fill = p.config.removal.fill
    channels = p.train.image_shape[2]
    if fill == "mean":
        return tuple(255 * m for m in p.train.mean)
    if fill == "zero":
        return (0.0,) * channels
    values = tuple(float(v) for v in fill)
    if len(values) not in (1, channels):
        raise ValueError(f"removal.fill has {len(values)} values, but the images have {channels} channels")
    return values * channels if len(values) == 1 else values


def impute_split(
    p: Pipeline, spec: dict[str, Any], split: str, codes: npt.NDArray[np.uint8], j: int, clock: Clock, on_update: Update
) -> npt.NDArray[np.float16]:
    """All images of a split with removed pixels imputed, float16 `[N, H, W, C]` in units of 0..255."""
    data, removal = p.train if split == "train" else p.test, p.config.removal
    on_update(f"imputing {len(data)} {split} images")
    with clock.stage("impute"):
        imputed = rf.impute_dataset(
            data.images,
            np.ascontiguousarray(codes),
            [spec["cell"]["drop"]] if spec["cell"]["estimator"] == "block" else spec["drops"],
            j,
            noise=removal.noise,
            seed=derive_seed(p.config.seed, "noise", spec["cell"]["trial"], split),
            tol=removal.tolerance,
            layout="NHWC",
            dtype="float16",
            progress=False,
        )
    return np.asarray(imputed)


PROTOCOLS: dict[str, Protocol] = {
    "roar": _retrain(keep=False, impute=False),
    "kar": _retrain(keep=True, impute=False),
    "road-retrain": _retrain(keep=False, impute=True),
    "road": _on_base(impute=True),
    "no-retrain": _on_base(impute=False),
    "mask-only": _mask_only,
}
"""Name → function (pipeline, key, spec of the cell's task, clock, progress) → scores."""
