"""Projected gradient descent on the input: images that a model finds easier (`enhance`; Wang and Wang, 5) or harder."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from roarfast._types import Array
from roarfast.metrics.inputs import Inputs, Integers, PerChannel, integers, read_inputs
from roarfast.metrics.model import Logits, Model, choose_device, evaluating, home

DIRECTIONS = ("enhance", "attack")
SPACES = ("normalized", "pixel")


@dataclass(frozen=True)
class Enhanced:
    """Images moved by gradient steps.

    Attributes:
        images: float32 `[N, C, H, W]`, normalised: what the model takes.
        original: The images before, likewise.
        before: bool `[N]`, whether each was classified as its label.
        after: bool `[N]`, whether it is now.
        distance: float64 `[N]`, the largest change of a value, in the units of epsilon.
        steps_used: int64 `[N]`: fewer than asked for only with `until`.
    """

    images: Tensor = field(repr=False)
    original: Tensor = field(repr=False)
    before: npt.NDArray[np.bool_] = field(repr=False)
    after: npt.NDArray[np.bool_] = field(repr=False)
    distance: npt.NDArray[np.float64] = field(repr=False)
    steps_used: npt.NDArray[np.int64] = field(repr=False)

    @property
    def accuracy_before(self) -> float:
        """Share of labels found in the original images."""
        return float(self.before.mean()) if len(self.before) else float("nan")

    @property
    def accuracy_after(self) -> float:
        """Share of labels found in the moved images."""
        return float(self.after.mean()) if len(self.after) else float("nan")


def enhance(
    model: Model,
    images: Array,
    labels: Integers,
    *,
    epsilon: float = 0.3,
    alpha: float = 0.03,
    steps: int = 30,
    space: str = "normalized",
    bounds: bool = True,
    direction: str = "enhance",
    random_start: bool = False,
    until: str | None = None,
    layout: str | None = None,
    mean: PerChannel = None,
    std: PerChannel = None,
    normalized: bool | None = None,
    batch_size: int = 256,
    seed: int = 0,
    device: str | torch.device | None = None,
) -> Enhanced:
    """Moves images by signed gradient steps of the cross entropy, within epsilon of where they were.

    Wang and Wang print the gradient at the original image in every step, which would be one large step; here it is
    taken at the image as it is. The model is used in evaluation mode (untrained batch normalisation then has mean 0 and
    variance 1) and left as it was.

    Args:
        model: An `nn.Module` or a function; returns logits; differentiable in its input.
        images: uint8 or float images `[N, C, H, W]` or `[N, H, W, C]`, NumPy or torch.
        labels: Classes, int `[N]`: approached by `"enhance"`, left by `"attack"`.
        epsilon: Largest change of a value.
        alpha: Change per step.
        steps: How many.
        space: Units of epsilon and alpha: `"normalized"` (after mean and std) or `"pixel"` (of 0..1).
        bounds: Whether images stay in [0, 1] before normalisation.
        direction: `"enhance"` lowers the loss, `"attack"` raises it (ordinary PGD).
        random_start: Begin at a random place within epsilon.
        until: `"done"`: an image stops once its label is found (attack: lost). The paper runs all steps.
        layout: As in `evaluate`, as are the next three.
        mean: See there.
        std: See there.
        normalized: See there.
        batch_size: Images that go through the model together.
        seed: Of the random start.
        device: Where to run; default where the model is.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3))
        >>> found = enhance(net, torch.rand(4, 3, 2, 2), [0, 1, 2, 0], epsilon=0.5, alpha=0.1, steps=5)
        >>> bool(found.accuracy_after >= found.accuracy_before), bool((found.distance <= 0.5).all())
        (True, True)
    """
    for name, value, allowed in (("direction", direction, DIRECTIONS), ("space", space, SPACES)):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
    if until not in (None, "done"):
        raise ValueError(f"until must be None or 'done', got {until!r}")
    for name, number in (("epsilon", epsilon), ("alpha", alpha)):
        if not (np.isfinite(number) and number > 0):
            raise ValueError(f"{name} must be > 0, got {number!r}")
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ValueError(f"steps must be an integer >= 1, got {steps!r}")
    if alpha > epsilon:
        raise ValueError(f"alpha must be at most epsilon ({epsilon:g}), got {alpha:g}")
    inputs = read_inputs(images, layout=layout, mean=mean, std=std, normalized=normalized)
    if inputs.kind != "images":
        raise ValueError(f"enhance needs images, got {inputs.kind}")
    truth = integers("labels", labels, len(inputs))
    place = choose_device(model, inputs.pixels, not isinstance(images, Tensor), device)
    walk = _Walk(model, inputs, truth, place, epsilon, alpha, steps, space, bounds, direction, until)
    rng = torch.Generator().manual_seed(seed) if random_start else None
    parts = list(walk.run(batch_size, rng))
    joined = [torch.cat([p[i] for p in parts]) for i in range(6)] if parts else walk.nothing()
    moved, original, before, after, distance, used = joined
    return Enhanced(moved, original, before.numpy(), after.numpy(), distance.double().numpy(), used.numpy())


def adversarial_pixels(
    model: Model, inputs: Inputs, target: Tensor, device: torch.device, *, epsilon: float = 8 / 255, steps: int = 10
) -> Tensor:
    """The attacked counterpart of every image, like `inputs.pixels`: the fill `adversarial`.

    PGD away from the scored class within 8/255, ten steps of a quarter of that, in chunks of 64 images whatever the batch
    size, so that a result does not depend on it.
    """
    walk = _Walk(model, inputs, target, device, epsilon, epsilon / 4, steps, "pixel", True, "attack", None)
    result = torch.empty_like(inputs.pixels)
    start = 0
    for moved, *_ in walk.run(64, None):
        unit = moved * walk.std.cpu() + walk.mean.cpu()
        rows = slice(start, start + len(moved))
        if inputs.whole_numbers:
            result[rows] = (255 * unit).round().clamp(0, 255).to(torch.uint8).permute(0, 2, 3, 1).to(result.device)
        else:
            result[rows] = unit.to(result.device)
        start += len(moved)
    return result


class _Walk:
    """Gradient steps of batches of images."""

    def __init__(
        self,
        model: Model,
        inputs: Inputs,
        labels: Tensor,
        device: torch.device,
        epsilon: float,
        alpha: float,
        steps: int,
        space: str,
        bounds: bool,
        direction: str,
        until: str | None,
    ) -> None:
        self.model, self.inputs, self.labels, self.device = model, inputs, labels, device
        self.steps, self.until, self.sign = steps, until, 1.0 if direction == "attack" else -1.0
        column = (1, -1, 1, 1)
        self.dtype = home(model)[1]
        self.mean, self.std = (
            torch.tensor(v, dtype=torch.float32, device=device).reshape(column) for v in (inputs.mean, inputs.std)
        )
        unit = self.std if space == "pixel" else torch.ones_like(self.std)  # of epsilon, in normalised values
        self.epsilon, self.alpha, self.unit = epsilon / unit, alpha / unit, unit
        self.low: Tensor | None
        self.high: Tensor | None
        self.low, self.high = (-self.mean / self.std, (1 - self.mean) / self.std) if bounds else (None, None)
        self.logits = Logits(model, labels)

    def nothing(self) -> list[Tensor]:
        """What `run` gives, of no image."""
        empty = torch.zeros((0, self.inputs.channels, *self.inputs.map_shape))
        flags, numbers = torch.zeros(0, dtype=torch.bool), torch.zeros(0)
        return [empty, empty, flags, flags, numbers, numbers.long()]

    def run(self, batch_size: int, rng: torch.Generator | None) -> Iterator[list[Tensor]]:
        """Moved and original images, whether the label was and is found, distance, steps, batch by batch."""
        for start in range(0, len(self.inputs), batch_size):
            with evaluating(self.model):
                yield self._batch(slice(start, start + batch_size), rng)

    def _batch(self, rows: slice, rng: torch.Generator | None) -> list[Tensor]:
        pixels = self.inputs.pixels[rows].to(self.device)
        planes = pixels.permute(0, 3, 1, 2).float() / 255 if self.inputs.whole_numbers else pixels
        x = (planes - self.mean) / self.std
        y = self.labels[rows].to(self.device)
        before = self.logits(x.to(self.dtype)).argmax(1) == y
        least, most = x - self.epsilon, x + self.epsilon
        moved = x.clone()
        if rng is not None:
            moved = self._inside(x + self.epsilon * (2 * torch.rand(x.shape, generator=rng).to(x) - 1), least, most)
        used = torch.zeros(len(x), dtype=torch.int64)
        going = torch.ones(len(x), dtype=torch.bool, device=self.device)
        for _ in range(self.steps):
            gradient, found = self._gradient(moved, y)
            if self.until == "done":
                going &= ~found if self.sign < 0 else found
                if not bool(going.any()):
                    break
            used += going.cpu()
            step = self._inside(moved + self.sign * self.alpha * gradient.sign(), least, most)
            moved = torch.where(going[:, None, None, None], step, moved)
        after = self.logits(moved.to(self.dtype)).argmax(1) == y
        distance = ((moved - x) * self.unit).abs().flatten(1).amax(1)
        return [t.detach().cpu() for t in (moved, x, before, after, distance, used)]

    def _inside(self, x: Tensor, least: Tensor, most: Tensor) -> Tensor:
        x = torch.minimum(torch.maximum(x, least), most)
        return x if self.low is None else torch.minimum(torch.maximum(x, self.low), self.high)  # type: ignore[arg-type]

    def _gradient(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            at = x.detach().to(self.dtype).requires_grad_()
            logits = self.logits(at)
            loss = torch.nn.functional.cross_entropy(logits, y, reduction="sum")
            if not loss.requires_grad:
                raise ValueError("the model's output does not depend on its input through differentiable operations")
            (gradient,) = torch.autograd.grad(loss, at)
        if not bool(torch.isfinite(gradient).all()):
            bad = int((~torch.isfinite(gradient)).flatten(1).any(1).nonzero()[0])
            raise ValueError(f"the gradient is NaN or infinite for image {bad} of a batch")
        return gradient.float(), logits.detach().argmax(1) == y
