"""Locks, and the journal of what is on disk of a long result."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[None]:
    """Holds a lock file; it is released when the process ends, however it ends."""
    with path.open("a") as file:
        try:
            import fcntl
        except ImportError:  # no advisory locks on this system
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RuntimeError(f"another process is writing {what}") from None
        yield


class Journal:
    """Which ranges of a long result are on disk, one JSON line each, with a checksum.

    A line that was cut by a kill is dropped, so its range counts as not done.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: dict[tuple[int, int], str] = {}
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        whole = 0
        for line in lines:
            try:
                entry = json.loads(line)
                self.done[int(entry["start"]), int(entry["stop"])] = str(entry["checksum"])
            except (ValueError, KeyError, TypeError):
                break
            if not line.endswith(b"\n"):
                self.done.popitem()
                break
            whole += len(line)
        self._file = path.open("ab")
        self._file.truncate(whole)

    def add(self, start: int, stop: int, checksum: str) -> None:
        """Notes that a range is on disk."""
        line = json.dumps({"start": start, "stop": stop, "checksum": checksum}) + "\n"
        self._file.write(line.encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        self.done[start, stop] = checksum

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
