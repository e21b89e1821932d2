"""Files of data sets from where their authors publish them: with progress, checked, and never half there."""

from __future__ import annotations

import contextlib
import hashlib
import os
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from roarfast._progress import progress
from roarfast.data.dataset import DataError

_CHUNK = 1 << 20
_PATIENCE = 60.0  # seconds without an answer


def fetch(urls: Sequence[str], target: Path, md5: str, *, show: bool | None = None) -> Path:
    """Downloads a file unless it is there.

    Args:
        urls: Where it is published; they are tried in turn.
        target: Where it goes.
        md5: Its checksum; a file with another one counts as damaged, there and at a server.
        show: Whether to show progress; None: on a terminal.

    Raises:
        DataError: None of the addresses gave the file; says why, one by one.
    """
    if target.is_file() and _md5(target) == md5:
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    problems = []
    for url in urls:
        partial = target.with_name(f".{target.name}.partial")
        try:
            _download(url, partial, show)
            if (found := _md5(partial)) != md5:
                raise ValueError(f"its checksum is {found}, not {md5}")
            os.replace(partial, target)
            return target
        except (OSError, ValueError) as error:  # a URLError is an OSError
            problems.append(f"{url}: {error}")
        finally:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
    raise DataError(f"cannot download {target.name}: " + "; ".join(problems))


def _download(url: str, target: Path, show: bool | None) -> None:
    with urllib.request.urlopen(url, timeout=_PATIENCE) as answer, open(target, "wb") as file:
        size = answer.headers.get("Content-Length")
        megabytes = None if size is None else -(-int(size) // _CHUNK)
        with progress(f"downloading {url.rpartition('/')[2]}, MiB", megabytes, show=show) as job:
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
                job.advance()
            file.flush()
            os.fsync(file.fileno())


def _md5(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
