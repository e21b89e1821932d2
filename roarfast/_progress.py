"""How far a long job is, behind one interface: a bar by rich on a terminal, plain lines elsewhere, or nothing.

Operations over data sets, packing, downloads, trainings and studies all tell a `Progress`.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Group

MODES = ("auto", "bar", "log", "none")
_SECONDS_BETWEEN_LINES = 5.0


class Progress:
    """Shows nothing; the base of what shows something. A context manager that closes the display.

    Attributes:
        what: The name of the job.
        total: Its items; None if they are not counted yet.
        done: Items that are done.
        note: A few words about the item at hand.
        left: Seconds that are left, where the job knows better than the time per item so far.
    """

    def __init__(self, what: str = "", total: int | None = None, done: int = 0) -> None:
        self.what, self.total, self.done, self.note = what, total, done, ""
        self.left: float | None = None
        self._before, self.started = done, time.monotonic()

    def advance(self, n: int = 1, note: str = "") -> None:
        """Some more items are done."""
        self.update(self.done + n, note=note)

    def update(
        self, done: int, total: int | None = None, *, what: str | None = None, note: str = "", left: float | None = None
    ) -> None:
        """So many items are done; the total and the name of the job may change on the way."""
        self.done, self.note, self.left = done, note, left
        self.total = self.total if total is None else total
        self.what = self.what if what is None else what
        self._show()

    def item(self, text: str) -> None:
        """A line about an item that is done: all of them stay in a log, a terminal shows the last one."""

    def part(self, number: int, text: str) -> None:
        """What a part of the job, such as a worker, is at; `""`: it is gone. Only a terminal shows it."""

    def say(self, text: str) -> None:
        """Something to know, which stays."""

    def close(self) -> None:
        """At the end, also after an error."""

    def seconds_left(self) -> float | None:
        """An estimate; None if nothing is known."""
        if self.left is not None or self.total is None:
            return self.left
        rate = (self.done - self._before) / max(time.monotonic() - self.started, 1e-9)
        return (self.total - self.done) / rate if rate else None

    def _show(self) -> None:
        """Brings the display up to date."""

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()


class Lines(Progress):
    """Lines on standard error.

    Args:
        what: See `Progress`.
        total: See `Progress`.
        done: See `Progress`.
        items: One line per item that is told of, rather than one every few seconds and one at the end.
        stream: Where to, instead.
        stamped: Whether lines start with the time of day.
    """

    def __init__(
        self,
        what: str,
        total: int | None,
        done: int = 0,
        *,
        items: bool = False,
        stream: TextIO | None = None,
        stamped: bool = False,
    ) -> None:
        super().__init__(what, total, done)
        self._items, self._stream, self._stamped = items, stream, stamped
        self._last = self.started

    def item(self, text: str) -> None:
        """See `Progress`."""
        if self._items:
            self.say(text)

    def say(self, text: str) -> None:
        """See `Progress`."""
        stamp = f"{time.strftime('%H:%M:%S')} " if self._stamped else ""
        print(stamp + text, file=self._stream or sys.stderr, flush=True)

    def _show(self) -> None:
        now = time.monotonic()
        soon = now - self._last < _SECONDS_BETWEEN_LINES and (self.total is None or self.done < self.total)
        if self._items or soon:
            return
        self._last = now
        of = left = ""
        if self.total is not None:
            of = f"/{self.total} ({100 * self.done / max(self.total, 1):.0f} %)"
            left = f", {clock(self.seconds_left() or 0.0)} left"
        self.say(f"{self.what}: {self.done}{of}{left}{f', {self.note}' if self.note else ''}")


class Bar(Progress):
    """A bar by rich, with a line per part and the last item below it; ImportError without rich. Starts with the first update.

    Args:
        what: See `Progress`.
        total: See `Progress`.
        done: See `Progress`.
        stream: Where to; default standard error.
        stays: Whether the bar is left there at the end.
    """

    def __init__(
        self, what: str, total: int | None, done: int = 0, *, stream: TextIO | None = None, stays: bool = False
    ) -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__(what, total, done)
        self._parts: dict[int, str] = {}
        self._last = ""
        console = Console(file=stream) if stream is not None else Console(stderr=True)
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=4, transient=not stays)

    def item(self, text: str) -> None:
        """See `Progress`."""
        self._last = text

    def part(self, number: int, text: str) -> None:
        """See `Progress`."""
        self._parts[number] = text

    def say(self, text: str) -> None:
        """See `Progress`."""
        self._live.console.print(text, markup=False, highlight=False)

    def close(self) -> None:
        """Removes the bar, or leaves it without its parts."""
        if self._live.is_started:
            self._parts = {}
            self._live.refresh()
            self._live.stop()

    def _show(self) -> None:
        if not self._live.is_started:  # from here on it is drawn anew several times a second
            self._live.start()

    def _render(self) -> Group:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        left = self.seconds_left() if self.total is None or self.done < self.total else None
        head = Table.grid(padding=(0, 1))
        head.add_row(
            Text(self.what, style="bold"),
            ProgressBar(total=self.total, completed=self.done, width=36, pulse=self.total is None),
            Text(f"{self.done}/{'?' if self.total is None else self.total}"),
            Text(self.note),
            Text(f"{duration(time.monotonic() - self.started)} gone"),
            Text(f"about {duration(left)} left" if left is not None else ""),
        )
        lines = [Text(f"  {text}", overflow="ellipsis", no_wrap=True) for text in self._parts.values() if text]
        if self._last:
            lines.append(Text(f"  last: {self._last}", style="dim", overflow="ellipsis", no_wrap=True))
        return Group(head, *lines)


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
    if not (_on_terminal() or _in_notebook() if show is None else show):
        return Progress(what, total, done)
    return (_bar(what, total, done) if _on_terminal() else None) or Lines(what, total, done)


def progress_in_mode(mode: str | Progress, what: str, total: int, done: int = 0) -> Progress:
    """The display of a job that tells of its items, in one of `MODES`; one that is given is used as it is.

    `"auto"` is a bar on a terminal with rich installed, log lines otherwise.
    """
    if isinstance(mode, Progress):
        return mode
    if mode not in MODES:
        raise ValueError(f"progress must be one of {', '.join(MODES)}, got {mode!r}")
    if mode == "none":
        return Progress(what, total, done)
    wants_bar = mode == "bar" or (mode == "auto" and _on_terminal())
    return (_bar(what, total, done) if wants_bar else None) or Lines(what, total, done, items=True)


def _bar(what: str, total: int | None, done: int) -> Bar | None:
    try:
        bar = Bar(what, total, done)
    except ImportError:
        return None
    bar.update(done)
    return bar


def _in_notebook() -> bool:
    """Whether the code runs in a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def _on_terminal() -> bool:
    return sys.stderr.isatty()


def clock(seconds: float) -> str:
    """`"0:08"`, `"2:46:30"`."""
    minutes, s = divmod(int(seconds + 0.5), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02d}:{s:02d}" if hours else f"{m}:{s:02d}"


def duration(seconds: float) -> str:
    """`"8.4 s"`, `"3 min 20 s"`, `"2 h 05 min"`."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
