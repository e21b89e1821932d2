"""One working process per run folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from roarfast.study.errors import FolderInUse, StudyError

LOCK_NAME = ".lock"
WORKERS_LOCK_NAME = ".workers.lock"


@contextlib.contextmanager
def folder_lock(folder: Path, patience: float = 20.0) -> Iterator[None]:
    """Holds the run folder. The kernel releases it when the process dies, however it dies.

    Workers of a killed run may need a moment to notice: this waits for them, up to `patience` seconds, so that
    nobody writes beside the new run.

    Raises:
        FolderInUse: If another process holds it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(f"cannot make the run folder {folder}: {error.strerror or error}") from None
    descriptor = _open_lock(folder / LOCK_NAME)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise StudyError(f"cannot lock {folder}: {error}") from None
            holder = os.pread(descriptor, 64, 0).decode(errors="replace").strip() or "unknown"
            raise FolderInUse(
                f"{folder} is in use by another process (pid {holder}). Wait for it, look at it with "
                f"`roarfast status {folder}`, or choose another --out"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        _wait_for_orphans(folder, patience)
        yield
    finally:
        os.close(descriptor)


def hold_as_worker(folder: Path) -> int:
    """Marks this process as a worker of the folder until it ends; returns the open descriptor."""
    descriptor = _open_lock(folder / WORKERS_LOCK_NAME)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _open_lock(path: Path) -> int:
    """Opens or makes a lock file; never through a link, which could lead to somebody else's file."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)
        raise StudyError(f"cannot lock the run folder with {path}: {reason}") from None


def _wait_for_orphans(folder: Path, patience: float) -> None:
    descriptor = _open_lock(folder / WORKERS_LOCK_NAME)
    try:
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise FolderInUse(
                        f"worker processes of an earlier run are still busy in {folder}; end them, then try again"
                    ) from None
                time.sleep(0.05)
    finally:
        os.close(descriptor)
