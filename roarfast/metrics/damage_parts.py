"""Shape, image, model: a removal score taken apart.

| masks used on image x, model z | accuracy |
|---|---|
| none | base |
| those of another image | null_shape |
| those of the same image, by another model z' | null_image |
| its own | own |

shape = base - null_shape, image = null_shape - null_image, model = null_image - own; they add up to the damage
base - own. Where the mask knows nothing of the model given the image, own and null_image are exchangeable, and the
model part is 0 in expectation; for maps that do not ask the model it is 0 to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from roarfast.metrics.damage_plot import plot_parts
from roarfast.metrics.resampling import Estimate, above_zero, bootstrap, holm, trial_interval, weighted_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from pandas import DataFrame

Floats = npt.NDArray[np.float64]

PARTS = ("shape", "image", "model")
EXCESS = "model_excess"
AVERAGES = ("mean", "area")
_ARMS = ("shape_null", "image_null", "own")


@dataclass(frozen=True)
class Split:
    """The per-image values of one estimator, averaged over rates, by trial: `[T, N]` each.

    Attributes:
        base: With nothing removed.
        shape_null: With the masks of other images.
        image_null: With the masks that other models made for the same image.
        own: With its own masks.
        other_shape_null: With the other models' masks, of other images; None: not measured.
    """

    base: Floats
    shape_null: Floats
    image_null: Floats
    own: Floats
    other_shape_null: Floats | None = None

    def part(self, name: str) -> Floats:
        """`[T, N]` of `"shape"`, `"image"`, `"model"` or `"damage"`; the parts add up to the damage."""
        between = {
            "shape": (self.base, self.shape_null),
            "image": (self.shape_null, self.image_null),
            "model": (self.image_null, self.own),
            "damage": (self.base, self.own),
        }
        if name == EXCESS and self.other_shape_null is not None:
            return (self.shape_null - self.own) - (self.other_shape_null - self.image_null)
        if name not in between:
            raise ValueError(f"name must be one of {', '.join(between)}, got {name!r}")
        before, after = between[name]
        return before - after


@dataclass(frozen=True)
class EstimatorParts:
    """What the damage of one estimator is made of.

    Attributes:
        name: Of the estimator.
        base: Mean response with nothing removed.
        own: Mean response with its own masks, over rates.
        damage: base - own, with an interval over images, as are the three parts.
        shape: What masks of this shape do to any image.
        image: What any model, or an edge detector, knows of this image.
        model: What the map knows of this model.
        p: One-sided p of "the model part is above 0" over images; 1 where it is 0 to the bit.
        p_holm: The same after Holm's correction over the estimators of the table.
        over_trials: Parts as t-intervals over trials, by name; without bounds where there is one trial only.
        model_excess: What own masks know beyond their own shape, minus what other models' masks know beyond theirs; None
            unless `swap_others` was asked for.
    """

    name: str
    base: float
    own: float
    damage: Estimate
    shape: Estimate
    image: Estimate
    model: Estimate
    p: float
    p_holm: float
    over_trials: Mapping[str, Estimate]
    model_excess: Estimate | None = None


@dataclass(frozen=True)
class Parts:
    """Shape, image and model parts of several estimators, on the same images; prints as a table.

    Attributes:
        splits: The values that everything is computed from, by estimator.
        rows: One `EstimatorParts` per estimator.
        rates: The drop rates.
        of: The response: accuracy, probability or bits.
        average: How rates were averaged.
        images: How many.
        trials: How many explained models.
        curves: Mean responses `[R]` by estimator and arm (`base`, `own`, `shape_null`, `image_null`).
    """

    splits: Mapping[str, Split] = field(repr=False)
    rows: Mapping[str, EstimatorParts]
    rates: tuple[float, ...]
    of: str
    average: str
    images: int
    trials: int
    curves: Mapping[str, Mapping[str, Floats]] = field(default_factory=dict, repr=False)

    def __getitem__(self, name: str) -> EstimatorParts:
        if name not in self.rows:
            raise KeyError(f"no estimator {name!r}; there are {', '.join(self.rows)}")
        return self.rows[name]

    def __str__(self) -> str:
        unit, scale = ("bits", 1.0) if self.of == "bits" else ("points", 100.0)
        head = f"{self.of}, {unit}; {self.average} over {len(self.rates)} rates, {self.images} images, {self.trials} model(s)"
        lines = [
            head,
            f"{'':14} {'own':>7} {'damage':>7} {'shape':>7} {'image':>7}   model [95 % over images]   p (Holm)",
        ]
        for row in self.rows.values():
            m = row.model
            numbers = " ".join(
                f"{v * scale:7.2f}" for v in (row.own, row.damage.value, row.shape.value, row.image.value)
            )
            lines.append(
                f"{row.name:14} {numbers}   {m.value * scale:5.2f} [{m.low * scale:5.2f}, {m.high * scale:5.2f}]"
                f"{'':9}{row.p_holm:.3g}"
            )
        return "\n".join(lines)

    def records(self) -> list[dict[str, float | str]]:
        """One flat record per estimator, for tables and files."""
        table: list[dict[str, float | str]] = []
        for row in self.rows.values():
            record: dict[str, float | str] = {"estimator": row.name, "base": row.base, "own": row.own}
            for name in ("damage", *PARTS):
                e: Estimate = getattr(row, name)
                record |= {name: e.value, f"{name}_low": e.low, f"{name}_high": e.high}
                trial = row.over_trials[name]
                record |= {f"{name}_trials_low": trial.low, f"{name}_trials_high": trial.high}
            table.append(record | {"p": row.p, "p_holm": row.p_holm})
        return table

    def to_dataframe(self) -> DataFrame:
        """The table as a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.records()).set_index("estimator")

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"

    def plot(self, ax: Axes | None = None) -> Figure | SubFigure:
        """Stacked bars per estimator: grey shape, blue image, orange model. Returns the matplotlib figure."""
        return plot_parts(self, ax)


