"""`RunFolder`: where every file of a run lies, who works there, and whether a study may."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from roarfast._files import write_atomic
from roarfast.explain.names import slug
from roarfast.study.errors import FolderInUse, StudyError

_STORE = "results.sqlite"
_CONFIG = "study.toml"
_LOCK, _WORKERS_LOCK = ".lock", ".workers.lock"
_PARTS = ("maps", "codes", "models", "examples", "report")
_BEFORE_THE_STORE = (_LOCK, _WORKERS_LOCK, _CONFIG, "shards")
"""What a run may leave that was killed before it had made its store."""
_PATIENCE = 20.0
"""Seconds that workers of a killed run get to notice that it is gone."""


class RunFolder:
    """The folder of a run.

    Example:
        >>> RunFolder("runs/demo").codes("0123").as_posix()
        'runs/demo/codes/0123'
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def store(self) -> Path:
        """The SQLite file with all results; a folder that has it is a run folder."""
        return self.path / _STORE

    @property
    def config(self) -> Path:
        """The copy of the study's config."""
        return self.path / _CONFIG

    @property
    def results_csv(self) -> Path:
        """All records as a table."""
        return self.path / "results.csv"

    @property
    def examples(self) -> Path:
        """Where the examples of all estimators are."""
        return self.path / "examples"

    @property
    def report(self) -> Path:
        """Where the report goes."""
        return self.path / "report"

    @property
    def shared(self) -> Path:
        """Generated images, while workers need them."""
        return self.path / ".shared"

    def shared_images(self, key: str) -> Path:
        """A file of generated images."""
        return self.shared / f"{key}.npz"

    def maps(self, base: str, split: str) -> Path:
        """The attribution store of a base model and split."""
        return self.path / "maps" / base[:12] / split

    def codes(self, key: str) -> Path:
        """The folder with the codes of a task."""
        return self.path / "codes" / key

    def base_model(self, key: str) -> Path:
        """The weights of a base model."""
        return self.model(f"base-{key[:12]}")

    def cell_model(self, key: str) -> Path:
        """The weights of a model that was retrained for a cell."""
        return self.model(f"cell-{key[:16]}")

    def model(self, name: str) -> Path:
        """The weights of a model by name."""
        return self.path / "models" / f"{name}.pt"

    def checkpoint(self, name: str) -> Path:
        """The state of a training under way."""
        return self.path / "models" / f"{name}.ckpt"

    def example(self, estimator: str) -> Path:
        """The examples of an estimator."""
        return self.examples / f"{slug(estimator)}.npz"

    def delete_maps(self) -> None:
        """Deletes maps and what is made of them, codes and examples: their names do not tell the code that made them."""
        for part in ("maps", "codes", "examples"):
            if (self.path / part).exists():
                shutil.rmtree(self.path / part)

    def shard(self, index: int, count: int) -> Path:
        """Where a shard of the study works."""
        return self.path / "shards" / f"{index}-of-{count}"

    def find_shards(self) -> list[Path]:
        """The shard folders that exist."""
        found = sorted(path.parent for path in (self.path / "shards").glob(f"*-of-*/{_STORE}"))
        if not found:
            raise StudyError(
                f"{self.path / 'shards'} has no shards: run them with `roarfast run FILE --out {self.path} --shard i/n`"
            )
        return found

    def codes_file(self, key: str, split: str, order: str) -> Path:
        """The codes of a task for the images of a split."""
        return self.codes(key) / f"{split}-{order}.npy"

    def codes_info(self, key: str) -> Path:
        """What is known about the codes of a task; written last, so they are complete where it is there."""
        return self.codes(key) / "info.json"

    @property
    def response_files(self) -> Path:
        """Where the responses of all curves are."""
        return self.path / "responses"

    def responses(self, key: str) -> Path:
        """What a model answered to every test image at every rate of a curve."""
        return self.response_files / f"{key}.npz"

    def log(self, worker: int) -> Path:
        """What a worker prints; its folder is made if it is not there."""
        path = self.path / "logs" / f"worker-{worker}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def delete_codes(self, key: str) -> None:
        """Codes are quickly made again from maps, so they go when the last cell that needs them is done."""
        self.codes_info(key).unlink(missing_ok=True)
        shutil.rmtree(self.codes(key), ignore_errors=True)

    def prepare(self, source: Path | None) -> None:
        """Makes the folder and its parts, and keeps a copy of the config in it."""
        try:
            for part in _PARTS:
                (self.path / part).mkdir(parents=True, exist_ok=True)
            if source is not None:
                write_atomic(self.config, source.read_text(encoding="utf-8"))
        except OSError as error:
            raise StudyError(f"cannot write to the run folder {self.path}: {error.strerror or error}") from None

    @contextlib.contextmanager
    def lock(self, patience: float = _PATIENCE) -> Iterator[None]:
        """Holds the folder. The kernel releases it when the process dies, however it dies.

        Workers of a killed run may need a moment to notice: this waits for them, up to `patience` seconds, so that
        nobody writes beside the new run.

        Raises:
            FolderInUse: If another process holds it.
        """
        from filelock import FileLock, Timeout  # an extra: reading results needs none

        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(
                f"cannot make the run folder {self.path}: {error.strerror or error}: choose another --out"
            ) from None
        path = self.path / _LOCK
        held = FileLock(path, timeout=0)
        try:
            held.acquire()
        except Timeout:
            holder = _read(path) or "unknown"
            raise FolderInUse(
                f"{self.path} is in use by another process (pid {holder}). Wait for it, look at it with "
                f"`roarfast status {self.path}`, or choose another --out"
            ) from None
        except OSError as error:
            raise StudyError(_why_not(path, error)) from None
        with held:
            held.release()  # `with` acquired it once more
            descriptor = _open(path)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            os.close(descriptor)
            self.wait_for_workers(patience)
            yield

    def is_running(self) -> bool:
        """Whether a process holds the folder now."""
        path = self.path / _LOCK
        if not path.exists():
            return False
        from filelock import FileLock, Timeout

        try:
            with FileLock(path, timeout=0):
                return False
        except Timeout:
            return True
        except OSError:  # not ours to lock, so nothing is known
            return False

    def hold_as_worker(self) -> int:
        """Marks this process as a worker of the folder until it ends; returns the open descriptor."""
        descriptor = _open(self.path / _WORKERS_LOCK)
        fcntl.flock(descriptor, fcntl.LOCK_SH)  # shared by all workers, which filelock has no kernel lock for
        return descriptor

    def wait_for_workers(self, patience: float = _PATIENCE) -> None:
        """Waits until the workers of an earlier run are gone.

        Raises:
            FolderInUse: If they stay.
        """
        descriptor = _open(self.path / _WORKERS_LOCK)
        try:
            deadline = time.monotonic() + patience
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except OSError:
                    if time.monotonic() > deadline:
                        raise FolderInUse(
                            f"worker processes of an earlier run are still busy in {self.path}; end them, then try again"
                        ) from None
                    time.sleep(0.05)
        finally:
            os.close(descriptor)


