"""Files and folders that are either complete or not there, also after a kill, a full disk or a power cut."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_CHUNK_BYTES = 1 << 24
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)


class WriteError(OSError):
    """A file that could not be written; the message says which, why, and what to do."""

    def __str__(self) -> str:
        return str(self.strerror)


def write_atomic(path: str | Path, content: bytes | str) -> None:
    """Writes a file so that at any moment it has its old content or the new one, whole.

    The content goes to a temporary file in the same folder, is flushed to the disk, and takes the name of the file. The
    temporary file does not stay when something fails.

    Args:
        path: The file; its folder must exist.
        content: Bytes, or text that is written as UTF-8.

    Raises:
        WriteError: The disk is full, the folder is missing or may not be written to, …

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "note.txt"
        >>> write_atomic(path, "done")
        >>> path.read_text()
        'done'
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb", opener=no_follow) as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _explained(error, path) from error
        raise
    sync_folder(path.parent)


def remove_unfinished(folder: Path, name: str = "*") -> None:
    """Deletes the temporary files of `write_atomic` for files of this name, if the process that wrote them is gone."""
    for path in folder.glob(f".{name}.*.tmp"):
        process = path.name.split(".")[-2]
        if process.isdigit() and path.is_file() and not path.is_symlink() and not _is_alive(int(process)):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        return True
    return True


def no_follow(path: str, flags: int) -> int:
    """An `opener` for `open` that refuses symbolic links: who planted one chose what would be written to."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0), 0o666)


def write_json(path: str | Path, value: Any) -> None:
    """Writes a value as readable JSON with sorted keys, atomically."""
    write_atomic(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    """Reads JSON; None if the file is missing or damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def file_checksum(path: Path) -> str:
    """Hash of a file's bytes."""
    digest = hashlib.blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(_CHUNK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def create_memmap(path: Path, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> np.memmap[Any, Any]:
    """A new `.npy` file of zeros as a writable memory map, with its disk space taken.

    A sparse file would be mapped as well on a full disk, and the first write to a page without a block would then end
    the process with SIGBUS.

    Raises:
        WriteError: The disk is full, …
    """
    try:
        if path.is_symlink():  # somebody else's: what it points to is not ours to write
            path.unlink()
        np.lib.format.open_memmap(path, mode="w+", dtype=np.dtype(dtype), shape=shape)
        with path.open("r+b") as file:
            size = os.fstat(file.fileno()).st_size
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        raise _explained(error, path) from error
    return np.lib.format.open_memmap(path, mode="r+")


def publish_folder(partial: Path, final: Path) -> None:
    """Gives a finished folder its name; what is in it must be on the disk already. `final` must not exist or be empty."""
    os.replace(partial, final)
    sync_folder(final.parent)


def delete_own_folder(folder: Path, names: Collection[str]) -> None:
    """Deletes a folder and its files, if all of them are ours; somebody else's file keeps everything where it is.

    Args:
        folder: It may be missing.
        names: The names that our files in it have; their unfinished copies (`write_atomic`) count too.

    Raises:
        FileExistsError: Something else is in it.
    """
    if not folder.exists():
        return
    unfinished = tuple(f".{name}." for name in names)
    strangers = sorted(
        entry.name
        for entry in folder.iterdir()
        if entry.name not in names and not (entry.name.startswith(unfinished) and entry.name.endswith(".tmp"))
    )
    if strangers:
        shown = ", ".join(strangers[:5]) + (" …" if len(strangers) > 5 else "")
        raise FileExistsError(f"{folder} is not deleted, as it holds files of somebody else: {shown}")
    shutil.rmtree(folder)


def sync_folder(folder: Path) -> None:
    """Makes renames and new files in a folder durable, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def is_disk_full(error: BaseException) -> bool:
    """Whether an error, or what caused it, is a full disk."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in _NO_SPACE:
            return True
        if "No space left on device" in str(seen):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _explained(error: OSError, path: Path) -> WriteError:
    reason = error.strerror or str(error)
    if error.errno in _NO_SPACE:
        reason = "the disk is full: free some space, or choose another folder"
    elif error.errno in _NOT_ALLOWED:
        reason = f"the folder may not be written to ({reason})"
    elif error.errno in (errno.ENOENT, errno.ENOTDIR):
        reason = f"{path.parent} is no folder"
    return WriteError(error.errno, f"cannot write {path}: {reason}")
