"""Training recipes: validated settings, presets from the papers, and quick ones for CPUs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from roarfast._types import Json

OPTIMIZERS = ("sgd", "adam", "adamw")
SCHEDULES = ("cosine", "linear", "step", "constant")
PRECISIONS = ("auto", "float32", "float16", "bfloat16")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _in(value: object, low: float, high: float) -> bool:
    return (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and math.isfinite(value)
        and low <= value <= high
    )


def _require(name: str, value: object, ok: bool, allowed: str) -> None:
    if not ok:
        raise ValueError(f"recipe: {name} must be {allowed}, got {value!r}")


@dataclass(frozen=True)
class Recipe:
    """Everything about a training but the model, the data and the seed.

    Attributes:
        epochs: Passes over the training set.
        batch_size: Samples per step, over all processes.
        lr: Peak learning rate.
        optimizer: `"sgd"`, `"adam"` or `"adamw"`.
        betas: Decay of the running means of Adam and AdamW.
        momentum: Of SGD.
        nesterov: Nesterov's variant of momentum.
        weight_decay: L2 penalty; decoupled from the gradient for `"adamw"`.
        decay_norm: Whether it also applies to biases and normalisation weights (vectors), as in plain torch SGD.
        schedule: Of the learning rate after warm-up, per step: `"cosine"` or `"linear"` down to `final_lr`, `"step"`
            (times `gamma` at each of `milestones`), `"constant"`.
        warmup_epochs: Linear rise from zero; fractions are fine.
        final_lr: Where cosine and linear end.
        milestones: Epochs of `"step"`.
        gamma: Factor of `"step"`.
        label_smoothing: Of the cross entropy.
        pad: Zero pixels on each side before the random crop; 0 for no padding.
        crop: Size of the crop; None: the image size.
        random_crop: Crop at random places in training (in the middle in evaluation).
        scale: (low, high) share of the area that a training crop takes before it is resampled to `crop`, or None: the scale
            and aspect augmentation of torchvision's `RandomResizedCrop`. Evaluation crops in the middle as ever.
        ratio: (low, high) of width / height of those crops.
        flip: Mirror half of the training images.
        drop_last: Leave out a last batch that is not full.
        ghost_batch: Normalise in groups of this many samples; None: per process.
        clip_norm: Scale gradients down to this norm; None: never.
        precision: `"auto"` is bfloat16 (or float16) autocast on CUDA and float32 on a CPU.
        layout: Memory order of images and weights: `"NHWC"`, or `"NCHW"` for planes.
        compile: Run the model through `torch.compile`.
        pretrained: Starts from weights given by the user (`build_model(..., weights=...)`).
        eval_batch_size: Samples per evaluation step.

    Example:
        >>> Recipe(epochs=10, lr=0.05).lr_at(0, steps_per_epoch=100)
        0.05
    """

    epochs: int = 50
    batch_size: int = 128
    lr: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 5e-4
    decay_norm: bool = True
    schedule: str = "cosine"
    warmup_epochs: float = 0.0
    final_lr: float = 0.0
    milestones: tuple[float, ...] = ()
    gamma: float = 0.1
    label_smoothing: float = 0.0
    pad: int = 0
    crop: int | None = None
    random_crop: bool = False
    flip: bool = False
    drop_last: bool = False
    ghost_batch: int | None = None
    clip_norm: float | None = None
    precision: str = "auto"
    layout: str = "NHWC"
    compile: bool = False
    pretrained: bool = False
    eval_batch_size: int = 500
    optimizer: str = "sgd"
    betas: tuple[float, float] = (0.9, 0.999)
    scale: tuple[float, float] | None = None
    ratio: tuple[float, float] = (3 / 4, 4 / 3)

    def __post_init__(self) -> None:
        object.__setattr__(self, "milestones", tuple(self.milestones))
        betas = tuple(self.betas) if isinstance(self.betas, (list, tuple)) else ()
        both = len(betas) == 2 and all(_in(b, 0, 1) and b < 1 for b in betas)
        _require("betas", self.betas, both, "two numbers in [0, 1)")
        object.__setattr__(self, "betas", betas)
        _require("optimizer", self.optimizer, self.optimizer in OPTIMIZERS, f"one of {', '.join(OPTIMIZERS)}")
        for name in ("epochs", "batch_size", "eval_batch_size"):
            _require(
                name, getattr(self, name), _is_int(getattr(self, name)) and getattr(self, name) >= 1, "an int >= 1"
            )
        for name in ("crop", "ghost_batch"):
            value = getattr(self, name)
            _require(name, value, value is None or (_is_int(value) and value >= 1), "an int >= 1 or None")
        _require("pad", self.pad, _is_int(self.pad) and self.pad >= 0, "an int >= 0")
        for name, most in (("scale", 1.0), ("ratio", 1e3)):
            value = getattr(self, name)
            if name == "ratio" or value is not None:
                pair = tuple(value) if isinstance(value, (list, tuple)) else ()
                rising = len(pair) == 2 and all(_in(v, 1e-3, most) for v in pair) and pair[0] <= pair[1]
                _require(name, value, rising, f"two rising numbers in [0.001, {most:g}]")
                object.__setattr__(self, name, pair)
        _require("pad", self.pad, self.scale is None or self.pad == 0, "0 with scale, which crops the image itself")
        _require("lr", self.lr, _in(self.lr, 0, math.inf) and self.lr > 0, "a number > 0")
        _require("momentum", self.momentum, _in(self.momentum, 0, 1) and self.momentum < 1, "in [0, 1)")
        _require("nesterov", self.nesterov, not (self.nesterov and self.momentum == 0), "False where momentum is 0")
        for name in ("weight_decay", "final_lr", "gamma"):
            _require(name, getattr(self, name), _in(getattr(self, name), 0, math.inf), "a number >= 0")
        _require("schedule", self.schedule, self.schedule in SCHEDULES, f"one of {', '.join(SCHEDULES)}")
        _require(
            "warmup_epochs",
            self.warmup_epochs,
            _in(self.warmup_epochs, 0, self.epochs),
            f"in [0, epochs = {self.epochs}]",
        )
        rising = all(0 < a < b for a, b in zip(self.milestones, (*self.milestones[1:], math.inf)))
        _require("milestones", self.milestones, rising, "rising epochs > 0")
        _require(
            "label_smoothing",
            self.label_smoothing,
            _in(self.label_smoothing, 0, 1) and self.label_smoothing < 1,
            "in [0, 1)",
        )
        clip = self.clip_norm
        _require("clip_norm", clip, clip is None or (_in(clip, 0, math.inf) and clip > 0), "a number > 0, or None")
        _require("layout", self.layout, self.layout in ("NCHW", "NHWC"), "NCHW or NHWC")
        _require("precision", self.precision, self.precision in PRECISIONS, f"one of {', '.join(PRECISIONS)}")

    def lr_at(self, step: int, steps_per_epoch: int) -> float:
        """Learning rate of a step, counted from 0 over the whole training."""
        total, warmup = self.epochs * steps_per_epoch, self.warmup_epochs * steps_per_epoch
        if step < warmup:
            return self.lr * (step + 1) / warmup if step + 1 < warmup else self.lr
        if self.schedule == "constant":
            return self.lr
        if self.schedule == "step":
            passed = sum(step >= m * steps_per_epoch for m in self.milestones)
            return float(self.lr * self.gamma**passed)
        fraction = (step - warmup) / max(total - warmup, 1e-9)
        weight = 0.5 * (1 + math.cos(math.pi * fraction)) if self.schedule == "cosine" else 1 - fraction
        return self.final_lr + (self.lr - self.final_lr) * weight

    def as_dict(self) -> dict[str, Json]:
        """Plain values, for configs, hashes and result files.

        Fields that came after the first stored runs are left out at their defaults, so that old hashes stay valid.
        """
        values = {**asdict(self), "milestones": list(self.milestones), "betas": list(self.betas)}
        if self.optimizer == "sgd":
            del values["optimizer"], values["betas"]
        if self.scale is None:
            del values["scale"], values["ratio"]
        else:
            values |= {"scale": list(self.scale), "ratio": list(self.ratio)}
        return values

    def as_hashed(self) -> dict[str, Json]:
        """The values as keys and checkpoints spell them: `layout` by its first name, so that old ones stay valid."""
        values = self.as_dict()
        return values | {"channels_last": values.pop("layout") == "NHWC"}


_CIFAR = Recipe(pad=4, random_crop=True, flip=True)
_BIRDS = Recipe(batch_size=32, lr=0.01, weight_decay=1e-4, flip=True, pretrained=True, eval_batch_size=64)
_QUICK = Recipe(
    epochs=10,
    lr=0.2,
    nesterov=True,
    decay_norm=False,
    warmup_epochs=1.0,
    pad=2,
    random_crop=True,
    flip=True,
    drop_last=True,
)

PRESETS: dict[str, Recipe] = {
    # Song et al.: 50 epochs, batch 128, SGD 0.9, cosine from 0.1 to 0; mmclassification's CIFAR augmentation.
    "cifar10": _CIFAR,
    "svhn": replace(_CIFAR, weight_decay=1e-4, flip=False),  # a mirrored digit is another one, or none
    "cub200": _BIRDS,
    # MMClassification's, by which Song et al. trained the base models of ROAD (their appendix A); SVHN as CIFAR-10.
    "cifar10-mmcls": replace(_CIFAR, epochs=200, weight_decay=1e-4, schedule="step", milestones=(100, 150)),
    # Wants images of 600: pixels are removed at that size, then 448 are cropped. Their code removes before it scales to 600.
    "cub200-mmcls": Recipe(
        epochs=100,
        batch_size=64,
        lr=0.01,
        nesterov=True,
        weight_decay=5e-4,
        warmup_epochs=5,
        crop=448,
        random_crop=True,
        flip=True,
        pretrained=True,
        eval_batch_size=32,
    ),
    # Hooker et al. 2019, after Goyal et al. 2017, whose scale and aspect augmentation is that of Szegedy et al. 2015.
    "imagenet-roar": Recipe(
        epochs=90,
        batch_size=4096,
        lr=4.8,
        nesterov=True,
        weight_decay=1e-4,
        decay_norm=False,
        schedule="step",
        warmup_epochs=5,
        milestones=(30, 60, 80),
        crop=224,
        scale=(0.08, 1.0),
        flip=True,
        ghost_batch=128,
        drop_last=True,
        eval_batch_size=256,
    ),
    "quick-convnet": replace(_QUICK, epochs=7, batch_size=64, lr=0.15, pad=1),
    "quick-resnet8": _QUICK,
    "quick-resnet18": replace(_QUICK, schedule="linear", warmup_epochs=2.0),
    "quick-resnet50": replace(_BIRDS, epochs=10, nesterov=True, warmup_epochs=1.0, drop_last=True),
}


def get_recipe(name: str | Recipe, model: str | None = None, **overrides: Any) -> Recipe:
    """A preset with some fields changed.

    Args:
        name: `"cifar10"`, `"svhn"`, `"cub200"`, `"cifar10-mmcls"`, `"cub200-mmcls"`, `"imagenet-roar"`,
            `"quick-<model>"`, or `"quick"`, which picks the one for `model`; or a recipe.
        model: Name of the model, for `"quick"`.
        **overrides: Fields of `Recipe`.

    Returns:
        The recipe; impossible values and unknown fields raise ValueError.

    Example:
        >>> get_recipe("quick", model="convnet", epochs=2).epochs
        2
    """
    if isinstance(name, Recipe):
        base = name
    else:
        key = name
        if name == "quick":
            key = f"quick-{model}" if f"quick-{model}" in PRESETS else "quick-convnet"
        if key not in PRESETS:
            raise ValueError(f"recipe must be one of quick, {', '.join(PRESETS)}, got {name!r}")
        base = PRESETS[key]
    known = [f.name for f in fields(Recipe)]
    unknown = [k for k in overrides if k not in known]
    if unknown:
        raise ValueError(f"unknown recipe field {unknown[0]!r}; there are {', '.join(known)}")
    return replace(base, **overrides)
