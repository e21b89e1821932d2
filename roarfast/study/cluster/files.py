"""`NodeFiles`: one actor per node that keeps the artefacts of a run there, and sends and fetches them.

All workers of a node use one folder, and one actor fetches into it: nothing travels to a node twice. Files travel in pieces
through Ray's object store, a few at a time, so memory stays bounded whatever their size; a file takes its place only when
its checksum fits.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import socket
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import numpy.typing as npt

from roarfast._extras import installed
from roarfast._files import file_checksum, is_disk_full, no_follow, sync_folder
from roarfast._version import RESULT_VERSION, __version__
from roarfast.study.cluster.handles import FilesHandle, call
from roarfast.study.runfolder import RunFolder

if TYPE_CHECKING:
    from ray import ObjectRef

PIECE = 16 << 20
"""Bytes of a piece."""
_AHEAD = 3
"""Pieces that are asked for before they are written: with four fetches at once, 256 MB of a node's object store at most."""
GROUPS = {"read": 4, "fetch": 4, "say": 2}
"""Threads of the actor. Reading has its own: two nodes that fetch from each other must not wait for themselves."""


@dataclass(frozen=True)
class FileFacts:
    """A file as it travels: its path below the run folder, bytes and checksum."""

    path: str
    size: int
    checksum: str


class Fetched(TypedDict):
    """What `NodeFiles.fetch` tells: bytes that travelled, paths that are gone, and whose disk is full."""

    bytes: int
    gone: list[str]
    full: str


def packages() -> dict[str, str]:
    """Versions of what results depend on; without importing torch, which the files of a node have no use for."""
    names = ("torch", "numpy")
    return {"roarfast": __version__, "results": str(RESULT_VERSION)} | {n: installed(n) or "missing" for n in names}