def split(
    base: npt.ArrayLike,
    own: npt.ArrayLike,
    shape_null: npt.ArrayLike,
    image_null: npt.ArrayLike,
    *,
    rates: Sequence[float] | None = None,
    empty: npt.ArrayLike | None = None,
    average: str = "mean",
    other_shape_null: npt.ArrayLike | None = None,
) -> Split:
    """Responses at all rates to per-image values.

    Args:
        base: With nothing removed `[N]`, or `[T, N]` for several explained models.
        own: `[R, N]` or `[T, R, N]`: 1 for correct and 0 for not, or probabilities, or bits.
        shape_null: The same with other images' masks; the mean over draws if there were several.
        image_null: The same with other models' masks; the mean over models if there were several.
        rates: Drop rates `[R]`, for `average="area"`.
        empty: With everything removed, like `base`, for `average="area"`.
        average: `"mean"` over the rates, or `"area"` under the curve from rate 0 to 1, both ends included.
        other_shape_null: With the other models' masks of other images, if that was measured.

    Example:
        >>> s = split([1, 1], [[0, 0]], [[1, 1]], [[1, 0]])
        >>> [float(s.part(name).mean()) for name in ("shape", "image", "model", "damage")]
        [0.0, 0.5, 0.5, 1.0]
    """
    whole = np.atleast_2d(np.asarray(base, np.float64))
    arms = {}
    for name, given in zip(
        (*_ARMS, "other_shape_null"),
        (shape_null, image_null, own, *([] if other_shape_null is None else [other_shape_null])),
    ):
        values = np.asarray(given, np.float64)
        values = values[None] if values.ndim == 2 else values
        if values.ndim != 3 or values.shape[0] != whole.shape[0] or values.shape[2] != whole.shape[1]:
            raise ValueError(
                f"{name} must be [R, N] or [T, R, N] with T, N = {whole.shape} as in base, got shape {np.shape(given)}"
            )
        arms[name] = values
    if len({a.shape for a in arms.values()}) > 1:
        raise ValueError(
            f"own, shape_null and image_null must have the same rates, got {[a.shape for a in arms.values()]}"
        )
    if average not in AVERAGES:
        raise ValueError(f"average must be one of {', '.join(AVERAGES)}, got {average!r}")
    if average == "mean":
        return Split(whole, *(values.mean(1) for values in arms.values()))
    if rates is None or empty is None:
        raise ValueError("average='area' needs rates and empty: the ends belong to the area")
    end = np.broadcast_to(np.atleast_2d(np.asarray(empty, np.float64)), whole.shape)
    t = np.concatenate([[0.0], np.asarray(rates, np.float64), [1.0]])
    if (np.diff(t) < 0).any() or len(t) != arms["own"].shape[1] + 2:
        raise ValueError(f"rates must be {arms['own'].shape[1]} ascending numbers in [0, 1], got {rates}")

    def area(values: Floats) -> Floats:
        y = np.concatenate([whole[:, None], values, end[:, None]], 1)
        return np.asarray((np.diff(t)[:, None] * (y[:, 1:] + y[:, :-1]) / 2).sum(1))

    return Split(whole, *(area(values) for values in arms.values()))


