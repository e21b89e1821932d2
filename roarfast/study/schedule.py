"""`Schedule`: which task goes to which worker next. The executor of runs and the simulator of clusters both ask it."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence

from roarfast.study.tasks import Task

Missing = Callable[[int, Task], int]
"""Bytes that a worker would have to fetch before it could start a task."""

_WINDOW = 4
"""Ready tasks per idle worker among which one with little to fetch is looked for."""


class Schedule:
    """The tasks that are left, what each waits for, and the order of those that are ready.

    A step costs the logarithm of the tasks that are ready, not the number of those that are left: a grid of ten thousand
    cells on hundreds of workers must not wait for its scheduler.

    Args:
        left: Key → task; needs that are not among them count as there.
        every: Key → task of the whole plan.
        urgency: Task → what is compared first; smaller goes first. Default: its rank alone.
    """

    def __init__(
        self, left: Mapping[str, Task], every: Mapping[str, Task], urgency: Callable[[Task], float] | None = None
    ) -> None:
        self.left: dict[str, Task] = {}
        self.running: set[str] = set()
        self._every, self._urgency = every, urgency
        self._users: dict[
            str, dict[str, None]
        ] = {}  # in the order of the plan: a set would give each process another one
        self._waits: dict[str, int] = {}
        self._ready: list[tuple[float, tuple[int, ...], int, str]] = []
        self._pushed = 0
        for task in left.values():
            self._enter(task)
        for task in self.left.values():
            self._waits[task.key] = sum(key in self.left for key in task.needs)
        for key in self.left:
            self._offer(key)

    def assign(self, idle: Sequence[int], missing: Missing | None = None) -> list[tuple[int, Task]]:
        """Pairs idle workers with ready tasks; what it returns counts as running.

        Tasks go in the order of their rank. Where workers have to fetch files (`missing`), a task goes to the worker that
        has to fetch least for it, and a worker that would have to fetch takes one of the next tasks of the same kind
        instead if its node has the files of that one.
        """
        if missing is None:
            pairs = []
            for worker in idle:
                if (task := self._pop()) is None:
                    break
                pairs.append((worker, task))
            return pairs
        free, pairs = list(idle), []
        window = [task for _ in range(_WINDOW * len(free)) if (task := self._pop()) is not None]
        while free and window:
            costs = {worker: missing(worker, window[0]) for worker in free}
            worker = min(free, key=lambda one: (costs[one], one))
            chosen = 0
            if costs[worker]:
                alike = (i for i, task in enumerate(window) if _alike(task, window[0]))
                chosen = min(alike, key=lambda i: missing(worker, window[i]))
            pairs.append((worker, window.pop(chosen)))
            free.remove(worker)
        for task in window:
            self._postpone(task)
        return pairs

    def finish(self, task: Task) -> list[Task]:
        """A task is done, or given up; returns the passing ones whose files nobody needs any more."""
        self.running.discard(task.key)
        if self.left.pop(task.key, None) is not None:
            for user in self._users.get(task.key, ()):
                self._waits[user] -= 1
                self._offer(user)
        unused = []
        for key in task.needs:
            users = self._users.get(key, {})
            users.pop(task.key, None)
            needed = self._every.get(key)
            if needed is not None and needed.passing and not users:
                unused.append(needed)
        return unused

    def retry(self, task: Task, makers: Iterable[Task] = ()) -> None:
        """A running task did not end well: it waits again, for `makers` too, which are to run (again) before it."""
        for maker in makers:
            if maker.key not in self.left:
                self._enter(maker)
                self._waits[maker.key] = sum(key in self.left for key in maker.needs)
                for user in self._users.get(maker.key, ()):
                    self._waits[user] += 1
                self._offer(maker.key)
        self._postpone(task)

    def dependants(self, task: Task) -> list[Task]:
        """The tasks that are left and need this one, directly or not."""
        found: dict[str, Task] = {}
        front = [task.key]
        while front:
            users = [key for key in sorted(self._users.get(front.pop(), ())) if key not in found]
            found |= {key: self.left[key] for key in users}
            front += users
        return list(found.values())

    def _enter(self, task: Task) -> None:
        self.left[task.key] = task
        for key in task.needs:
            self._users.setdefault(key, {})[task.key] = None

    def _offer(self, key: str) -> None:
        """Puts a task among the ready ones if it is."""
        task = self.left.get(key)
        if task is not None and not self._waits[key] and key not in self.running:
            urgency = self._urgency(task) if self._urgency is not None else 0.0
            heapq.heappush(self._ready, (urgency, task.rank, self._pushed, key))
            self._pushed += 1

    def _postpone(self, task: Task) -> None:
        self.running.discard(task.key)
        self._offer(task.key)

    def _pop(self) -> Task | None:
        """The next ready task, which counts as running from now on; entries that no longer hold are dropped."""
        while self._ready:
            key = heapq.heappop(self._ready)[-1]
            if key in self.left and key not in self.running and not self._waits[key]:
                self.running.add(key)
                return self.left[key]
        return None


def _alike(task: Task, first: Task) -> bool:
    """Whether a task may go before another: cells never hold up the base models and maps that everything waits for."""
    return task.rank[:1] <= first.rank[:1]
