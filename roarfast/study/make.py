"""What a worker does for each kind of task: base models, maps, codes, example strips and cells."""

from __future__ import annotations

import io
import shutil
from typing import TypedDict

import numpy as np
import numpy.typing as npt
import torch

from roarfast._files import publish_folder, write_atomic, write_json
from roarfast._sealed import seal
from roarfast.explain import AttributionStore, Explainer, Normalized, generate
from roarfast.explain.hashing import file_checksum
from roarfast.explain.names import split_name
from roarfast.study import stored_maps
from roarfast.study.cells import CellWork, fill_split, fill_value
from roarfast.study.curve_scores import CurveScores
from roarfast.study.curves import CurveWork
from roarfast.study.preflight import chance_warning
from roarfast.study.protocol import Scores
from roarfast.study.protocols import find
from roarfast.study.selection import apply_codes, select
from roarfast.study.stored_maps import is_stored
from roarfast.study.tasks import BaseTask, CellsTask, CodesTask, ExamplesTask, Info, MapsTask, Outcome, Task
from roarfast.study.work import Clock, Update, Work
from roarfast.train.runtime import deterministic

_MAP_CHUNK = 256
"""Images whose maps are computed together: part of what a kill can lose, not of the result."""


def do_task(work: Work, task: Task, on_update: Update) -> Outcome:
    """Does a task."""
    clock, found = Clock(), Outcome()
    with deterministic():  # as inside a training; a study that runs in a user's process leaves the settings alone
        if isinstance(task, BaseTask):
            found.scores = {task.key: _base(work, task, clock, on_update)}
        elif isinstance(task, CellsTask):
            found.scores, found.info = _cells(work, task, clock, on_update)
        elif isinstance(task, MapsTask):
            found.info = _maps(work, task, clock, on_update)
        elif isinstance(task, CodesTask):
            found.info = _codes(work, task, clock)
        elif isinstance(task, ExamplesTask):
            write_atomic(work.folder.example(task.estimator), seal(_examples(work, task, clock)))
        else:
            raise TypeError(f"a worker knows no task of type {type(task).__name__}")
    found.notes, work.trainer.notes = work.trainer.notes, []
    found.seconds = clock.seconds
    return found


def _base(w: Work, task: BaseTask, clock: Clock, on_update: Update) -> Scores:
    if w.config.model.trained:
        model = w.trainer.given()
        w.trainer.save(model, w.folder.base_model(task.key))
        w.forget_base()
        with clock.stage("evaluation"):
            return _noted(w, dict(w.trainer.score(model, w.trainer.whole.test, None)))
    name = w.folder.base_model(task.key).stem
    model, scores = w.trainer.fit(name, w.seeds.base(task.cell.trial), clock.add, on_update)
    w.trainer.save(model, w.folder.base_model(task.key))
    w.trainer.forget(name)
    w.forget_base()
    return _noted(w, dict(scores))


def _noted(w: Work, scores: Scores) -> Scores:
    if warning := chance_warning(scores["accuracy"] or 0.0, w.test):
        w.trainer.notes.append(f"warning: {warning}")
    return scores


