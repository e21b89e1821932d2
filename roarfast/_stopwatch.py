"""Where the time of work on a device goes."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import torch


class Stopwatch:
    """Seconds spent in named phases. On CUDA, phases are bracketed by events, which `collect` reads.

    Args:
        device: Where the work is done.
        phases: Their names.

    Example:
        >>> watch = Stopwatch(torch.device("cpu"), ("data", "passes"))
        >>> watch.start()
        >>> watch.lap("data")
        >>> sorted(watch.seconds)
        ['data', 'passes']
    """

    def __init__(self, device: torch.device, phases: Iterable[str]) -> None:
        self.seconds = dict.fromkeys(phases, 0.0)
        self._cuda = device.type == "cuda"
        self._events: list[tuple[str, Any]] = []
        self._last = time.perf_counter()

    def start(self) -> None:
        """Begin counting; what came before belongs to no phase."""
        self._mark("")

    def lap(self, phase: str) -> None:
        """Book the time since the last call to a phase."""
        self._mark(phase)

    def _mark(self, phase: str) -> None:
        if self._cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self._events.append((phase, event))
            return
        now = time.perf_counter()
        if phase:
            self.seconds[phase] += now - self._last
        self._last = now

    def collect(self) -> None:
        """Read the events so far (waits for the device)."""
        if not self._events:
            return
        self._events[-1][1].synchronize()
        for (_, before), (phase, after) in zip(self._events, self._events[1:]):
            if phase:
                self.seconds[phase] += before.elapsed_time(after) / 1000
        self._events = self._events[-1:]
