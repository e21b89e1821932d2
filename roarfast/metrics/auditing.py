"""The audit of every score: how often, and by how much, a change of the maps that adds no information improves it.

000 shows for ROAR and ROAD that a filter which knows neither model nor data "improves" maps. The same question can be put to
every score, with filters (`max(3)`, `gaussian(1)`), with transforms that lose nothing (`power(0.5)`, `power(2)`), with
one absurd pixel (`outlier`), and with maps moved off their images (`roll`), for every fill that takes the place of
removed pixels.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from roarfast._progress import progress as show_progress
from roarfast.explain.postprocess import PostProcess
from roarfast.metrics.inputs import integers, read_inputs
from roarfast.metrics.maps import read_maps
from roarfast.metrics.model import Model, choose_device
from roarfast.metrics.nulls import NULLS, null_maps
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Outcome, Score, get_score
from roarfast.metrics.resampling import Estimate, Resampled, bootstrap

Floats = npt.NDArray[np.float64]
POSTPROCESSINGS = ("max(3)", "gaussian(1)", "power(0.5)", "power(2)", "outlier", "roll")
FILLS = ("dataset_mean", "zero", "image_mean", "blur", "noise", "linear", "adversarial")
SCORES: Mapping[str, Sequence[str]] = {
    "road": ("linear",), "deletion": FILLS, "insertion": FILLS, "pixel_flipping": FILLS, "completeness": FILLS,
    "soundness": FILLS, "sensitivity_n": FILLS, "faithfulness_correlation": FILLS, "infidelity": FILLS,
}  # fmt: skip
"""Scores and the fills they are audited with: `road` is the one with linear imputation, by definition."""


@dataclass(frozen=True)
class Cell:
    """What a post-processing does to a score.

    Attributes:
        score: The score's name.
        fill: What took the place of removed pixels.
        k: The post-processing.
        improved: How many sets of maps score better with it.
        worsened: How many score worse; the rest does not change by a bit.
        maps: How many sets of maps there are.
        change: Mean change of the score over the sets of maps, positive where it looks better, with the 95 % interval over
            images.
        spread: Standard deviation of the score over the plain maps: what a change is to be compared with.
        why: Why there is no value; empty where there is.
    """

    score: str
    fill: str
    k: str
    improved: int = 0
    worsened: int = 0
    maps: int = 0
    change: Estimate = field(default_factory=lambda: Estimate(float("nan")))
    spread: float = float("nan")
    why: str = ""

    def __str__(self) -> str:
        if self.why:
            return self.why
        if not self.improved and not self.worsened:
            return "unchanged"
        return f"{self.improved}/{self.maps} better, {self.change.value:+.4f} [{self.change.low:+.4f}, {self.change.high:+.4f}]"


@dataclass(frozen=True)
class Audit:
    """Every score × post-processing × fill; prints as a table.

    Attributes:
        cells: One per score, fill and post-processing.
        values: Score of each set of maps, plain and post-processed, by (score, fill): `{"ig": 0.3, "ig | max(3)": …}`.
        resampled: float64 `[B]` of each, under the same resamples of the images.
        count: How many images.
    """

    cells: tuple[Cell, ...]
    values: Mapping[tuple[str, str], Mapping[str, float]] = field(repr=False)
    resampled: Mapping[tuple[str, str], Mapping[str, Resampled]] = field(repr=False)
    count: int

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per cell."""
        keys = ("score", "fill", "k", "improved", "worsened", "maps")
        return [
            {key: getattr(c, key) for key in keys}
            | {"change": c.change.value, "low": c.change.low, "high": c.change.high, "spread": c.spread, "why": c.why}
            for c in self.cells
        ]

    def to_csv(self) -> str:
        """The rows as CSV."""
        out = io.StringIO()
        writer = csv.DictWriter(out, list(self.rows()[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows())
        return out.getvalue()

    def to_markdown(self) -> str:
        """A table: a row per score and fill, a column per post-processing."""
        names = list(dict.fromkeys(c.k for c in self.cells))
        lines = ["| score | fill | " + " | ".join(f"`{k}`" for k in names) + " |", "|---|---|" + "---|" * len(names)]
        for score, fill in dict.fromkeys((c.score, c.fill) for c in self.cells):
            row = {c.k: str(c) for c in self.cells if (c.score, c.fill) == (score, fill)}
            lines.append(f"| {score} | {fill} | " + " | ".join(row[k] for k in names) + " |")
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.count} images; changes are positive where the score looks better\n{self.to_markdown()}"

    def agreement(self, level: float = 0.95) -> list[tuple[tuple[str, str], tuple[str, str], Estimate]]:
        """Kendall's τ between the orders that two (score, fill) give the same maps, with its interval over images."""
        keys, found = list(self.values), []
        signs = {
            key: {name: np.concatenate([[r.value], r.draws]) * _sign(key[0]) for name, r in self.resampled[key].items()}
            for key in keys
        }
        for i, one in enumerate(keys):
            for two in keys[i + 1 :]:
                shared = [name for name in signs[one] if name in signs[two]]
                if len(shared) < 3:
                    continue
                taus = kendall(*(np.stack([signs[key][name] for name in shared], 1) for key in (one, two)))
                known = taus[1:][np.isfinite(taus[1:])]
                low, high = (
                    np.percentile(known, [50 * (1 - level), 50 * (1 + level)]) if known.size else (np.nan, np.nan)
                )
                found.append((one, two, Estimate(float(taus[0]), float(low), float(high))))
        return found


def kendall(x: Floats, y: Floats) -> Floats:
    """Kendall's τ-b of each pair of rows `[B, M]`: SciPy's, for many rows at once; NaN where one is constant.

    Example:
        >>> kendall(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 3.0, 2.0]])).round(4).tolist()
        [0.3333]
    """
    first, second = np.triu_indices(x.shape[1], 1)
    a, b = (np.sign(v[:, second] - v[:, first]) for v in (x, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1)))


