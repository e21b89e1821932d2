"""What a worker does for each kind of task: base models, maps, codes, example strips and cells."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

import roarfast as rf
from roarfast._files import publish_folder, write_atomic, write_json
from roarfast.study import pipeline
from roarfast.study.config import StudyConfig
from roarfast.study.identity import derive_seed
from roarfast.study.selection import Selection, select
from roarfast.study.training import Trainer
from roarfast.train.runtime import deterministic

Update = Callable[[str], None]
_MAP_CHUNK = 256
"""Images whose maps are computed together: part of what a kill can lose, not of the result."""


class Clock:
    """Seconds per stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Counts the time inside for a stage."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.add({name: time.perf_counter() - begun})

    def add(self, seconds: dict[str, float]) -> None:
        """Adds what was measured elsewhere."""
        for name, value in seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + value


class Pipeline:
    """Runs tasks of one study on one device; keeps the data and the last base model between tasks."""

    def __init__(self, config: StudyConfig, folder: Path, device: str, threads: int) -> None:
        self.config, self.folder, self.device = config, folder, torch.device(device)
        if self.device.type == "cpu":
            torch.set_num_threads(threads)
            rf.set_num_threads(threads)
        self.train, self.test = pipeline.shared_data(folder, config.data)
        self.trainer = Trainer(config, self.train, self.test, self.device, folder)
        self._base: tuple[str, nn.Module] | None = None
        self.fills: dict[str, npt.NDArray[np.uint8]] = {}  # see protocols.fill_split

    def run(self, task: dict[str, Any], on_update: Update) -> dict[str, Any]:
        """Does a task; returns its outcome: `scores` of a cell, `info` of shared work, and `seconds` per stage."""
        clock = Clock()
        with deterministic():  # as inside a training; a study that runs in a user's process leaves the settings alone
            return self._run(task["kind"], task["key"], task["spec"], clock, on_update)

    def _run(self, kind: str, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> dict[str, Any]:
        if kind == "base":
            return self._train_base(key, spec, clock, on_update)
        if kind == "cell":
            return self._cell(key, spec, clock, on_update)
        work = {"maps": self._maps, "codes": self._codes, "examples": self._examples}[kind]
        return {"info": work(key, spec, clock, on_update), "seconds": clock.seconds}

    # base models

    def _train_base(self, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> dict[str, Any]:
        seed = derive_seed(self.config.seed, "base", spec["cell"]["trial"])
        model, scores = self.trainer.fit(f"base-{key[:12]}", seed, clock.add, on_update)
        self.trainer.save(model, pipeline.base_file(self.folder, key))
        self.trainer.forget(f"base-{key[:12]}")
        # Not kept: maps and scores come from the weights as read back, whoever trained them, to the last bit.
        self._base = None
        return {"scores": scores, "seconds": clock.seconds}

    def base_model(self, key: str) -> nn.Module:
        """The base model of a trial, from memory or its file."""
        if self._base is None or self._base[0] != key:
            self._base = (key, self.trainer.load(pipeline.base_file(self.folder, key)))
        return self._base[1]

    # maps

    def _maps(self, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> dict[str, Any]:
        from roarfast.explain import AttributionStore, Explainer, Normalized, generate

        explain, model = self.config.explain, self.base_model(spec["base"])
        # The papers' code explains in the units of the normalised input; the standard is the units of the image.
        normalised = explain.conventions == "paper"
        mean, std = self.train.mean, self.train.std
        explainer = Explainer(
            model if normalised else Normalized(model, mean, std).to(self.device),
            spec["estimators"],
            options=pipeline.explain_options(self.config),
            target=explain.target,
            aggregation=explain.aggregate,
            batch_size=explain.batch_size,
            seed=derive_seed(self.config.seed, "explain", spec["trial"]),
        )
        info: dict[str, Any] = {"passes": explainer.plan.describe()}
        total = len(self.train) + len(self.test)
        done = 0
        with clock.stage("map_other"):
            for split, data in (("train", self.train), ("test", self.test)):

                def to_input(images: npt.NDArray[np.uint8]) -> torch.Tensor:
                    nonlocal done
                    on_update(f"{done} of {total} images")
                    done += len(images)
                    x = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float() / 255
                    return (x - _column(mean)) / _column(std) if normalised else x

                generate(
                    AttributionStore(pipeline.map_root(self.folder, spec["base"], split)),
                    explainer,
                    data.images,
                    labels=data.labels,
                    postprocess=(),
                    to_input=to_input,
                    dtype=np.dtype(explain.dtype),
                    chunk=_MAP_CHUNK,
                    overwrite=True,  # the folder is ours: what does not fit is left from a base model that is gone
                    show_progress=False,
                    data=data.data_hash,
                )
        clock.add({"map_passes": explainer.pass_seconds, "map_other": -explainer.pass_seconds})
        return info

    def stored_maps(self, spec: dict[str, Any], base: str, split: str) -> Any:
        """The maps of an estimator on disk."""
        from roarfast.explain.store import AttributionStore

        return AttributionStore(pipeline.map_root(self.folder, base, split)).open(spec["estimator"], verify=False)

    # codes

    def _codes(self, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> dict[str, Any]:
        final = pipeline.codes_folder(self.folder, key)
        partial = final.with_name(f".{final.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        shutil.rmtree(final, ignore_errors=True)
        partial.mkdir(parents=True)
        info: dict[str, Any] = {"train": {}, "test": {}}
        with clock.stage("codes"):
            for split, data in (("train", self.train), ("test", self.test)):
                for order in spec["orders"][split]:
                    maps = self._source(spec, split)
                    selection = self._selection(spec, split, order)
                    path = partial / f"{split}-{order}.npy"
                    rates, tv_map = select(selection, maps, data.images.shape[:3], path, with_variation=split == "test")
                    info[split][order] = rates
                    if split == "test":
                        info["tv_map"] = tv_map
        write_json(partial / "info.json", info)
        publish_folder(partial, final)
        return info

    def _source(self, spec: dict[str, Any], split: str) -> Any:
        return None if spec["map"] is None else self.stored_maps(spec, spec["base"], split)

    def _selection(self, spec: dict[str, Any], split: str, order: str) -> Selection:
        trial = spec["trial"]
        baseline = spec["estimator"] if spec["map"] is None else None
        # Other splits are other images: their ties and random pixels must not be those of the train images.
        seed = derive_seed(self.config.seed, baseline or "ties", trial, split)
        return Selection(tuple(spec["drops"]), self.config.removal.rule, order, spec["postprocess"], seed, baseline)

    def codes(self, spec: dict[str, Any], split: str) -> tuple[npt.NDArray[np.uint8], int]:
        """Codes `[N, H, W]` and the index of the drop rate of a cell."""
        cell = spec["cell"]
        path = pipeline.codes_folder(self.folder, spec["codes"]) / f"{split}-{cell['order']}.npy"
        codes = np.load(path, mmap_mode="r", allow_pickle=False)
        j = spec["drops"].index(cell["drop"])
        return (codes, j) if codes.ndim == 3 else (codes[j], 0)

    # cells

    def _cell(self, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> dict[str, Any]:
        from roarfast.study import protocols

        scores = protocols.PROTOCOLS[spec["cell"]["protocol"]](self, key, spec, clock, on_update)
        return {"scores": scores, "seconds": clock.seconds}

    # examples

    def _examples(self, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> dict[str, Any]:
        from roarfast.study.examples import collect

        content = collect(self, spec, clock)
        write_atomic(pipeline.example_file(self.folder, spec["estimator"]), content)
        return {}


def _column(values: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32).reshape(-1, 1, 1)
