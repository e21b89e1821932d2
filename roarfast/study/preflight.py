"""What is tried before anything is trained: the model with its weights, and the user's functions."""

from __future__ import annotations

import inspect
import math

import numpy as np
import torch
from torch import nn

from roarfast._objects import load_object
from roarfast.data import Dataset
from roarfast.explain import Explainer
from roarfast.explain.names import split_name
from roarfast.explain.oracles import edge_places
from roarfast.study import stored_maps
from roarfast.study.errors import StudyError
from roarfast.study.outside import OutsideConfig
from roarfast.study.protocols import find
from roarfast.study.schema import StudyConfig
from roarfast.study.stored_maps import is_stored
from roarfast.train import build_model, load_weights

_TRIED = 2
"""Images of the first pass through a model; one would be too few for batch normalisation."""


def try_all(config: StudyConfig, train: Dataset, test: Dataset) -> list[str]:
    """Builds the model, loads its weights, and shows it and every function of the user's two images.

    Whatever is wrong is one error, at once.

    Returns:
        What the run should say about it.

    Raises:
        StudyError: In one line, naming the key of the config and the file.
    """
    model, channels = config.model, train.image_shape[2]
    call = ", ".join(
        [
            f"num_classes={train.num_classes}",
            *([f"in_channels={channels}"] if channels != 3 else []),
            *(f"{name}=…" for name in model.options),
        ]
    )
    try:
        net = build_model(model.name, train.num_classes, channels, seed=0, **model.options)
    except Exception as error:  # somebody else's function may raise anything
        hint = ""
        if isinstance(error, TypeError) and "argument" in str(error):
            hint = (
                f". It is called as f({call}), with in_channels= if it names that or the images are not RGB, and must "
                "return a torch.nn.Module"
            )
        raise StudyError(f"model.name = {model.name!r}: {type(error).__name__}: {error}{hint}") from None
    notes = []
    if model.weights is not None:
        try:
            fresh = load_weights(net, model.weights)
        except (OSError, ValueError) as error:
            raise StudyError(f"model.weights: {error}") from None
        if fresh and not model.trained:
            notes.append(
                f"model.weights: {model.weights} does not fit {', '.join(fresh)}, which start fresh: it was trained for "
                "other classes"
            )
    x = _try_images(net, model.name, train)
    if config.train.function is not None:
        _try_training(config.train.function)
    for entry in config.estimators:
        if is_stored(entry.object):
            notes += _try_maps(config, entry, train, test)
        else:
            _try_estimator(config, entry, net, x)
    for entry in config.postprocessings:
        _try_postprocess(entry, train.image_shape)
    return notes + _try_oracles(config, train)


def _try_maps(config: StudyConfig, entry: OutsideConfig, train: Dataset, test: Dataset) -> list[str]:
    """The stored maps of every split that some protocol removes pixels from."""
    users = [
        name
        for block in config.grid
        if any(split_name(estimator).base == entry.name for estimator in block.estimators)
        for name in block.protocols
    ]
    stored_maps.read(entry.object, "test", test, config.explain.aggregate)
    if any(find(name).trains for name in users):
        stored_maps.read(entry.object, "train", train, config.explain.aggregate)
    note = stored_maps.order_note(entry.object)
    return [note] if note else []


def _try_estimator(config: StudyConfig, entry: OutsideConfig, net: nn.Module, x: torch.Tensor) -> None:
    try:
        (made,) = Explainer(net, entry.estimator(), options=config.explain_options(), target=0)(x).values()
        if not bool(torch.isfinite(made).all()):
            raise ValueError("it makes NaN or infinite values")
    except Exception as error:  # as above
        hint = ". It is called as f(model, x, target) with its options" if isinstance(error, TypeError) else ""
        raise StudyError(f"estimator {entry.name!r} ({entry.object}): {type(error).__name__}: {error}{hint}") from None


def _try_oracles(config: StudyConfig, train: Dataset) -> list[str]:
    """Whether there is a place at the border for every class, and whether training keeps patches in their places."""
    used = [name for name in ("edge", "center+edge") if any(name in block.estimators for block in config.grid)]
    if not used:
        return []
    try:
        edge_places(train.image_shape[:2], train.num_classes)
    except ValueError as error:
        raise StudyError(f"estimator {used[0]!r}: {error}") from None
    recipe = config.resolved_recipe()
    moved = recipe.flip or (recipe.random_crop and recipe.pad > 0) or recipe.scale is not None
    if not moved:
        return []
    return [
        f"{' and '.join(used)} tell the class by a place at the border, and training moves it: set train.flip = false, "
        "random_crop = false and pad = 0"
    ]


def _try_training(reference: str) -> None:
    """Whether a training function can be called; trying it would be a training."""
    try:
        inspect.signature(load_object(reference)).bind(None, None, 0)
    except (TypeError, ValueError) as error:
        raise StudyError(
            f"train.function = {reference!r}: {error}. It is called as f(model, batches, seed) and returns a state dict"
        ) from None


def _try_postprocess(entry: OutsideConfig, shape: tuple[int, int, int]) -> None:
    maps = np.random.default_rng(0).random((_TRIED, *shape[:2]), np.float32)
    function = entry.function()
    more = {"seed": 0, "index": np.arange(_TRIED)} if getattr(function, "random", False) else {}
    try:
        made = np.asarray(function(maps, **more))
    except Exception as error:  # as above
        raise StudyError(f"post-processing {entry.name!r} ({entry.object}): {type(error).__name__}: {error}") from None
    if made.shape != maps.shape or made.dtype.kind != "f":
        raise StudyError(
            f"post-processing {entry.name!r} ({entry.object}) must make maps of the same shape {maps.shape}, floats, got "
            f"{made.dtype} of shape {made.shape}"
        )


def _try_images(net: nn.Module, name: str, train: Dataset) -> torch.Tensor:
    images = np.ascontiguousarray(train.images[:_TRIED])
    x = torch.from_numpy(np.concatenate([images] * _TRIED)[:_TRIED]).permute(0, 3, 1, 2).float() / 255
    try:
        with torch.no_grad():
            logits = net.eval()(x)
    except Exception as error:  # as above
        h, w, c = train.image_shape
        raise StudyError(
            f"model.name = {name!r} does not take images of {h}x{w} with {c} channels: {type(error).__name__}: {error}"
        ) from None
    shape = tuple(logits.shape) if isinstance(logits, torch.Tensor) else None
    if shape is None or len(shape) != 2 or len(x) != shape[0]:
        got = f"a tensor of shape {shape}" if shape is not None else type(logits).__name__
        raise StudyError(
            f"model.name = {name!r} must map images [N, C, H, W] to logits [N, classes], one tensor, got {got}"
        )
    if shape[1] < train.num_classes:
        raise StudyError(f"model.name = {name!r} has {shape[1]} outputs, but the data has {train.num_classes} classes")
    return x


def chance_warning(accuracy: float, test: Dataset) -> str | None:
    """A sentence if a base model is not better than always naming the most frequent class; None if it is."""
    share = float(np.bincount(test.labels).max() / len(test))
    margin = 2 * math.sqrt(share * (1 - share) / len(test))
    if accuracy > share + margin or share == 1:
        return None
    return (
        f"a base model at chance: it is right on {100 * accuracy:.1f} % of {len(test)} test images, and the most frequent class is "
        f"{100 * share:.1f} % of them. Its explanations explain nothing, and no ranking of them means anything"
    )
