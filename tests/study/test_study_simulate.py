"""The schedule and its simulation: small graphs with known answers, and properties of random ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from helpers.study_helpers import TINY, write_tiny
from helpers.study_identity import IDENTITY
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from typer.testing import CliRunner

from roarfast.commands import app
from roarfast.study import simulate as simulation
from roarfast.study.artefacts import inputs
from roarfast.study.config import parse_config
from roarfast.study.environment import Pace
from roarfast.study.errors import StudyError
from roarfast.study.estimate import cluster, describe_cluster, pace_of
from roarfast.study.grid import grid_cells
from roarfast.study.plan import build_plan
from roarfast.study.schedule import Schedule
from roarfast.study.simulate import Machines, critical_path, least, recorded, simulate
from roarfast.study.tasks import Task


def tasks(**needs: str) -> dict[str, Task]:
    """`tasks(a="", b="a")`: b needs a; ranks in the order given."""
    ranks = count()
    return {key: Task(key=key, label=key, needs=tuple(what), rank=(next(ranks),)) for key, what in needs.items()}


def test_ready_tasks_go_in_the_order_of_their_ranks() -> None:
    graph = tasks(a="", b="a", c="", d="bc")
    schedule = Schedule(graph, graph)
    assert [(w, t.key) for w, t in schedule.assign([0, 1, 2])] == [(0, "a"), (1, "c")]
    schedule.finish(graph["a"])
    assert [(w, t.key) for w, t in schedule.assign([0])] == [(0, "b")]
    schedule.retry(graph["b"])
    assert [(w, t.key) for w, t in schedule.assign([2])] == [(2, "b")]
    schedule.finish(graph["c"])
    assert schedule.assign([0]) == []
    schedule.finish(graph["b"])
    assert [(w, t.key) for w, t in schedule.assign([0])] == [(0, "d")]


def test_tasks_of_one_rank_go_in_the_order_of_the_plan() -> None:
    """In every process: the order of a set of names is another one in each."""
    graph = {key: Task(key=key, label=key, needs=("a",) if key != "a" else (), rank=(0,)) for key in "ahgfedcb"}
    schedule = Schedule(graph, graph)
    ((_, first),) = schedule.assign([0])
    schedule.finish(first)
    assert [task.key for _, task in schedule.assign(list(range(7)))] == list("hgfedcb")


def test_what_is_made_again_holds_up_those_that_need_it() -> None:
    graph = tasks(a="", b="a", c="a")
    schedule = Schedule({key: graph[key] for key in "bc"}, graph)
    assert [t.key for _, t in schedule.assign([0])] == ["b"]
    schedule.retry(graph["b"], [graph["a"]])
    assert [t.key for _, t in schedule.assign([0, 1])] == ["a"]
    assert {t.key for t in schedule.dependants(graph["a"])} == {"b", "c"}
    schedule.finish(graph["a"])
    assert {t.key for _, t in schedule.assign([0, 1])} == {"b", "c"}


def test_a_worker_takes_what_its_node_has() -> None:
    graph = tasks(a="", b="", c="")
    held = {(1, "b"), (0, "c")}
    schedule = Schedule({k: Task(key=k, label=k, rank=(2, i)) for i, k in enumerate(graph)}, graph)
    pairs = schedule.assign([0, 1], lambda worker, task: 0 if (worker, task.key) in held else 100)
    assert {(w, t.key) for w, t in pairs} == {(0, "c"), (1, "b")}
    first = Schedule({k: Task(key=k, label=k, rank=(i, 0)) for i, k in enumerate(graph)}, graph)
    pairs = first.assign([0], lambda worker, task: 0 if task.key == "c" else 100)
    assert [t.key for _, t in pairs] == ["a"]  # of an earlier kind: everything waits for it


def test_known_makespans() -> None:
    graph = tasks(a="", b="a", c="a", d="a", e="")
    times = {"a": 2.0, "b": 1.0, "c": 1.0, "d": 1.0, "e": 3.0}
    one, two = (simulate(graph, graph, lambda t: times[t.key], Machines(workers=n)) for n in (1, 2))
    assert one.makespan == sum(times.values()) == one.busy and one.idle == 0
    assert two.makespan == two.bound == 4.0 and two.idle == 0
    assert next(t.key for t in two.path) == "a" and len(two.path) == 2
    faster = simulate(graph, graph, lambda t: times[t.key], Machines(workers=2, speed=2))
    assert faster.makespan == 2.0
    slow = simulate(graph, graph, lambda t: times[t.key], Machines(workers=2, start=5.0))
    assert slow.makespan == 9.0 and min(span.begin for span in slow.spans) == 5.0  # once per worker, not per task


@given(st.data())
def test_no_simulation_beats_the_bound(data: st.DataObject) -> None:
    number = data.draw(st.integers(1, 14))
    needs = [data.draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set() for i in range(number)]
    graph = {
        str(i): Task(key=str(i), label="", needs=tuple(map(str, some)), rank=(data.draw(st.integers(0, 3)),))
        for i, some in enumerate(needs)
    }
    work = {key: data.draw(st.integers(1, 9)) / 1.0 for key in graph}
    workers = data.draw(st.integers(1, 5))
    found = simulate(graph, graph, lambda t: work[t.key], Machines(workers=workers))
    longest = sum(work[task.key] for task in critical_path(graph, work))
    assert longest <= found.bound <= found.makespan + 1e-9
    assert (
        found.makespan <= sum(work.values()) / workers + longest + 1e-9
    )  # Graham: no worker waits while a task is ready
    assert sum(work.values()) / workers <= least(graph, work, workers) + 1e-9
    for span in found.spans:
        assert all(other.end <= span.begin for other in found.spans if other.task.key in span.task.needs)


def test_a_study_on_nodes_without_a_shared_folder_moves_files_once_per_node() -> None:
    config = parse_config(TINY)
    plan = build_plan(config, IDENTITY, grid_cells(config))
    size = {"base": 1000, "maps": 100_000, "codes": 10_000}
    shared = simulate(plan.tasks, plan.tasks, lambda t: 1.0, Machines(2, 2))
    apart = simulate(
        plan.tasks,
        plan.tasks,
        lambda t: 1.0,
        Machines(2, 2, shared=False, bandwidth=1e6),
        lambda t: size.get(t.kind, 0),
    )
    assert shared.moved == 0 < apart.moved
    assert apart.moved <= sum(size.get(task.kind, 0) for task in plan.tasks.values())  # to the one other node
    assert len(apart.spans) == len(shared.spans) == len(plan.tasks)


def test_what_is_kept_goes_to_the_run_folder_before_a_task_is_done() -> None:
    """The base models of two trials on two nodes: the second has to bring its own to the first."""
    config = parse_config(TINY.replace("trials = 1", "trials = 2"))
    every = build_plan(config, IDENTITY, grid_cells(config)).tasks
    bases = {key: task for key, task in every.items() if task.kind == "base"}
    machines = Machines(2, 1, shared=False, bandwidth=100.0)
    found = simulate(bases, every, lambda t: 7.0, machines, lambda t: 1000)
    assert [(span.worker, span.collect, span.end) for span in found.spans] == [(0, 0.0, 7.0), (1, 10.0, 17.0)]
    assert (found.moved, found.makespan, found.busy, found.fetching) == (1000, 17.0, 14.0, 10.0)
    maps = {key: task for key, task in every.items() if task.kind == "maps"}
    resumed = simulate(maps, every, lambda t: 7.0, replace(machines, nodes=1), lambda t: 1000)
    assert len(maps) > 1 and resumed.moved == 0  # the run folder has the base models
    codes = {key: task for key, task in every.items() if task.kind == "codes" and not task.needs}
    passing = simulate(codes, every, lambda t: 7.0, machines, lambda t: 1000)
    assert len(codes) > 1 and passing.moved == 0  # they stay where they are


def test_a_schedule_of_many_workers_looks_up_what_a_task_reads_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 512 workers it asks for every one of them: a run must not wait for its schedule."""
    config = parse_config(TINY)
    every = build_plan(config, IDENTITY, grid_cells(config)).tasks
    asked = list[str]()
    monkeypatch.setattr(simulation, "inputs", lambda task: asked.append(task.key) or inputs(task))
    simulate(every, every, lambda t: 1.0, Machines(128, 4, shared=False), lambda t: 1000)
    assert sorted(asked) == sorted(every)