def _sign(score: str) -> float:
    return -1.0 if get_score(score).better == "lower" else 1.0


def audit(
    model: Model,
    images: Any,
    maps: Any,
    *,
    labels: Any,
    scores: Mapping[str, Sequence[str]] | Sequence[str | Score] | None = None,
    postprocess: Sequence[str | PostProcess] = POSTPROCESSINGS,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    aggregate: str = "mean(abs)",
    layout: str | None = None,
    mean: Any = None,
    std: Any = None,
    normalized: bool | None = None,
    seed: int = 0,
    index: Any = None,
    resamples: int = 300,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    progress: bool | None = None,
) -> Audit:
    """Which scores can be bought by changing maps without learning anything.

    Args:
        model: As in `evaluate`.
        images: As in `evaluate`.
        maps: Sets of maps by name; `[N, H, W]`, or per channel.
        labels: The true classes, int `[N]`.
        scores: Fills by score, as `roarfast.metrics.auditing.SCORES`, the default; or names or records of scores, with
            their own fill.
        postprocess: Post-processings by name, or nulls (`roll`, `swap`, `turn`).
        options: Options of scores by name, as `{"soundness": {"step": 0.05}}`.
        aggregate: As in `evaluate`, as are the following.
        layout: See there.
        mean: See there.
        std: See there.
        normalized: See there.
        seed: See there.
        index: See there.
        resamples: See there.
        batch_size: See there.
        device: See there.
        progress: See there.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4))
        >>> images, maps = torch.rand(6, 3, 8, 8), torch.rand(6, 8, 8)
        >>> found = audit(net, images, maps, labels=[0, 1, 2, 3, 0, 1], scores={"deletion": ["zero"]}, postprocess=["power(2)"])
        >>> str(found.cells[0])
        'unchanged'
    """
    inputs = read_inputs(images, layout=layout, mean=mean, std=std, normalized=normalized)
    n = len(inputs)
    truth = integers("labels", labels, n)
    ids = torch.arange(n) if index is None else integers("index", index, n)
    named, _ = read_maps(maps, inputs, aggregate)
    place = choose_device(model, inputs.pixels, not isinstance(images, Tensor), device)
    problem = Problem(
        model, inputs, truth, seed, ids, None, {"batch_size": batch_size, "device": place, "progress": False}
    )  # fmt: skip
    changed = {str(k): {name: _apply(k, a, seed, ids, truth) for name, a in named.items()} for k in postprocess}
    columns = list(_columns(scores, options or {}))
    values: dict[tuple[str, str], dict[str, float]] = {}
    drawn: dict[tuple[str, str], dict[str, Resampled]] = {}
    cells: list[Cell] = []
    with show_progress("auditing", len(columns) * len(named) * (1 + len(changed)), show=progress) as job:

        def run(score: Score, a: Tensor, note: str) -> Resampled | str:
            job.update(job.done, note=note)
            try:
                outcome: Outcome = score(problem, a)
                found: Resampled | str = bootstrap(outcome.resample(), n, resamples, seed)
            except ValueError as error:  # a score that refuses these maps, or this fill: its reason goes into the cell
                found = str(error).split(":")[0]
            job.advance(1)
            return found

        for name, fill, score in columns:
            key = (name, fill)
            plain = {m: run(score, a, f"{name}, {fill}") for m, a in named.items()}
            post = {
                k: {m: run(score, a, f"{name}, {fill}, {k}") for m, a in by_map.items()}
                for k, by_map in changed.items()
            }
            every = {m: r for m, r in plain.items()} | {
                f"{m} | {k}": r for k, by_map in post.items() for m, r in by_map.items()
            }
            drawn[key] = {m: r for m, r in every.items() if isinstance(r, Resampled)}
            values[key] = {m: float(r.value) for m, r in drawn[key].items()}
            cells += [_cell(score, name, fill, k, plain, by_map) for k, by_map in post.items()]
    return Audit(tuple(cells), values, drawn, n)


