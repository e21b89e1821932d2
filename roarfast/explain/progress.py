"""A progress bar with the time left: rich where it is installed, plain lines otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def progress(total: int, what: str, show: bool | None = None, done: int = 0) -> Iterator[Callable[[int], None]]:
    """Shows how far a long job is; yields `advance(n)`.

    Args:
        total: Items of the job.
        what: Its name.
        show: Whether to show anything; None: if the standard error output is a terminal.
        done: Items that were done before, by a run that was interrupted.

    Example:
        >>> with progress(10, "explain", show=False) as advance:
        ...     advance(10)
    """
    if show is None:
        show = sys.stderr.isatty()
    if not show:
        yield lambda n: None
        return
    try:
        import rich.console
        import rich.progress
    except ImportError:
        yield _Lines(total, what, done)
        return
    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TextColumn("{task.percentage:3.0f} %"),
        rich.progress.TimeElapsedColumn(),
        rich.progress.TimeRemainingColumn(),
    )
    with rich.progress.Progress(*columns, console=rich.console.Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total, completed=done)
        yield lambda n: bar.advance(task, n)


class _Lines:
    def __init__(self, total: int, what: str, done: int) -> None:
        self.total, self.what, self.done, self.before = total, what, done, done
        self.started = time.monotonic()
        self.last = self.started

    def __call__(self, n: int) -> None:
        self.done += n
        now = time.monotonic()
        if now - self.last < _SECONDS_BETWEEN_LINES and self.done < self.total:
            return
        self.last = now
        rate = (self.done - self.before) / max(now - self.started, 1e-9)
        left = (self.total - self.done) / rate if rate else 0.0
        percent = 100 * self.done / max(self.total, 1)
        print(
            f"{self.what}: {self.done}/{self.total} ({percent:.0f} %), {_duration(left)} left",
            file=sys.stderr,
            flush=True,
        )


def _duration(seconds: float) -> str:
    minutes, s = divmod(int(seconds + 0.5), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02d}:{s:02d}" if hours else f"{m}:{s:02d}"
