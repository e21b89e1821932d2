"""Protocols that ask the base model only: all rates of a curve in one pass of `roarfast.metrics.respond`, in one file."""

from __future__ import annotations

import copy
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

import roarfast as rf
from roarfast.metrics.engine import respond
from roarfast.metrics.perturbation import Perturbation
from roarfast.metrics.response_file import ResponsesMismatch
from roarfast.metrics.responses import Responses, ResponsesCorrupt, Row
from roarfast.metrics.scores.completeness import random_codes_like
from roarfast.metrics.scores.soundness import LEVELS, soundness_of
from roarfast.study.cells import CellWork, fill_split, fill_value
from roarfast.study.tasks import Scores
from roarfast.train.evaluate import autocast_to
from roarfast.train.runtime import resolve_precision

# Images that go through the model together. `convnet` on 32x32 and one core: 0.18 ms per image with 256, 0.23 with 512,
# whose features leave the caches, 0.20 with 64.
_BATCH, _BATCH_VALUES = 256, 1 << 20
_TINY = float(np.finfo(np.float32).tiny)
_INSERTION_BLUR = 10.0  # pixels: as RISE and `roarfast.metrics` have it


@dataclass(frozen=True)
class CurveScores:
    """What a curve found: scores of each rate, and of the curve as a whole."""

    rates: dict[float, Scores]
    summary: dict[str, Any]


