"""Workers: what does tasks, in this process or in processes of its own that speak JSON lines over pipes.

Only the parent writes to the store, so a worker that dies loses one task and nothing else. Workers end with their
parent: the kernel kills them (Linux), and they also watch for it themselves.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

import torch

from roarfast._files import is_disk_full
from roarfast._types import Json
from roarfast.study.make import do_task
from roarfast.study.runfolder import RunFolder
from roarfast.study.schedule import Missing
from roarfast.study.schema import StudyConfig
from roarfast.study.tasks import ArtefactDamaged, Outcome, Task, decode, decode_outcome, encode, encode_outcome
from roarfast.study.work import Work

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Settings:
    """What a worker is started with; `config` as `StudyConfig.model_dump` gives it.

    `images` are the hashes of the splits, for workers on other machines: what lies at a path there may be something else.
    """

    config: dict[str, object]
    folder: str
    device: str
    threads: int
    images: tuple[str, ...] = ()

    def encode(self) -> dict[str, object]:
        """As JSON values."""
        return asdict(self)


class Worker:
    """Does one task after the other; what they share (data, a base model, fills) is loaded with the first.

    Args:
        settings: What to work on, and where.
        begun: Seconds that were spent before, on imports: a stage of the first task.
    """

    def __init__(self, settings: Settings, begun: float = 0.0) -> None:
        self._settings, self._start_seconds = settings, begun
        self._work: Work | None = None
        self.leads = True
        """Whether files are this worker's business; not of those that only train along."""

    def execute(self, task: Task, on_update: Callable[[str], None]) -> tuple[str, str, Outcome]:
        """Does a task; returns the event that ends it: kind, text, outcome. Errors become events, Ctrl-C goes through."""
        begun = time.perf_counter()
        try:
            if self._work is None:
                s = self._settings
                self._work = Work(StudyConfig.of(s.config), RunFolder(s.folder), s.device, s.threads)
                self._work.trainer.leads = self.leads
                self._start_seconds += time.perf_counter() - begun
                begun = time.perf_counter()
            outcome = do_task(self._work, task, on_update)
        except Exception as error:
            wall = time.perf_counter() - begun
            if is_disk_full(error):
                return "fatal", "disk full", Outcome()
            if isinstance(error, ArtefactDamaged):
                return "damaged", str(error), Outcome(wall=wall, damage=error.damage)
            return "failed", traceback.format_exc() + _advice(error), Outcome(wall=wall)
        outcome.wall = time.perf_counter() - begun
        outcome.torch = str(torch.__version__)
        outcome.seconds["other"] = max(0.0, outcome.wall - sum(outcome.seconds.values()))
        if self._start_seconds:
            outcome.seconds["start"], self._start_seconds = self._start_seconds, 0.0
        return "done", "", outcome


def _advice(error: Exception) -> str:
    """What to do about a lack of memory: the last line of what is said of a failed task."""
    if not isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)) and "can't allocate memory" not in str(error):
        return ""
    last = "".join(traceback.format_exception_only(error)).strip().splitlines()[0]
    return (
        f"out of memory: make train.batch_size or explain.batch_size smaller, or run fewer workers at once ({last})\n"
    )


@dataclass
class Event:
    """What a pool reports: `update` (text), `done` (outcome), `failed` (text = traceback), `damaged`, `fatal`, `died`, or `lost`.

    A task whose worker died may have killed it, so it is tried a few times; one that was lost with its node is not to blame.
    """

    worker: int
    kind: str
    task: Task
    text: str = ""
    outcome: Outcome = field(default_factory=Outcome)


class Pool(Protocol):
    """Runs tasks.

    Attributes:
        missing: Tells what a worker would have to fetch for a task; None if all of them see the same files.
    """

    missing: Missing | None

    @property
    def size(self) -> int:
        """How many workers it has."""

    def idle(self) -> list[int]:
        """Workers that can take a task."""

    def submit(self, worker: int, task: Task) -> None:
        """Hands a task to an idle worker."""

    def events(self) -> Iterator[Event]:
        """Waits until something happens, then yields it."""

    def forget(self, task: Task) -> None:
        """The files of a task are not needed any more."""

    def close(self) -> None:
        """Ends the workers at once."""