def _columns(scores: Any, options: Mapping[str, Mapping[str, Any]]) -> Any:
    chosen = SCORES if scores is None else scores
    if isinstance(chosen, Mapping):
        for name, fills in chosen.items():
            for fill in fills:
                yield name, fill, get_score(name, fill=fill, **options.get(name, {}))
        return
    for one in chosen:
        score = get_score(one)
        yield score.name, "its own", get_score(one, **options.get(score.name, {}))


def _apply(k: str | PostProcess, a: Tensor, seed: int, ids: Tensor, labels: Tensor) -> Tensor:
    if isinstance(k, str) and k in NULLS:
        return null_maps(a, k, seed=seed, index=ids, labels=labels)
    floats = a if a.is_floating_point() else a.float()
    return PostProcess.parse(k)(floats, seed=seed, index=ids)


def _cell(
    score: Score,
    name: str,
    fill: str,
    k: str,
    plain: Mapping[str, Resampled | str],
    after: Mapping[str, Resampled | str],
) -> Cell:
    reasons = [r for r in (*plain.values(), *after.values()) if isinstance(r, str)]
    if reasons:
        return Cell(name, fill, k, why=reasons[0])
    differences = [after[m] - plain[m] for m in plain]  # type: ignore[operator]
    differences = [-d for d in differences] if score.better == "lower" else differences
    by = np.array([float(d.value) for d in differences])
    if np.isnan(by).any():
        return Cell(name, fill, k, why="undefined for some maps")
    mean = Resampled(
        by.mean(), np.mean([d.draws for d in differences], 0), np.mean([d.influence for d in differences], 0), differences[0].n
    )  # fmt: skip
    spread = float(np.std([float(r.value) for r in plain.values()], ddof=1)) if len(plain) > 1 else float("nan")  # type: ignore[union-attr]
    return Cell(name, fill, k, int((by > 0).sum()), int((by < 0).sum()), len(by), mean.estimate(), spread)
