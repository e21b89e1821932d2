"""F-Fidelity: removing a few of the pixels a map calls important, against as many of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from roarfast.metrics.model import Model
from roarfast.metrics.perturbation import Fill, Perturbation
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Line, Outcome, Score, register
from roarfast.metrics.scores.curves import TENTHS, as_rates, check_indicator


def f_fidelity(
    problem: Problem,
    maps: Tensor,
    *,
    model: Model | None = None,
    sizes: Sequence[float] = TENTHS,
    beta: float = 0.1,
    draws: int = 3,
    fill: Fill = "dataset_mean",
    indicator: str = "accuracy",
) -> Outcome:
    """Mean of Fid+ - Fid- over explanation sizes, never more than `beta` removed (Zheng et al.; higher is better).

    For a size s, Fid+ is what the model loses when a random `beta` of the pixels, taken from the map's top s, goes; Fid- the
    same for pixels outside of it. With a model fine-tuned under random removal of up to `beta` (`metrics.finetune`) no image is
    out of its distribution. Small sets are removed whole.

    Known defects: order inside the top s is not seen; with few pixels removed effects are small and need many images; without
    fine-tuning it is a deletion score of scattered pixels.

    Args:
        problem: What is scored.
        maps: `[N, H, W]`.
        model: The fine-tuned model; None: the model as it is, which a note says.
        sizes: Fractions of pixels that count as explanation, ascending.
        beta: Largest fraction removed, in (0, 1].
        draws: Random choices per size.
        fill: As in `Perturbation`.
        indicator: `"accuracy"`, `"probability"`, `"logit"`, `"margin"` or `"log-ratio"`.
    """
    check_indicator(indicator)
    sizes = as_rates(sizes)
    if not sizes or not all(0 < s < 1 for s in sizes):
        raise ValueError(f"sizes must be in (0, 1), got {sizes}")
    if not 0 < beta <= 1:
        raise ValueError(f"beta must be in (0, 1], got {beta!r}")
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
        raise ValueError(f"draws must be an integer >= 1, got {draws!r}")
    asked = (
        problem if model is None else replace(problem, model=model, shared={}, _predicted=None, _answers={}, _ends={})
    )
    how = Perturbation(fill=fill)
    codes = problem.codes(maps, sizes, how)
    lost = np.zeros((2, len(sizes), len(problem)))
    for draw in range(draws):
        noise = problem.random_maps(draw)
        for j, size in enumerate(sizes):
            for side, (inside, share) in enumerate(((codes <= j, size), (codes > j, 1 - size))):
                chosen = torch.where(inside, noise, -1.0)
                found = asked.respond(chosen, (min(beta, share),), how)
                lost[side, j] += (found.ends(indicator)[0] - found.values(indicator)[0]) / draws
    x = np.array(sizes)
    lines = {
        name: Line(x, values, "size of the explanation", f"{indicator} lost")
        for name, values in (("Fid+ - Fid-", lost[0] - lost[1]), ("Fid+", lost[0]), ("Fid-", lost[1]))
    }
    notes = ("the model was not fine-tuned under removal: see metrics.finetune",) if model is None else ()
    return Outcome((lost[0] - lost[1]).mean(0), curves=lines, details={"beta": beta, "draws": draws}, notes=notes)


register(Score("f_fidelity", f_fidelity, "higher", "a few pixels of the map's top matter more than a few others"))
