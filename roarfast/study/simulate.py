"""How long a study would take on a cluster: a discrete-event simulation of the schedule that a run follows."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from roarfast.study.artefacts import inputs, outputs
from roarfast.study.schedule import Schedule
from roarfast.study.tasks import Task

Seconds = Callable[[Task], float]
"""The time of a task on one worker."""
Bytes = Callable[[Task], int]
"""The size of what a task leaves."""


@dataclass(frozen=True)
class Machines:
    """A cluster to be.

    Attributes:
        nodes: How many.
        workers: On each of them.
        speed: Of a worker there, relative to the one whose times are given.
        shared: Whether all nodes see the run folder.
        bandwidth: Bytes per second into a node, where they do not. The run folder is on the first node then.
        start: Seconds until a worker can begin its first task: its process, its imports, its images.
    """

    nodes: int = 1
    workers: int = 1
    speed: float = 1.0
    shared: bool = True
    bandwidth: float = 1e9
    start: float = 0.0

    @property
    def size(self) -> int:
        """Workers in all."""
        return self.nodes * self.workers


@dataclass(frozen=True)
class Span:
    """A task as it ran: from `begin`, `fetch` seconds of transfers, then work, then `collect` seconds until its files are kept."""

    task: Task
    worker: int
    begin: float
    fetch: float
    end: float
    collect: float = 0.0


@dataclass(frozen=True)
class Simulation:
    """What came of it.

    Attributes:
        spans: Every task, in the order of starting.
        workers: How many there were.
        moved: Bytes that travelled between nodes.
        bound: No order of the tasks could end sooner.
        path: The longest chain of tasks that wait for each other; its length is one part of `bound`.
    """

    spans: tuple[Span, ...]
    workers: int
    moved: int
    bound: float
    path: tuple[Task, ...]

    @property
    def makespan(self) -> float:
        """Seconds from the first start to the last end."""
        return max((span.end for span in self.spans), default=0.0)

    @property
    def busy(self) -> float:
        """Seconds of work, summed over workers."""
        return sum(span.end - span.begin - span.fetch - span.collect for span in self.spans)

    @property
    def fetching(self) -> float:
        """Seconds of waiting for transfers, summed over workers."""
        return sum(span.fetch + span.collect for span in self.spans)

    @property
    def idle(self) -> float:
        """The share of the workers' time that is neither work nor transfer."""
        total = self.workers * self.makespan
        return max(0.0, 1 - (self.busy + self.fetching) / total) if total else 0.0

    @property
    def least_idle(self) -> float:
        """The share that no order of the tasks could avoid."""
        total = self.workers * self.bound
        return max(0.0, 1 - self.busy / total) if total else 0.0


def simulate(
    left: Mapping[str, Task], every: Mapping[str, Task], seconds: Seconds, machines: Machines, size: Bytes | None = None
) -> Simulation:
    """Runs the tasks that are left through `Schedule`, as the executor does, on workers that take the given times.

    Args:
        left: Key → task that is not done.
        every: Key → task of the plan.
        seconds: Time of each task on a worker of speed 1.
        machines: The cluster.
        size: Bytes that each task leaves, for nodes without a shared folder.
    """
    schedule = Schedule(left, every)
    made = _Copies(left, every, size or (lambda task: 0), machines)
    idle = list(range(machines.size))
    fresh = set(idle)  # workers that have not started yet: they do so with their first task
    running: list[tuple[float, int, int, Task]] = []
    spans, now, moved = [], 0.0, 0
    while schedule.left:
        missing = None if machines.shared else made.missing
        for worker, task in schedule.assign(sorted(idle, key=lambda w: (w % machines.workers, w)), missing):
            idle.remove(worker)
            size_in, size_out = (0, 0) if machines.shared else (made.missing(worker, task), made.kept(worker, task))
            fetch, collect = size_in / machines.bandwidth, size_out / machines.bandwidth
            moved += size_in + size_out
            made.arrived(worker, task)
            begin = max(now, machines.start) if worker in fresh else now
            fresh.discard(worker)
            end = begin + fetch + seconds(task) / machines.speed + collect
            spans.append(Span(task, worker, begin, fetch, end, collect))
            heapq.heappush(running, (end, len(spans), worker, task))
        if not running:
            raise ValueError(f"{len(schedule.left)} tasks wait for each other")
        now, _, worker, task = heapq.heappop(running)
        made.made(worker, task)
        schedule.finish(task)
        idle.append(worker)
    work = {key: seconds(task) / machines.speed for key, task in left.items()}
    path = critical_path(left, work)
    return Simulation(tuple(spans), machines.size, moved, least(left, work, machines.size), tuple(path))


