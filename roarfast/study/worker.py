"""The worker process: reads tasks from stdin, one JSON object per line, writes events to stdout.

Started by `roarfast.study.pool.ProcessPool` as `python -m roarfast.study.worker PARENT_PID`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from roarfast._files import is_disk_full
from roarfast.study.config import StudyConfig
from roarfast.study.errors import ArtefactDamaged
from roarfast.study.lock import hold_as_worker

_PR_SET_PDEATHSIG = 1


def make_work(settings: dict[str, Any]) -> Any:
    """The state of a worker, for its settings."""
    from roarfast.study.work import Work  # torch: the lock comes first

    return Work(
        StudyConfig.of(settings["config"]),
        Path(settings["folder"]),
        device=settings["device"],
        threads=settings["threads"],
    )


def execute(
    work: Any, task: dict[str, Any], on_update: Callable[[str], None], start_seconds: float = 0.0
) -> dict[str, Any]:
    """Runs a task; returns the event that ends it. Errors of the task become events, Ctrl-C goes through.

    Args:
        work: The state of the worker.
        task: The task.
        on_update: Takes a line of progress.
        start_seconds: What it took to get here from nothing, if this is the first task: a stage of its own.
    """
    begun = time.perf_counter()
    try:
        from roarfast.study.tasks import run_task

        outcome = run_task(work, task, on_update)
    except Exception as error:
        if is_disk_full(error):
            return {"event": "fatal", "text": "disk full"}
        if isinstance(error, ArtefactDamaged):
            wall = time.perf_counter() - begun
            return {
                "event": "damaged",
                "text": str(error),
                "outcome": {"made_by": error.kind, "spec": error.spec, "wall": wall},
            }
        return {"event": "failed", "text": traceback.format_exc(), "outcome": {"wall": time.perf_counter() - begun}}
    wall = time.perf_counter() - begun
    seconds = outcome.setdefault("seconds", {})
    seconds["other"] = max(0.0, wall - sum(seconds.values()))
    if start_seconds:
        seconds["start"] = start_seconds
    return {"event": "done", "outcome": outcome | {"wall": wall}}


def main(parent: int) -> None:
    """Serves tasks until stdin ends or the parent is gone."""
    _end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business
    # Events go to a private copy of stdout; whatever a library prints goes to the log.
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def emit(message: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):
            events.write(json.dumps(message) + "\n")
            events.flush()

    settings = json.loads(sys.stdin.readline())
    hold_as_worker(Path(settings["folder"]))
    work = None
    start_seconds = time.process_time()  # the interpreter and the imports so far
    last_update = 0.0

    def on_update(text: str) -> None:
        nonlocal last_update
        if time.monotonic() - last_update > 0.25:
            last_update = time.monotonic()
            emit({"event": "update", "text": text})

    for line in sys.stdin:
        task = json.loads(line)
        if work is None:
            begun = time.perf_counter()
            try:
                work = make_work(settings)
            except Exception:
                emit({"event": "failed", "text": traceback.format_exc()})
                continue
            start_seconds += time.perf_counter() - begun
        emit(execute(work, task, on_update, start_seconds))
        start_seconds = 0.0


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
    main(int(sys.argv[1]))
