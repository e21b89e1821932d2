"""`Study`: a config, a run folder, and what can be done with them."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

import numpy as np

from roarfast._objects import is_kept, make_importable
from roarfast.metrics.information import entropy
from roarfast.metrics.nulls import NULLS
from roarfast.study.cluster.cluster import Cluster
from roarfast.study.config import load_config, validate
from roarfast.study.environment import choose_devices, hardware, versions
from roarfast.study.errors import StudyError
from roarfast.study.executor import Executor, RunOutcome
from roarfast.study.grid import filter_cells, grid_cells, shard_cells
from roarfast.study.identity import Identity, identify, module_files, user_code
from roarfast.study.images import data_warnings, forget_shared_data, load_data, share_data
from roarfast.study.keys import Seeds
from roarfast.study.plan import Plan, build_plan, bytes_needed
from roarfast.study.preflight import chance_warning, try_all
from roarfast.study.progress import TaskProgress
from roarfast.study.protocols import find
from roarfast.study.records import Cell
from roarfast.study.recovery import recover
from roarfast.study.results import StudyResults, load
from roarfast.study.runfolder import RunFolder, check_claim
from roarfast.study.schema import BASELINES, StudyConfig
from roarfast.study.session import Objects, with_objects
from roarfast.study.store import Store
from roarfast.study.tasks import Task
from roarfast.study.usercode import stale_modules
from roarfast.study.workers import InlinePool, Pool, ProcessPool, Settings

_FREE_TO_CHANGE = ("run", "grid", "trials")
"""Sections whose change is not an error by itself: the keys of the cells tell whether results still fit."""


@dataclass(frozen=True)
class Setup:
    """A study ready to run: where, on what, and which tasks."""

    identity: Identity
    cells: dict[str, Cell]
    plan: Plan
    devices: list[str]
    notes: tuple[str, ...] = ()
    """What the run should say at its start, and the report."""


class Study:
    """A remove-and-retrain study in a run folder.

    Args:
        config: A checked config, or the dict of one.
        out: The run folder; default `runs/<name>`.
        source: The TOML file, of which the folder keeps a copy.
        **objects: `estimators=[…]`, `postprocessings=[…]`, `data=(train, test)`, `model=factory`: functions, classes and data
            sets beside those the config names; see `roarfast.study.session.with_objects`.

    Example:
        >>> study = Study.from_toml("study.toml", out="runs/demo")  # doctest: +SKIP
        >>> study = Study.from_toml("study.toml", estimators=[captum.attr.DeepLift, my_function])  # doctest: +SKIP
        >>> study.run(workers=2)  # doctest: +SKIP
        >>> study.results.select(protocol="roar", drop=0.3)  # doctest: +SKIP
    """

    def __init__(
        self,
        config: StudyConfig | Mapping[str, object],
        out: str | Path | None = None,
        source: str | Path | None = None,
        **objects: Unpack[Objects],
    ) -> None:
        if not isinstance(config, StudyConfig) or objects:
            raw = config.model_dump(mode="json") if isinstance(config, StudyConfig) else config
            config = validate(with_objects(raw, **objects))
        self.config = config
        self.folder = Path(out) if out is not None else Path("runs") / self.config.name
        self.source = Path(source) if source is not None else None
        if self.source is not None:
            make_importable(self.source.resolve().parent)

    @classmethod
    def from_toml(
        cls,
        path: str | Path,
        out: str | Path | None = None,
        data_root: str | Path | None = None,
        mask_only: bool = False,
        **objects: Unpack[Objects],
    ) -> Study:
        """Reads a config file; all its problems are reported at once (`ConfigError`)."""
        config = load_config(path, data_root)
        return cls(config.with_mask_only() if mask_only else config, out, path, **objects)

    @property
    def cells(self) -> list[Cell]:
        """The whole grid."""
        return grid_cells(self.config)

    @property
    def results(self) -> StudyResults:
        """What the store holds now; also while another process runs the study."""
        return load(self.folder)

    def shard(self, index: int, count: int) -> Study:
        """This study for one of `count` parts, in a folder of its own; `merge` puts them together."""
        return Study(self.config, RunFolder(self.folder).shard(index, count), self.source)

    def seeds(self) -> dict[str, int | dict[str, int]]:
        """The seeds of every trial, as the report shows them."""
        cells = self.cells
        baselines = tuple(name for name in BASELINES if any(cell.estimator == name for cell in cells))
        protocols = {find(cell.protocol) for cell in cells if cell.protocol != "base"}
        imputing = {protocol for protocol in protocols if protocol.imputes}
        splits = ("train",) * any(protocol.trains for protocol in imputing) + ("test",) * bool(imputing)
        moving = [find(cell.protocol) for cell in cells if cell.null in NULLS]
        moved = ("train",) * any(protocol.trains for protocol in moving) + ("test",) * bool(moving)
        matched = any(protocol.matched for protocol in protocols)
        return Seeds(self.config.seed).table(max(cell.trial for cell in cells) + 1, baselines, splits, moved, matched)

    def setup(
        self,
        device: str | None = None,
        workers: int | None = None,
        only: str | None = None,
        shard: tuple[int, int] | None = None,
        cluster: Cluster | None = None,
    ) -> Setup:
        """Reads the data, and works out keys and tasks; runs nothing."""
        number = self._workers(workers or self.config.run.workers)
        devices = cluster.devices if cluster else choose_devices(device or self.config.run.device, number, self.config)
        train, test = load_data(self.config.data)
        notes = (*data_warnings(self.config.data), *try_all(self.config, train, test))
        identity = identify(self.config, train, test, devices[0])
        grid = self.cells
        chosen = shard_cells(grid, *shard) if shard else grid
        if only:
            chosen = filter_cells(chosen, only)
        plan = build_plan(self.config, identity, grid, chosen)
        mine = grid if not shard else chosen
        return Setup(identity, {identity.key(cell): cell for cell in mine}, plan, devices, notes)

    def run(
        self,
        workers: int | None = None,
        device: str | None = None,
        only: str | None = None,
        shard: tuple[int, int] | None = None,
        progress: TaskProgress | None = None,
        on_setup: Callable[[Setup], None] | None = None,
        ray: str | None = None,
        redo: bool = False,
    ) -> RunOutcome:
        """Runs what is not done yet. Killed at any moment, the same call resumes and ends with the same results.

        Args:
            workers: Processes; default from the config (`auto`: one per GPU, or the cores divided by `threads`).
            device: `"cpu"`, `"cuda"`, `"cuda:1"`, `"auto"`; default from the config.
            only: Run a part of the grid: `"estimator=sg-sq,drop=0.3"`.
            shard: (i, n): the i-th of n parts; see `shard`.
            progress: Where to tell what is going on; default silent.
            on_setup: Called once the tasks are known, before the first of them.
            ray: Run on a Ray cluster: its address, or `"auto"`; default from the config (`run.ray`).
            redo: If files of yours changed (model, estimator, post-processing, what they import), drop the results that
                depend on them and make them again; otherwise that is an error.

        Returns:
            How many tasks were done, and what failed. Failed cells are tried again by the next run.
        """
        begun = time.perf_counter()
        progress, files = progress or TaskProgress(), RunFolder(self.folder)
        check_claim(self.folder, self.source)
        with files.lock(), self._cluster(ray, device, workers) as cluster:
            if cluster is not None:
                progress.note(cluster.describe())
            setup = self.setup(device, workers, only, shard, cluster)
            for damage in recover(self.folder):
                progress.note(damage)
            with Store.create(self.folder) as store:
                for damage in store.drop_damaged():
                    progress.note(f"{damage}; making it again")
                dropped = check_same_study(store, self.config, setup.cells, setup.identity.numerics, redo)
                check_fresh(user_code(self.config), here=len(setup.devices) == 1 and cluster is None)
                if dropped:
                    files.delete_maps()  # first: killed in between, the next run must ask again
                    store.forget(dropped)
                    progress.note(f"your files changed: {len(dropped)} cells that depend on them are made again")
                files.prepare(self.source)
                check_space(self.folder, bytes_needed(self.config, setup.identity, setup.plan))
                self._record(setup, store, cluster)
                executor = Executor(setup.plan, store, progress, lambda task: task.is_present(files), self._forget)
                facts = {"workers": len(setup.devices), "threads": self.config.run.threads, "pid": os.getpid()}
                session = store.begin_session(facts | {"setup": time.perf_counter() - begun})
                for doubt in (*setup.notes, *other_torch(store)):
                    progress.note(f"warning: {doubt}")
                if on_setup is not None:
                    on_setup(setup)
                if executor.left:
                    self._execute(executor, setup.devices, progress, cluster)
                store.end_session(session, {"waiting": executor.outcome.waiting})
                store.put(data_warnings=[*setup.notes, *self._at_chance()])
            self.results.to_csv(files.results_csv)
            return executor.outcome

    def _workers(self, asked: int | str) -> int | str:
        """How many processes: one, if there are objects that no other process has."""
        config = self.config
        kept = [entry.name for entry in (*config.estimators, *config.postprocessings) if is_kept(entry.object)]
        kept += ["the model"] if is_kept(config.model.name) else []
        if not kept:
            return asked
        if isinstance(asked, int) and asked > 1:
            raise StudyError(
                f"workers = {asked}, but {', '.join(kept)} cannot be imported by other processes: put what it is into a module (a "
                ".py file beside the script), or use one worker"
            )
        return 1

    def _record(self, setup: Setup, store: Store, cluster: Cluster | None) -> None:
        """Puts what the run is made of, and its cells, into the store."""
        labels = load_data(self.config.data)[1].labels
        store.put(
            config=self.config.model_dump(mode="json"),
            numerics=setup.identity.numerics,
            data=setup.identity.data,
            data_warnings=list(setup.notes),
            code=user_code(self.config),
            classes=load_data(self.config.data)[0].num_classes,
            label_entropy=float(entropy(np.bincount(labels) / max(1, len(labels)))),
            versions=versions(),
            hardware=hardware(setup.devices, self.config.run.threads) if cluster is None else cluster.hardware(),
            seeds=self.seeds(),
        )
        store.register(list(setup.cells.items()), self.config.data.name)
        store.reopen()

    def _at_chance(self) -> list[str]:
        """A sentence per base model that has learnt nothing, for the report; workers say it when they find it."""
        test = load_data(self.config.data)[1]
        bases = [record for record in load(self.folder) if record.protocol == "base" and record.accuracy is not None]
        found = ((record.trial, chance_warning(record.accuracy or 0.0, test)) for record in bases)
        return [f"trial {trial}: {text}" for trial, text in found if text]

    def _cluster(
        self, address: str | None, device: str | None, workers: int | None
    ) -> contextlib.AbstractContextManager[Cluster | None]:
        """The Ray cluster that a run is to use, connected; None without one."""
        address = address or self.config.run.ray
        if not address and self.config.run.gpus_per_training > 1:
            raise StudyError(
                f"run.gpus_per_training = {self.config.run.gpus_per_training} spreads a training over GPUs with Ray: give --ray auto, "
                "which also uses this machine alone, or set it to 1"
            )
        if address and self._workers("auto") == 1:
            self._workers(2)  # says that workers cannot import what was made in this process
        return Cluster(address, self.config.run, device, workers) if address else contextlib.nullcontext()

    def _execute(self, executor: Executor, devices: list[str], progress: TaskProgress, cluster: Cluster | None) -> None:
        dump, files = self.config.model_dump(mode="json"), RunFolder(self.folder)
        settings = [Settings(dump, str(self.folder), device, self.config.run.threads) for device in devices]
        pool: Pool = InlinePool(settings[0], progress.update)
        try:
            if len(settings) > 1 or cluster is not None:
                share_data(files, self.config.data)
            if cluster is not None:
                images = tuple(part.data_hash for part in load_data(self.config.data))
                pool = cluster.pool(replace(settings[0], images=images), module_files(self.config))
            elif len(settings) > 1:
                pool = ProcessPool(settings)
            executor.run(pool, self.config.name)
        finally:
            forget_shared_data(files)

    def _forget(self, task: Task) -> None:
        """Codes are quickly made again from maps, so they go when the last task that needs them is done."""
        if not self.config.run.keep_codes:
            RunFolder(self.folder).delete_codes(task.key)


def check_same_study(
    store: Store, config: StudyConfig, cells: dict[str, Cell], numerics: Mapping[str, object], redo: bool = False
) -> set[str]:
    """Refuses to mix results: an old folder may only grow, or have cells made again after a change of the user's files.

    Returns:
        The cells to make again, by their old keys; only with `redo`.

    Raises:
        StudyError: With every changed key, its old and its new value.
    """
    old = store.get("config", None)
    if old is None:
        return set()
    new = config.model_dump(mode="json")
    changes = _changes(old, new)
    old_numerics = store.get("numerics", numerics)
    if old_numerics != numerics:
        changes += [
            f"{name}: {old_numerics.get(name)!r} → {numerics[name]!r} (it decides the last bits of results)"
            for name in numerics
            if old_numerics.get(name) != numerics[name]
        ]
    missing = set(store.statuses()) - set(cells)
    if not missing:
        return set()
    was, now = store.get("code", {}), user_code(config)
    files = [
        f"{name.replace('.', '/')}.py, which results depend on (version = … in the config tells a change that matters from one that does not)"
        for name in sorted({*was, *now})
        if was.get(name) != now.get(name)
    ]
    only_files = bool(files) and not changes
    if only_files and redo:
        return missing
    changes += files
    if not changes:
        changes.append(
            f"the grid lost {len(missing)} of its cells, or the images or the code behind them changed since the run began"
        )
    lines = "\n".join(f"  - {change}" for change in changes)
    raise StudyError(
        f"{store.path.parent} belongs to another study: a folder may get more cells, but what its results were made "
        f"with must stay. Changed:\n{lines}\nResume with the old {'files' if only_files else 'config'}, or choose another --out"
        + (f", or give --redo to make the {len(missing)} cells that depend on them again" if only_files else "")
    )


def check_fresh(code: dict[str, str], here: bool) -> None:
    """Refuses to compute in this process with modules that it imported before their files were changed.

    Raises:
        StudyError: With the names of the files.
    """
    stale = stale_modules(code)
    if stale and here:
        names = ", ".join(f"{name.replace('.', '/')}.py" for name in stale)
        raise StudyError(
            f"{names} changed after this process imported it, so the old code would run: restart Python, or importlib.reload it"
        )


def other_torch(store: Store) -> list[str]:
    """A sentence if finished cells were computed by another torch than this; the report then shows the mix."""
    here = versions()["torch"]
    others = sorted({r.torch for r in store.records() if r.status == "done" and r.torch not in (None, here)} - {None})
    if not others:
        return []
    return [f"cells of this folder were computed with torch {', '.join(map(str, others))}, and this is torch {here}"]


def check_space(folder: Path, needed_bytes: int) -> None:
    """Refuses to start when maps and codes cannot fit."""
    free = shutil.disk_usage(folder).free
    if needed_bytes > free:
        raise StudyError(
            f"the maps and codes of this study need about {needed_bytes / 1e9:.3g} GB, the disk of {folder} has "
            f"{free / 1e9:.3g} GB free: free some space, choose another --out, or set explain.dtype = 'float16'"
        )


def _changes(old: object, new: object, path: str = "") -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        names = [name for name in {**old, **new} if path or name not in _FREE_TO_CHANGE]
        found = []
        for name in names:
            if path == "data" and name in ("root", "train", "test", "download"):
                continue  # where the images lie does not matter, what is in them does: the keys know
            found += _changes(old.get(name), new.get(name), f"{path}.{name}" if path else name)
        return found
    return [] if old == new or (not old and not new) else [f"{path}: {old!r} → {new!r}"]