class NodeFiles:
    """The artefacts of a run on one node.

    Args:
        folder: The run folder, as the driver calls it.
        probe: Name and content of a file that the driver left there: a node that sees it shares the folder.
        scratch: Where a node that does not share it keeps its copies; None: the folder for temporary files.
        run, node: Name the copies of this run and node.
        use: `"auto"`, or `"transfer"` to use copies in any case.
        home: Whether this is the driver's own, which serves the run folder itself.
    """

    def __init__(
        self,
        folder: str,
        probe: tuple[str, str],
        scratch: str | None,
        run: str,
        node: str,
        use: str,
        home: bool = False,
    ) -> None:
        seen = Path(folder) / probe[0]
        with contextlib.suppress(OSError):
            home = home or (use != "transfer" and seen.read_text() == probe[1])
        self.shared, self.told = home, dict[int, str]()
        self.root = Path(folder)
        self._cache: Path | None = None
        if not self.shared:
            above = _own_folder(Path(scratch or tempfile.gettempdir()) / f"roarfast-{os.getuid()}")
            self.root = self._cache = above / f"{run}-{node[:12]}"
            with _locked(above / ".lock"):  # a folder that is just being made has nobody yet
                _delete_orphans(above)
                RunFolder(self.root).prepare(None)
                self._alive = _hold(self.root / _ALIVE)
            RunFolder(self.root).wait_for_workers()
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()
        self._known: dict[tuple[str, int, int], str] = {}  # path, inode, time of change → checksum

    def describe(self) -> str:
        """What the driver must know of the node: JSON."""
        return json.dumps({"shared": self.shared, "root": str(self.root), "versions": packages()})

    # sending

    def facts(self, path: str) -> str:
        """The files of an artefact, with checksums: JSON."""
        return json.dumps([asdict(one) for one in self._facts(path)])

    def read(self, path: str, begin: int, size: int) -> npt.NDArray[np.uint8]:
        """A piece of a file."""
        with self._inside(path).open("rb") as file:
            file.seek(begin)
            return np.frombuffer(file.read(size), np.uint8)

    # fetching

    def fetch(self, paths: list[str], sources: list[FilesHandle]) -> str:
        """Gets artefacts from other nodes as far as they are not here: JSON with `bytes`, `gone` (paths), `full`."""
        moved, gone = 0, []
        try:
            for path, source in zip(paths, sources):
                with self._guard:
                    lock = self._locks.setdefault(path, threading.Lock())
                with lock:
                    size = self._fetch(path, source)
                    moved += size or 0
                    if size is None:
                        gone.append(path)
        except OSError as error:
            if is_disk_full(error):
                return json.dumps({"bytes": moved, "gone": gone, "full": f"{socket.gethostname()}: {self.root}"})
            raise
        return json.dumps({"bytes": moved, "gone": gone, "full": ""})

    def delete(self, path: str) -> None:
        """Forgets an artefact; never one of the run folder, which is the driver's."""
        if self._cache is not None:
            shutil.rmtree(self._inside(path), ignore_errors=True)

    def leave(self) -> None:
        """Deletes the copies; what is in the run folder stays."""
        if self._cache is not None:
            shutil.rmtree(self._cache, ignore_errors=True)

    # what workers say, on its way to the driver

    def say(self, worker: int, text: str) -> None:
        """Keeps the last line of a worker."""
        self.told[worker] = text

    def said(self) -> str:
        """The lines since the last call: JSON."""
        told, self.told = self.told, {}
        return json.dumps(told)

    def _facts(self, path: str) -> list[FileFacts]:
        """The finished files behind an artefact; none if it is not there."""
        found = sorted(self.root.glob(path)) if "*" in path else [self._inside(path)]
        files = [file for one in found for file in (sorted(one.iterdir()) if one.is_dir() else [one]) if file.is_file()]
        own = [file for file in files if not file.name.startswith(".") and not file.is_symlink()]
        return [FileFacts(str(file.relative_to(self.root)), file.stat().st_size, self._checksum(file)) for file in own]

    def _checksum(self, path: Path) -> str:
        found = path.stat()
        mark = (str(path), found.st_ino, found.st_mtime_ns)
        if mark not in self._known:
            self._known[mark] = file_checksum(path)
        return self._known[mark]

    def _inside(self, path: str) -> Path:
        if Path(path).is_absolute() or ".." in Path(path).parts:
            raise ValueError(f"{path!r} does not lie in the run folder")
        return self.root / path

    def _fetch(self, path: str, source: FilesHandle) -> int | None:
        """Bytes that travelled; None if the source has it no more."""
        import ray

        wanted = [FileFacts(**one) for one in json.loads(ray.get(call(source.facts, "read", path)))]
        if not wanted:
            return None
        have = {one.path: one for one in self._facts(path)}
        if all(have.get(one.path) == one for one in wanted):
            return 0
        is_folder = any(one.path != path for one in wanted) and "*" not in path
        final = self._inside(path)
        if not is_folder:
            for one in wanted:
                self._receive(one, source, self._inside(one.path))
            return sum(one.size for one in wanted)
        partial = final.with_name(f".{final.name}.incoming")  # complete or not there, as whoever made it left it
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for one in wanted:
            self._receive(one, source, partial / Path(one.path).name)
        shutil.rmtree(final, ignore_errors=True)
        os.replace(partial, final)
        sync_folder(final.parent)
        return sum(one.size for one in wanted)

    def _receive(self, one: FileFacts, source: FilesHandle, place: Path) -> None:
        import ray

        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = place.with_name(f".{place.name}.{os.getpid()}.tmp")
        read = source.read.options(concurrency_group="read")
        begins = iter(range(0, one.size, PIECE))
        asked: deque[ObjectRef[npt.NDArray[np.uint8]]] = deque()
        try:
            with open(temporary, "wb", opener=no_follow) as file:
                while True:
                    while len(asked) < _AHEAD and (begin := next(begins, None)) is not None:
                        asked.append(read.remote(one.path, begin, PIECE))
                    if not asked:
                        break
                    file.write(ray.get(asked.popleft()).data)
                file.flush()
                os.fsync(file.fileno())
            if temporary.stat().st_size != one.size or file_checksum(temporary) != one.checksum:
                raise RuntimeError(f"{one.path} arrived damaged: its checksum does not fit")
            os.replace(temporary, place)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(place.parent)
        found = place.stat()
        self._known[str(place), found.st_ino, found.st_mtime_ns] = one.checksum


def _own_folder(path: Path) -> Path:
    """Makes a folder where others may write too, and refuses one that somebody else has put there."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.is_symlink() or path.stat().st_uid != os.getuid():
        raise PermissionError(f"{path} is somebody else's folder, or a link: name another one with run.scratch")
    return path


_ALIVE = ".alive"
"""Held by the actor of a folder of copies: one that nobody holds was left by a driver that was killed."""


def _hold(path: Path) -> int | None:
    """Holds a file until the process ends, or `os.close`; None if another process does."""
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        return None
    return held


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _delete_orphans(above: Path) -> None:
    """Deletes the copies of drivers that were killed; only folders that an actor has once held."""
    for folder in above.iterdir():
        if folder.is_symlink() or not (folder / _ALIVE).is_file():
            continue
        with contextlib.suppress(OSError):
            held = _hold(folder / _ALIVE)
            if held is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(held)