def test_recorded_times_are_those_of_cells_or_of_work() -> None:
    config = parse_config(TINY)
    plan = build_plan(config, IDENTITY, grid_cells(config))
    curve = next(task for task in plan.tasks.values() if task.kind == "curve")
    codes = next(task for task in plan.tasks.values() if task.kind == "codes")
    found = recorded([curve, codes], dict.fromkeys(curve.finishes, 0.5), {codes.key: 3.0})
    assert found == {curve.key: 0.5 * len(curve.finishes), codes.key: 3.0}


def test_a_simulated_cluster_needs_a_dry_run(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["run", str(write_tiny(tmp_path)), "--nodes", "2"])
    assert found.exit_code == 2
    assert "--nodes simulates a cluster: use it with --dry-run" in found.stderr


@pytest.mark.parametrize("option", ["--gpus", "--speed"])
def test_what_describes_a_simulated_cluster_needs_its_size(tmp_path: Path, option: str) -> None:
    found = CliRunner().invoke(app, ["run", str(write_tiny(tmp_path)), "--dry-run", option, "2"])
    assert found.exit_code == 2
    assert f"{option} describes the nodes of a simulated cluster: say how many with --nodes" in found.stderr


def test_gpus_that_share_a_training_are_one_worker() -> None:
    config = parse_config(TINY + "gpus_per_training = 4\n")
    every = build_plan(config, IDENTITY, grid_cells(config)).tasks
    assert cluster(2, 8, 3.0, 4, 5.0) == Machines(2, 2, 3.0, start=5.0)
    with pytest.raises(StudyError, match=r"--gpus 2: run.gpus_per_training = 4 .* a node needs as many"):
        cluster(2, 2, 1.0, 4, 0.0)
    pace = Pace(1.0, 1.0, 1.0, 1.0, 1.0, {"train": 60, "test": 40}, 2, lambda names: 1)
    seconds = pace_of(config, pace)
    shared = {task.cost_class for task in every.values() if seconds(task) == pace.seconds(task) / 4}
    assert shared == {"base", "roar"}  # what trains: maps, codes and scores use one of the GPUs
    assert all(seconds(task) == pace.seconds(task) for task in every.values() if task.cost_class not in shared)
    text = describe_cluster(
        build_plan(config, IDENTITY, grid_cells(config)), every, seconds, Machines(2, 2), lambda t: 0, 4
    )
    assert "on 2 × 2 workers of 4 GPUs, which share a training without loss" in text


def test_a_dry_run_with_ray_says_what_it_is_of(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["run", str(write_tiny(tmp_path)), "--dry-run", "--ray", "auto"])
    assert found.exit_code == 0, found.stderr
    assert "on this machine, not on the Ray cluster: --nodes N --gpus M simulates one" in found.stdout


def test_a_simulated_cluster_is_described(tmp_path: Path) -> None:
    options = ["--dry-run", "--nodes", "2", "--gpus", "2", "--speed", "4"]
    found = CliRunner().invoke(app, ["run", str(write_tiny(tmp_path)), *options])
    assert found.exit_code == 0, found.stderr
    for part in (
        "on 2 × 2 workers, each 4 times as fast as one here (--speed): about ",
        "% of the workers' time used",
        "critical path ",
        "without a shared folder: ",
        "GB between nodes",
    ):
        assert part in found.stdout
    assert found.stdout.count("512") == 1
