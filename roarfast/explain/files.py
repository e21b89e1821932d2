"""Files that are either complete or not there."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def fsync_folder(folder: Path) -> None:
    """Makes renames and new files in a folder durable, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_json(path: Path, value: Any) -> None:
    """Writes JSON atomically: a temporary file, flushed to disk, then renamed."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=2, sort_keys=True, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    fsync_folder(path.parent)


def read_json(path: Path) -> Any:
    """Reads JSON; None if the file is missing or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


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
