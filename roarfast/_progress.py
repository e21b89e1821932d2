"""How far a long job is: a bar with the time left on a terminal, a plain line now and then elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

_SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """Shows nothing; the base of what shows something. A context manager that closes the display."""

    def __init__(self, what: str = "", total: int | None = None, done: int = 0) -> None:
        self.what, self.total, self.done = what, total, done

    def advance(self, n: int = 1, note: str = "") -> None:
        """Some more items are done."""
        self.update(self.done + n, note=note)

    def update(self, done: int, total: int | None = None, *, what: str | None = None, note: str = "") -> None:
        """So many items are done; the total and the name of the job may change on the way."""
        self.done = done
        self.total = self.total if total is None else total
        self.what = self.what if what is None else what
        self._show(note)

    def close(self) -> None:
        """At the end, also after an error."""

    def _show(self, note: str) -> None:
        """Brings the display up to date."""

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


class Lines(Progress):
    """A line on standard error every few seconds, and one at the end."""

    def __init__(self, what: str, total: int | None, done: int = 0) -> None:
        super().__init__(what, total, done)
        self._before, self._started = done, time.monotonic()
        self._last = self._started

    def _show(self, note: str) -> None:
        now = time.monotonic()
        if now - self._last < _SECONDS_BETWEEN_LINES and (self.total is None or self.done < self.total):
            return
        self._last = now
        of = left = ""
        if self.total is not None:
            rate = (self.done - self._before) / max(now - self._started, 1e-9)
            of = f"/{self.total} ({100 * self.done / max(self.total, 1):.0f} %)"
            left = f", {_clock((self.total - self.done) / rate if rate else 0.0)} left"
        print(f"{self.what}: {self.done}{of}{left}{f', {note}' if note else ''}", file=sys.stderr, flush=True)


class Bar(Progress):
    """A bar by rich on standard error; ImportError without rich."""

    def __init__(self, what: str, total: int | None, done: int = 0) -> None:
        import rich.console
        from rich import progress as parts

        super().__init__(what, total, done)
        self._bar: Any = parts.Progress(
            parts.TextColumn("{task.description}"),
            parts.BarColumn(),
            parts.MofNCompleteColumn(),
            parts.TextColumn("{task.fields[note]}"),
            parts.TextColumn("ETA"),
            parts.TimeRemainingColumn(),
            console=rich.console.Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(what, total=total, completed=done, note="")
        self._bar.start()

    def _show(self, note: str) -> None:
        self._bar.update(self._task, completed=self.done, total=self.total, description=self.what, note=note)

    def close(self) -> None:
        """Removes the bar."""
        self._bar.stop()


def progress(what: str, total: int | None, *, show: bool | None = None, done: int = 0) -> Progress:
    """The display of a job.

    Args:
        what: Its name.
        total: Its items; None if they are not counted yet.
        show: Whether to show anything (a bar on a terminal where rich is installed, else lines); None: on a terminal or
            in a notebook.
        done: Items that were done before, by a run that was interrupted.

    Example:
        >>> with progress("explain", 10, show=False) as job:
        ...     job.advance(10)
    """
    on_terminal = _on_terminal()
    if not (on_terminal or _in_notebook() if show is None else show):
        return Progress(what, total, done)
    if on_terminal:
        try:
            return Bar(what, total, done)
        except ImportError:
            pass
    return Lines(what, total, done)


def _in_notebook() -> bool:
    """Whether the code runs in a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def _on_terminal() -> bool:
    return sys.stderr.isatty()


def _clock(seconds: float) -> str:
    minutes, s = divmod(int(seconds + 0.5), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02d}:{s:02d}" if hours else f"{m}:{s:02d}"