def _maps(w: Work, task: MapsTask, clock: Clock, on_update: Update) -> Info:
    stored = [e for e in w.config.estimators if e.name == split_name(task.estimators[0]).base and is_stored(e.object)]
    if stored:
        return _read_maps(w, task, stored[0].object, clock)
    explain, model = w.config.explain, w.base_model(task.base)
    # The papers' code explains in the units of the normalised input; the standard is the units of the image.
    normalised = explain.conventions == "paper"
    mean, std = w.train.mean, w.train.std
    bases = {split_name(name).base for name in task.estimators}
    own = [record for name, record in w.config.own_estimators().items() if name in bases]
    explainer = Explainer(
        model if normalised else Normalized(model, mean, std).to(w.device),
        [*own, *(name for name in task.estimators if name not in {e.name for e in own})],
        options=w.config.explain_options(),
        target=explain.target,
        aggregate=explain.aggregate,
        batch_size=explain.batch_size,
        seed=w.seeds.explain(task.trial),
    )
    explainer = explainer.subset(task.estimators)
    info: Info = {"passes": explainer.plan.describe()}
    total = sum(len(w.split(split)) for split in task.splits)
    done = 0
    with clock.stage("map_other"):
        for split in task.splits:
            data = w.split(split)

            def to_input(images: npt.NDArray[np.uint8]) -> torch.Tensor:
                nonlocal done
                on_update(f"{done} of {total} images")
                done += len(images)
                x = torch.from_numpy(np.array(images)).permute(0, 3, 1, 2).float() / 255  # a copy: packs are read-only
                return (x - _column(mean)) / _column(std) if normalised else x

            for estimator in task.estimators:
                w.delete_damaged_maps(estimator, task.base, split)  # else they count as finished
            generate(
                AttributionStore(w.folder.maps(task.base, split)),
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


def _read_maps(w: Work, task: MapsTask, reference: str, clock: Clock) -> Info:
    """Puts maps that a user computed where those of our estimators are."""
    with clock.stage("map_other"):
        for split in task.splits:
            data = w.split(split)
            store = AttributionStore(w.folder.maps(task.base, split))
            for estimator in task.estimators:
                w.delete_damaged_maps(estimator, task.base, split)
                name = split_name(estimator)
                maps = stored_maps.read(reference, split, data, name.aggregate or w.config.explain.aggregate)
                identity = {
                    "estimator": estimator,
                    "maps": stored_maps.checksums(reference),
                    "data": data.data_hash,
                    "shape": list(maps.shape),
                    "postprocess": [],
                }
                values = maps * maps if name.squared else maps
                with store.writer(identity, np.dtype(w.config.explain.dtype), _MAP_CHUNK, True) as writer:
                    for begin, end in list(writer.missing):
                        writer.write(begin, values[begin:end], np.empty((end - begin, 0)))
                    writer.finish({})
    return {"passes": "maps of the user's"}


def _codes(w: Work, task: CodesTask, clock: Clock) -> Info:
    final = w.folder.codes(task.key)
    partial = final.with_name(f".{final.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.rmtree(final, ignore_errors=True)
    partial.mkdir(parents=True)
    info: Info = {"train": {}, "test": {}}
    with clock.stage("codes"):
        for split, data in (("train", w.train), ("test", w.test)):
            for order in task.orders[split]:
                maps = None if task.base is None else w.stored_maps(task.estimator, task.base, split)
                selection = w.selection(task, split, order)
                path = partial / w.folder.codes_file(task.key, split, order).name
                rates, tv_map = select(selection, maps, data.images.shape[:3], path, with_masks=split == "test")
                info[split][order] = rates
                info["tv_map" if split == "test" else "tv_map_train"] = tv_map
    checksums = {path.name: file_checksum(path) for path in sorted(partial.glob("*.npy"))}
    write_json(partial / w.folder.codes_info(task.key).name, info | {"checksums": checksums})
    publish_folder(partial, final)
    return info


def _cells(w: Work, task: CellsTask, clock: Clock, on_update: Update) -> tuple[dict[str, Scores], Info]:
    """Key → scores of a cell, or of every cell of a curve; and what is known of the curve as a whole."""
    protocol = find(task.cell.protocol)
    cell = (CellWork if protocol.unit == "cell" else CurveWork)(w, task, clock, on_update)
    found = protocol.work()(cell)
    if protocol.unit == "cell":
        return {task.key: found}, {}
    if not isinstance(found, CurveScores):
        raise TypeError(
            f"{protocol.name} must return a roarfast.study.curve_scores.CurveScores, got {type(found).__name__}"
        )
    return {key: found.rates[one.drop] for key, one in task.cells.items()}, found.summary | {"cells": list(task.cells)}


class _Answers(TypedDict, total=False):
    """Of a base model, in the npz file of examples."""

    prediction: npt.NDArray[np.int64]
    predicted: npt.NDArray[np.int64]
    probability: npt.NDArray[np.float32]


def _examples(w: Work, task: ExamplesTask, clock: Clock) -> bytes:
    """The npz file of an estimator, as bytes.

    Arrays: `images` uint8 `[M, H, W, C]`, `labels` `[M]`, `map` float32 `[M, H, W]`, `processed` `[K, M, H, W]`, `mask`
    bool `[K, D, M, H, W]`, `modified` uint8 `[K, D, M, H, W, C]`, `postprocess` `[K]`, `drops` `[D]`, `class_names`; and,
    where a base model made the maps, what it predicts: `prediction` `[M]`, `predicted` `[K, D, M]` (of `modified`) with its
    `probability`. Post-processings share the drop rates that all of them have.
    """
    rows = example_rows(w.test.labels, task.count)
    images = w.test.images[rows]
    groups = task.codes
    drops = [d for d in groups[0].drops if all(d in group.drops for group in groups)]
    filled, constant = fill_split(w, "test", clock), fill_value(w)
    fill = np.rint(constant).astype(np.uint8) if constant is not None else filled[rows]  # type: ignore[index]
    plain, processed, masks = None, [], []
    for group in groups:
        selection = w.selection(group, "test", "morf")
        maps = None
        if group.base is not None:
            maps = w.stored_maps(group.estimator, group.base, "test")
            plain = np.stack([maps[int(row)] for row in rows]) if plain is None else plain
        per_image = [selection.codes(maps, np.array([row]), w.test.images.shape[1:3]) for row in rows]
        positions = [group.drops.index(d) for d in drops]
        if selection.baseline == "block":
            masks.append(np.stack([[codes[j, 0] == 0 for codes, _ in per_image] for j in positions]))
            processed.append(np.stack([maps[positions[-1], 0] for _, maps in per_image]))
        else:
            masks.append(np.stack([[apply_codes(codes[0], j) for codes, _ in per_image] for j in positions]))
            processed.append(np.stack([maps[0] for _, maps in per_image]))
    mask = np.stack(masks)
    modified = np.where(mask[..., None], fill, images)
    answers: _Answers = {}
    if groups[0].base is not None:
        answers["prediction"], _ = _predict(w, groups[0].base, images)
        answers["predicted"], answers["probability"] = _predict(w, groups[0].base, modified)
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        **answers,
        images=images,
        labels=w.test.labels[rows],
        map=np.asarray(processed[0] if plain is None else plain, np.float32),
        processed=np.stack(processed).astype(np.float32),
        mask=mask,
        modified=modified,
        postprocess=np.array([group.postprocess for group in groups]),
        drops=np.array(drops),
        class_names=np.array(w.test.class_names),
    )
    return buffer.getvalue()


@torch.no_grad()
def _predict(
    w: Work, base: str, images: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Class and its probability by a base model, for uint8 images `[..., H, W, C]`."""
    model = Normalized(w.base_model(base).eval(), w.train.mean, w.train.std).to(w.device)
    found = []
    for chunk in np.array_split(images.reshape(-1, *images.shape[-3:]), max(1, images[..., 0, 0, 0].size // 64)):
        x = torch.from_numpy(np.ascontiguousarray(chunk.transpose(0, 3, 1, 2))).to(w.device).float() / 255
        found.append(torch.softmax(model(x).float(), 1).max(1))
    probability, label = (torch.cat(values).cpu().numpy().reshape(images.shape[:-3]) for values in zip(*found))
    return label.astype(np.int64), probability.astype(np.float32)


def example_rows(labels: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """The first image of each class in turn, then the second, …: `count` rows that show different classes."""
    order = np.argsort(labels, kind="stable")
    rank = np.empty(len(labels), np.int64)
    _, starts = np.unique(labels[order], return_index=True)
    for begin, end in zip(starts, [*starts[1:], len(labels)]):
        rank[order[begin:end]] = np.arange(end - begin)
    return np.lexsort((labels, rank))[:count]


def _column(values: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32).reshape(-1, 1, 1)
