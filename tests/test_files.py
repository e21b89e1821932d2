"""Files are complete or not there, whatever goes wrong while they are written."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from roarfast import _files
from roarfast._files import (
    WriteError,
    create_memmap,
    is_disk_full,
    publish_folder,
    read_json,
    remove_unfinished,
    write_atomic,
    write_json,
)


def failing(number: int):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    return fail


def test_bytes_text_and_json(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", b"\x00\xff")
    write_atomic(str(tmp_path / "b"), "grad² →\n")
    write_json(tmp_path / "c.json", {"b": [1, None], "a": "²"})
    assert (tmp_path / "a").read_bytes() == b"\x00\xff"
    assert (tmp_path / "b").read_bytes() == "grad² →\n".encode()
    assert read_json(tmp_path / "c.json") == {"b": [1, None], "a": "²"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c.json"]


@pytest.mark.parametrize("content", [b"", b"{"])
def test_damaged_json_reads_as_none(tmp_path: Path, content: bytes) -> None:
    assert read_json(tmp_path / "missing.json") is None
    (tmp_path / "x.json").write_bytes(content)
    assert read_json(tmp_path / "x.json") is None


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch, step: str) -> None:
    path = tmp_path / "model.pt"
    write_atomic(path, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(_files.os, step, failing(errno.ENOSPC))
        with pytest.raises(WriteError, match=r"cannot write .*model\.pt: the disk is full: free some space") as caught:
            write_atomic(path, b"new")
    assert is_disk_full(caught.value) and caught.value.errno == errno.ENOSPC
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_an_interruption_passes_and_leaves_nothing(tmp_path: Path, monkeypatch, interruption) -> None:
    def interrupt(*_):
        raise interruption

    with monkeypatch.context() as patch:
        patch.setattr(_files.os, "fsync", interrupt)
        with pytest.raises(interruption):
            write_atomic(tmp_path / "x", b"1")
    assert list(tmp_path.iterdir()) == []


def test_folders_that_cannot_be_written_to(tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(WriteError, match=r"cannot write .*: .*nowhere is no folder"):
        write_atomic(tmp_path / "nowhere" / "x", b"1")
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match="file is no folder"):
        write_atomic(tmp_path / "file" / "x", b"1")
    monkeypatch.setattr(_files, "no_follow", failing(errno.EACCES))
    with pytest.raises(WriteError, match=r"may not be written to \(Permission denied\)") as caught:
        write_atomic(tmp_path / "x", b"1")
    assert not is_disk_full(caught.value)


def test_a_finished_folder_takes_its_name(tmp_path: Path) -> None:
    (tmp_path / "x.partial").mkdir()
    (tmp_path / "x.partial" / "a").write_text("1")
    publish_folder(tmp_path / "x.partial", tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x"] and (tmp_path / "x" / "a").exists()


KILLED = """
import os, sys
from roarfast import _files
_files.os.replace = lambda *_: os._exit(9)
_files.write_atomic(sys.argv[1], b"new")
"""


def test_a_kill_before_the_rename_leaves_the_old_file(tmp_path: Path) -> None:
    write_atomic(tmp_path / "x", b"old")
    environment = os.environ | {"PYTHONPATH": str(Path(_files.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "x")], env=environment, check=False)
    assert done.returncode == 9 and (tmp_path / "x").read_bytes() == b"old"


def test_what_a_kill_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    child = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    gone = int(child.stdout)
    left = [tmp_path / f".a.json.{gone}.tmp", tmp_path / f".b.c.svg.{gone}.tmp"]
    stays = [
        tmp_path / f".a.json.{os.getpid()}.tmp",
        tmp_path / ".mine.tmp",
        tmp_path / f"a.{gone}.tmp",
        tmp_path / "a.json",
        tmp_path / ".x.tmp",
    ]
    for path in (*left, *stays):
        path.write_text("x")
    (tmp_path / f".link.{gone}.tmp").symlink_to(tmp_path / "a.json")
    remove_unfinished(tmp_path)
    assert sorted(p for p in tmp_path.rglob("*") if p.is_file()) == sorted([*stays, tmp_path / f".link.{gone}.tmp"])


def test_a_full_disk_is_found_in_the_causes_of_an_error() -> None:
    try:
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError as error:
            raise RuntimeError("while saving") from error
    except RuntimeError as error:
        assert is_disk_full(error)
    assert is_disk_full(OSError(errno.EDQUOT, "Disk quota exceeded"))
    assert not is_disk_full(OSError(errno.ENOENT, "No such file"))


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="links can be refused only where the system knows how")
def test_planted_links_are_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    target = tmp_path / "a.txt"
    target.symlink_to(victim)
    write_atomic(target, "ours")
    assert target.read_text() == "ours" and not target.is_symlink()
    (tmp_path / f".b.txt.{os.getpid()}.tmp").symlink_to(victim)
    with pytest.raises(WriteError, match=r"b\.txt"):
        write_atomic(tmp_path / "b.txt", "ours")
    (tmp_path / "c.npy").symlink_to(victim)
    create_memmap(tmp_path / "c.npy", "uint8", (4,))[:] = 1
    assert victim.read_text() == "precious" and not (tmp_path / "c.npy").is_symlink()
