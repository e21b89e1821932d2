"""Gradient passes over a batch: what the model computes for every estimator of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import torch
from torch import Tensor, nn

from roarfast._stopwatch import Stopwatch
from roarfast.explain.guided import guided_relus
from roarfast.explain.layers import captured
from roarfast.explain.moments import Moments
from roarfast.explain.noise import noise_level, noisy_copies
from roarfast.explain.options import Options
from roarfast.explain.plan import Pass, Plan
from roarfast.explain.quadrature import quadrature
from roarfast.explain.record import Gradients

PASSES = "passes"
"""The phase of the stopwatch in which the model works: forward and backward, nothing else."""


class Passes:
    """Runs the passes of a plan for one batch of at most `batch_size` images.

    Never more than `batch_size` rows go through the model at a time: a batch of images times one noisy copy or path
    step, or several of those when there are fewer images than rows.

    Args:
        model: In evaluation mode, frozen.
        plan: What to compute.
        layer: The name and module that Grad-CAM looks at; None if the plan has no Grad-CAM.
        seed: Seed of the noise.
        batch_size: Rows per pass.
        memory_format: Layout of the rows.

    Attributes:
        watch: The seconds that the model's passes of the last `run` took.
    """

    def __init__(
        self,
        model: nn.Module,
        plan: Plan,
        layer: tuple[str, nn.Module] | None,
        seed: int,
        batch_size: int,
        memory_format: torch.memory_format,
    ) -> None:
        self.model = model
        self.plan = plan
        self.options: Options = plan.options
        self.layer = layer
        self.seed = seed
        self.batch_size = batch_size
        self.memory_format = memory_format
        self._target_is_checked = False
        self.watch = Stopwatch(torch.device("cpu"), (PASSES,))

    def run(
        self, x: Tensor, index: Tensor, target: Tensor | None
    ) -> tuple[dict[tuple[str | None, str], Tensor], Tensor | None]:
        """Base maps and ensembles for images `[B, C, H, W]`.

        Args:
            x: The images.
            index: Their sample ids `[B]`.
            target: Their target classes `[B]`; None for the predicted ones.

        Returns:
            Maps `[B, C, H, W]` (one channel for Grad-CAM) by (ensemble or None, base), and the target classes.
        """
        maps: dict[tuple[str | None, str], Tensor] = {}
        self.watch = Stopwatch(x.device, (PASSES,))
        if self.plan.predict_alone and target is None:
            self.watch.start()
            with torch.no_grad():
                target = logits_of(self.model, x.clone()).argmax(1)
            self.watch.lap(PASSES)
        self._target_is_checked = target is None
        for p in self.plan.passes:  # clean passes first: they find the predicted class
            if p.noisy:
                if target is None:
                    raise RuntimeError("a noisy pass needs the target class")
                self._noisy(p, x, index, target, maps)
                continue
            if p.path:
                if target is None:
                    raise RuntimeError("a path needs the target class")
                found = self._path(p, x, target)
            else:
                found = self.rows(x, target, p)
                target = found.target
            for base in p.bases:
                maps[None, base] = self._map(base, x, found)
        return maps, target

    def _noisy(
        self, p: Pass, x: Tensor, index: Tensor, target: Tensor, maps: dict[tuple[str | None, str], Tensor]
    ) -> None:
        moments = {base: Moments(self.plan.second_moment(base)) for base in p.bases}
        level = noise_level(x, self.options)

        # A path already fills the rows with its steps.
        for first, count in self._chunks(self.options.noise_samples, 1 if p.path else self._fitting(x)):
            copies = noisy_copies(x, level, index, self.seed, first, count)
            flat = copies.flatten(0, 1)
            found = self._path(p, flat, target) if p.path else self.rows(flat, target.repeat(count), p)
            for base in p.bases:
                values = self._map(base, flat, found)
                for value in values.reshape(count, -1, *values.shape[1:]):
                    moments[base].add(value.abs() if self.options.abs_before_average else value)
        for base, m in moments.items():
            maps["sg", base] = m.mean()
            if m.second:
                maps["sg-sq", base] = m.mean_square()
                maps["vg", base] = m.variance(self.options.vg_unbiased)

    def _map(self, base: str, x: Tensor, found: Gradients) -> Tensor:
        record = self.plan.records[base]
        assert record.of_pass is not None
        return record.checked(record.of_pass(x, found, self.options), x)

    def _path(self, p: Pass, x: Tensor, target: Tensor) -> Gradients:
        """The mean of the gradients along the path from the baseline, weighted by a quadrature."""
        baseline = _baseline(x, self.options.ig_baseline)
        difference = x - baseline
        nodes, weights = quadrature(self.options.ig_method, self.options.ig_steps)
        total = torch.zeros_like(x)
        for first, count in self._chunks(len(nodes), self._fitting(x)):
            alpha = torch.as_tensor(nodes[first : first + count], dtype=x.dtype, device=x.device)
            points = baseline + alpha.reshape(-1, 1, 1, 1, 1) * difference  # [count, B, C, H, W]
            gradient = self.rows(points.flatten(0, 1), target.repeat(count), p).have("input")
            if self.options.abs_before_average:
                gradient = gradient.abs()
            for weight, g in zip(weights[first : first + count], gradient.reshape(count, *x.shape)):
                total.add_(g, alpha=float(weight))
        return Gradients(target, total, start=baseline)

    def _fitting(self, x: Tensor) -> int:
        return max(1, self.batch_size // x.shape[0])

    @staticmethod
    def _chunks(points: int, at_once: int) -> Iterator[tuple[int, int]]:
        for first in range(0, points, at_once):
            yield first, min(at_once, points - first)

    def rows(self, x: Tensor, target: Tensor | None, p: Pass) -> Gradients:
        """Gradients of the target logits with respect to rows `[R, C, H, W]`, R <= batch_size, and to the layer."""
        at_layer = [self.plan.records[base].at_layer for base in p.bases]
        wants_gradient = not all(at_layer)
        name, layer = self.layer if any(at_layer) and self.layer is not None else ("", None)
        with torch.enable_grad(), ExitStack() as stack:
            x = x.detach().contiguous(memory_format=self.memory_format).requires_grad_(wants_gradient)
            if p.guided:
                stack.enter_context(guided_relus(self.model))
            capture = stack.enter_context(captured(layer))
            copy = x.clone()  # for models that normalise their input in place
            self.watch.start()
            logits = logits_of(self.model, copy)
            if target is None:
                target = logits.detach().argmax(1)
            elif not self._target_is_checked:
                _check_target(target, logits.shape[1])
                self._target_is_checked = True
            score = logits.gather(1, target.reshape(-1, 1)).sum()
            activation = capture.take(name, tokens=True) if capture is not None else None
            wanted = ([x] if wants_gradient else []) + ([] if activation is None else [activation])
            if not score.requires_grad:
                raise ValueError("the model's output does not depend on its input through differentiable operations")
            gradients = list(torch.autograd.grad(score, wanted, materialize_grads=True))
            self.watch.lap(PASSES)
        found = Gradients(target, gradients[0].contiguous() if wants_gradient else None)
        if activation is not None:
            found.activation, found.layer = activation.detach(), gradients[-1]
        return found


def logits_of(model: nn.Module, x: Tensor) -> Tensor:
    """The model's output, which must be `[N, classes]`."""
    logits = model(x)
    if not isinstance(logits, Tensor) or logits.ndim != 2 or logits.shape[0] != x.shape[0]:
        got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise ValueError(f"the model must return logits [{x.shape[0]}, classes], got {got}")
    return logits


def _check_target(target: Tensor, classes: int) -> None:
    low, high = int(target.min()), int(target.max())
    if low < 0 or high >= classes:
        raise ValueError(f"target must be in [0, {classes - 1}], got {low if low < 0 else high}")


def _baseline(x: Tensor, baseline: float | tuple[float, ...] | str) -> Tensor:
    if isinstance(baseline, str):
        return x.mean((2, 3), keepdim=True).expand_as(x)
    values = torch.as_tensor(baseline, dtype=x.dtype, device=x.device).reshape(1, -1, 1, 1)
    if values.shape[1] not in (1, x.shape[1]):
        raise ValueError(f"ig_baseline must be one number or one per channel ({x.shape[1]}), got {values.shape[1]}")
    return values.expand_as(x)
