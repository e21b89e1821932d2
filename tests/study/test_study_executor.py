"""The executor without any training: order, failures, dying workers, full disks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.study_helpers import TINY
from helpers.study_identity import IDENTITY

pytest.importorskip("torch")

from helpers.fake_outcomes import outcome_of

from roarfast.study.config import parse_config
from roarfast.study.errors import OutOfSpace
from roarfast.study.executor import ATTEMPTS, Executor
from roarfast.study.grid import grid_cells
from roarfast.study.plan import build_plan
from roarfast.study.progress import TaskProgress
from roarfast.study.store import Store
from roarfast.study.tasks import CellsTask, Damage, Outcome, Task
from roarfast.study.workers import Event

CONFIG = parse_config(TINY)
GRID = grid_cells(CONFIG)


class FakePool:
    """Finishes every task at once, unless `mishaps` says something else for its label."""

    missing = None

    def __init__(self, size: int = 3, mishaps: dict[str, list[str]] | None = None) -> None:
        self.size, self.mishaps, self.order = size, mishaps or {}, []
        self._tasks: dict[int, Task] = {}

    def idle(self) -> list[int]:
        return [worker for worker in range(self.size) if worker not in self._tasks]

    def submit(self, worker: int, task: Task) -> None:
        self._tasks[worker] = task
        self.order.append(task)

    def events(self) -> Iterator[Event]:
        for worker, task in list(self._tasks.items()):
            del self._tasks[worker]
            mishap = next((m.pop(0) for label, m in self.mishaps.items() if label in task.label and m), None)
            if mishap is not None:
                gone = Damage("codes", task.codes.key) if mishap == "lost" and isinstance(task, CellsTask) else None
                yield Event(worker, mishap, task, "Traceback\nRuntimeError: boom", Outcome(wall=0.1, damage=gone))
            else:
                yield Event(worker, "done", task, "", outcome_of(task))

    def forget(self, task: Task) -> None:
        pass

    def close(self) -> None:
        pass


def run(folder: Path, pool: FakePool) -> tuple[Executor, Store]:
    plan = build_plan(CONFIG, IDENTITY, GRID)
    store = Store.create(folder)
    store.register([(key, cell) for key, cell in plan.cells.items()], "shapes")
    store.reopen()
    executor = Executor(plan, store, TaskProgress(), is_present=lambda task: True)
    executor.run(pool, "test")
    return executor, store


def test_everything_is_done_once_and_nothing_before_what_it_needs(tmp_path: Path) -> None:
    pool = FakePool()
    _, store = run(tmp_path, pool)
    assert set(store.statuses().values()) == {"done"}
    keys = [task.key for task in pool.order]
    assert len(keys) == len(set(keys))
    for position, task in enumerate(pool.order):
        assert all(keys.index(needed) < position for needed in task.needs)
    record = next(r for r in store.records() if r.protocol == "roar" and r.drop == 0.3)
    assert (record.removed_fraction, record.removed_fraction_train, record.tv_map, record.tv_mask) == (
        0.3,
        0.3,
        5.0,
        0.1,
    )
    road = next(r for r in store.records() if r.protocol == "road")
    assert road.removed_fraction_train is None


def test_a_second_run_does_nothing(tmp_path: Path) -> None:
    run(tmp_path, FakePool())
    pool = FakePool()
    executor, _ = run(tmp_path, pool)
    assert pool.order == [] and executor.outcome.done == 0


def test_a_failing_cell_is_recorded_and_stops_nothing(tmp_path: Path) -> None:
    label = "roar grad^2 plain t=0.3 trial 0"
    executor, store = run(tmp_path, FakePool(mishaps={label: ["failed"]}))
    failed = [r for r in store.records() if r.status == "failed"]
    assert len(failed) == 1 and "RuntimeError: boom" in (failed[0].error or "")
    assert executor.outcome.failed == [f"{label}: RuntimeError: boom"]
    assert sum(r.status == "done" for r in store.records()) == len(GRID) - 1
    executor, store = run(tmp_path, FakePool())  # tried again by the next run
    assert set(store.statuses().values()) == {"done"} and executor.outcome.done == 1


def test_failing_shared_work_fails_the_cells_that_need_it_and_no_others(tmp_path: Path) -> None:
    executor, store = run(tmp_path, FakePool(mishaps={"maps sg-sq": ["failed"]}))
    by_status = {status: {r.estimator for r in store.records() if r.status == status} for status in ("done", "failed")}
    assert by_status == {"failed": {"sg-sq"}, "done": {"none", "grad^2", "rand", "block"}}
    assert all("needs maps sg-sq" in (r.error or "") for r in store.records() if r.status == "failed")
    assert executor.left == {}


def test_a_task_whose_worker_dies_is_tried_again(tmp_path: Path) -> None:
    label = "roar rand plain t=0.5"
    _, store = run(tmp_path / "once", FakePool(mishaps={label: ["died"] * (ATTEMPTS - 1)}))
    assert set(store.statuses().values()) == {"done"}
    _, store = run(tmp_path / "always", FakePool(mishaps={label: ["died"] * ATTEMPTS}))
    assert [r.status for r in store.records()].count("failed") == 1


def test_what_goes_with_a_node_is_made_again_as_often_as_it_takes(tmp_path: Path) -> None:
    """A cell loses its codes with the only node that had them: neither is to blame."""
    often = ATTEMPTS + 2
    pool = FakePool(mishaps={"roar rand plain t=0.5": ["lost"] * often, "maps sg-sq": ["lost"] * often})
    executor, store = run(tmp_path, pool)
    assert set(store.statuses().values()) == {"done"} and executor.outcome.failed == []
    made = [task.label for task in pool.order]
    assert made.count("codes rand plain, trial 0") == made.count("roar rand plain t=0.5 trial 0") == often + 1
    assert sum(label.startswith("maps sg-sq") for label in made) == often + 1


def test_a_full_disk_stops_the_run_and_keeps_what_is_done(tmp_path: Path) -> None:
    with pytest.raises(OutOfSpace, match="no space left"):
        run(tmp_path, FakePool(size=1, mishaps={"roar grad^2 max(3) t=0.5": ["fatal"]}))
    statuses = list(Store.create(tmp_path).statuses().values())
    assert "done" in statuses and "failed" not in statuses
