"""`Study`: a config, a run folder, and what can be done with them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roarfast.study import folder as folders
from roarfast.study.cells import Cell, Identity, filter_cells, grid_cells, shard_cells
from roarfast.study.config import StudyConfig, load_config, validate
from roarfast.study.errors import StudyError
from roarfast.study.executor import Executor, Outcome, log_folder, worker_settings
from roarfast.study.lock import folder_lock
from roarfast.study.plan import Plan, build_plan
from roarfast.study.pool import InlinePool, Pool, ProcessPool
from roarfast.study.progress import Silent
from roarfast.study.results import StudyResults, load
from roarfast.study.store import Store


@dataclass(frozen=True)
class Setup:
    """A study ready to run: where, on what, and which tasks."""

    identity: Identity
    cells: dict[str, Cell]
    plan: Plan
    devices: list[str]


class Study:
    """A remove-and-retrain study in a run folder.

    Args:
        config: A checked config, or the dict of one.
        out: The run folder; default `runs/<name>`.
        source: The TOML file, of which the folder keeps a copy.

    Example:
        >>> study = Study.from_toml("study.toml", out="runs/demo")  # doctest: +SKIP
        >>> study.run(workers=2)  # doctest: +SKIP
        >>> study.results.select(protocol="roar", drop=0.3)  # doctest: +SKIP
    """

    def __init__(
        self, config: StudyConfig | dict[str, Any], out: str | Path | None = None, source: str | Path | None = None
    ) -> None:
        self.config = config if isinstance(config, StudyConfig) else validate(config)
        self.folder = Path(out) if out is not None else Path("runs") / self.config.name
        self.source = Path(source) if source is not None else None

    @classmethod
    def from_toml(
        cls,
        path: str | Path,
        out: str | Path | None = None,
        data_root: str | Path | None = None,
        mask_only: bool = False,
    ) -> Study:
        """Reads a config file; all its problems are reported at once (`ConfigError`)."""
        config = load_config(path, data_root)
        return cls(config.with_mask_only() if mask_only else config, out, path)

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
        return Study(self.config, shard_folder(self.folder, index, count), self.source)

    def setup(
        self,
        device: str | None = None,
        workers: int | None = None,
        only: str | None = None,
        shard: tuple[int, int] | None = None,
    ) -> Setup:
        """Reads the data, and works out keys and tasks; runs nothing."""
        from roarfast.study import pipeline

        if self.source is not None:
            make_importable(self.source.resolve().parent)
        devices = pipeline.choose_devices(
            device or self.config.run.device, workers or self.config.run.workers, self.config
        )
        identity = pipeline.identify(self.config, devices[0])
        grid = self.cells
        chosen = shard_cells(grid, *shard) if shard else grid
        if only:
            chosen = filter_cells(chosen, only)
        plan = build_plan(self.config, identity, grid, chosen)
        mine = grid if not shard else chosen
        return Setup(identity, {identity.key(cell): cell for cell in mine}, plan, devices)

    def run(
        self,
        workers: int | None = None,
        device: str | None = None,
        only: str | None = None,
        shard: tuple[int, int] | None = None,
        progress: Silent | None = None,
        on_setup: Callable[[Setup], None] | None = None,
    ) -> Outcome:
        """Runs what is not done yet. Killed at any moment, the same call goes on and ends with the same results.

        Args:
            workers: Processes; default from the config (`auto`: one per GPU, or the cores divided by `threads`).
            device: `"cpu"`, `"cuda"`, `"cuda:1"`, `"auto"`; default from the config.
            only: Run a part of the grid: `"estimator=sg-sq,drop=0.3"`.
            shard: (i, n): the i-th of n parts; see `shard`.
            progress: Where to tell what is going on; default silent.
            on_setup: Called once the tasks are known, before the first of them.

        Returns:
            How many tasks were done, and what failed. Failed cells are tried again by the next run.
        """
        from roarfast.study import pipeline

        progress = progress or Silent()
        begun = time.perf_counter()
        folders.check_claim(self.folder, self.source)
        with folder_lock(self.folder):
            setup = self.setup(device, workers, only, shard)
            threads = self.config.run.threads
            with Store.create(self.folder) as store:
                folders.check_same_study(store, self.config, setup.cells, setup.identity.numerics)
                folders.prepare(self.folder, self.config, self.source)
                folders.check_space(self.folder, pipeline.bytes_needed(self.config, setup.identity, setup.plan))
                dump = self.config.model_dump(mode="json")
                doubts = pipeline.data_warnings(self.config.data)
                store.put(
                    config=dump,
                    numerics=setup.identity.numerics,
                    data=setup.identity.data,
                    data_warnings=list(doubts),
                    classes=pipeline.load_data(self.config.data)[0].num_classes,
                    versions=pipeline.versions(),
                    hardware=pipeline.hardware(setup.devices, threads),
                    seeds=pipeline.seeds(self.config),
                )
                store.register([(key, cell) for key, cell in setup.cells.items()], self.config.data.name)
                store.reopen()
                executor = Executor(
                    setup.plan,
                    store,
                    progress,
                    lambda task: pipeline.artifact_exists(self.folder, task),
                    (lambda key: None)
                    if self.config.run.keep_codes
                    else (lambda key: pipeline.delete_codes(self.folder, key)),
                )
                facts = {"workers": len(setup.devices), "threads": threads, "pid": os.getpid()}
                session = store.begin_session(facts | {"setup": time.perf_counter() - begun})
                for doubt in doubts:
                    progress.note(f"warning: {doubt}")
                if on_setup is not None:
                    on_setup(setup)
                if executor.left:
                    settings = worker_settings(dump, self.folder, setup.devices, threads)
                    pool: Pool = InlinePool(settings[0], progress.update)
                    try:
                        if len(settings) > 1:
                            pipeline.share_data(self.folder, self.config.data)
                            pool = ProcessPool(settings, log_folder(self.folder))
                        executor.run(pool, self.config.name)
                    finally:
                        pipeline.forget_shared_data(self.folder)
                store.end_session(session, {"waiting": executor.outcome.waiting})
            self.results.to_csv(self.folder / "results.csv")
            return executor.outcome


def make_importable(folder: Path) -> None:
    """Lets `model.name = "my_file:function"` find a file beside the config: last on the path, so that it shadows nothing."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def shard_folder(folder: Path, index: int, count: int) -> Path:
    """Where a shard of a study works."""
    return folder / "shards" / f"{index}-of-{count}"


def find_shards(folder: Path) -> list[Path]:
    """The shard folders below a study's folder."""
    found = sorted(path.parent for path in (folder / "shards").glob("*-of-*/results.sqlite"))
    if not found:
        raise StudyError(
            f"{folder / 'shards'} has no shards: run them with `roarfast run FILE --out {folder} --shard i/n`"
        )
    return found
