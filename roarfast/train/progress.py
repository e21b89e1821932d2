"""How a training shows itself: a bar on a terminal, log lines elsewhere, or nothing."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

from roarfast import _progress

MODES = ("auto", "bar", "log", "none")


class Silent:
    """Shows nothing: what the loop tells, and what the others override."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def step(self, epoch: int, done: int, loss: float, accuracy: float, images_per_second: float) -> None:
        """After some steps: `done` of all steps of the training, means over the epoch so far."""

    def epoch(self, epoch: int, record: dict[str, Any]) -> None:
        """After an epoch with its line of the history."""

    def close(self) -> None:
        """At the end, also after an error."""


class LogLines(Silent):
    """One line per epoch, on standard error."""

    def __init__(self, epochs: int, label: str = "") -> None:
        self.epochs, self.label, self.started = epochs, label, time.perf_counter()

    def epoch(self, epoch: int, record: dict[str, Any]) -> None:
        """See `Silent`."""
        seconds = time.perf_counter() - self.started
        test = f"  test {100 * record['test_accuracy']:.2f} %" if record.get("test_accuracy") is not None else ""
        eta = seconds / (epoch + 1) * (self.epochs - epoch - 1)
        print(
            f"{self.label}epoch {epoch + 1}/{self.epochs}  loss {record['loss']:.4f}  train {100 * record['accuracy']:.2f} %"
            f"{test}  {record['images_per_second']:.0f} img/s  {seconds:.0f} s, {eta:.0f} s left",
            file=sys.stderr,
            flush=True,
        )


class Bar(Silent):
    """A bar on standard error."""

    def __init__(self, epochs: int, steps: int, label: str = "", start: int = 0) -> None:
        self.epochs, self.label = epochs, label
        self.bar = _progress.Bar(label or "training", steps, start)

    def step(self, epoch: int, done: int, loss: float, accuracy: float, images_per_second: float) -> None:
        """See `Silent`."""
        facts = f"loss {loss:.3f}  acc {100 * accuracy:.1f} %  {images_per_second:.0f} img/s"
        self.bar.update(done, what=f"{self.label}epoch {epoch + 1}/{self.epochs}", note=facts)

    def close(self) -> None:
        """See `Silent`."""
        self.bar.close()


def make_progress(mode: str | Silent, epochs: int, steps: int, label: str = "", start: int = 0) -> Silent:
    """The display for a mode: `"auto"` is a bar on a terminal with rich installed, log lines otherwise."""
    if isinstance(mode, Silent):
        return mode
    if mode not in MODES:
        raise ValueError(f"progress must be one of {', '.join(MODES)}, got {mode!r}")
    if mode == "none":
        return Silent()
    label = f"{label}  " if label else ""
    if mode == "bar" or (mode == "auto" and sys.stderr.isatty()):
        try:
            return Bar(epochs, steps, label, start)
        except ImportError:
            pass
    return LogLines(epochs, label)
