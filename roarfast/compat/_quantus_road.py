"""Quantus' metrics ROAD, by batches (one solve for all images of a percentage, then their noise in Quantus' order), and IROF."""

from __future__ import annotations

import copy
import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from roarfast import _backend
from roarfast._types import Numpy
from roarfast.compat import _impute, _random, _slots, _status
from roarfast.compat._options import Options
from roarfast.ops import _check as check

Perturb: TypeAlias = Callable[..., Numpy]
"""A `perturb_func` of Quantus: (arr, indices or mask, ...) -> Numpy, with keywords of its own."""


class _Model(Protocol):
    """What is used of Quantus' `ModelInterface`."""

    predict: Callable[..., Numpy]

    def shape_input(self, x: Numpy, shape: tuple[int, ...], channel_first: bool, batched: bool) -> Numpy: ...


class _Road(Protocol):
    """What is used of Quantus' `ROAD`."""

    perturb_func: Perturb
    percentages: Sequence[float]
    a_size: int | None
    evaluation_scores: Any  # a list of arrays, by batch, that becomes a dict by percentage


class _Irof(Protocol):
    """What is used of Quantus' `IROF`."""

    perturb_func: Perturb


def targets(road: type, options: Options, functions: tuple[Perturb, ...]) -> list[_slots.Target]:
    """What is replaced in the class; nothing in 0.5.3, whose ROAD goes image by image and has none of these faults.

    Args:
        road: The class.
        options: Those of the patch.
        functions: The imputations, theirs and ours, that a metric may hold as `perturb_func`.
    """
    if "evaluate_instance" in vars(road) or "evaluate_batch" not in vars(road):
        return []
    original_batch = _slots.original(road, "evaluate_batch")

    def evaluate_batch(
        self: _Road, model: _Model, x_batch: Numpy, y_batch: Numpy, a_batch: Numpy, **kwargs: object
    ) -> list[Numpy]:
        try:
            noise = _noise(self.perturb_func, functions)
            order = _pixel_order(x_batch, a_batch, options)
            _status.require(bool(np.isfinite(x_batch).all()), "NaN or infinity in an image")
        except _status.Outside as outside:
            _status.passed_on("quantus", "ROAD", str(outside))
            return original_batch(self, model=model, x_batch=x_batch, y_batch=y_batch, a_batch=a_batch, **kwargs)
        _status.fast("quantus", "ROAD")
        hits = []
        assert self.a_size is not None  # Quantus calls custom_batch_preprocess first
        for percentage in self.percentages:
            count = int(self.a_size * percentage / 100)
            perturbed = _impute_batch(x_batch, order[:, :count], noise, options)
            _warn_of_no_change(x_batch, perturbed)
            inputs = model.shape_input(perturbed, x_batch.shape, channel_first=True, batched=True)
            hits.append(y_batch == np.argmax(model.predict(inputs), axis=-1))
        return [np.stack(hits, axis=1).astype(int)]

    def custom_batch_preprocess(self: _Road, a_batch: Numpy, **kwargs: object) -> None:
        size = a_batch[0].size
        if self.a_size is None or options.fixed:
            self.a_size = size
        elif self.a_size != size:
            _status.warn_once(
                "quantus",
                f'ROAD keeps the size of the first maps it saw ({self.a_size}) for maps of {size}, as the original does; mode="fixed" does not',
            )

    def custom_postprocess(self: _Road, **kwargs: object) -> None:
        scores = self.evaluation_scores
        if len(scores) > 1 and not options.fixed:
            _status.warn_once(
                "quantus",
                'ROAD averages over the first batch only, as the original does; mode="fixed" averages over all',
            )
        used = np.concatenate(scores) if options.fixed else scores[0]
        self.evaluation_scores = dict(zip(self.percentages, used.mean(axis=0)))

    return [
        _slots.Target(road, "evaluate_batch", evaluate_batch),
        _slots.Target(road, "custom_batch_preprocess", custom_batch_preprocess),
        _slots.Target(road, "custom_postprocess", custom_postprocess),
    ]