class InlinePool:
    """Runs tasks in this process, one after the other."""

    size = 1
    missing: Missing | None = None

    def __init__(self, settings: Settings, on_update: Callable[[int, str], None]) -> None:
        self._worker, self._on_update = Worker(settings), on_update
        self._task: Task | None = None

    def idle(self) -> list[int]:
        """[0] if nothing was submitted."""
        return [0] if self._task is None else []

    def submit(self, worker: int, task: Task) -> None:
        """Takes a task; `events` runs it."""
        self._task = task

    def events(self) -> Iterator[Event]:
        """Runs the submitted task."""
        task, self._task = self._task, None
        if task is not None:
            kind, text, outcome = self._worker.execute(task, lambda line: self._on_update(0, line))
            yield Event(0, kind, task, text, outcome)

    def forget(self, task: Task) -> None:
        """Nothing to do."""

    def close(self) -> None:
        """Nothing to do."""


class ProcessPool:
    """N worker processes; worker i gets the i-th of the given settings."""

    missing: Missing | None = None

    def __init__(self, settings: list[Settings]) -> None:
        self.size = len(settings)
        self._settings = settings
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
            self._send(worker, encode(task))

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
                outcome = decode_outcome(message.get("outcome", {}))
                yield Event(worker, message["event"], task, message.get("text", ""), outcome)

    def forget(self, task: Task) -> None:
        """Nothing to do."""

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
        settings = self._settings[worker]
        threads = str(settings.threads)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), threads),
        }
        with self._log(worker).open("ab") as log:
            process = subprocess.Popen(
                # -P: the working folder is no place for modules; somebody else's random.py may lie there.
                [sys.executable, "-P", "-m", "roarfast.study.workers", str(os.getpid()), str(time.monotonic())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
            )
        self._processes[worker], self._buffers[worker] = process, b""
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, worker)
        with contextlib.suppress(BrokenPipeError):
            self._send(worker, settings.encode())

    def _log(self, worker: int) -> Path:
        return RunFolder(self._settings[worker].folder).log(worker)

    def _send(self, worker: int, message: object) -> None:
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
        how += ", as when the system runs out of memory" if code == -signal.SIGKILL else ""
        task = self._tasks.pop(worker, None)
        self._start(worker)
        if task is not None and code == -signal.SIGBUS:  # a page of a mapped file that the disk has no room for
            yield Event(worker, "fatal", task, "disk full")
        elif task is not None:
            yield Event(worker, "died", task, f"the worker process died ({how}); its output is in {self._log(worker)}")


def main(parent: int, started: float) -> None:
    """Serves tasks until stdin ends or the parent is gone.

    Args:
        parent: Its process.
        started: When that started this one; one clock serves all processes of a machine.
    """
    _end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    # Events go to a private copy of stdout; whatever a library prints goes to the log.
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def emit(message: dict[str, Json]) -> None:
        with contextlib.suppress(BrokenPipeError):
            events.write(json.dumps(message) + "\n")
            events.flush()

    settings = Settings(**json.loads(sys.stdin.readline()))
    RunFolder(settings.folder).hold_as_worker()
    worker = Worker(settings, begun=max(0.0, time.monotonic() - started))  # the interpreter and the imports so far
    last_update = 0.0

    def on_update(text: str) -> None:
        nonlocal last_update
        if time.monotonic() - last_update > 0.25:
            last_update = time.monotonic()
            emit({"event": "update", "text": text})

    for line in sys.stdin:
        kind, text, outcome = worker.execute(decode(json.loads(line)), on_update)
        emit({"event": kind, "text": text, "outcome": encode_outcome(outcome)})


def _end_with_parent(parent: int) -> None:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
