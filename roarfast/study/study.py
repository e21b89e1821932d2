"""`Study`: a config, a run folder, and what can be done with them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roarfast.study.config import BASELINES, StudyConfig, load_config, validate
from roarfast.study.environment import choose_devices, hardware, versions
from roarfast.study.executor import Executor, Outcome, worker_settings
from roarfast.study.grid import Cell, filter_cells, grid_cells, shard_cells
from roarfast.study.identity import Identity, identify
from roarfast.study.images import data_warnings, forget_shared_data, load_data, share_data
from roarfast.study.keys import Seeds
from roarfast.study.lock import folder_lock
from roarfast.study.plan import Plan, build_plan, bytes_needed
from roarfast.study.pool import InlinePool, Pool, ProcessPool
from roarfast.study.progress import Silent
from roarfast.study.protocol import find
from roarfast.study.results import StudyResults, load
from roarfast.study.runfolder import RunFolder, check_claim, check_same_study, check_space
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
        return Study(self.config, RunFolder(self.folder).shard(index, count), self.source)

    def seeds(self) -> dict[str, Any]:
        """The seeds of every trial, as the report shows them."""
        cells = self.cells
        baselines = tuple(name for name in BASELINES if any(cell.estimator == name for cell in cells))
        imputing = {find(cell.protocol) for cell in cells if cell.protocol != "base" and find(cell.protocol).imputes}
        splits = ("train",) * any(protocol.trains for protocol in imputing) + ("test",) * bool(imputing)
        return Seeds(self.config.seed).table(max(cell.trial for cell in cells) + 1, baselines, splits)

    def setup(
        self,
        device: str | None = None,
        workers: int | None = None,
        only: str | None = None,
        shard: tuple[int, int] | None = None,
    ) -> Setup:
        """Reads the data, and works out keys and tasks; runs nothing."""
        if self.source is not None:
            make_importable(self.source.resolve().parent)
        devices = choose_devices(device or self.config.run.device, workers or self.config.run.workers, self.config)
        identity = identify(self.config, devices[0])
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
        progress, files = progress or Silent(), RunFolder(self.folder)
        begun = time.perf_counter()
        check_claim(self.folder, self.source)
        with folder_lock(self.folder):
            setup = self.setup(device, workers, only, shard)
            threads = self.config.run.threads
            with Store.create(self.folder) as store:
                for damage in store.drop_damaged():
                    progress.note(f"{damage}; making it again")
                check_same_study(store, self.config, setup.cells, setup.identity.numerics)
                files.prepare(self.source)
                check_space(self.folder, bytes_needed(self.config, setup.identity, setup.plan))
                dump = self.config.model_dump(mode="json")
                doubts = data_warnings(self.config.data)
                store.put(
                    config=dump,
                    numerics=setup.identity.numerics,
                    data=setup.identity.data,
                    data_warnings=list(doubts),
                    classes=load_data(self.config.data)[0].num_classes,
                    versions=versions(),
                    hardware=hardware(setup.devices, threads),
                    seeds=self.seeds(),
                )
                store.register([(key, cell) for key, cell in setup.cells.items()], self.config.data.name)
                store.reopen()
                executor = Executor(
                    setup.plan,
                    store,
                    progress,
                    files.has,
                    (lambda key: None) if self.config.run.keep_codes else files.delete_codes,
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
                            share_data(self.folder, self.config.data)
                            pool = ProcessPool(settings, files.logs)
                        executor.run(pool, self.config.name)
                    finally:
                        forget_shared_data(self.folder)
                store.end_session(session, {"waiting": executor.outcome.waiting})
            self.results.to_csv(files.results_csv)
            return executor.outcome


def make_importable(folder: Path) -> None:
    """Lets `model.name = "my_file:function"` find a file beside the config: last on the path, so that it shadows nothing."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
