"""What `RayPool` does when files travel, nodes go and errors come, on a cluster of one process (`helpers.fake_ray`).

`test_study_ray.py` runs studies on a real one.
"""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.study_helpers import TINY
from helpers.study_identity import IDENTITY

pytest.importorskip("torch")
pytest.importorskip("pydantic")
ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'roarfast[ray]'")

from helpers.fake_ray import BYTES, DRIVER, FakeRay, FakeWorker, leave, node_id

from roarfast.study.artefacts import extras, inputs, outputs
from roarfast.study.cluster import pool as module
from roarfast.study.cluster.files import NodeFiles, packages
from roarfast.study.cluster.pool import RayPool
from roarfast.study.cluster.slots import Needs
from roarfast.study.config import parse_config
from roarfast.study.errors import StudyError
from roarfast.study.executor import Executor
from roarfast.study.grid import grid_cells
from roarfast.study.plan import Plan, build_plan
from roarfast.study.progress import TaskProgress
from roarfast.study.runfolder import RunFolder
from roarfast.study.store import Store
from roarfast.study.tasks import BaseTask, CellsTask, CodesTask, MapsTask, Task, encode_outcome
from roarfast.study.workers import Event, Settings

CONFIG = parse_config(TINY)
Start = Callable[..., RayPool]


def plan(text: str = TINY) -> Plan:
    config = parse_config(text)
    return build_plan(config, IDENTITY, grid_cells(config))


