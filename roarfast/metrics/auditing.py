"""The audit of every score: how often, and by how much, a change of the maps that adds no information improves it.

Song et al. show for ROAR and ROAD that a filter which knows neither model nor data "improves" maps. The same question
can be put to every score, with filters (`max(3)`, `gaussian(1)`), with transforms that lose nothing (`power(0.5)`,
`power(2)`), with one absurd pixel (`outlier`), and with maps moved off their images (`roll`), for every fill that takes
the place of removed pixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from roarfast._progress import progress as show_progress
from roarfast._types import Array
from roarfast.explain.postprocess import PostProcess
from roarfast.metrics.audit_results import BETWEEN, Audit, Cell, make_cell
from roarfast.metrics.inputs import Integers, PerChannel, integers, read_inputs
from roarfast.metrics.maps import Maps, read_maps
from roarfast.metrics.model import Model, choose_device
from roarfast.metrics.nulls import NULLS, null_maps
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Outcome, Score, get_score
from roarfast.metrics.resampling import Resampled, bootstrap

POSTPROCESSINGS = ("max(3)", "gaussian(1)", "power(0.5)", "power(2)", "outlier", "roll")
FILLS = ("dataset_mean", "zero", "image_mean", "blur", "noise", "linear", "adversarial")
SCORES: Mapping[str, Sequence[str]] = {
    "road": ("linear",),
    "deletion": FILLS,
    "insertion": FILLS,
    "pixel_flipping": FILLS,
    "completeness": FILLS,
    "soundness": FILLS,
    "sensitivity_n": FILLS,
    "faithfulness_correlation": FILLS,
    "infidelity": FILLS,
}
"""Scores and the fills they are audited with: `road` is the one with linear imputation, by definition."""


def audit(
    model: Model,
    images: Array,
    maps: Maps | Mapping[str, Maps],
    *,
    labels: Integers,
    scores: Mapping[str, Sequence[str]] | Sequence[str | Score] | None = None,
    postprocess: Sequence[str | PostProcess] = POSTPROCESSINGS,
    options: Mapping[str, Mapping[str, object]] | None = None,
    aggregate: str = "mean(abs)",
    layout: str | None = None,
    mean: PerChannel = None,
    std: PerChannel = None,
    normalized: bool | None = None,
    seed: int = 0,
    index: Integers | None = None,
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
    )
    changed = {str(k): {name: _apply(k, a, seed, ids, truth) for name, a in named.items()} for k in postprocess}
    columns = list(_columns(scores, options or {}))
    values: dict[tuple[str, str], dict[str, float]] = {}
    drawn: dict[tuple[str, str], dict[str, Resampled]] = {}
    cells: list[Cell] = []
    with show_progress("auditing", len(columns) * len(named) * (1 + len(changed)), show=progress) as job:

        def run(score: Score, a: Tensor, note: str, outcomes: list[Outcome]) -> Resampled | str:
            job.update(job.done, note=note)
            try:
                outcomes.append(score(problem, a))
                found: Resampled | str = bootstrap(outcomes[-1].resample(), n, resamples, seed)
            except ValueError as error:  # a score that refuses these maps, or this fill: its reason goes into the cell
                found = str(error).split(":")[0]
            job.advance(1)
            return found

        sets = {(m, ""): a for m, a in named.items()} | {
            (m, k): a for k, by_map in changed.items() for m, a in by_map.items()
        }
        for name, fill, score in columns:
            outcomes: list[Outcome] = []
            found = {(m, k): run(score, a, f"{name}, {fill} {k}", outcomes) for (m, k), a in sets.items()}
            lower, note = _level_of_all(score, outcomes)
            if lower is not None:
                job.total = (job.total or 0) + len(sets)
                found = {(m, k): run(lower, a, f"{name}, {fill} {k}, {note}", []) for (m, k), a in sets.items()}
            plain = {m: found[m, ""] for m in named}
            drawn[name, fill] = {
                m + (BETWEEN + k if k else ""): r for (m, k), r in found.items() if isinstance(r, Resampled)
            }
            values[name, fill] = {m: float(r.value) for m, r in drawn[name, fill].items()}
            sign = -1.0 if score.better == "lower" else 1.0
            cells += [make_cell((name, fill, k), plain, {m: found[m, k] for m in named}, sign, note) for k in changed]
    return Audit(tuple(cells), values, drawn, n)


def _level_of_all(score: Score, outcomes: Sequence[Outcome]) -> tuple[Score | None, str]:
    """Soundness at the highest accuracy that the curves of all maps reach, where the one it was asked for is out of reach.

    The maps are then compared at one accuracy; resamples of the images that miss it are taken at their highest.
    """
    reached = [float(o.details["highest accuracy"]) for o in outcomes if "highest accuracy" in o.details]
    if not reached or min(reached) >= float(outcomes[0].details["level"]):
        return None, ""
    level = min(reached)
    if not level > 0:
        return None, ""
    return score.with_options(level=level, unreached="highest"), f"at accuracy {level:.3f}, the highest that all reach"


def _columns(
    scores: Mapping[str, Sequence[str]] | Sequence[str | Score] | None, options: Mapping[str, Mapping[str, object]]
) -> Iterator[tuple[str, str, Score]]:
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