def irof_targets(irof: type, options: Options) -> list[_slots.Target]:
    """IROF with masks as wide as the images: 0.6.0 makes masks of one channel, which images with more refuse.

    In a batch 0.6.0 continues the curves of images with fewer segments by zeros, and the area from a curve's last value to
    the first zero counts: half that value, which `fixed` gives back.
    """
    if "evaluate_instance" in vars(irof) or "evaluate_batch" not in vars(irof):
        return []
    original = _slots.original(irof, "evaluate_batch")

    def evaluate_batch(
        self: _Irof, model: _Model, x_batch: Numpy, y_batch: Numpy, a_batch: Numpy, **kwargs: object
    ) -> Numpy:
        changed, watched = copy.copy(self), copy.copy(model)  # both stay as they are, for use without the patch
        perturb, predict = self.perturb_func, model.predict
        here: list[Numpy] = []  # by step: which images have a segment left
        predictions: list[Numpy] = []  # of the images as they came, then by step

        def with_channels(arr: Numpy, mask: Numpy, **extra: object) -> Numpy:
            left: Numpy = np.asarray(mask.reshape(len(mask), -1).any(1))
            here.append(left)
            return perturb(arr=arr, mask=np.broadcast_to(mask, arr.shape), **extra)

        def recorded(*args: object, **extra: object) -> Numpy:
            result = predict(*args, **extra)
            chosen: Numpy = np.asarray(result)[np.arange(len(result)), y_batch]
            predictions.append(chosen)
            return result

        changed.perturb_func, watched.predict = with_channels, recorded
        _status.fast("quantus", "IROF")
        areas = original(changed, model=watched, x_batch=x_batch, y_batch=y_batch, a_batch=a_batch, **kwargs)
        counts = np.sum(here, axis=0)
        padded = counts < len(here)
        if not padded.any():
            return areas
        if not options.fixed:
            _status.warn_once(
                "quantus",
                "IROF continues the curves of images with fewer segments than others of their batch by zeros, as the "
                'original does; mode="fixed" does not',
            )
            return areas
        last = np.stack(predictions)[counts, np.arange(len(counts))] / predictions[0]
        return areas + np.where(padded, last / 2, 0)

    return [_slots.Target(irof, "evaluate_batch", evaluate_batch)]


def _noise(perturb: Perturb, functions: tuple[Perturb, ...]) -> float:
    """The noise of a metric's `perturb_func`, if that is one of these functions and takes nothing else."""
    if not isinstance(perturb, functools.partial) or perturb.args:
        raise _status.Outside("a perturbation of another kind")
    wrapped = [getattr(perturb.func, "__wrapped__", perturb.func), perturb.func]
    _status.require(any(f in functions for f in wrapped), "a perturbation of another kind")
    return float(perturb.keywords.get("noise", 0.01))


def _pixel_order(x_batch: Numpy, a_batch: Numpy, options: Options) -> npt.NDArray[np.intp]:
    """Pixels of each map, most relevant first, `[B, H W]`.

    Quantus ranks all channels of an image of which it then indexes one: right for one channel, an IndexError for more.
    """
    _status.require(
        type(x_batch) is np.ndarray and x_batch.ndim == 4 and x_batch.size > 0, "images that are not [B, C, H, W]"
    )
    allowed = (np.float16, np.float32, np.float64)
    _status.require(x_batch.dtype in allowed, f"images of dtype {x_batch.dtype}")
    wanted = (len(x_batch), 1, *x_batch.shape[2:])
    _status.require(type(a_batch) is np.ndarray and a_batch.shape == wanted, "attributions that are not [B, 1, H, W]")
    # The same sort as theirs, so that ties fall as theirs do.
    return np.argsort(-a_batch.reshape(len(a_batch), -1), axis=1)


def add_noise(solved: Numpy, indices: Numpy, noise: float, repeat: bool = False) -> Numpy:
    """Adds noise as Quantus draws it: randn(C, k) per image from NumPy's global generator, column j for `indices[j]`.

    Args:
        solved: `[B, C, H, W]`, contiguous, float32 or float64, changed in place.
        indices: Flat pixel numbers `[B, k]`; of equal ones the last counts.
        noise: Standard deviation.
        repeat: Whether pixel numbers may repeat.
    """
    images, channels = solved.shape[:2]
    pixels, k = solved[0, 0].size, indices.shape[1]
    values = _random.numpy_normals(images * channels, k).reshape(images, channels, k)
    if not noise or not k:
        return solved
    add = getattr(_backend.cpu(), f"add_at_{check.dtype_name(solved)}")
    for image, where, drawn in zip(solved, np.ascontiguousarray(indices, np.int64), values):
        if repeat:
            where, first = np.unique(where[::-1], return_index=True)
            drawn = np.ascontiguousarray(drawn[:, k - 1 - first])
        add(image, where, drawn, noise, channels, pixels, len(where))
    return solved


def _impute_batch(x_batch: Numpy, indices: npt.NDArray[np.intp], noise: float, options: Options) -> Numpy:
    b, _, h, w = x_batch.shape
    removed = np.zeros((b, h * w), np.bool_)
    np.put_along_axis(removed, indices, True, axis=1)
    removed = removed.reshape(b, h, w)
    if options.noise == "philox":
        ids = np.asarray(_impute.sample_ids(b), np.int64)
        return _impute.solve(x_batch, removed, options, None, noise, ids).astype(x_batch.dtype, copy=False)
    solved = add_noise(_impute.solve(x_batch, removed, options), indices, noise)
    return solved.astype(x_batch.dtype, copy=False)


def _warn_of_no_change(x_batch: Numpy, perturbed: Numpy) -> None:
    """Quantus compares each image with all that were perturbed so far; it can only warn if its own did not change."""
    for i, image in enumerate(x_batch):
        if np.allclose(image, perturbed[i], equal_nan=True):
            warn = importlib.import_module("quantus.helpers.warn")
            warn.warn_perturbation_caused_no_change(x=image, x_perturbed=list(perturbed[: i + 1]))
