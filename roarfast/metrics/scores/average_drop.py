"""Average drop and increase in confidence (Grad-CAM++): the model's input multiplied by the map."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from roarfast.metrics.batches import WHOLE, Perturber
from roarfast.metrics.engine import batch_size_for
from roarfast.metrics.maps import by_segment
from roarfast.metrics.model import Logits, choose_device, evaluating, home
from roarfast.metrics.perturbation import Perturbation
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Outcome, Score, register

SCALES = ("minmax", "raw")


def average_drop(problem: Problem, maps: Tensor, *, scale: str = "minmax", scored: str = "predicted") -> Outcome:
    """Mean over images of max(0, p - q) / p: p of the class, and q of it when the input is multiplied by the map.

    As Grad-CAM++ defines it and torch-cam's `ClassificationMetric` computes it; `details` has the fraction of images with
    q > p (increase in confidence; higher is better) beside it. The input is the model's: with `mean` and `std` a value of
    0 is the mean colour, without them black.

    Known defects: a map of ones drops nothing and is perfect; brighter maps are better, whatever they show; the dimmed
    image is none that the model was trained on.

    Args:
        problem: What is scored.
        maps: `[N, H, W]`.
        scale: `"minmax"`: each map to [0, 1], constant ones to 0; `"raw"`: as they are, in [0, 1].
        scored: `"predicted"` or `"label"`.
    """
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, got {scale!r}")
    if scored not in ("predicted", "label"):
        raise ValueError(f"scored must be 'predicted' or 'label', got {scored!r}")
    a = _scaled(by_segment(maps.float(), problem.segments), scale)
    n, inputs, model = len(problem), problem.inputs, problem.model
    place = choose_device(model, inputs.pixels, True, problem.options.get("device"))
    nothing = torch.zeros((n, *inputs.map_shape), dtype=torch.uint8)
    perturber = Perturber(inputs, nothing, Perturbation(fill=0.0), 0, problem.ids, place, home(model)[1])
    logits = Logits(model, problem.labels)
    before, after = np.empty(n), np.empty(n)
    size = batch_size_for(inputs, problem.options.get("batch_size"))
    with evaluating(model):
        for start in range(0, n, size):
            sample = torch.arange(start, min(start + size, n))
            x = perturber.rows(sample, torch.full_like(sample, WHOLE))
            whole = _finite(logits(inputs.for_model(x)), start, "as it is")
            seen = x * a[sample, None].to(x)
            dimmed = _finite(logits(inputs.for_model(seen)), start, "times its map")
            target = whole.argmax(1) if scored == "predicted" else problem.labels[sample].to(whole.device)
            for out, z in ((before, whole), (after, dimmed)):
                out[start : start + len(sample)] = z.softmax(1).gather(1, target[:, None])[:, 0].cpu().numpy()
    with np.errstate(invalid="ignore", divide="ignore"):
        drop = np.maximum(before - after, 0) / before
    return Outcome(drop, details={"increase": float((after > before).mean()) if n else float("nan")})


def _scaled(a: Tensor, scale: str) -> Tensor:
    low, high = (f(a, dim=(1, 2), keepdim=True) for f in (torch.amin, torch.amax)) if len(a) else (a, a)
    if scale == "minmax":
        return torch.where(high > low, (a - low) / (high - low), torch.zeros_like(a))
    if len(a) and not 0 <= float(low.min()) <= float(high.max()) <= 1:
        raise ValueError(
            f"average_drop with scale='raw' needs maps in [0, 1], got {float(low.min()):g} to {float(high.max()):g}: "
            "scale='minmax' takes any"
        )
    return a


def _finite(logits: Tensor, start: int, what: str) -> Tensor:
    if not bool(torch.isfinite(logits).all()):
        bad = start + int((~torch.isfinite(logits)).any(1).nonzero()[0])
        raise ValueError(f"the model's logits are NaN or infinite for sample {bad} {what}")
    return logits


register(Score("average_drop", average_drop, "lower", "pixels that are enough to keep the class"))