class _Copies:
    """Which nodes have what, where no folder is shared."""

    def __init__(self, left: Mapping[str, Task], every: Mapping[str, Task], size: Bytes, machines: Machines) -> None:
        self._machines = machines
        self._sizes: dict[str, float] = {}
        for task in every.values():
            paths = outputs(task)
            self._sizes |= {path: size(task) / len(paths) for path in paths}
        done = (task for key, task in every.items() if key not in left)  # by an earlier run
        self._held: dict[str, set[int]] = {path: {0} for task in done for path in outputs(task)}
        self._paths: dict[str, list[str]] = {}

    def missing(self, worker: int, task: Task) -> int:
        node = worker // self._machines.workers
        paths = self._inputs(task)
        return int(sum(self._sizes.get(path, 0) for path in paths if node not in self._held.get(path, ())))

    def _inputs(self, task: Task) -> list[str]:
        """Paths of what a task reads: found once, the schedule asks for every worker."""
        if task.key not in self._paths:
            self._paths[task.key] = [one.path for one in inputs(task)]
        return self._paths[task.key]

    def arrived(self, worker: int, task: Task) -> None:
        for path in self._inputs(task):
            self._held.setdefault(path, set()).add(worker // self._machines.workers)

    def kept(self, worker: int, task: Task) -> int:
        """Bytes that go from a node to the run folder before a task is done: all but what passes, on all nodes but the first."""
        if task.passing or worker // self._machines.workers == 0:
            return 0
        return int(sum(self._sizes.get(path, 0) for path in outputs(task)))

    def made(self, worker: int, task: Task) -> None:
        node = worker // self._machines.workers
        for path in outputs(task):
            self._held.setdefault(path, set()).update((node,) if task.passing else (node, 0))


def critical_path(left: Mapping[str, Task], work: Mapping[str, float]) -> list[Task]:
    """The longest chain of tasks that wait for each other."""
    ends: dict[str, float] = {}
    for task in _ordered(left):
        ends[task.key] = work[task.key] + max((ends[key] for key in task.needs if key in ends), default=0.0)
    chain: list[Task] = []
    here = max(ends, key=lambda key: ends[key], default=None)
    while here is not None:
        chain.append(left[here])
        here = max((key for key in left[here].needs if key in ends), key=lambda key: ends[key], default=None)
    return chain[::-1]


def least(left: Mapping[str, Task], work: Mapping[str, float], workers: int) -> float:
    """A time below which nothing can bring the makespan, however tasks are ordered.

    For every moment that a task can start at the earliest: what cannot start before it must fit behind it, on all workers,
    and so must the longest of these tasks, `k` of which one worker has to take when there are more than `(k - 1) * workers`.
    """
    heads: dict[str, float] = {}
    for task in _ordered(left):
        heads[task.key] = max((heads[key] + work[key] for key in task.needs if key in heads), default=0.0)
    bound = max((heads[key] + work[key] for key in heads), default=0.0)
    order = sorted(heads, key=lambda key: -heads[key])
    total = 0.0
    for i, key in enumerate(order):
        total += work[key]
        if i + 1 < len(order) and heads[order[i + 1]] == heads[key]:
            continue
        longest = sorted((work[one] for one in order[: i + 1]), reverse=True)
        packed = max(
            (sum(longest[k * workers - j] for j in range(k + 1)) for k in range(1, (len(longest) - 1) // workers + 1)),
            default=0.0,
        )
        bound = max(bound, heads[key] + max(total / workers, packed))
    return bound


def _ordered(left: Mapping[str, Task]) -> list[Task]:
    """Every task after those it needs."""
    done: dict[str, Task] = {}

    def visit(task: Task) -> None:
        for key in task.needs:
            if key in left and key not in done:
                visit(left[key])
        done.setdefault(task.key, task)

    for task in left.values():
        visit(task)
    return list(done.values())


def recorded(tasks: Sequence[Task], cells: Mapping[str, float], work: Mapping[str, float]) -> dict[str, float]:
    """Key of a task → the seconds it took in a run, from those of its cells or of its own row in the store."""
    return {
        task.key: sum(cells.get(key, 0.0) for key in task.finishes) if task.finishes else work.get(task.key, 0.0)
        for task in tasks
    }
