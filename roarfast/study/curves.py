"""`CurveWork`: what protocols are given that ask the base model only. All rates of a curve are one pass of `respond`, one file."""

from __future__ import annotations

import copy
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

import roarfast as rf
from roarfast.metrics.engine import respond
from roarfast.metrics.perturbation import Fill, Perturbation
from roarfast.metrics.response_file import ResponsesMismatch
from roarfast.metrics.responses import Responses, ResponsesCorrupt, Row
from roarfast.metrics.scores.completeness import random_codes_like
from roarfast.metrics.scores.soundness import LEVELS, Soundness, soundness_of
from roarfast.study.cells import CellWork, fill_split, fill_value
from roarfast.study.curve_scores import CurveScores, scores_of, summarise
from roarfast.train.evaluate import autocast_to
from roarfast.train.runtime import resolve_precision

# Images that go through the model together. `convnet` on 32x32 and one core: 0.18 ms per image with 256, 0.23 with 512,
# whose features leave the caches, 0.20 with 64.
_BATCH, _BATCH_VALUES = 256, 1 << 20


class Changes(TypedDict, total=False):
    """Fields of a `Perturbation` that a curve does not decide."""

    keep: bool
    fill: Fill
    noise: float
    blur: float
    tolerance: float
    precision: str


class _Options(TypedDict):
    """Of `respond`."""

    labels: npt.NDArray[np.int64]
    perturbation: Perturbation
    filled: npt.NDArray[np.uint8] | None
    scored: str
    seed: int
    device: torch.device
    progress: bool
    ends: tuple[Row, Row]
    halves: npt.NDArray[np.bool_]
    batch_size: int


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
        self.ends: dict[tuple[Fill, float, bool, str], tuple[Row, Row]] = {}

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


