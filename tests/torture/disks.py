"""Full disks: small file systems in memory. Needs the right to mount."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from lives import live


def may_mount() -> bool:
    """Whether this process can mount a file system in memory."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        if not _mount(Path(folder), 100):
            return False
        _umount(Path(folder))
    return True


def _mount(folder: Path, kilobytes: int, remount: bool = False) -> bool:
    options = f"{'remount,' if remount else ''}size={kilobytes}k"
    command = ["mount", "-t", "tmpfs", "-o", options, "roarfast-torture", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _umount(folder: Path) -> None:
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


def _kilobytes(folder: Path) -> int:
    return sum(path.stat().st_blocks for path in folder.rglob("*")) // 2


def full_disk(torture: Any, subject: Any, k: int, number: int) -> None:
    """One run on a disk of k / number of what it needs, then one with room."""
    needed = _kilobytes(torture.finished[subject.name])
    row = f"full disk, {subject.name}" + (f", {subject.workers} workers" if getattr(subject, "workers", 1) > 1 else "")
    size = max(24, int(needed * (0.02 + 0.96 * k / number)))
    folder = Path(tempfile.mkdtemp(dir=torture.folder))
    assert _mount(folder, size)
    try:
        subject.prepare(folder)
        end = live(subject.work(folder), torture.folder / "log")
        torture.count(row, "disks")
        if end.code == 0:
            torture.count(row, "enough room")
        elif end.code < 0 or not any("full" in t or "space" in t or "No space" in t for t in end.said):
            torture.count(row, "UNCLEAR END")
            torture.failures.append(f"{row}: {size} kB: ended with {end.code} {end.kind}: {end.said[-2:]}")
        else:
            torture.count(row, "stopped with a message")
        assert _mount(folder, 20 * needed + 4096, remount=True)
        end = live(subject.work(folder), torture.folder / "log")
        if end.code:
            torture.count(row, "FAILS FOR EVER")
            torture.failures.append(f"{row}: {size} kB: with room ended with {end.code}: {end.said[-1:]}")
        elif subject.result(folder) != torture.wanted[subject.name]:
            torture.count(row, "WRONG")
            torture.failures.append(f"{row}: {size} kB: another result")
        else:
            torture.count(row, "finished as undisturbed")
    except OSError as error:  # even the config did not fit
        torture.count(row, f"prepared nothing ({error.errno})")
    finally:
        _umount(folder)