def summarise(
    splits: Mapping[str, Split],
    *,
    rates: Sequence[float] = (),
    of: str = "accuracy",
    average: str = "mean",
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    curves: Mapping[str, Mapping[str, Floats]] | None = None,
) -> Parts:
    """Intervals and tests for splits of the same images: one table.

    The images are resampled together for every estimator, arm and trial, so all differences are paired. Trials
    (explained models) are another source of variation: their t-intervals are kept apart, in `over_trials`.
    """
    if not splits:
        raise ValueError("splits must hold at least one estimator, got none")
    shapes = {s.base.shape for s in splits.values()}
    if len(shapes) > 1:
        raise ValueError(f"all estimators must be measured on the same trials and images, got shapes {sorted(shapes)}")
    ((trials, images),) = shapes
    if images < 2:
        raise ValueError(f"parts need at least two images, got {images}")
    excess = all(s.other_shape_null is not None for s in splits.values())
    names = ("damage", *PARTS, *([EXCESS] if excess else []))
    values = np.concatenate([[s.part(part).mean(0) for part in names] for s in splits.values()])
    drawn = bootstrap(weighted_mean(values), images, resamples, seed)
    p = {name: above_zero(s.part("model").mean(0)) for name, s in splits.items()}
    adjusted = dict(zip(p, map(float, holm(np.array(list(p.values()))))))
    rows = {}
    for i, (name, s) in enumerate(splits.items()):
        estimates = {part: drawn[len(names) * i + j].estimate(level) for j, part in enumerate(names)}
        by_trial = {part: trial_interval(s.part(part).mean(1), level) for part in ("damage", *PARTS)}
        rows[name] = EstimatorParts(
            name,
            float(s.base.mean()),
            float(s.own.mean()),
            **estimates,
            p=p[name],
            p_holm=adjusted[name],
            over_trials=by_trial,
        )
    return Parts(dict(splits), rows, tuple(rates), of, average, images, trials, curves or {})


def join(parts: Sequence[Parts], *, resamples: int = 1000, level: float = 0.95, seed: int = 0) -> Parts:
    """Several explained models on the same images as trials of one table."""
    if not parts:
        raise ValueError("parts must hold at least one table, got none")
    first = parts[0]
    for other in parts[1:]:
        same = (other.rates, other.of, other.average, other.images, tuple(other.rows))
        if same != (first.rates, first.of, first.average, first.images, tuple(first.rows)):
            raise ValueError("parts must be of the same estimators, images, rates, response and average to be joined")
    splits = {
        name: Split(
            *(
                np.concatenate([getattr(p.splits[name], arm) for p in parts])
                for arm in ("base", *_ARMS, "other_shape_null")
                if all(getattr(p.splits[name], arm) is not None for p in parts)
            )
        )
        for name in first.rows
    }
    curves = {
        name: {arm: np.mean([p.curves[name][arm] for p in parts], 0) for arm in first.curves[name]}
        for name in first.curves
    }
    return summarise(
        splits,
        rates=first.rates,
        of=first.of,
        average=first.average,
        resamples=resamples,
        level=level,
        seed=seed,
        curves=curves,
    )
