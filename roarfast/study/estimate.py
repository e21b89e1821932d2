"""What a study would take on a cluster, in words: the simulation with calibrated costs (`--dry-run --nodes 8 --gpus 4`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from roarfast._progress import duration
from roarfast.study.cluster.worker import trains
from roarfast.study.environment import Pace
from roarfast.study.errors import StudyError
from roarfast.study.plan import Plan
from roarfast.study.schema import StudyConfig
from roarfast.study.simulate import Bytes, Machines, Seconds, Simulation, simulate
from roarfast.study.tasks import BaseTask, CodesTask, MapsTask, Task
from roarfast.train import build_model

BAND = 1.35
"""A prediction is good to this factor: clocks of one machine change by a third with its temperature and its neighbours."""
_UP_TO = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


def sizes(config: StudyConfig, images: Mapping[str, int], shape: tuple[int, int, int], classes: int) -> Bytes:
    """Task → bytes of what it leaves for others."""
    model = build_model(config.model.name, classes, shape[2], seed=0, **config.model.options)
    weights = sum(value.numel() * value.element_size() for value in model.state_dict().values())
    width, pixels = (2 if config.explain.dtype == "float16" else 4), shape[0] * shape[1]

    def size(task: Task) -> int:
        if isinstance(task, BaseTask):
            return weights
        if isinstance(task, MapsTask):
            return len(task.estimators) * width * pixels * sum(images[split] for split in task.splits)
        if isinstance(task, CodesTask):
            rates = len(task.drops) if task.estimator == "block" else 1
            return rates * pixels * sum(images[split] * len(orders) for split, orders in task.orders.items())
        return 0

    return size


def cluster(nodes: int, gpus: int, speed: float, each: int, start: float) -> Machines:
    """A cluster of nodes with so many GPUs, of which a worker takes `each` (`run.gpus_per_training`).

    Raises:
        StudyError: A node has fewer.
    """
    if gpus < each:
        raise StudyError(
            f"--gpus {gpus}: run.gpus_per_training = {each} spreads a training over {each} GPUs of one node, so a node needs as many"
        )
    return Machines(nodes, gpus // each, speed, start=start)


def pace_of(config: StudyConfig, pace: Pace) -> Seconds:
    """The time of a task by a worker: of those that train, the GPUs of a training share the work without loss, at best."""
    ranks = config.run.gpus_per_training
    return lambda task: pace.seconds(task) / (ranks if ranks > 1 and trains(task, config) else 1)


def describe_cluster(
    plan: Plan, left: Mapping[str, Task], seconds: Seconds, machines: Machines, size: Bytes, each: int = 1
) -> str:
    """Makespan with its band, utilisation, critical path and transfers on a cluster, and the makespan on others."""
    found = simulate(left, plan.tasks, seconds, machines, size)
    workers = f"{machines.nodes} × {machines.workers} workers"
    workers += f" of {each} GPUs, which share a training without loss" if each > 1 else ""
    lines = [
        f"on {workers}, each {machines.speed:g} times as fast as one here (--speed): about {duration(found.makespan)}, between "
        f"{duration(found.makespan / BAND)} and {duration(found.makespan * BAND)}",
        f"  {100 * (1 - found.idle):.1f} % of the workers' time used; {100 * found.idle:.1f} % idle, of which "
        f"{100 * found.least_idle:.1f} % no order of the tasks could avoid",
        f"  critical path {duration(_length(found, seconds, machines))}: {' → '.join(task.label for task in found.path)}",
    ]
    apart = replace(machines, shared=False)
    moved = simulate(left, plan.tasks, seconds, apart, size)
    lines.append(
        f"  without a shared folder: {moved.moved / 1e9:.3g} GB between nodes, {duration(moved.fetching)} of waiting in all at "
        f"{machines.bandwidth / 1e9:g} GB/s, about {duration(moved.makespan)}"
    )
    table = [(n, simulate(left, plan.tasks, seconds, replace(machines, nodes=1, workers=n))) for n in _UP_TO]
    lines.append("  workers      " + "".join(f"{n:>11}" for n, _ in table))
    lines.append("  time         " + "".join(f"{duration(one.makespan):>11}" for _, one in table))
    lines.append("  idle         " + "".join(f"{100 * one.idle:>9.1f} %" for _, one in table))
    lines.append("  unavoidable  " + "".join(f"{100 * one.least_idle:>9.1f} %" for _, one in table))
    return "\n".join(lines)


def _length(found: Simulation, seconds: Seconds, machines: Machines) -> float:
    return sum(seconds(task) for task in found.path) / machines.speed