class CurveWork(CellWork):
    """A curve to be computed: the cells of all rates of an (estimator, post-processing, order, trial)."""

    @property
    def tested(self) -> AsTested:
        """The base model as the study tests it, made once per worker."""
        work, base = self.work, self.base_model
        known = work.tested[1] if work.tested is not None and work.tested[0] is base else None
        if not isinstance(known, AsTested):
            recipe = work.trainer.recipe
            known = AsTested(base, recipe.crop, resolve_precision(recipe, work.device), recipe.layout)
            known.eval()
            work.tested = (base, known)
        return known

    @property
    def rates(self) -> tuple[float, ...]:
        """The rates of the curve, ascending."""
        return tuple(one.drop for one in self.task.cells.values())

    def curve_codes(self) -> npt.NDArray[np.uint8]:
        """Codes `[N, H, W]` for the rates of the curve alone: those on disk may have more. Not for `block`."""
        codes, _ = self.codes("test")
        all_rates = self.task.codes.drops
        own = [all_rates.index(rate) for rate in self.rates]
        table = np.searchsorted(own, np.arange(len(all_rates) + 1)).astype(np.uint8)
        return np.asarray(table[codes])

    def random_codes_like(self, codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Codes that remove as many pixels of each image at each rate, at random places."""
        w = self.work
        noise = rf.pixel_random((len(w.test), *w.test.images.shape[1:3]), seed=w.seeds.matched(self.cell.trial))
        random = random_codes_like(torch.from_numpy(codes), torch.from_numpy(np.asarray(noise)))
        return random.numpy()  # type: ignore[no-any-return]

    def perturbation(self, **changes: Unpack[Changes]) -> Perturbation:
        """Order and rule of the curve; `changes` are the other fields."""
        return Perturbation(order=self.cell.order, rule=self.task.codes.rule, **changes)

    def linear(self) -> Perturbation:
        """ROAD's imputation as the study has it."""
        removal = self.work.config.removal
        return self.perturbation(fill="linear", noise=removal.noise, tolerance=removal.tolerance, precision="float16")

    def filled(self) -> tuple[Perturbation, npt.NDArray[np.uint8] | None]:
        """The fill of the study: a constant, or other images."""
        constant = fill_value(self.work)
        if constant is not None:
            return self.perturbation(fill=constant), None
        return self.perturbation(fill="zero"), fill_split(self.work, "test", self.clock)

    def accuracy(self, how: Perturbation, filled: npt.NDArray[np.uint8] | None = None) -> CurveScores:
        """The accuracy at each rate, and its mean."""
        answers = self.ask(how, filled=filled)
        return CurveScores(scores_of(answers), summarise(answers, answers.area("accuracy", rule="mean")))

    def attribution(self) -> npt.NDArray[np.float32]:
        """The post-processed maps `[N, H, W]` behind the codes, negative values as 0 (Li et al.)."""
        w, codes = self.work, self.task.codes
        maps = None if codes.base is None else w.stored_maps(codes.estimator, codes.base, "test")
        n, h, width = w.test.images.shape[:3]
        rows = np.arange(n, dtype=np.int64)
        found = w.selection(codes, "test", self.cell.order).processed(maps, rows, (h, width))
        return np.maximum(w.moved(found, self.cell, "test"), 0)  # type: ignore[no-any-return]

    def soundness(self, answers: Responses, codes: npt.NDArray[np.uint8]) -> tuple[Soundness, dict[str, float | None]]:
        """Soundness (Li et al.) along the curve, and at the accuracies that are listed: `"at 0.5"` → value."""
        mass = rf.code_sums(self.attribution(), codes, len(answers.rates) + 1)
        found = soundness_of(answers, np.asarray(mass, np.float64))
        values = (float(value) for value in found.at(LEVELS))
        return found, {f"at {level:g}": v if np.isfinite(v) else None for level, v in zip(LEVELS, values)}

    def ask(
        self,
        how: Perturbation,
        *,
        codes: npt.NDArray[np.uint8] | None = None,
        filled: npt.NDArray[np.uint8] | None = None,
        scored: str = "label",
        suffix: str = "",
    ) -> Responses:
        """The answers of the base model, from the file of the curve where a killed run left it.

        Args:
            how: Rule, order, fill.
            codes: uint8 `[N, H, W]` for its rates; default its own.
            filled: As in `respond`.
            scored: As in `respond`.
            suffix: Of the file's name, where a curve needs more than one.
        """
        w, path = self.work, self.work.folder.responses(self.task.key + suffix)
        path.parent.mkdir(parents=True, exist_ok=True)
        model = self.tested
        ends = self._ends(model, how, filled, scored)
        options: _Options = {
            "labels": w.test.labels,
            "perturbation": how,
            "filled": filled,
            "scored": scored,
            "seed": w.seeds.noise(self.cell.trial, "test"),
            "device": w.device,
            "progress": False,
            "ends": ends,
            "halves": w.trainer.halves,
            "batch_size": max(16, min(_BATCH, _BATCH_VALUES // w.inputs.values)),
        }
        self.on_update(f"{len(w.test)} images at {len(self.task.cells)} rates")
        begun, before = time.perf_counter(), model.seconds
        answers = self._answers(model, path, codes, options)
        passes = model.seconds - before
        making = "impute" if how.fill == "linear" else "data"
        self.clock.add({"evaluation": passes, making: time.perf_counter() - begun - passes})
        return answers

    def _ends(
        self, model: AsTested, how: Perturbation, filled: npt.NDArray[np.uint8] | None, scored: str
    ) -> tuple[Row, Row]:
        """The answers to whole and empty images, which all curves of a base model and fill share: found once per worker."""
        w, fill = self.work, (how.fill, how.blur, filled is None, scored)
        if fill not in model.ends:
            nothing = np.zeros(w.test.images.shape[:3], np.uint8)
            with self.clock.stage("evaluation"):
                found = respond(
                    model,
                    w.inputs,
                    codes=nothing,
                    drops=[1.0],
                    labels=w.test.labels,
                    perturbation=how,
                    filled=filled,
                    scored=scored,
                    seed=w.seeds.noise(self.cell.trial, "test"),
                    device=w.device,
                    progress=False,
                )
            model.ends[fill] = found.whole, found.empty
        return model.ends[fill]

    def _answers(
        self, model: AsTested, path: Path, codes: npt.NDArray[np.uint8] | None, options: _Options
    ) -> Responses:
        w = self.work
        if self.cell.estimator == "block":  # a new rectangle per rate: the masks are not nested
            parts = [
                respond(
                    model, w.inputs, codes=np.array(w.codes(self.task, one, "test")[0]), drops=[one.drop], **options
                )
                for one in self.task.cells.values()
            ]
            joined = join(parts)
            joined.save(path)
            return joined
        own = self.curve_codes() if codes is None else codes
        try:
            if path.exists():
                Responses.load(path)  # a damaged one is ours, so it need not be kept
            answers = respond(model, w.inputs, codes=own, drops=self.rates, file=path, **options)
        except (ResponsesCorrupt, ResponsesMismatch) as error:
            w.trainer.notes.append(f"{error}; making it again")
            path.unlink(missing_ok=True)
            shutil.rmtree(path.with_name(path.name + ".partial"), ignore_errors=True)
            answers = respond(model, w.inputs, codes=own, drops=self.rates, file=path, **options)
        path.with_name(f".{path.name}.lock").unlink(missing_ok=True)  # the run holds the whole folder
        return answers


def join(parts: list[Responses]) -> Responses:
    """Responses at one rate each as one at all of them."""
    names = ["rates", "removed", "correct", "probability", "logit", "margin", "prediction"]
    names += ["losses"] if parts[0].losses is not None else []
    joined: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return replace(parts[0], **joined, identity={})
