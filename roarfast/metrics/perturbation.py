"""Which pixels go, and what takes their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from roarfast._types import Json

RULES = ("exact", "percentile", "strict", "value")
ORDERS = ("morf", "lerf")
FILLS = ("linear", "dataset_mean", "image_mean", "kept_mean", "zero", "blur", "noise", "adversarial")
PRECISIONS = ("uint8", "float16")
IMAGE_FILLS = ("linear", "blur", "adversarial")  # fills that need neighbours, or units of grey levels

Fill = str | float | tuple[float, ...]


@dataclass(frozen=True)
class Perturbation:
    """How samples are perturbed: part of the identity of a result.

    Attributes:
        order: `"morf"` removes the most relevant first, `"lerf"` the least relevant.
        rule: `"exact"`, `"percentile"`, `"strict"` or `"value"`, as in `roarfast.removal_mask`.
        keep: Remove what would stay, and keep the rest: insertion.
        fill: `"linear"` (ROAD's imputation), `"dataset_mean"` (zero in normalised units), `"image_mean"`,
            `"kept_mean"`, `"zero"` (black), `"blur"`, `"noise"` (Gaussian, mean and spread of the samples),
            `"adversarial"` (the image attacked by PGD within 8/255: its pixels are near the image's own, and hostile),
            or numbers: one, or one per channel, in 0..255 for images.
        noise: Standard deviation of the noise that `linear` adds, in units of 0..1.
        blur: Standard deviation of `blur`, in pixels.
        tolerance: Of the solver behind `linear`.
        precision: What `linear` rounds 8-bit images to: `"uint8"`, or `"float16"` in units of 0..255 as studies do.

    Example:
        >>> Perturbation(fill="zero").describe()
        'exact, morf, fill zero'
    """

    order: str = "morf"
    rule: str = "exact"
    keep: bool = False
    fill: Fill = "linear"
    noise: float = 0.01
    blur: float = 10.0
    tolerance: float = 1e-5
    precision: str = "uint8"

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("order", self.order, ORDERS),
            ("rule", self.rule, RULES),
            ("precision", self.precision, PRECISIONS),
        ):
            if value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
        if isinstance(self.fill, str):
            if self.fill not in FILLS:
                raise ValueError(
                    f"fill must be a number, one per channel, or one of {', '.join(FILLS)}, got {self.fill!r}"
                )
        else:
            values = np.atleast_1d(np.asarray(self.fill, np.float64))
            if values.ndim != 1 or not np.isfinite(values).all():
                raise ValueError(f"fill must be finite numbers, one or one per channel, got {self.fill!r}")
            object.__setattr__(self, "fill", tuple(float(v) for v in values))
        if not 1e-10 <= self.tolerance <= 0.1:
            raise ValueError(f"tolerance must be in [1e-10, 0.1], got {self.tolerance!r}")
        for name, number in (("noise", self.noise), ("blur", self.blur)):
            if not (np.isfinite(number) and number >= 0):
                raise ValueError(f"{name} must be >= 0, got {number!r}")

    def describe(self) -> str:
        """A few words for tables and figures."""
        fill = self.fill if isinstance(self.fill, str) else ", ".join(f"{v:g}" for v in self.fill)  # type: ignore[union-attr]
        return f"{self.rule}, {self.order}{', kept' if self.keep else ''}, fill {fill}"

    def as_dict(self) -> dict[str, Json]:
        """Plain values, for files."""
        fill: Json = list(self.fill) if isinstance(self.fill, tuple) else self.fill
        values: dict[str, Json] = {
            "order": self.order,
            "rule": self.rule,
            "keep": self.keep,
            "fill": fill,
            "noise": self.noise,
            "blur": self.blur,
        }
        # Absent where they are the defaults, as in files from before they were there.
        later: dict[str, Json] = {"tolerance": self.tolerance, "precision": self.precision}
        return values | {name: value for name, value in later.items() if value != getattr(Perturbation, name)}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Perturbation:
        """What `as_dict` gave."""
        fill = values["fill"]
        return cls(
            **{**values, "fill": tuple(fill) if isinstance(fill, Sequence) and not isinstance(fill, str) else fill}
        )
