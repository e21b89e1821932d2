"""Where tasks run: in this process, or in worker processes that speak JSON lines over pipes.

Only the parent writes to the store, so a worker that dies loses one task and nothing else. Workers end with their
parent: the kernel kills them (Linux), and they also watch for it themselves.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from roarfast.study.plan import Task

Settings = dict[str, Any]
"""What a worker is started with: config, folder, device, threads."""


@dataclass
class Event:
    """What a pool reports: `update` (text), `done` (outcome), `failed` (text = traceback), `damaged`, `fatal`, or `died`."""

    worker: int
    kind: str
    task: Task
    text: str = ""
    outcome: dict[str, Any] = field(default_factory=dict)


class Pool(Protocol):
    """Runs tasks."""

    size: int

    def idle(self) -> list[int]:
        """Workers that can take a task."""

    def submit(self, worker: int, task: Task) -> None:
        """Hands a task to an idle worker."""

    def events(self) -> Iterator[Event]:
        """Waits until something happens, then yields it."""

    def close(self) -> None:
        """Ends the workers at once."""


class InlinePool:
    """Runs tasks in this process, one after the other."""

    size = 1

    def __init__(self, settings: Settings, on_update: Callable[[int, str], None]) -> None:
        self._settings, self._on_update = settings, on_update
        self._work: Any = None
        self._task: Task | None = None

    def idle(self) -> list[int]:
        """[0] if nothing was submitted."""
        return [0] if self._task is None else []

    def submit(self, worker: int, task: Task) -> None:
        """Takes a task; `events` runs it."""
        self._task = task

    def events(self) -> Iterator[Event]:
        """Runs the submitted task."""
        from roarfast.study.worker import execute, make_work

        task = self._task
        if task is None:
            return
        start_seconds = 0.0
        if self._work is None:
            begun = time.perf_counter()
            self._work = make_work(self._settings)
            start_seconds = time.perf_counter() - begun
        message = execute(self._work, asdict(task), lambda text: self._on_update(0, text), start_seconds)
        self._task = None
        yield Event(0, message["event"], task, message.get("text", ""), message.get("outcome", {}))

    def close(self) -> None:
        """Nothing to do."""


class ProcessPool:
    """N worker processes; worker i gets the i-th of the given settings."""

    def __init__(self, settings: list[Settings], log_folder: Path) -> None:
        self.size = len(settings)
        self._settings = settings
        self._log_folder = log_folder
        self._selector = selectors.DefaultSelector()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._buffers: dict[int, bytes] = {}
        self._tasks: dict[int, Task] = {}
        for worker in range(self.size):
            self._start(worker)

    def idle(self) -> list[int]:
        """Workers without a task."""
        return [worker for worker in range(self.size) if worker not in self._tasks]

    def submit(self, worker: int, task: Task) -> None:
        """Hands a task to a worker."""
        self._tasks[worker] = task
        with contextlib.suppress(BrokenPipeError):  # a dead worker shows up in events()
            self._send(worker, asdict(task))

    def events(self) -> Iterator[Event]:
        """Waits until something happens, then yields it."""
        for selected, _ in self._selector.select(timeout=1.0):
            worker = selected.data
            chunk = os.read(selected.fd, 1 << 16)
            if not chunk:
                yield from self._buried(worker)
                continue
            *lines, self._buffers[worker] = (self._buffers[worker] + chunk).split(b"\n")
            for line in lines:
                message = json.loads(line)
                task = self._tasks.get(worker)
                if task is None:
                    continue
                if message["event"] in ("done", "failed", "damaged"):
                    del self._tasks[worker]
                yield Event(worker, message["event"], task, message.get("text", ""), message.get("outcome", {}))

    def close(self) -> None:
        """Ends the workers at once; unfinished tasks stay unfinished."""
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        for process in self._processes.values():
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        self._selector.close()

    def _start(self, worker: int) -> None:
        threads = str(self._settings[worker]["threads"])
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads),
        }
        with open(self._log_folder / f"worker-{worker}.log", "ab") as log:
            process = subprocess.Popen(
                # -P: the working folder is no place for modules; somebody else's random.py may lie there.
                [sys.executable, "-P", "-m", "roarfast.study.worker", str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
            )
        self._processes[worker], self._buffers[worker] = process, b""
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, worker)
        with contextlib.suppress(BrokenPipeError):
            self._send(worker, self._settings[worker])

    def _send(self, worker: int, message: dict[str, Any]) -> None:
        stream = self._processes[worker].stdin
        assert stream is not None
        stream.write(json.dumps(message).encode() + b"\n")
        stream.flush()

    def _buried(self, worker: int) -> Iterator[Event]:
        process = self._processes[worker]
        assert process.stdout is not None
        self._selector.unregister(process.stdout)
        code = process.wait()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        task = self._tasks.pop(worker, None)
        self._start(worker)
        if task is not None and code == -signal.SIGBUS:  # a page of a mapped file that the disk has no room for
            yield Event(worker, "fatal", task, "disk full")
        elif task is not None:
            log = self._log_folder / f"worker-{worker}.log"
            yield Event(worker, "died", task, f"the worker process died ({how}); its output is in {log}")
