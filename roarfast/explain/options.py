"""What an estimator computes besides its name: steps, noise, layers, conventions."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from roarfast.explain.quadrature import METHODS

if TYPE_CHECKING:
    from roarfast._types import Json

BASELINES = ("image_mean",)
CAM_COMBINE = ("sum", "mean-abs")


@dataclass(frozen=True)
class Options:
    """Parameters of the estimators. The defaults follow the papers that defined each method, as captum does.

    `Options.paper()` gives the conventions of the code of Song et al. instead: absolute values of every gradient
    before averaging (so opposite signs do not cancel), a left Riemann sum, noise of absolute size 0.15, the unbiased
    variance, and Grad-CAM without ReLU as a mean over channels.

    Attributes:
        ig_steps: Points on the path of integrated gradients.
        ig_method: `"left"`, `"right"`, `"middle"`, `"trapezoid"` or `"gausslegendre"`.
        ig_baseline: Where the path starts: a number, one number per channel, or `"image_mean"` (the channel means
            of each image). In the units of the input that the model is given.
        noise_samples: Noisy copies per image for `sg`, `sg-sq` and `vg`.
        noise: Standard deviation of the noise: as a fraction of the range (max - min) of each image, or absolute.
        noise_absolute: Whether `noise` is in the units of the input.
        input_range: With a relative `noise`: a fixed (low, high) instead of the range of each image.
        abs_before_average: Take absolute values of each gradient before averaging over path steps and noisy copies.
        vg_unbiased: Divide the variance by n - 1, not n.
        gc_layer: Name of the module Grad-CAM looks at, as in `model.named_modules()`; None: the last conv stage.
        gc_relu: Keep only positive evidence, as Grad-CAM is defined.
        gc_combine: `"sum"` over the layer's channels, or `"mean-abs"`: the mean of absolute values.
        sobel_axis: -1 (the default of SciPy and of the paper's code), -2, or `"magnitude"`.
        block_drop: None: `nested_block` is a map of nested random rectangles, right for every drop rate. A rate: the map
            of `roarfast.block_random` at that rate.
    """

    ig_steps: int = 25
    ig_method: str = "gausslegendre"
    ig_baseline: float | tuple[float, ...] | str = 0.0
    noise_samples: int = 15
    noise: float = 0.15
    noise_absolute: bool = False
    input_range: tuple[float, float] | None = None
    abs_before_average: bool = False
    vg_unbiased: bool = False
    gc_layer: str | None = None
    gc_relu: bool = True
    gc_combine: str = "sum"
    sobel_axis: int | str = -1
    block_drop: float | None = None

    def __post_init__(self) -> None:
        _at_least("ig_steps", self.ig_steps, 2 if self.ig_method == "trapezoid" else 1)
        _one_of("ig_method", self.ig_method, tuple(METHODS))
        if isinstance(self.ig_baseline, str):
            _one_of("ig_baseline", self.ig_baseline, BASELINES)
        elif not isinstance(self.ig_baseline, (int, float)):
            object.__setattr__(self, "ig_baseline", tuple(float(v) for v in self.ig_baseline))
        _at_least("noise_samples", self.noise_samples, 2 if self.vg_unbiased else 1)
        if not self.noise >= 0:
            raise ValueError(f"noise must be >= 0, got {self.noise!r}")
        if self.input_range is not None:
            low, high = (float(v) for v in self.input_range)
            if not low < high:
                raise ValueError(f"input_range must be (low, high) with low < high, got {self.input_range!r}")
            object.__setattr__(self, "input_range", (low, high))
        _one_of("gc_combine", self.gc_combine, CAM_COMBINE)
        _one_of("sobel_axis", self.sobel_axis, (-1, -2, "magnitude"))
        if self.block_drop is not None and not 0 <= self.block_drop <= 1:
            raise ValueError(f"block_drop must be in [0, 1], got {self.block_drop!r}: rates are fractions")

    @classmethod
    def paper(cls, **changes: Any) -> Options:
        """The conventions of the code of Song et al.; keyword arguments override single fields."""
        preset = cls(
            ig_method="left",
            noise_absolute=True,
            abs_before_average=True,
            vg_unbiased=True,
            gc_relu=False,
            gc_combine="mean-abs",
        )
        return replace(preset, **changes)

    def as_dict(self) -> dict[str, Json]:
        """The fields as JSON values, for hashes: they keep the first name of a baseline, as stored keys do."""
        values = asdict(self) | ({"ig_baseline": "image-mean"} if self.ig_baseline == "image_mean" else {})
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}


def _at_least(name: str, value: object, low: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < low:
        raise ValueError(f"{name} must be at least {low}, got {value}")


def _one_of(name: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
