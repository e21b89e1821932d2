"""What is going on: one live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

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


class Silent:
    """Tells nothing; the base of the others, and what the executor talks to."""

    def __init__(self) -> None:
        self.done, self.total, self.workers, self.eta = 0, 0, 1, Eta({})

    def start(self, title: str, total: int, workers: int, eta: Eta) -> None:
        """Before the first task."""
        self.total, self.workers, self.eta = total, workers, eta

    def begin(self, worker: int, label: str) -> None:
        """A worker starts a task."""

    def update(self, worker: int, text: str) -> None:
        """A line from inside a task."""

    def finish(self, worker: int, label: str, outcome: str, cost_class: str, seconds: float) -> None:
        """A task ended."""
        self.done += 1
        self.eta.finished(cost_class, seconds)

    def drop(self, cost_class: str) -> None:
        """A task will not be done, as one that it needs has failed."""
        self.done += 1
        self.eta.finished(cost_class, 0.0)

    def note(self, text: str) -> None:
        """Something to know that belongs to no task."""

    def stop(self) -> None:
        """After the last task, or on the way out of an error."""


class Lines(Silent):
    """One line per finished task: for logs and pipes."""

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__()
        self._stream = stream or sys.stdout
        self._title = ""

    def start(self, title: str, total: int, workers: int, eta: Eta) -> None:
        """See `Silent`."""
        super().start(title, total, workers, eta)
        self._print(f"{title}: {total} tasks, {workers} worker{'s' * (workers != 1)}")

    def finish(self, worker: int, label: str, outcome: str, cost_class: str, seconds: float) -> None:
        """See `Silent`."""
        super().finish(worker, label, outcome, cost_class, seconds)
        left = self.eta.seconds_left(self.workers)
        eta = f", about {duration(left)} left" if left is not None and self.done < self.total else ""
        self._print(f"[{self.done}/{self.total}{eta}] {label}: {outcome} ({duration(seconds)})")

    def note(self, text: str) -> None:
        """See `Silent`."""
        self._print(text)

    def _print(self, text: str) -> None:
        print(f"{time.strftime('%H:%M:%S')} {text}", file=self._stream, flush=True)


class Live(Silent):
    """Overall bar with ETA, and a line per worker."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: dict[int, list[str]] = {}
        self._live: Any = None
        self._title, self._last, self._begun = "", "", time.monotonic()

    def start(self, title: str, total: int, workers: int, eta: Eta) -> None:
        """See `Silent`."""
        from rich.live import Live as RichLive

        super().start(title, total, workers, eta)
        self._title, self._begun = title, time.monotonic()
        self._lines = {worker: ["starting", ""] for worker in range(workers)}
        self._live = RichLive(get_renderable=self._render, refresh_per_second=4, transient=False)
        self._live.start()

    def begin(self, worker: int, label: str) -> None:
        """See `Silent`."""
        self._lines[worker] = [label, ""]

    def update(self, worker: int, text: str) -> None:
        """See `Silent`."""
        self._lines.setdefault(worker, ["", ""])[1] = text

    def finish(self, worker: int, label: str, outcome: str, cost_class: str, seconds: float) -> None:
        """See `Silent`."""
        super().finish(worker, label, outcome, cost_class, seconds)
        self._lines[worker] = ["waiting for other work", ""]
        self._last = f"{label}: {outcome}"
        if outcome.startswith("failed"):
            self.note(f"{label}: {outcome}")

    def note(self, text: str) -> None:
        """See `Silent`."""
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=sys.stderr)

    def stop(self) -> None:
        """See `Silent`."""
        if self._live is not None:
            self._lines = {}
            self._live.refresh()
            self._live.stop()
            self._live = None

    def _render(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        left = self.eta.seconds_left(self.workers)
        head = Table.grid(padding=(0, 1))
        head.add_row(
            Text(self._title, style="bold"),
            ProgressBar(total=max(1, self.total), completed=self.done, width=36),
            Text(f"{self.done}/{self.total}"),
            Text(f"{duration(time.monotonic() - self._begun)} gone"),
            Text(f"about {duration(left)} left" if left is not None and self.done < self.total else ""),
        )
        lines = [
            Text(f"  {label}  {text}".rstrip(), overflow="ellipsis", no_wrap=True)
            for label, text in self._lines.values()
        ]
        if self._last:
            lines.append(Text(f"  last: {self._last}", style="dim", overflow="ellipsis", no_wrap=True))
        return Group(head, *lines)


def make_progress(stream: TextIO | None = None) -> Silent:
    """The live display on a terminal, plain lines elsewhere."""
    if stream is None and sys.stdout.isatty():
        return Live()
    return Lines(stream)


def duration(seconds: float) -> str:
    """`"8.4 s"`, `"3 min 20 s"`, `"2 h 05 min"`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
