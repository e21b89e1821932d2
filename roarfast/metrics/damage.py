"""`parts`: shape, image and model parts of a removal score, for a model, images and maps of one's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar, Unpack

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from roarfast._types import Array, Numpy
from roarfast.metrics.damage_curve import Answers, EqualDamage, EqualDamageOptions, common_low, equal_damage
from roarfast.metrics.damage_parts import Parts, split, summarise
from roarfast.metrics.engine import InputOptions, make_codes, respond
from roarfast.metrics.inputs import Inputs, Integers, integers, read_inputs
from roarfast.metrics.model import Model
from roarfast.metrics.nulls import Null, null_maps
from roarfast.metrics.perturbation import Perturbation
from roarfast.metrics.resampling import Floats
from roarfast.metrics.responses import Responses
from roarfast.metrics.sanity import untrained

RESPONSES = ("accuracy", "probability", "bits")

T = TypeVar("T")

OwnMaps: TypeAlias = "Array | Mapping[str, Array]"
"""Maps of one model: of one estimator, or of several by name."""
OtherMaps: TypeAlias = "Array | Mapping[str, Array | Sequence[Array]]"
"""The same of another model, or of several: a list by name."""


def parts(
    model: Model,
    images: Array | Inputs,
    maps: OwnMaps,
    *,
    other_maps: OtherMaps | Sequence[OtherMaps] | None = None,
    other_models: Model | str | Sequence[Model | str] | None = None,
    explain: Callable[[Any], OtherMaps] | None = None,
    labels: Integers,
    drops: Sequence[float] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7),
    null: str | Null = "swap",
    draws: int = 1,
    swap_others: bool = False,
    of: str = "accuracy",
    average: str = "mean",
    perturbation: Perturbation | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    index: Integers | None = None,
    **options: Unpack[InputOptions],
) -> Parts:
    """What the damage of removing pixels is made of: shape, image, model (see `roarfast.metrics.damage_parts`).

    Each null costs one imputation and one evaluation per rate; nothing is trained. Masks that are equal to the own ones
    (of `sobel`, `rand`) are not evaluated again.

    Args:
        model: Returns logits; the model that is explained.
        images: As for `respond`.
        maps: Maps `[N, H, W]` of this model, or several by the estimator's name.
        other_maps: Maps of the same images by other models (other seeds, other architectures, random weights: the
            choice is part of the question): like `maps`, or a list of such for several models.
        other_models: In place of `other_maps`: models whose maps `explain` makes; `"untrained"` is this model with its
            layers initialised anew (what does the map know of the training at all?); one, or a list of them.
        explain: `explain(model)` returns maps of these images like `maps`, for `other_models`.
        labels: True classes `[N]`.
        drops: Ascending drop rates.
        null: What keeps the shape and loses the image: a name in `roarfast.metrics.nulls.NULLS`.
        draws: Draws of the null that are averaged.
        swap_others: Also evaluate the other models' masks on swapped images. Masks of an untrained net may have another
            shape; `model_excess` compares what each knows beyond its own shape.
        of: `"accuracy"`, `"probability"` of the label, or `"bits"`: log2 of that probability.
        average: `"mean"` over the rates, or `"area"` under the curve with both ends.
        perturbation: Default ROAD's: most relevant first, linear imputation.
        resamples: Of the images, for intervals.
        level: Of the intervals.
        seed: Of ties, noise, nulls and resamples.
        index: Sample ids `[N]`.
        **options: For `respond`: `mean`, `std`, `layout`, `batch_size`, `device`, `progress`.

    Returns:
        A table with one row per estimator; `.plot()` draws it.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4))
        >>> rng = np.random.default_rng(0)
        >>> images, a, b = rng.integers(0, 256, (20, 8, 8, 3), np.uint8), rng.random((20, 8, 8)), rng.random((20, 8, 8))
        >>> table = parts(net, images, {"rand": a}, other_maps={"rand": a}, labels=np.arange(20) % 4)
        >>> table["rand"].model.value
        0.0
    """
    if of not in RESPONSES:
        raise ValueError(f"of must be one of {', '.join(RESPONSES)}, got {of!r}")
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
        raise ValueError(f"draws must be an integer >= 1, got {draws!r}")
    named = _by_name("maps", maps)
    if (other_maps is None) == (other_models is None):
        raise ValueError("give either other_maps or other_models")
    if other_models is not None:
        if explain is None:
            raise ValueError("explain must be given with other_models: explain(model) returns maps like `maps`")
        listed: list[Model | str]
        if isinstance(other_models, Sequence) and not isinstance(other_models, str):
            listed = list(other_models)
        else:
            listed = [other_models]
        other_maps = [explain(other_model(model, one, seed + i)) for i, one in enumerate(listed)]
    assert other_maps is not None
    others = _others(other_maps, named)
    how = perturbation or Perturbation()
    inputs = (
        images
        if isinstance(images, Inputs)
        else read_inputs(
            images,
            layout=options.get("layout"),
            mean=options.get("mean"),
            std=options.get("std"),
            normalized=options.get("normalized"),
        )
    )
    truth = integers("labels", labels, len(inputs))
    ids = torch.arange(len(inputs)) if index is None else integers("index", index, len(inputs))

    def answers(codes: torch.Tensor) -> Responses:
        return respond(
            model, inputs, codes=codes, drops=drops, labels=truth, perturbation=how, seed=seed, index=ids, **options
        )

    splits, curves = {}, {}
    for name, a in named.items():
        codes = make_codes(inputs, a, drops, how, seed, ids)
        own = answers(codes)
        whole, empty = _ends(own, of)
        moved = [answers(null_maps(codes, null, seed=seed + d, index=ids, labels=truth)) for d in range(draws)]
        foreign, foreign_moved = [], []
        for b in others[name]:
            other = make_codes(inputs, b, drops, how, seed, ids)
            same = torch.equal(other, codes)
            foreign.append(own if same else answers(other))
            if swap_others:
                foreign_moved += (
                    moved
                    if same
                    else [answers(null_maps(other, null, seed=seed + d, index=ids, labels=truth)) for d in range(draws)]
                )
        arms = {
            "own": _values(own, of),
            "shape_null": _mean([_values(r, of) for r in moved]),
            "image_null": _mean([_values(r, of) for r in foreign]),
        }
        if swap_others:
            arms["other_shape_null"] = _mean([_values(r, of) for r in foreign_moved])
        splits[name] = split(whole, **arms, rates=drops, empty=empty, average=average)
        curves[name] = {"base": np.full(len(drops), whole.mean()), **{arm: v.mean(1) for arm, v in arms.items()}}
    return summarise(
        splits, rates=drops, of=of, average=average, resamples=resamples, level=level, seed=seed, curves=curves
    )


def other_model(model: Model, other: Model | str, seed: int = 0) -> Model:
    """A model that explains instead of `model`: one that is given, or `"untrained"`: a copy with fresh weights."""
    if not isinstance(other, str):
        return other
    if other != "untrained":
        raise ValueError(f"other_models must be models or 'untrained', got {other!r}")
    if not isinstance(model, nn.Module):
        raise TypeError(f"other_models='untrained' needs a model that is a torch.nn.Module, got {type(model).__name__}")
    return untrained(model, seed)


def equal_damages(
    own: Mapping[str, Answers],
    null: Mapping[str, Answers],
    base: npt.ArrayLike | None = None,
    **options: Unpack[EqualDamageOptions],
) -> dict[str, EqualDamage]:
    """Equal damage of several estimators over the range of null accuracy that all of them reach.

    Args:
        own: `Responses`, or values `[R, N]`, by estimator.
        null: The same for each one's null.
        base: Values with nothing removed `[N]`, unless `Responses` are given.
        **options: For `equal_damage`.

    Example:
        >>> own = {"grad": np.array([[1, 1, 0, 0]]), "ig": np.array([[1, 0, 0, 0]])}
        >>> null = {"grad": np.array([[1, 1, 1, 0]]), "ig": np.array([[1, 1, 1, 0]])}
        >>> {name: found.score.value for name, found in equal_damages(own, null, np.ones(4), resamples=0).items()}
        {'grad': 0.125, 'ig': 0.25}
    """
    if own.keys() != null.keys():
        raise ValueError(f"own and null must name the same estimators, got {sorted(own)} and {sorted(null)}")
    of = options.get("of", "accuracy")
    lows = {name: common_low([one], base, of) for name, one in null.items()}
    highest = max(lows, key=lambda name: lows[name])
    low = lows[highest]
    alone: EqualDamageOptions = {**options, "resamples": 0}
    if low >= equal_damage(own[highest], null[highest], base, **alone).high:
        warnings.warn(
            f"no range of null responses is common to all: the null of {highest!r} does no damage, so equal damage is "
            "undefined; leave it out, or use higher drop rates or more images",
            UserWarning,
            stacklevel=2,
        )
    return {name: equal_damage(own[name], null[name], base, low=low, **options) for name in own}


def _by_name(argument: str, maps: Array | Mapping[str, T]) -> dict[str, Array | T]:
    named: dict[str, Array | T] = {**maps} if isinstance(maps, Mapping) else {"maps": maps}
    if not named:
        raise ValueError(f"{argument} must hold at least one estimator, got none")
    return named


def _others(given: OtherMaps | Sequence[OtherMaps], named: Mapping[str, Array]) -> dict[str, list[Array]]:
    models = list(given) if isinstance(given, Sequence) else [given]
    if not models:
        raise ValueError("other_maps must hold the maps of at least one other model, got none")
    result: dict[str, list[Array]] = {name: [] for name in named}
    for one in models:
        of_model = _by_name("other_maps", one)
        for name in named:
            if name not in of_model:
                raise ValueError(f"other_maps must hold every estimator of maps, {name!r} is missing")
            entry = of_model[name]
            result[name] += list(entry) if isinstance(entry, Sequence) else [entry]
    return result


def _values(responses: Responses, of: str) -> Floats:
    return _bits(responses.probability) if of == "bits" else responses.values(of)


def _ends(responses: Responses, of: str) -> tuple[Floats, Floats]:
    if of == "bits":
        return _bits(responses.whole.probability), _bits(responses.empty.probability)
    return responses.ends(of)


def _bits(probability: Numpy) -> Floats:
    return np.asarray(np.log2(np.maximum(np.asarray(probability, np.float64), np.finfo(np.float32).tiny)))


def _mean(arrays: list[Floats]) -> Floats:
    return arrays[0] if len(arrays) == 1 else np.asarray(np.mean(arrays, 0))