def _open(path: Path) -> int:
    """Opens or makes a lock file; never through a link, which could lead to somebody else's file."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StudyError(_why_not(path, error)) from None


def _read(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, 64).decode(errors="replace").strip()
    finally:
        os.close(descriptor)


def _why_not(path: Path, error: OSError) -> str:
    reason = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror or str(error)
    return f"cannot lock the run folder with {path}: {reason}"


def check_claim(folder: Path, source: Path | None) -> None:
    """Refuses a folder that a study would share with somebody else's files: it is new, empty, or a study's already.

    Args:
        folder: The run folder to be.
        source: The config file of the run; it may lie in the folder.

    Raises:
        StudyError: Naming what was found.
    """
    if folder.exists() and not folder.is_dir():
        raise StudyError(f"--out {folder} is a file: choose a folder")
    if not folder.exists() or (folder / _STORE).exists():
        return
    try:
        strangers = sorted(entry.name for entry in folder.iterdir() if not _is_leftover(entry))
    except OSError as error:
        raise StudyError(f"cannot read the folder {folder}: {error.strerror or error}") from None
    if strangers:
        shown = ", ".join(strangers[:5]) + (" …" if len(strangers) > 5 else "")
        raise StudyError(
            f"--out {folder} is not empty and holds no study ({shown}): choose a new folder, for example "
            f"--out {folder / 'run'}"
        )
    own = folder / _CONFIG
    if source is not None and own.exists() and not own.samefile(source) and own.read_bytes() != source.read_bytes():
        raise StudyError(f"{own} is another config than {source}, and the run would replace it: choose another --out")


def _is_leftover(entry: Path) -> bool:
    """Whether a run made it before it had a store: locks, a copy of the config, shards, unfinished files of these."""
    name = entry.name
    return name in _BEFORE_THE_STORE or (name.startswith(f".{_CONFIG}.") and name.endswith(".tmp"))
