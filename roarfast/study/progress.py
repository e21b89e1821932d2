"""What is going on in a study: tasks told to one display, and how long they will take."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TextIO

from roarfast._progress import Bar, Lines, Progress, duration
from roarfast.study.protocols import describe

_TELLING = 0.5
"""Tasks that cost less than this say little about how long a training takes."""

_SHARED_COSTS = {"base": 1.0, "maps": 2.0, "codes": 0.05, "examples": 0.05}


def guessed_cost(cost_class: str) -> float:
    """Cost of a task relative to one training, until a task of the class has been timed."""
    return _SHARED_COSTS[cost_class] if cost_class in _SHARED_COSTS else describe(cost_class).cost


class Eta:
    """Seconds left, from how long each class of task took so far.

    Example:
        >>> eta = Eta({"roar": 4})
        >>> eta.finished("roar", 10.0)
        >>> eta.seconds_left(workers=2)
        15.0
    """

    def __init__(self, left: Mapping[str, int], timings: Mapping[str, list[float]] | None = None) -> None:
        self.left = dict(left)
        self._timings: dict[str, list[float]] = {name: list(values) for name, values in (timings or {}).items()}

    def finished(self, cost_class: str, seconds: float) -> None:
        """Counts a finished task."""
        self.left[cost_class] = max(0, self.left.get(cost_class, 0) - 1)
        self._timings.setdefault(cost_class, []).append(seconds)

    def seconds_left(self, workers: int) -> float | None:
        """None until one task with a known relative cost has been timed."""
        known = {name: sum(values) / len(values) for name, values in self._timings.items() if values}
        costs = {name: guessed_cost(name) for name in {*known, *self.left}}
        unit = [mean / costs[name] for name, mean in known.items() if costs[name] >= _TELLING]
        if not unit and any(count and name not in known for name, count in self.left.items()):
            return None
        training = sum(unit) / len(unit) if unit else 0.0
        total = sum(count * known.get(name, training * costs[name]) for name, count in self.left.items())
        return total / max(1, workers)


class TaskProgress:
    """What the executor tells about the tasks of a study, shown by a `Progress`.

    Args:
        job: Where it is shown; default nowhere.
    """

    def __init__(self, job: Progress | None = None) -> None:
        self.job = job or Progress()
        self.workers, self.eta = 1, Eta({})
        self._labels: dict[int, str] = {}

    def start(self, title: str, total: int, workers: int, eta: Eta, cells: int) -> None:
        """Before the first of `total` tasks, which make `cells` results."""
        self.workers, self.eta = workers, eta
        self.job.started = time.monotonic()
        self.job.update(0, total, what=title, left=eta.seconds_left(workers))
        self.job.item(
            f"{title}: {cells} cell{'s' * (cells != 1)} to do in {total} task{'s' * (total != 1)}, "
            f"{workers} worker{'s' * (workers != 1)}"
        )

    def begin(self, worker: int, label: str) -> None:
        """A worker starts a task."""
        self._labels[worker] = label
        self.job.part(worker, label)

    def update(self, worker: int, text: str) -> None:
        """A line from inside a task."""
        self.job.part(worker, f"{self._labels.get(worker, '')}  {text}")

    def finish(self, worker: int, label: str, outcome: str, cost_class: str, seconds: float) -> None:
        """A task ended."""
        self.drop(cost_class, seconds)
        self.job.part(worker, "waiting for other work")
        total = self.job.total or 0
        left = f", about {duration(self.job.left)} left" if self.job.left is not None and self.job.done < total else ""
        self.job.item(f"[{self.job.done}/{total}{left}] {label}: {outcome} ({duration(seconds)})")
        if outcome.startswith("failed"):
            self.failed(f"{label}: {outcome}")

    def drop(self, cost_class: str, seconds: float = 0.0) -> None:
        """A task will not be done, as one that it needs has failed; or it is done."""
        self.eta.finished(cost_class, seconds)
        self.job.update(self.job.done + 1, left=self.eta.seconds_left(self.workers))

    def failed(self, text: str) -> None:
        """A task failed: on a terminal, where the next item would hide it, it is said too."""
        if isinstance(self.job, Bar):
            self.job.say(text)

    def note(self, text: str) -> None:
        """Something to know that belongs to no task."""
        self.job.say(text)

    def stop(self) -> None:
        """After the last task, or on the way out of an error."""
        self.job.close()


def make_progress(stream: TextIO | None = None) -> TaskProgress:
    """A bar with a line per worker on a terminal, a line per finished task elsewhere."""
    if stream is None and sys.stdout.isatty():
        return TaskProgress(Bar("", None, stream=sys.stdout, stays=True))
    return TaskProgress(Lines("", None, items=True, stream=stream or sys.stdout, stamped=True))