def first(cls: type[Task], /, **fields: object) -> Any:
    tasks = plan().tasks.values()
    return next(
        t for t in tasks if isinstance(t, cls) and all(getattr(t, name) == value for name, value in fields.items())
    )


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Makes the pool of a run folder on a fake cluster, all workers ready."""
    monkeypatch.setattr(module, "_LOOK", 0.0)
    monkeypatch.setattr(module, "_PAUSE", 0.01)
    pools = []

    def started(fake: FakeRay, use: str = "auto", wait: bool = True, **options: Any) -> RayPool:
        monkeypatch.setattr(ray, "get", fake.get)
        RunFolder(tmp_path / "run").prepare(None)
        settings = Settings(CONFIG.model_dump(mode="json"), str(tmp_path / "run"), "cpu", 1)
        pool = RayPool(fake, settings, Needs(), use=use, scratch=str(tmp_path / "scratch"), **options)  # type: ignore[arg-type]
        pools.append(pool)
        if wait:
            assert list(pool.events()) == [] and len(pool.idle()) == pool.size == len(fake.names)
        return pool

    yield started
    for pool in pools:
        pool.close()
    assert not list((tmp_path / "run").glob(".probe-*"))
    left = {path.name.rpartition("-")[2] for path in (tmp_path / "scratch").glob("roarfast-*/*-*")}
    assert left <= {node_id(name)[:12] for pool in pools for name in pool._ray.lost}  # type: ignore[attr-defined]


def ended(pool: RayPool, worker: int, task: Task) -> Event:
    """Submits a task; the event that ends it."""
    pool.submit(worker, task)
    for _ in range(10):
        for event in pool.events():
            if event.kind != "update":
                return event
    raise AssertionError(f"{task.label} did not end")


def on(pool: RayPool, node: str) -> int:
    """The worker of a node."""
    return next(number for number, slot in pool._slots.items() if slot.host.node.name == node_id(node))


def test_a_study_moves_every_file_once_to_a_node(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    came: Counter[tuple[str, str]] = Counter()
    receive = NodeFiles._receive

    def counted(self: NodeFiles, one: Any, *others: Any) -> None:
        came[str(self.root), one.path] += 1
        receive(self, one, *others)

    monkeypatch.setattr(NodeFiles, "_receive", counted)
    whole = plan()
    with Store.create(tmp_path / "run") as store:
        store.register([(key, cell) for key, cell in whole.cells.items()], "shapes")
        store.reopen()
        pool = start(FakeRay(["a", "b"]), "transfer")
        executor = Executor(whole, store, TaskProgress(), lambda task: True)
        assert executor.run(pool, "test").failed == []
        assert set(store.statuses().values()) == {"done"}
    assert came and max(came.values()) == 1, came.most_common(3)
    assert not any(path.startswith("codes/") for root, path in came if root == str(tmp_path / "run"))  # they pass
    everything = sum(BYTES.get(task.kind, 0) * len(outputs(task)) for task in whole.tasks.values())
    assert 0 < pool.moved <= 2 * everything  # to the run folder, and to the other node


def test_a_worker_knows_what_it_would_have_to_fetch(start: Start) -> None:
    pool = start(FakeRay(["a", "b"]), "transfer")
    base, maps, codes = first(BaseTask), first(MapsTask), first(CodesTask, estimator="grad^2")
    assert pool.missing is not None
    assert ended(pool, on(pool, "a"), base).kind == "done"
    assert (pool.missing(on(pool, "a"), maps), pool.missing(on(pool, "b"), maps)) == (0, BYTES["base"])
    assert ended(pool, on(pool, "a"), maps).kind == "done"
    assert pool.missing(on(pool, "a"), codes) == 0 < pool.missing(on(pool, "b"), codes)
    assert ended(pool, on(pool, "b"), codes).kind == "done"
    assert pool.missing(on(pool, "b"), codes) == 0


def test_nodes_that_share_the_run_folder_move_nothing(start: Start) -> None:
    pool = start(FakeRay(["a", "b"]), "shared")
    assert pool.missing is None
    for node, task in (("a", first(BaseTask)), ("b", first(MapsTask))):
        assert ended(pool, on(pool, node), task).kind == "done"
    assert pool.moved == 0


def test_only_one_actor_fetches_into_the_run_folder(start: Start) -> None:
    """Nodes that share it would get the same files twice, into one place."""
    fake = FakeRay(["a", "b", "c"], apart=["c"])
    pool = start(fake)
    codes = first(CodesTask, estimator="rand")
    cell = first(CellsTask, kind="cell", codes=codes)
    assert ended(pool, on(pool, "c"), codes).kind == "done"
    assert ended(pool, on(pool, "a"), cell).kind == "done"
    fetched = {node for node, thing, method in fake.calls if (thing, method) == ("NodeFiles", "fetch")}
    assert fetched == {DRIVER}
    assert ended(pool, on(pool, "b"), cell).kind == "done"
    assert pool.moved == BYTES["codes"]


def test_what_only_a_lost_node_had_is_nobodys_fault(start: Start) -> None:
    fake = FakeRay(["a", "b"])
    pool = start(fake, "transfer")
    codes = first(CodesTask, estimator="rand")
    cell = first(CellsTask, kind="cell", codes=codes)
    assert ended(pool, on(pool, "b"), codes).kind == "done"
    fake.lost.add("b")
    event = ended(pool, on(pool, "a"), cell)
    assert event.kind == "lost" and "a transfer was interrupted" in event.text
    event = ended(pool, on(pool, "a"), cell)
    assert event.kind == "lost" and event.outcome.damage is not None and codes.made(event.outcome.damage)
    assert "only on a node that is gone" in event.text
    assert pool.size == 1


def test_the_task_of_a_lost_node_is_lost_and_the_others_go_on(start: Start) -> None:
    fake = FakeRay(["a", "b"])
    pool = start(fake, "transfer")
    fake.lost.add("a")
    event = ended(pool, on(pool, "a"), first(BaseTask))
    assert event.kind == "lost" and "host-a" in event.text and "is gone" in event.text
    assert pool.idle() == [on(pool, "b")]


class SourceDied(ray.exceptions.ActorDiedError):  # type: ignore[misc]
    def __str__(self) -> str:
        return "The actor died because its node has died."


def test_a_transfer_that_fails_by_itself_is_not_tried_for_ever(start: Start) -> None:
    fake = FakeRay(["a", "b"])
    pool = start(fake, "transfer")
    assert ended(pool, on(pool, "a"), first(BaseTask)).kind == "done"
    fake.mishaps["b", "fetch"] = [RuntimeError("arrived damaged"), SourceDied()]
    fetches = on(pool, "b")
    event = ended(pool, on(pool, "b"), first(MapsTask))
    assert event.kind == "died" and "a transfer was interrupted (arrived damaged)" in event.text  # an attempt
    assert ended(pool, on(pool, "b"), first(MapsTask)).kind == "lost"  # another node went: none
    assert ended(pool, on(pool, "b"), first(MapsTask)).kind == "done"
    assert pool.size == 2 and on(pool, "b") == fetches  # that one is well


def test_a_node_whose_files_nobody_serves_starts_anew(start: Start) -> None:
    fake = FakeRay(["a", "b"])
    pool = start(fake, "transfer")
    assert ended(pool, on(pool, "a"), first(BaseTask)).kind == "done"
    before = pool._hosts[node_id("b")].files
    fake.kill(before)  # type: ignore[arg-type]
    assert ended(pool, on(pool, "b"), first(MapsTask)).kind == "lost"
    list(pool.events())
    assert pool._hosts[node_id("b")].files is not before
    assert ended(pool, on(pool, "b"), first(MapsTask)).kind == "done"


@pytest.mark.parametrize("error", ["ActorUnschedulableError", "ActorPlacementGroupRemoved", "NodeDiedError"])
def test_every_way_of_going_is_known(start: Start, error: str) -> None:
    fake = FakeRay(["a", "b"])
    pool = start(fake, "transfer")
    kind = getattr(ray.exceptions, error)
    fake.mishaps["a", "execute"] = [kind("the node is dead") if error != "ActorPlacementGroupRemoved" else kind()]
    event = ended(pool, on(pool, "a"), first(BaseTask))
    assert event.kind == "died" and "a worker on host-a" in event.text
    list(pool.events())
    assert ended(pool, on(pool, "a"), first(BaseTask)).kind == "done"


def test_a_worker_that_cannot_start_says_so(start: Start) -> None:
    fake = FakeRay(["a"])
    fake.mishaps["a", "ready"] = [ImportError("no module named my_net")] * 3
    pool = start(fake, "transfer", wait=False)
    with pytest.raises(StudyError, match=r"a worker on node host-a .* cannot start: .*my_net.*same Python packages"):
        for _ in range(3):
            assert list(pool.events()) == [] and pool.idle() == []


def test_a_node_with_other_packages_is_refused_by_name(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    here = packages() | {"torch": "2.6.1"}
    monkeypatch.setattr("roarfast.study.cluster.hosts.packages", lambda: here)
    with pytest.raises(
        StudyError, match=r"node host-a .* has other versions than this machine: torch .* instead of 2.6.1"
    ):
        start(FakeRay(["a"]))


def test_a_node_that_should_see_the_run_folder_and_does_not_is_refused(start: Start) -> None:
    with pytest.raises(StudyError, match=r"node host-b .* does not see the run folder .*run.artefacts = 'shared'"):
        start(FakeRay(["a", "b"], apart=["b"]), "shared")


def test_a_full_disk_of_a_node_is_not_that_of_the_run_folder(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"event": "fatal", "text": "disk full", "outcome": encode_outcome(Event(0, "", first(BaseTask)).outcome)}
    monkeypatch.setattr(FakeWorker, "execute", lambda self, text: json.dumps(said))
    pool = start(FakeRay(["a"]), "transfer")
    with pytest.raises(StudyError, match=r"the disk of a node is full \(host-a .*run.scratch"):
        ended(pool, on(pool, "a"), first(BaseTask))


def test_files_that_a_protocol_need_not_write_are_not_missed(start: Start) -> None:
    """A curve of the user's may ask for no answers, and a cell may train nothing that could be kept."""
    pool = start(FakeRay(["a"]), "transfer", keep_models=True)
    road, roar = (first(CellsTask, kind=kind) for kind in ("curve", "cell"))
    assert extras(road, True) and extras(roar, True) and not extras(roar) and not outputs(road)
    for task in (road, roar):
        for one in (first(BaseTask), *plan().tasks.values()):
            if {need.path for need in inputs(task)} & set(outputs(one)):
                leave(pool._folder, one)
        assert ended(pool, on(pool, "a"), task).kind == "done"


def test_a_retraining_that_starts_at_the_base_model_is_brought_it() -> None:
    text = TINY.replace("[train]\n", '[train]\nstart = "base"\n')
    for tasks, brought in ((plan().tasks, False), (plan(text).tasks, True)):
        cell = next(t for t in tasks.values() if isinstance(t, CellsTask) and t.cell.protocol == "roar")
        base = outputs(tasks[cell.base])
        assert ({one.path for one in inputs(cell)} >= set(base)) is brought
