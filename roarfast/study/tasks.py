"""What a worker does for each kind of task: base models, maps, codes, example strips and cells."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from roarfast._files import publish_folder, write_atomic, write_json
from roarfast._sealed import seal
from roarfast.explain import AttributionStore, Explainer, External, Normalized, generate
from roarfast.explain.hashing import file_checksum
from roarfast.study.cell_work import CellWork
from roarfast.study.examples import collect
from roarfast.study.selection import select
from roarfast.study.work import Clock, Update, Work
from roarfast.train.runtime import deterministic

_MAP_CHUNK = 256
"""Images whose maps are computed together: part of what a kill can lose, not of the result."""


def run_task(work: Work, task: dict[str, Any], on_update: Update) -> dict[str, Any]:
    """Does a task; returns its outcome: `scores` of a cell, `info` of shared work, and `seconds` per stage."""
    clock = Clock()
    with deterministic():  # as inside a training; a study that runs in a user's process leaves the settings alone
        found = _KINDS[task["kind"]](work, task["key"], task["spec"], clock, on_update)
    notes, work.trainer.notes = work.trainer.notes, []
    result = "scores" if task["kind"] in ("base", "cell") else "info"
    return {result: found, "seconds": clock.seconds, "notes": notes}


def _base(w: Work, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> dict[str, Any]:
    name = f"base-{key[:12]}"
    model, scores = w.trainer.fit(name, w.seeds.base(spec["cell"]["trial"]), clock.add, on_update)
    w.trainer.save(model, w.folder.base_model(key))
    w.trainer.forget(name)
    w.forget_base()
    return dict(scores)


def _maps(w: Work, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> dict[str, Any]:
    explain, model = w.config.explain, w.base_model(spec["base"])
    # The papers' code explains in the units of the normalised input; the standard is the units of the image.
    normalised = explain.conventions == "paper"
    mean, std = w.train.mean, w.train.std
    outside = _outside(w, spec["estimators"])
    explainer = Explainer(
        model if normalised else Normalized(model, mean, std).to(w.device),
        [*outside, *(name for name in spec["estimators"] if name not in {e.name for e in outside})],
        options=w.config.explain_options(),
        target=explain.target,
        aggregation=explain.aggregate,
        batch_size=explain.batch_size,
        seed=w.seeds.explain(spec["trial"]),
    )
    explainer = explainer.subset(spec["estimators"])
    info: dict[str, Any] = {"passes": explainer.plan.describe()}
    total = len(w.train) + len(w.test)
    done = 0
    with clock.stage("map_other"):
        for split, data in (("train", w.train), ("test", w.test)):

            def to_input(images: npt.NDArray[np.uint8]) -> torch.Tensor:
                nonlocal done
                on_update(f"{done} of {total} images")
                done += len(images)
                x = torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float() / 255
                return (x - _column(mean)) / _column(std) if normalised else x

            for estimator in spec["estimators"]:
                w.delete_damaged_maps(estimator, spec["base"], split)  # else they count as finished
            generate(
                AttributionStore(w.folder.maps(spec["base"], split)),
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


def _outside(w: Work, estimators: list[str]) -> list[External]:
    """The estimators from outside that are asked for, as they are or squared."""
    bases = {name.removesuffix("^2") for name in estimators}
    return [External(entry.name, entry.function()) for entry in w.config.estimators if entry.name in bases]


def _codes(w: Work, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> dict[str, Any]:
    final = w.folder.codes(key)
    partial = final.with_name(f".{final.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(final, ignore_errors=True)
    partial.mkdir(parents=True)
    info: dict[str, Any] = {"train": {}, "test": {}}
    with clock.stage("codes"):
        for split, data in (("train", w.train), ("test", w.test)):
            for order in spec["orders"][split]:
                maps = None if spec["map"] is None else w.stored_maps(spec["estimator"], spec["base"], split)
                selection = w.selection(spec, split, order)
                path = partial / f"{split}-{order}.npy"
                rates, tv_map = select(selection, maps, data.images.shape[:3], path, with_variation=split == "test")
                info[split][order] = rates
                if split == "test":
                    info["tv_map"] = tv_map
    checksums = {path.name: file_checksum(path) for path in sorted(partial.glob("*.npy"))}
    write_json(partial / "info.json", info | {"checksums": checksums})
    publish_folder(partial, final)
    return info


def _cell(w: Work, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> dict[str, Any]:
    cell = CellWork(w, key, spec, clock, on_update)
    return cell.protocol.work()(cell)


def _examples(w: Work, key: str, spec: dict[str, Any], clock: Clock, on_update: Update) -> dict[str, Any]:
    write_atomic(w.folder.example(spec["estimator"]), seal(collect(w, spec, clock)))
    return {}


_KINDS = {"base": _base, "maps": _maps, "codes": _codes, "examples": _examples, "cell": _cell}


def _column(values: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32).reshape(-1, 1, 1)
