"""`evaluate`: scores of maps in three lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from roarfast._progress import progress as show_progress
from roarfast._types import Array
from roarfast.explain.names import split_name
from roarfast.metrics.baselines import baseline_map
from roarfast.metrics.engine import RunOptions
from roarfast.metrics.inputs import Integers, PerChannel, integers, read_inputs
from roarfast.metrics.maps import Maps, read_maps, read_segments
from roarfast.metrics.model import Model, choose_device
from roarfast.metrics.problem import Problem
from roarfast.metrics.record import Score, get_score
from roarfast.metrics.resampling import check_resamples
from roarfast.metrics.results import Result
from roarfast.metrics.table import Scores

_OTHER_GOAL = "these maps say how the model reacts to changes, this score asks what each pixel contributes: two goals, which Wang and Wang keep apart"
DEFAULT = ("road", "deletion", "insertion", "soundness", "completeness")


def evaluate(
    model: Model,
    images: Array,
    maps: Maps | Mapping[str, Maps],
    *,
    labels: Integers,
    metrics: Sequence[str | Score] = DEFAULT,
    aggregate: str = "mean(abs)",
    baselines: Sequence[str] = (),
    segments: Array | None = None,
    layout: str | None = None,
    mean: PerChannel = None,
    std: PerChannel = None,
    normalized: bool | None = None,
    seed: int = 0,
    index: Integers | None = None,
    resamples: int = 1000,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    progress: bool | None = None,
) -> Scores:
    """Score attribution maps of a trained model, without retraining.

    Several sets of maps are compared on the same images with the same noise. The model is used in evaluation mode and
    left as it was.

    Args:
        model: An `nn.Module`, or a function from a batch to logits `[B, classes]`.
        images: uint8 or float images `[N, C, H, W]` or `[N, H, W, C]`, series `[N, C, T]` or features `[N, F]`; NumPy or
            torch. Floats are in [0, 1], or normalised by `mean` and `std`.
        maps: `[N, H, W]` or, per channel, `[N, C, H, W]`; or a dictionary of them by name, as `roarfast.explain` returns.
        labels: The true classes, int `[N]`.
        metrics: Names, with options as in `"deletion(fill=zero)"`; `"package.module:object"`; or `Score` records.
            `roarfast.metrics.score_names()` lists the built-in ones.
        aggregate: How channels of maps become one value: see `roarfast.aggregate_channels`.
        baselines: Label-free maps to score beside: `"random"`, `"sobel"`, `"center"`, `"constant"`.
        segments: int `[N, H, W]` (or one `[H, W]`): pixels that are removed together, by the mean of their map values;
            rates are then fractions of the segments.
        layout: `"NCHW"` or `"NHWC"`; None: found out.
        mean: Normalisation of the model's input per channel, in units of 0..1.
        std: Likewise.
        normalized: Whether float images are normalised already; None: if they leave [0, 1].
        seed: Breaks ties, draws noise, random masks and resamples.
        index: Sample ids int `[N]` that key them; default 0, 1, 2, …
        resamples: Of the images, for the 95 % intervals.
        batch_size: Perturbed samples in a batch.
        device: Where to run; default where the model is.
        progress: Whether to show how far it is; None: on a terminal or in a notebook.

    Returns:
        The scores: `print` them, `scores["road"].value`, `.curve`, `.plot()`, `.to_dataframe()`, `.comparisons()`.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4))
        >>> images, maps = torch.rand(6, 3, 8, 8), torch.rand(6, 8, 8)
        >>> scores = evaluate(net, images, maps, labels=[0, 1, 2, 3, 0, 1], metrics=["deletion"])
        >>> scores["deletion"].curve.value.shape
        (17,)
    """
    chosen = [get_score(m) for m in ([metrics] if isinstance(metrics, (str, Score)) else metrics)]
    if not chosen:
        raise ValueError("metrics must name at least one score, got none")
    names = [score.name for score in chosen]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"metrics must be different from each other, got {twice!r} twice")
    check_resamples(resamples)
    inputs = read_inputs(images, layout=layout, mean=mean, std=std, normalized=normalized)
    n = len(inputs)
    truth = integers("labels", labels, n)
    ids = torch.arange(n) if index is None else integers("index", index, n)
    named, aggregated = read_maps(maps, inputs, aggregate)
    parts = read_segments(segments, inputs)
    for name in [baselines] if isinstance(baselines, str) else baselines:
        named.setdefault(name, baseline_map(name, inputs, ids, seed, parts))
    place = choose_device(model, inputs.pixels, not isinstance(images, Tensor), device)
    options: RunOptions = {"batch_size": batch_size, "device": place, "progress": False}
    problem = Problem(model, inputs, truth, seed, ids, parts, options)
    results: dict[str, dict[str, Result]] = {}
    with show_progress("scoring", len(chosen) * len(named), show=progress) as job:
        for score in chosen:
            results[score.name] = {}
            for name, a in named.items():
                job.update(job.done, note=f"{score.name}, {name}")
                outcome = score(problem, a)
                if score.additive and _is_sensitivity(name):
                    outcome = replace(outcome, notes=(*outcome.notes, _OTHER_GOAL))
                results[score.name][name] = Result.of(score, name, outcome, truth.numpy(), resamples, seed)
                job.advance(1)
    return Scores(results, n, aggregate if aggregated else None, resamples)


def _is_sensitivity(name: str) -> bool:
    """Whether maps of this name, as `explain` names them, are gradients of the answer or their variance."""
    try:
        found = split_name(name)
    except ValueError:  # a name of the user's
        return False
    return found.base == "grad" or found.ensemble == "vg"
