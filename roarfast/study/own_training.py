"""`train.function = "package.module:fit"`: the user's own training on our batches.

`fit(model, batches, seed)` trains the model and returns its state dict. Pixels are removed in the batches already:

    def fit(model, batches, seed):
        optimizer = torch.optim.Adam(model.parameters())
        for epoch in range(batches.epochs):
            for x, y in batches(epoch):
                optimizer.zero_grad()
                torch.nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
        return model.state_dict()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from roarfast.data.device import DeviceDataset, Transform
from roarfast.data.order import epoch_batches
from roarfast.train.recipe import Recipe
from roarfast.train.records import Removal


class Batches:
    """The training images of a cell, batch by batch; the same for every cell of a trial, but for the pixels removed.

    Attributes:
        epochs: Of the recipe; a function may make others.
        recipe: The fields that `[train]` sets: `lr`, `weight_decay` and so on, for functions that want them.
        num_classes: Of the data.
        device: Where batches are made and the model is.
    """

    def __init__(self, data: DeviceDataset, recipe: Recipe, removal: Removal | None, seed: int) -> None:
        self.epochs, self.recipe, self._data, self._seed = recipe.epochs, recipe, data, seed
        self.num_classes, self.device = data.dataset.num_classes, data.device
        removed = {} if removal is None else removal.fields()
        self._transform = Transform(
            mean=data.dataset.mean,
            std=data.dataset.std,
            crop=recipe.crop,
            pad=recipe.pad,
            flip=recipe.flip,
            random_crop=recipe.random_crop,
            scale=recipe.scale,
            ratio=None if recipe.scale is None else recipe.ratio,
            seed=seed,
            **removed,
        )

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self._rows(0))

    def __call__(self, epoch: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Images `[B, C, H, W]`, normalised, and labels `[B]` of an epoch, in an order of its own."""
        return self._data.batches(self._rows(epoch), self._transform, epoch=epoch)

    def _rows(self, epoch: int) -> list[npt.NDArray[np.int64]]:
        recipe = self.recipe
        return epoch_batches(len(self._data), recipe.batch_size, self._seed, epoch, drop_last=recipe.drop_last)


def fit(
    function: Callable[[nn.Module, Batches, int], object], name: str, model: nn.Module, batches: Batches, seed: int
) -> nn.Module:
    """Calls a training function and puts what it returns into the model; torch's generator is seeded and restored.

    Raises:
        TypeError, ValueError: It returned no state dict of this model; the message names the function.
    """
    devices = [batches.device] if batches.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), torch.enable_grad():
        torch.manual_seed(seed)
        state = function(model.to(batches.device).train(), batches, seed)
    if not isinstance(state, dict):
        raise TypeError(f"train.function = {name!r} must return model.state_dict(), got {type(state).__name__}")
    try:
        model.load_state_dict(state)
    except (RuntimeError, AttributeError) as error:
        raise ValueError(f"train.function = {name!r} returned weights of another model: {error}") from None
    if not all(value.isfinite().all() for value in model.state_dict().values() if value.is_floating_point()):
        raise ValueError(f"train.function = {name!r} returned weights that are not finite: its training diverged")
    return model.eval()