class AsTested(nn.Module):
    """A base model as the study tests it: channels-last, cropped in the middle, in the precision of the recipe."""

    def __init__(self, model: nn.Module, crop: int | tuple[int, int] | None, precision: str, layout: str) -> None:
        super().__init__()
        channels_last = layout == "NHWC"
        # A copy: what explains the model next must see the weights in the order they were loaded in.
        self.model = copy.deepcopy(model)
        if channels_last:
            self.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.crop = (crop, crop) if isinstance(crop, int) else crop
        self.precision, self.channels_last = precision, channels_last
        self.seconds = 0.0
        self.ends: dict[Any, tuple[Row, Row]] = {}

    def forward(self, x: Tensor) -> Tensor:
        """Logits of images `[B, C, H, W]`; counts the seconds it takes."""
        begun = time.perf_counter()
        if self.crop is not None and self.crop != tuple(x.shape[2:]):
            top, left = ((x.shape[2 + i] - self.crop[i]) // 2 for i in range(2))
            x = x[:, :, top : top + self.crop[0], left : left + self.crop[1]]
        with autocast_to(self.precision):
            logits: Tensor = self.model(x if self.channels_last else x.contiguous())
        self.seconds += time.perf_counter() - begun
        return logits


def as_tested(cell: CellWork) -> AsTested:
    """The base model of a cell, made once per worker."""
    work, base = cell.work, cell.base_model
    known = work.tested[1] if work.tested is not None and work.tested[0] is base else None
    if not isinstance(known, AsTested):
        recipe = work.trainer.recipe
        known = AsTested(base, recipe.crop, resolve_precision(recipe, work.device), recipe.layout)
        known.eval()
        work.tested = (base, known)
    return known


def rates_of(cell: CellWork) -> tuple[float, ...]:
    """The rates of a curve, ascending."""
    return tuple(one.drop for one in cell.task.cells.values())


def codes_of(cell: CellWork) -> npt.NDArray[np.uint8]:
    """Codes `[N, H, W]` for the rates of a curve alone: those on disk may have more. Not for `block`."""
    codes, _ = cell.codes("test")
    all_rates = cell.task.codes.drops
    own = [all_rates.index(rate) for rate in rates_of(cell)]
    table = np.searchsorted(own, np.arange(len(all_rates) + 1)).astype(np.uint8)
    return np.asarray(table[codes])


def ask(
    cell: CellWork, how: Perturbation, *, codes: Any = None, filled: Any = None, scored: str = "label", suffix: str = ""
) -> Responses:
    """The answers of the base model, from the file of the curve where a killed run left it.

    Args:
        cell: The curve.
        how: Rule, order, fill.
        codes: uint8 `[N, H, W]` for its rates; default its own.
        filled: As in `respond`.
        scored: As in `respond`.
        suffix: Of the file's name, where a curve needs more than one.
    """
    w, path = cell.work, cell.work.folder.responses(cell.task.key + suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    model = as_tested(cell)
    ends = _ends(cell, model, how, filled, scored)
    options: dict[str, Any] = {
        "labels": w.test.labels, "perturbation": how, "filled": filled, "scored": scored,
        "seed": w.seeds.noise(cell.cell.trial, "test"), "device": w.device, "progress": False,
        "ends": ends, "batch_size": max(16, min(_BATCH, _BATCH_VALUES // w.inputs.values)),
    }  # fmt: skip
    cell.on_update(f"{len(w.test)} images at {len(cell.task.cells)} rates")
    begun, before = time.perf_counter(), model.seconds
    answers = _answers(cell, model, path, codes, options)
    passes = model.seconds - before
    making = "impute" if how.fill == "linear" else "data"
    cell.clock.add({"evaluation": passes, making: time.perf_counter() - begun - passes})
    return answers


def _ends(cell: CellWork, model: AsTested, how: Perturbation, filled: Any, scored: str) -> tuple[Row, Row]:
    """The answers to whole and empty images, which all curves of a base model and fill share: found once per worker."""
    w, fill = cell.work, (how.fill, how.blur, filled is None, scored)
    if fill not in model.ends:
        nothing = np.zeros(w.test.images.shape[:3], np.uint8)
        with cell.clock.stage("evaluation"):
            found = respond(
                model, w.inputs, codes=nothing, drops=[1.0], labels=w.test.labels, perturbation=how, filled=filled,
                scored=scored, seed=w.seeds.noise(cell.cell.trial, "test"), device=w.device, progress=False,
            )  # fmt: skip
        model.ends[fill] = found.whole, found.empty
    return model.ends[fill]


def _answers(cell: CellWork, model: AsTested, path: Path, codes: Any, options: dict[str, Any]) -> Responses:
    w = cell.work
    if cell.cell.estimator == "block":  # a new rectangle per rate: the masks are not nested
        parts = [
            respond(model, w.inputs, codes=np.array(w.codes(cell.task, one, "test")[0]), drops=[one.drop], **options)
            for one in cell.task.cells.values()
        ]
        joined = join(parts)
        joined.save(path)
        return joined
    options = options | {"codes": codes_of(cell) if codes is None else codes, "drops": rates_of(cell), "file": path}
    try:
        if path.exists():
            Responses.load(path)  # a damaged one is ours, so it need not be kept
        answers = respond(model, w.inputs, **options)
    except (ResponsesCorrupt, ResponsesMismatch) as error:
        w.trainer.notes.append(f"{error}; making it again")
        path.unlink(missing_ok=True)
        shutil.rmtree(path.with_name(path.name + ".partial"), ignore_errors=True)
        answers = respond(model, w.inputs, **options)
    path.with_name(f".{path.name}.lock").unlink(missing_ok=True)  # the run holds the whole folder
    return answers


def join(parts: list[Responses]) -> Responses:
    """Responses at one rate each as one at all of them."""
    names = ("rates", "removed", "correct", "probability", "logit", "margin", "prediction")
    joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return replace(parts[0], **joined, identity={})


def scores_of(answers: Responses, extra: dict[str, npt.NDArray[np.float64]] | None = None) -> dict[float, Scores]:
    """Rate → accuracy, mean probability of the label and cross entropy; `extra` has more, `[R]` each."""
    known = answers.scored is answers.labels or bool((answers.scored == answers.labels).all())
    found: dict[float, Scores] = {}
    for j, rate in enumerate(answers.rates.tolist()):
        scores: Scores = {"accuracy": float(answers.correct[j].mean())}
        if known:  # else the probability is that of another class than the label
            scores["true_class_probability"] = float(answers.probability[j].mean(dtype=np.float64))
            scores["cross_entropy"] = cross_entropy(answers.probability[j])
        found[rate] = scores | {name: float(values[j]) for name, values in (extra or {}).items()}
    return found


def cross_entropy(probability: npt.NDArray[np.float32]) -> float:
    """Mean of -ln p in nats; p below the smallest normal float32 counts as that."""
    return float(-np.log(np.maximum(probability, _TINY), dtype=np.float64).mean())


def summarise(answers: Responses, score: float, **details: Any) -> dict[str, Any]:
    """What the store keeps of a curve beside its cells: its score, and the ends of the curve."""
    ends = {
        f"{name}_{what}": value
        for name, row in (("whole", answers.whole), ("empty", answers.empty))
        for what, value in (("accuracy", _mean(row)), ("probability", float(row.probability.mean(dtype=np.float64))))
    }
    return {"score": score if np.isfinite(score) else None, "images": len(answers)} | ends | details


def _mean(row: Row) -> float:
    return float(row.correct.mean()) if len(row.correct) else float("nan")


# The protocols


def road(cell: CellWork) -> CurveScores:
    """`road`: linear imputation, accuracy."""
    return _accuracy_curve(cell, _linear(cell))


def no_retrain(cell: CellWork) -> CurveScores:
    """`no-retrain`: the fill of the study, accuracy."""
    return _accuracy_curve(cell, *_filled(cell))


def deletion(cell: CellWork) -> CurveScores:
    """`deletion` (RISE): the fill of the study, probability of the label."""
    how, filled = _filled(cell)
    answers = ask(cell, how, filled=filled)
    return CurveScores(scores_of(answers), summarise(answers, answers.area("probability")))


def insertion(cell: CellWork) -> CurveScores:
    """`insertion` (RISE): pixels put back into the blurred image, probability of the class predicted for the whole image."""
    how = Perturbation(order=cell.cell.order, rule=cell.task.codes.rule, keep=True, fill="blur", blur=_INSERTION_BLUR)
    answers = ask(cell, how, scored="predicted")
    return CurveScores(scores_of(answers), summarise(answers, answers.area("probability")))


def flip(cell: CellWork) -> CurveScores:
    """`flip` (004): black pixels, logit of the label."""
    how = Perturbation(order=cell.cell.order, rule=cell.task.codes.rule, fill="zero")
    answers = ask(cell, how)
    return CurveScores(scores_of(answers, {"logit": answers.curve("logit")}), summarise(answers, answers.area("logit")))


def completeness(cell: CellWork) -> CurveScores:
    """`completeness` (002): accuracy lost above a threshold, and its excess over as many random pixels of each image."""
    how = _linear(cell)
    codes = codes_of(cell)
    answers = ask(cell, how, codes=codes)
    w = cell.work
    size = w.test.images.shape[1:3]
    noise = rf.pixel_random((len(w.test), *size), seed=w.seeds.baseline("matched", cell.cell.trial, "test"))
    random = random_codes_like(torch.from_numpy(codes), torch.from_numpy(np.asarray(noise)), len(answers.rates))
    other = ask(cell, how, codes=random.numpy(), suffix="-matched")
    lost, random_lost = (one.whole.of("accuracy").mean() - one.curve("accuracy") for one in (answers, other))
    extra = {"accuracy_lost": lost, "excess": lost - random_lost}
    return CurveScores(
        scores_of(answers, extra),
        summarise(answers, float(lost.mean()), excess=float((lost - random_lost).mean())),
    )


def soundness(cell: CellWork) -> CurveScores:
    """`soundness` (002): the share of attribution on pixels that raised the accuracy as they were shown."""
    codes = codes_of(cell)
    answers = ask(cell, _linear(cell), codes=codes)
    mass = rf.code_sums(attribution(cell), codes, len(answers.rates) + 1)
    found = soundness_of(answers, np.asarray(mass, np.float64))
    aim = (float(answers.empty.correct.mean()) + float(answers.whole.correct.mean())) / 2
    levels = {f"at {level:g}": _finite(value) for level, value in zip(LEVELS, found.at(LEVELS))}
    summary = summarise(answers, float(found.at([aim])[0]), level=aim, zero_maps=found.empty, **levels)
    return CurveScores(scores_of(answers, {"soundness": found.value[::-1]}), summary)


def attribution(cell: CellWork) -> npt.NDArray[np.float32]:
    """The post-processed maps `[N, H, W]` behind the codes of a cell, negative values as 0 (002)."""
    w, codes = cell.work, cell.task.codes
    maps = None if codes.base is None else w.stored_maps(codes.estimator, codes.base, "test")
    n, h, width = w.test.images.shape[:3]
    rows = np.arange(n, dtype=np.int64)
    found = w.selection(codes, "test", cell.cell.order).processed(maps, rows, (h, width))
    return np.maximum(w.moved(found, cell.cell, "test"), 0)  # type: ignore[no-any-return]


def _accuracy_curve(cell: CellWork, how: Perturbation, filled: Any = None) -> CurveScores:
    answers = ask(cell, how, filled=filled)
    return CurveScores(scores_of(answers), summarise(answers, answers.area("accuracy", rule="mean")))


def _linear(cell: CellWork) -> Perturbation:
    """ROAD's imputation as the study has it."""
    removal, codes = cell.work.config.removal, cell.task.codes
    return Perturbation(
        order=cell.cell.order, rule=codes.rule, fill="linear", noise=removal.noise, tolerance=removal.tolerance,
        precision="float16",
    )  # fmt: skip


def _filled(cell: CellWork) -> tuple[Perturbation, npt.NDArray[np.uint8] | None]:
    """The fill of the study: a constant, or other images."""
    how = Perturbation(order=cell.cell.order, rule=cell.task.codes.rule)
    constant = fill_value(cell.work)
    if constant is not None:
        return replace(how, fill=constant), None
    return replace(how, fill="zero"), fill_split(cell.work, "test", cell.clock)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
