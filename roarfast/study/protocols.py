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

_FILL_CHUNK = 1 << 24  # values at a time

Scores = dict[str, float]
Protocol = Callable[["Pipeline", str, dict[str, Any], "Clock", "Update"], Scores]


def _retrain(keep: bool, impute: bool) -> Protocol:
    """`roar`, `kar`, `road-retrain`: modify train and test images, train from scratch, test."""

    def run(p: Pipeline, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> Scores:
        sets, rate_index = [], 0
        for split, whole in (("train", p.trainer.whole.train), ("test", p.trainer.whole.test)):
            codes, rate_index = p.codes(spec, split)
            imputed = (
                impute_split(p, spec, split, codes, rate_index, clock, on_update)
                if impute
                else fill_split(p, split, clock)
            )
            with clock.stage("data"):
                sets.append(whole.with_codes(codes, imputed))
        removal = Removal(rate_index, keep, None if impute else fill_value(p))
        return _fit(p, key, spec, clock, on_update, Modified(sets[0], sets[1], removal))

    return run


def _on_base(impute: bool) -> Protocol:
    """`road`, `no-retrain`: modify the test images, test the base model."""

    def run(p: Pipeline, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> Scores:
        codes, rate_index = p.codes(spec, "test")
        imputed = (
            impute_split(p, spec, "test", codes, rate_index, clock, on_update)
            if impute
            else fill_split(p, "test", clock)
        )
        model = p.base_model(spec["base"])
        data = p.trainer.whole.test.with_codes(codes, imputed)
        with clock.stage("evaluation"):
            return p.trainer.score(model, data, Removal(rate_index, False, None if impute else fill_value(p)))

    return run


def _mask_only(p: Pipeline, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> Scores:
    """Trains on the masks alone: accuracy above chance is class information that the mask itself carries."""
    sets = []
    for split, data in (("train", p.train), ("test", p.test)):
        codes, rate_index = p.codes(spec, split)
        with clock.stage("data"):
            sets.append(DeviceDataset(mask_images(data, apply_codes(codes, rate_index)), p.device))
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


def fill_value(p: Pipeline) -> tuple[float, ...] | None:
    """What a removed pixel becomes, per channel, in units of 0..255; None if that depends on the image."""
    fill = p.config.removal.fill
    channels = p.train.image_shape[2]
    if fill == "dataset_mean":
        return tuple(255 * m for m in p.train.mean)
    if fill == "zero":
        return (0.0,) * channels
    if isinstance(fill, str):
        return None
    values = tuple(float(v) for v in fill)
    if len(values) not in (1, channels):
        raise ValueError(f"removal.fill has {len(values)} values, but the images have {channels} channels")
    return values * channels if len(values) == 1 else values


def fill_split(p: Pipeline, split: str, clock: Clock) -> npt.NDArray[np.uint8] | None:
    """Images `[N, H, W, C]` from which removed pixels are taken, for fills that depend on the image; None for constants.

    None of these fills depends on the mask, so one set serves every cell.
    """
    if fill_value(p) is not None:
        return None
    if split not in p.fills:
        with clock.stage("impute"):
            p.fills[split] = fill_images(p, split)
    return p.fills[split]


def fill_images(p: Pipeline, split: str) -> npt.NDArray[np.uint8]:
    """Every pixel of every image of a split as it is when removed."""
    data = p.train if split == "train" else p.test
    n, h, w, c = data.images.shape
    filled = np.empty((n, h, w, c), np.uint8)
    step = max(1, _FILL_CHUNK // (h * w * c))
    for start in range(0, n, step):
        images = np.ascontiguousarray(data.images[start : start + step])
        filled[start : start + step] = rf.fill(
            images,
            np.ones(images.shape[:3], bool),
            p.config.removal.fill,
            layout="NHWC",
            noise_mean=255 * float(np.mean(p.train.mean)),
            noise_std=255 * float(np.mean(p.train.std)),
            seed=derive_seed(p.config.seed, "fill", split),
            index=np.arange(start, start + len(images)),
        )
    return filled


def impute_split(
    p: Pipeline,
    spec: dict[str, Any],
    split: str,
    codes: npt.NDArray[np.uint8],
    rate_index: int,
    clock: Clock,
    on_update: Update,
) -> npt.NDArray[np.float16]:
    """All images of a split with removed pixels imputed, float16 `[N, H, W, C]` in units of 0..255."""
    data, removal = p.train if split == "train" else p.test, p.config.removal
    on_update(f"imputing {len(data)} {split} images")
    with clock.stage("impute"):
        imputed = rf.impute_dataset(
            data.images,
            np.ascontiguousarray(codes),
            [spec["cell"]["drop"]] if spec["cell"]["estimator"] == "block" else spec["drops"],
            rate_index,
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
