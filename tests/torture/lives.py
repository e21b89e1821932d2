"""Lives: forks of a process that has imported everything and computed nothing, so that a life is spent on the work."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

Work = Callable[[Callable[[str], None]], None]
"""What a life does; it is given where to say something, as a user would see it."""
HANG_SECONDS = 600.0


@dataclass
class End:
    """How a life ended: 0, the code it left, or minus the signal; and all that it said."""

    code: int
    said: list[str] = field(default_factory=list)
    kind: str = ""
    """The type of the error it ended with."""

    def names(self, path: Path) -> bool:
        """Whether something that was said names a file, or the folder that is the artefact."""
        return any(path.name in text or str(path.parent) in text for text in self.said)


def start(work: Work, log: Path) -> int:
    """Begins a life in a process group of its own and returns its pid."""
    log.unlink(missing_ok=True)
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.setsid()
        with log.open("a", buffering=1) as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):

            def say(text: str, kind: str = "") -> None:
                file.write(json.dumps({"text": text, "kind": kind}) + "\n")

            try:
                work(say)
                code = 0
            except BaseException as error:
                say(f"{error}", type(error).__name__)
                if not isinstance(error, (ValueError, OSError, RuntimeError)):
                    say(traceback.format_exc())
                code = 2
    finally:
        os._exit(code)


def wait(pid: int, log: Path) -> End:
    """The end of a life."""
    deadline = time.monotonic() + HANG_SECONDS
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            os.killpg(pid, signal.SIGKILL)
        time.sleep(0.005)
    said, kind = [], ""
    for line in log.read_text(errors="replace").splitlines() if log.exists() else []:
        try:
            entry = json.loads(line)
            said.append(entry["text"])
            kind = entry["kind"] or kind
        except (ValueError, TypeError, KeyError):
            said.append(line)
    return End(os.waitstatus_to_exitcode(status), said, kind)


def live(work: Work, log: Path) -> End:
    """A whole life."""
    return wait(start(work, log), log)


def workers_of(pid: int) -> list[int]:
    """The child processes of a life."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                if int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(entry.name))
    return found


def kill(work: Work, log: Path, seconds: float, whom: str, rng: random.Random) -> tuple[bool, End]:
    """A life with a SIGKILL after some seconds of it: of the `parent`, a `worker`, or `all`.

    Returns:
        Whether something was killed, and how the life ended. A life whose worker was killed goes on to its own end.
    """
    pid = start(work, log)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return False, wait(pid, log)
        time.sleep(0.002)
    hit = True
    if whom == "worker":
        workers: list[int] = []
        while not workers and not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            workers = workers_of(pid)
            time.sleep(0.002)
        hit = bool(workers)
        if hit:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(workers), signal.SIGKILL)
    elif whom == "all":
        os.killpg(pid, signal.SIGKILL)
    else:
        workers = workers_of(pid)
        os.kill(pid, signal.SIGKILL)
        for worker in workers:  # they end by themselves when their parent is gone; not before the next life begins
            _await_end(worker)
    return hit, wait(pid, log)


def _await_end(pid: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.01)
