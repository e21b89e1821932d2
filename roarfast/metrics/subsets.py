"""Random subsets of pixels: what the maps say they carry, and what the model says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from torch import Tensor

import roarfast as rf
from roarfast.metrics.perturbation import Fill, Perturbation
from roarfast.metrics.problem import Problem
from roarfast.metrics.responses import Responses

Floats = npt.NDArray[np.float64]
_KEPT = 1 << 27  # bytes of codes of random subsets that are kept for the next maps and fills


def subset_effects(
    problem: Problem, maps: Tensor, sizes: Sequence[float], draws: int, fill: Fill, indicator: str, scored: str
) -> tuple[Floats, Floats]:
    """Sums of attribution over random subsets, and what removing them costs.

    Subsets of one draw are nested; draws are independent, and the same for all maps.

    Returns:
        float64 `[draws, sizes, N]` each: attribution of the subset, and indicator of the whole sample minus without it.
    """
    if isinstance(draws, bool) or not isinstance(draws, int) or draws < 2:
        raise ValueError(f"draws must be an integer >= 2, got {draws!r}")
    how = Perturbation(fill=problem.auto_fill(fill))
    # What the model says of random subsets does not depend on the maps: it is asked once for all of them.
    key = ("subset effects", tuple(sizes), draws, how, scored)
    asked: list[Responses] = problem.shared.get(key, [])
    attribution = []
    for draw in range(draws):
        codes = _random_codes(problem, draw, sizes, how)
        if len(asked) <= draw:
            asked.append(problem.respond(None, sizes, how, codes=codes, scored=scored))
        attribution.append(rf.code_sums(maps, codes, len(sizes) + 1).numpy()[:, :-1].cumsum(1).T)
    problem.shared[key] = asked
    effect = [responses.ends(indicator)[0] - responses.values(indicator) for responses in asked]
    return np.stack(attribution), np.stack(effect)


def _random_codes(problem: Problem, draw: int, sizes: Sequence[float], how: Perturbation) -> Tensor:
    """Codes of the nested random subsets of a draw: the same for all maps and fills."""
    kept: dict[tuple[int, tuple[float, ...]], Tensor] = problem.shared.setdefault("codes of subsets", {})
    key = (draw, tuple(sizes))
    if key in kept:
        return kept[key]
    codes = problem.codes(problem.random_maps(draw), sizes, how)
    if codes.numel() * (len(kept) + 1) <= _KEPT:
        kept[key] = codes
    return codes


def correlations(x: Floats, y: Floats) -> Floats:
    """Pearson correlation over the first axis; NaN where one of them does not vary."""
    x, y = x - x.mean(0), y - y.mean(0)
    scale = np.sqrt((x * x).sum(0) * (y * y).sum(0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(scale > 0, (x * y).sum(0) / scale, np.nan))
