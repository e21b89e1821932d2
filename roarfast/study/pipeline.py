"""What studies ask of the packages below them, on the side of the parent process: names, data, identity, devices."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import os
import platform
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from roarfast._files import write_atomic
from roarfast.study.cells import Identity, grid_cells
from roarfast.study.config import DataConfig, StudyConfig
from roarfast.study.errors import StudyError, nearest
from roarfast.study.grammar import estimator_slug
from roarfast.study.identity import derive_seed, digest
from roarfast.study.old_names import hashed_removal
from roarfast.study.plan import Plan, Task


def dataset_names() -> list[str]:
    """Data sets that are known by name."""
    from roarfast.data.load import NAMES

    return list(NAMES)


def model_names() -> list[str]:
    """Models that are known by name."""
    from roarfast.train.models import MODELS

    return list(MODELS)


def recipe_names() -> list[str]:
    """Recipes that are known by name."""
    from roarfast.train.recipe import PRESETS

    return ["quick", *PRESETS]


def recipe_fields() -> list[str]:
    """Fields of a recipe, all of which `[train]` may override."""
    from roarfast.train.recipe import Recipe

    return [field.name for field in dataclasses.fields(Recipe)]


def resolve_recipe(name: str, model: str | None, overrides: dict[str, Any]) -> Any:
    """A recipe with fields replaced; raises ValueError or TypeError for a bad value."""
    from roarfast.train.recipe import get_recipe

    return get_recipe(name, model, **overrides)


def recipe_of(config: StudyConfig) -> Any:
    """The recipe of a study."""
    return resolve_recipe(config.train.recipe, config.model.name, config.train.overrides)


def explain_options(config: StudyConfig) -> Any:
    """The options of the estimators."""
    from roarfast.explain import Options

    make = Options.paper if config.explain.conventions == "paper" else Options
    return make(**config.explain.options)


def explain_problems(section: dict[str, Any], options: dict[str, Any]) -> list[tuple[str, str]]:
    """(path, message) for everything wrong with `[explain]` that needs the explain package to know."""
    from roarfast.explain import Aggregation, Options

    fields = [field.name for field in dataclasses.fields(Options)]
    problems = [
        (f"explain.options.{name}", f"there is no such option{nearest(name, fields)}")
        for name in options
        if name not in fields
    ]
    if not problems:
        try:
            Options(**options)
        except (ValueError, TypeError) as error:
            named = [name for name in options if name in str(error)]
            problems.append((f"explain.options.{named[0]}" if named else "explain.options", str(error)))
    if isinstance(aggregate := section.get("aggregate"), str):
        try:
            Aggregation.parse(aggregate)
            if Aggregation.parse(aggregate).reduce == "none":
                raise ValueError("aggregation 'none' keeps the channels apart: a study removes whole pixels")
        except ValueError as error:
            problems.append(("explain.aggregate", str(error)))
    return problems


@functools.lru_cache(maxsize=2)
def load_data(data: DataConfig) -> tuple[Any, Any]:
    """(train, test) of a config; errors say what to do."""
    from roarfast.data import DataError, load

    splits = []
    for split, size in (("train", data.train_size), ("test", data.test_size)):
        source: str | Path = data.name
        if data.has_files:
            source = Path(data.root or ".") / (data.path or getattr(data, split))
        arguments: dict[str, Any] = {"n": None if data.classes else size, "size": data.image_size, "seed": data.seed}
        if data.name == "shapes" and data.classes and size:
            arguments["n"] = -(-size // (10 * len(data.classes))) * 100  # every 100 images have 10 of each class
        if data.layout is not None:
            arguments["layout"] = data.layout
        if not data.has_files:
            arguments |= {"root": data.root, "download": data.download}
        which = split if data.path is not None or not data.has_files or _has_splits(Path(source)) else "all"
        try:
            part = load(source, which, **arguments)
        except (DataError, OSError, ValueError, ModuleNotFoundError) as error:
            raise StudyError(f"cannot read the {split} images: {error}") from None
        splits.append(_only_classes(part, data.classes, size) if data.classes else part)
    train, test = splits
    if train.image_shape != test.image_shape:
        raise StudyError(
            f"train images are {train.image_shape}, test images {test.image_shape}: they must have one size"
        )
    if train.class_names != test.class_names:
        raise StudyError(f"train has {train.num_classes} classes, test {test.num_classes}, or in another order")
    return train, test


def share_data(folder: Path, data: DataConfig) -> None:
    """Leaves a generated data set in the run folder: its workers would take seconds each to make it again."""
    if data.name != "shapes":
        return
    path = _shared_data(folder, data)
    arrays: dict[str, Any] = {}
    for part in load_data(data):
        arrays |= {f"{part.split}_images": part.images, f"{part.split}_labels": part.labels}
    buffer = io.BytesIO()
    np.savez(buffer, class_names=np.array(part.class_names), **arrays)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, buffer.getvalue())


def shared_data(folder: Path, data: DataConfig) -> tuple[Any, Any]:
    """What `share_data` left, or else the same from its source."""
    from roarfast.data import Dataset

    path = _shared_data(folder, data)
    if not path.is_file():
        return load_data(data)
    with np.load(path, allow_pickle=False) as arrays:
        names = tuple(str(name) for name in arrays["class_names"])
        train, test = (
            Dataset(arrays[f"{split}_images"], arrays[f"{split}_labels"], names, name=data.name, split=split)
            for split in ("train", "test")
        )
    return train, test


def forget_shared_data(folder: Path) -> None:
    """Deletes what `share_data` left, now or in a run that was killed; nothing else."""
    shared = folder / _SHARED
    if shared.is_symlink() or not shared.is_dir():
        return
    for file in shared.iterdir():
        if _SHARED_FILE.fullmatch(file.name):
            file.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # somebody put a file of theirs into it: it stays
        shared.rmdir()


_SHARED = ".shared"
_SHARED_FILE = re.compile(r"[0-9a-f]{16,64}\.npz|\.[0-9a-f]{16,64}\.npz\.\d+\.tmp")


def _shared_data(folder: Path, data: DataConfig) -> Path:
    return folder / _SHARED / f"{digest(data.model_dump(mode='json'))}.npz"


def _only_classes(data: Any, classes: tuple[str, ...], size: int | None) -> Any:
    """The first `size` images of some classes, which are numbered in the order given."""
    for name in classes:
        if name not in data.class_names:
            raise StudyError(f"data.classes: there is no class {name!r}{nearest(name, data.class_names)}")
    numbers = [data.class_names.index(name) for name in classes]
    chosen = data.subset(np.flatnonzero(np.isin(data.labels, numbers))[:size])
    table = np.full(data.num_classes, -1)
    table[numbers] = np.arange(len(numbers))
    return dataclasses.replace(chosen, labels=table[chosen.labels], class_names=classes)


def _has_splits(source: Path) -> bool:
    from roarfast.data.npz import has_splits

    return source.is_dir() or (source.suffix == ".npz" and has_splits(source))


@functools.lru_cache(maxsize=2)
def data_warnings(data: DataConfig) -> tuple[str, ...]:
    """What makes the images of a config doubtful, for the start of a run and the report."""
    from roarfast.data.checks import split_warnings

    found = split_warnings(*load_data(data))
    if data.train is not None and data.train == data.test and not _has_splits(Path(data.root or ".") / data.train):
        raise StudyError(f"data.train and data.test are the same file, {data.train}: {found[0]}")
    return tuple(found)


def identify(config: StudyConfig, device: str) -> Identity:
    """Everything that defines results besides the cells; reads the data."""
    train, test = load_data(config.data)
    model = config.model.model_dump(mode="json")
    if config.model.weights is not None:
        from roarfast.explain.hashing import file_checksum

        path = Path(config.model.weights)
        if not path.is_file():
            raise StudyError(f"model.weights: {path} does not exist")
        model["weights"] = file_checksum(path)
    explain = config.explain.model_dump(mode="json")
    return Identity(
        data={"train": train.data_hash, "test": test.data_hash, "images": [len(train), len(test)], "shape": list(train.image_shape)},
        model=model,
        recipe=recipe_of(config).as_hashed(),
        explain=explain | {"options": explain_options(config).as_dict()},
        removal=hashed_removal(config.removal.model_dump(mode="json")),
        seed=config.seed,
        numerics={"device": device.split(":")[0], "threads": config.run.threads if device == "cpu" else 0},
    )  # fmt: skip


def seeds(config: StudyConfig) -> dict[str, Any]:
    """The seeds of every trial, as the report shows them."""
    trials = max(cell.trial for cell in grid_cells(config)) + 1
    uses = ("base", "retrain", "explain", "rand", "block", "ties", "noise")
    return {"study": config.seed} | {
        f"trial {trial}": {use: derive_seed(config.seed, use, trial) for use in uses} for trial in range(trials)
    }


def choose_devices(device: str, workers: int | str, config: StudyConfig) -> list[str]:
    """One device per worker: GPUs in turn, or the CPU as often as its cores allow."""
    import torch

    from roarfast._backend import available_cores

    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    kind = device.split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise StudyError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:<number>', got {device!r}")
    if kind == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not count:
            raise StudyError(f"device {device!r} was asked for, but torch sees no CUDA device here")
        listed = [device] if ":" in device else [f"cuda:{i}" for i in range(count)]
        number = len(listed) if workers == "auto" else int(workers)
        return [listed[i % len(listed)] for i in range(number)]
    number = max(1, available_cores() // config.run.threads) if workers == "auto" else int(workers)
    return ["cpu"] * number


def bytes_needed(config: StudyConfig, identity: Identity, plan: Plan) -> int:
    """About the disk space that maps and codes take."""
    pixels = sum(identity.data["images"]) * identity.data["shape"][0] * identity.data["shape"][1]
    width = 2 if config.explain.dtype == "float16" else 4
    maps = sum(len(t.spec["estimators"]) for t in plan.tasks.values() if t.kind == "maps")
    codes = sum(
        len(t.spec["drops"]) if t.spec["estimator"] == "block" else 1 for t in plan.tasks.values() if t.kind == "codes"
    )
    kept = codes if config.run.keep_codes else min(codes, 8)
    return int(pixels * (maps * width + kept))


# Files of shared work


def map_root(folder: Path, base: str, split: str) -> Path:
    """The attribution store of a base model and split."""
    return folder / "maps" / base[:12] / split


def codes_folder(folder: Path, key: str) -> Path:
    """Where the codes of a task are."""
    return folder / "codes" / key


def base_file(folder: Path, key: str) -> Path:
    """The weights of a base model."""
    return folder / "models" / f"base-{key[:12]}.pt"


def example_file(folder: Path, estimator: str) -> Path:
    """The examples of an estimator."""
    return folder / "examples" / f"{estimator_slug(estimator)}.npz"


def artifact_exists(folder: Path, task: Task) -> bool:
    """Whether the files of a finished task are there."""
    if task.kind == "base":
        return base_file(folder, task.key).exists()
    if task.kind == "maps":
        from roarfast.explain.store import AttributionStore

        roots = [map_root(folder, task.spec["base"], split) for split in ("train", "test")]
        return all(estimator in AttributionStore(root) for root in roots for estimator in task.spec["estimators"])
    if task.kind == "codes":
        return (codes_folder(folder, task.key) / "info.json").exists()
    return example_file(folder, task.spec["estimator"]).exists()


def delete_codes(folder: Path, key: str) -> None:
    """Codes are quickly made again from maps, so they go when the last cell that needs them is done."""
    path = codes_folder(folder, key)
    (path / "info.json").unlink(missing_ok=True)
    shutil.rmtree(path, ignore_errors=True)


# Facts for the report


def versions() -> dict[str, str]:
    """Versions of what computes."""
    import numpy
    import torch

    from roarfast._version import __version__

    return {
        "roarfast": __version__,
        "torch": str(torch.__version__),
        "numpy": numpy.__version__,
        "python": platform.python_version(),
    }


def hardware(devices: list[str], threads: int) -> dict[str, Any]:
    """What it runs on."""
    import torch

    from roarfast import info

    names = {d: torch.cuda.get_device_name(d) if d.startswith("cuda") else _cpu_name() for d in dict.fromkeys(devices)}
    facts = {"workers": len(devices), "threads per worker": threads, "cores": os.cpu_count(), "devices": names}
    return facts | {"simd": info.gather()["cpu"]["simd"]}


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
