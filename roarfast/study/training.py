"""Trains and scores models for tasks: a thin layer over `roarfast.train`."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from roarfast._files import write_atomic
from roarfast._objects import load_object
from roarfast._progress import Progress
from roarfast._sealed import Damaged, read_sealed, seal
from roarfast._temperature import split_halves
from roarfast.data import Dataset
from roarfast.data.device import DeviceDataset, Transform
from roarfast.study import own_training
from roarfast.study.curve_scores import scaled_scores
from roarfast.study.keys import Seeds
from roarfast.study.runfolder import RunFolder
from roarfast.study.schema import StudyConfig
from roarfast.train import (
    CheckpointError,
    Evaluation,
    TrainResult,
    build_model,
    evaluate,
    load_checkpoint,
    load_weights,
    train,
)
from roarfast.train.records import Removal
from roarfast.train.runtime import resolve_precision

AddSeconds = Callable[[dict[str, float]], None]
Update = Callable[[str], None]
_STAGES = {"data": "data", "forward_backward": "training", "evaluation": "evaluation"}

_CHECKPOINT_PAUSE = 5.0
"""Seconds of training that a kill may cost: with epochs of a second, saving each of them took 2 % of the time."""


@dataclass(frozen=True)
class Modified:
    """Train and test images with what is removed from them."""

    train: DeviceDataset
    test: DeviceDataset
    removal: Removal | None = None


class Trainer:
    """Trains models of one study on one device; the images are put there once."""

    def __init__(
        self, config: StudyConfig, train: Dataset, test: Dataset, device: torch.device, folder: RunFolder
    ) -> None:
        self.config, self.device, self.folder = config, device, folder
        self.recipe = config.resolved_recipe()
        self.classes, self.channels = train.num_classes, train.image_shape[2]
        self.whole = Modified(DeviceDataset(train, device), DeviceDataset(test, device))
        self.halves = split_halves(len(test), Seeds(config.seed).halves())
        """Of the test images: those on which temperatures are fitted."""
        self.leads = True
        """Whether it writes files; of the processes of one training, one does."""
        self.notes: list[str] = []
        """What the run should say, until the task under way is done."""

    def build(self, seed: int) -> nn.Module:
        """A fresh model with its initial weights."""
        model = self.config.model
        if model.trained:  # `load` gives it its weights
            return build_model(model.name, self.classes, self.channels, seed=seed, **model.options)
        return build_model(
            model.name,
            self.classes,
            self.channels,
            weights=model.weights,
            seed=seed,
            ghost_batch=self.recipe.ghost_batch,
            **model.options,
        )

    def given(self) -> nn.Module:
        """The model of a study with `model.trained`: nothing of it may be left to chance."""
        model = build_model(self.config.model.name, self.classes, self.channels, seed=0, **self.config.model.options)
        if (weights := self.config.model.weights) is not None and (left := load_weights(model, weights)):
            raise ValueError(
                f"model.weights: {weights} does not fit {', '.join(left)} of {self.config.model.name}, and with "
                "model.trained = true nothing is trained. If it has other classes than the data, set their number with "
                "model.options.num_classes"
            )
        return model.to(self.device).eval()

    def fit(
        self,
        name: str,
        seed: int,
        add_seconds: AddSeconds,
        on_update: Update,
        data: Modified | None = None,
        start: nn.Module | None = None,
    ) -> tuple[nn.Module, dict[str, float]]:
        """Trains a model from scratch, or resumes from the checkpoint `name`, and scores it after the last epoch.

        Args:
            name: Of the checkpoint, which `forget` deletes once the result is safe.
            seed: Of weights, shuffling and augmentation.
            add_seconds: Takes the seconds per stage.
            on_update: Takes a line of progress.
            data: What to train and test on; default the whole images.
            start: A model whose weights it starts from; default fresh ones.

        Returns:
            The model and its scores, as `scores_of` names them.
        """
        data = data or self.whole
        model = self.build(seed)
        if start is not None:
            model.load_state_dict(start.state_dict())  # a copy: the base model itself stays as it is
        if (reference := self.config.train.function) is not None:
            begun = time.perf_counter()
            batches = own_training.Batches(data.train, self.recipe, data.removal, seed)
            model = own_training.fit(load_object(reference), reference, model, batches, seed)
            add_seconds({"training": time.perf_counter() - begun})
            return model, self.score(model, data.test, data.removal)
        self._check_checkpoint(name)
        result = train(
            model,
            data.train,
            data.test,
            self.recipe,
            seed=seed,
            removal=data.removal,
            checkpoint=self.folder.checkpoint(name),
            checkpoint_pause=_CHECKPOINT_PAUSE,
            tag=name,
            progress=_OneLine(on_update),
            halves=self.halves,
        )
        add_seconds({_STAGES[stage]: value for stage, value in result.timing.items() if stage in _STAGES})
        scores = scores_of(result)
        return result.model, scores

    def score(self, model: nn.Module, data: DeviceDataset, removal: Removal | None) -> dict[str, float]:
        """Accuracy and mean true-class probability of a model on modified images."""
        whole = self.whole.train.dataset
        removed = {} if removal is None or removal.whole_test else removal.fields()
        precision = resolve_precision(self.recipe, self.device)
        transform = Transform(
            mean=whole.mean,
            std=whole.std,
            crop=self.recipe.crop,
            dtype=precision,
            out_layout=self.recipe.layout,
            **removed,
        )
        result = evaluate(
            model, data, transform, batch_size=self.recipe.eval_batch_size, autocast=precision, halves=self.halves
        )
        return scores_of(result)

    def save(self, model: nn.Module, path: Path) -> None:
        """Writes the weights of a model, atomically."""
        if not self.leads:
            return
        buffer = io.BytesIO()
        torch.save({name: value.cpu() for name, value in model.state_dict().items()}, buffer)
        write_atomic(path, seal(buffer.getvalue()))

    def load(self, path: Path) -> nn.Module:
        """The model whose weights `save` wrote, in evaluation mode.

        Raises:
            Damaged: The file is not what was written.
        """
        content = read_sealed(path)
        model = self.build(seed=0)
        try:
            model.load_state_dict(torch.load(io.BytesIO(content), map_location="cpu", weights_only=True))
        except Exception as error:  # a file without a checksum; torch names no common class for what can be wrong
            raise Damaged(f"{path} is damaged: {error}") from None
        return model.to(self.device).eval()

    def _check_checkpoint(self, name: str) -> None:
        """Deletes a checkpoint that cannot be read: starting over gives the same result."""
        try:
            load_checkpoint(self.folder.checkpoint(name))
        except CheckpointError as error:
            self.notes.append(f"{error.__cause__ or error}; the training starts over")
            self.forget(name)

    def forget(self, name: str) -> None:
        """Deletes a checkpoint."""
        if self.leads:
            self.folder.checkpoint(name).unlink(missing_ok=True)


def scores_of(found: TrainResult | Evaluation) -> dict[str, float]:
    """The scores of a model on the test images; cross entropy in nats."""
    return {
        "accuracy": found.accuracy,
        "true_class_probability": found.true_class_probability,
        "cross_entropy": found.loss,
    } | scaled_scores(found.scaled)


class _OneLine(Progress):
    """The progress of a training as one line of text."""

    def __init__(self, on_update: Update) -> None:
        super().__init__()
        self._on_update = on_update

    def _show(self) -> None:
        self._on_update(f"{self.what}, {self.note}")


def mask_images(data: Dataset, masks: npt.NDArray[np.bool_]) -> Dataset:
    """The masks `[N, H, W]` as black-and-white images, those of features `[N, C, H, W]` in colour, with the labels of the data."""
    h, w, channels = data.image_shape
    planes = np.moveaxis(masks, 1, -1) if masks.ndim == 4 else masks[..., None]
    images = np.broadcast_to(planes.astype(np.uint8) * 255, (len(masks), h, w, channels))
    return replace(data, images=np.ascontiguousarray(images), masks=None, boxes=None, checksums=None, known_stats=None)
