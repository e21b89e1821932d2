"""Completeness (Li et al.): what the model loses when everything above a threshold of attribution goes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

import roarfast as rf
from roarfast.metrics.maps import by_segment, take_values
from roarfast.metrics.perturbation import Fill, Perturbation
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Detail, Line, Outcome, Score, register
from roarfast.metrics.scores.curves import TENTHS, as_rates

_SCALES = {"max": "the maximum", "p99": "the 99th percentile"}


def completeness(
    problem: Problem,
    maps: Tensor,
    *,
    rates: Sequence[float] = TENTHS,
    fill: Fill = "auto",
    values: str = "raw",
    scale: str | float = "max",
    matched: bool = True,
    noise: float = 0.01,
) -> Outcome:
    """Mean accuracy drop over thresholds 1 - rate of each map's maximum (Li et al., Algorithms 2 and 4; higher is better).

    Pixels with attribution above `(1 - rate) * maximum` are removed. Read it with the removed fraction (`details`) and
    with the excess: the drop minus that of random pixels of the same number in every image (of as many random segments
    where pixels go together).

    Known defects: raising a map to a power loses no information and moves the score; one outlier pixel brings it to 0; a
    constant map loses every pixel at every threshold and is most complete. The excess over matched random pixels removes
    the last, `scale="p99"` the second. All three are asserted in the tests.

    Args:
        problem: What is scored.
        maps: `[N, H, W]`, >= 0.
        rates: 1 - thresholds.
        fill: As in `Perturbation`; `"auto"`: linear imputation for images, the mean otherwise.
        values: `"raw"`, `"positive"` or `"abs"`: what is taken of the maps.
        scale: What thresholds are relative to: `"max"` of each map, `"p99"`, the 99th percentile of each map, or a number
            for all maps (Li et al. have maps in [0, 1] and thresholds of their values: `scale=1.0`).
        matched: Whether to remove as many random pixels, too.
        noise: Of the imputation.
    """
    a = take_values("completeness", maps, values)
    if scale != "max" and a.dtype not in (torch.float32, torch.float64):
        a = a.float()
    how = Perturbation(rule="value", fill=problem.auto_fill(fill), noise=noise)
    rates = as_rates(rates)
    codes = (
        problem.codes(a, rates, how) if scale == "max" else _codes_above(by_segment(a, problem.segments), rates, scale)
    )
    responses = problem.respond(None, rates, how, codes=codes)
    drop = responses.whole.of("accuracy") - responses.values("accuracy")
    threshold = 1 - np.array(rates)
    x, label = f"threshold (of {_SCALES.get(str(scale), scale)})", "accuracy lost"
    lines = {"completeness": Line(threshold, drop, x, label, responses)}
    details: dict[str, Detail] = {"removed": responses.removed.mean(1) if len(problem) else responses.rates}
    if matched:
        same_count = random_codes_like(codes, problem.random_maps(0), problem.segments)
        other = problem.respond(None, rates, how, codes=same_count)
        random_drop = other.whole.of("accuracy") - other.values("accuracy")
        lines["matched random"] = Line(threshold, random_drop, x, label, other)
        excess = drop - random_drop
        lines["excess"] = Line(threshold, excess, x, label)
        details["excess"] = float(excess.mean()) if excess.size else float("nan")
    flat = a.flatten(1)
    zero = int((flat.amax(1) <= 0).sum()) if len(a) else 0
    constant = int((flat.amax(1) == flat.amin(1)).sum()) - zero if len(a) else 0
    notes = []
    if zero:
        notes.append(f"{zero} maps are 0 everywhere: nothing of them is removed")
    if constant:
        removal = (
            "everything is removed at every threshold" if scale in _SCALES else "all or nothing of them is removed"
        )
        notes.append(f"{constant} maps are constant: {removal}")
    return Outcome(
        drop.mean(0) if len(rates) else np.zeros(len(problem)), curves=lines, details=details, notes=tuple(notes)
    )


def _tops(a: Tensor, scale: str | float) -> Tensor:
    """What thresholds are relative to, `[N, 1, 1]`."""
    if scale == "p99":
        return rf.percentile(a, 99.0).reshape(-1, 1, 1)
    if isinstance(scale, (int, float)) and not isinstance(scale, bool) and np.isfinite(scale) and scale > 0:
        return torch.full((len(a), 1, 1), float(scale))
    raise ValueError(f"scale must be 'max', 'p99' or a number > 0, got {scale!r}")


def _codes_above(a: Tensor, rates: Sequence[float], scale: str | float) -> Tensor:
    """Codes that remove what is above `(1 - rate) * top`, in the maps' own precision."""
    tops = _tops(a, scale).to(a.dtype)
    codes = torch.zeros(a.shape, dtype=torch.uint8)
    for rate in rf.ops._selection.rates("rates", rates):
        codes += a <= (1 - rate) * tops
    return codes


def random_codes_like(codes: Tensor, noise: Tensor, segments: Tensor | None = None) -> Tensor:
    """Codes that remove as many pixels of each map at each rate as `codes` do, but random ones.

    With segments as many random segments; as many pixels, too, if segments are of one size.
    """
    if segments is not None:
        result = torch.empty_like(codes)
        for own, numbers, parts, dealt in zip(codes, noise, segments, result):
            flat = parts.reshape(-1)
            one = torch.zeros(int(flat.max()) + 1, dtype=torch.int64)
            one[flat] = torch.arange(flat.numel())  # a pixel of each segment stands for it
            by_one = random_codes_like(own.reshape(-1)[one][None], numbers.reshape(-1)[one][None])
            dealt.copy_(by_one[0][parts])
        return result
    flat, order = codes.flatten(1), noise.flatten(1).argsort(1)
    result = torch.empty_like(flat)
    # The codes in ascending order, dealt to the pixels in random order: every count is kept.
    result.scatter_(1, order, flat.sort(1).values)
    return result.reshape(codes.shape)


register(Score("completeness", completeness, "higher", "attribution above a threshold covers what the model needs"))
