"""The command line: whatever a user gives it, the answer is a sentence that names it, never a traceback."""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("torch")
pytest.importorskip("pydantic")

from helpers.study_helpers import TINY, write_tiny

from roarfast import cli

Make = Callable[[Path], list[str]]


def _file(folder: Path, name: str, content: bytes) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return str(path)


def _store(folder: Path, content: bytes) -> str:
    _file(folder, "run/results.sqlite", content)
    return str(folder / "run")


def _promise(folder: Path) -> str:
    """An `.npz` whose header promises 10^15 bytes."""
    header = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000, 1000, 1000, 3), }"
    header = header.ljust(118 - 1) + b"\n"
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    path = folder / "huge.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("images.npy", member)
        with file.open("labels.npy", "w") as labels:
            np.lib.format.write_array(labels, np.zeros(3, np.int64))
    return str(path)


def _config(folder: Path, text: str = TINY) -> str:
    return str(write_tiny(folder, text))


BAD: dict[str, tuple[Make, str]] = {
    "no config": (lambda f: ["run", str(f / "none.toml")], "none.toml"),
    "config is a folder": (lambda f: ["run", str(f)], "folder|directory"),
    "config is no text": (lambda f: ["run", _file(f, "a.toml", b"\xff\xfe\x00name")], "a.toml"),
    "config nested 5,000 deep": (lambda f: ["run", _file(f, "deep.toml", b"a = " + b"[" * 5000)], "deep.toml|nested"),
    "config of another kind": (lambda f: ["run", _file(f, "x.toml", b"name = 3\n[data]\nname = {}\n")], "x.toml"),
    "out is a file": (lambda f: ["run", _config(f), "--out", _file(f, "taken", b"mine")], "taken"),
    "out is below a file": (lambda f: ["run", _config(f), "--out", _file(f, "taken", b"mine") + "/run"], "taken"),
    "out is somebody's folder": (
        lambda f: ["run", _config(f), "--out", str(Path(_file(f, "home/thesis.txt", b"mine")).parent)],
        "home",
    ),
    "out with NUL": (lambda f: ["run", _config(f), "--out", "a\0b"], "."),
    "data that is not there": (
        lambda f: ["run", _config(f, TINY.replace('name = "shapes"', 'name = "npz"\npath = "none.npz"'))],
        "none.npz|path",
    ),
    "status of nothing": (lambda f: ["status", str(f / "none")], "none"),
    "status of garbage": (lambda f: ["status", _store(f, b"garbage" * 1000)], "results.sqlite"),
    "status of an empty store": (lambda f: ["status", _store(f, b"")], "results.sqlite|run"),
    "report of nothing": (lambda f: ["report", str(f)], "run folder|results"),
    "report of garbage": (lambda f: ["report", _store(f, b"SQLite format 3\0" + b"\xff" * 5000)], "results.sqlite"),
    "merge of nothing": (lambda f: ["merge", str(f / "all")], "shard"),
    "merge of garbage": (lambda f: ["merge", str(f / "all"), _store(f, b"x" * 9000)], "results.sqlite"),
    "unknown preset": (lambda f: ["init", "--preset", "nope", str(f / "new.toml")], "nope"),
    "pack of nothing": (lambda f: ["data", "pack", str(f / "none"), str(f / "pack"), "--size", "8"], "none"),
    "pack of a broken image": (
        lambda f: [
            "data",
            "pack",
            str(Path(_file(f, "photos/cat/a.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 60)).parents[1]),
            str(f / "pack"),
            "--size",
            "8",
        ],
        "a.png",
    ),
    "verify no pack": (lambda f: ["data", "verify", str(f)], "pack"),
    "an npz of 10^15 bytes": (lambda f: ["data", "show", _promise(f)], "huge.npz"),
    "an npz that is none": (lambda f: ["data", "show", _file(f, "a.npz", b"PK\x03\x04" + b"\xff" * 100)], "a.npz"),
    "maps of nothing": (lambda f: ["score", str(f / "none.toml")], "none.toml|Usage"),
    "unknown claim": (lambda f: ["validate", "--only", "nope"], "nope"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_sentence_and_no_traceback(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import re

    make, named = BAD[what]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["roarfast", *make(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    assert ended.value.code not in (0, None), said
    assert "Traceback" not in said.err + said.out
    assert re.search(named, said.err + said.out), said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "error: not enough memory"),
        (OSError(28, "No space left on device"), "error: .*No space left"),
        (RuntimeError("Torch not compiled with CUDA enabled"), "error: Torch not compiled"),
        (RecursionError("maximum depth"), "error: something is nested too deep"),
    ],
)
def test_errors_of_the_machine(error: Exception, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    import re

    with pytest.raises(SystemExit) as ended, cli.clear_errors():
        raise error
    assert ended.value.code == 2 and re.match(said, capsys.readouterr().err)


def test_the_suite_notices_tracebacks_at_the_command_line() -> None:
    """Every test that calls the command goes through these checks (`conftest.py`)."""
    import subprocess
    from types import SimpleNamespace

    import typer
    from helpers import no_traceback
    from typer.testing import CliRunner

    app = typer.Typer()

    @app.command()
    def fails(kind: str) -> None:
        raise {"bug": KeyError, "user": ValueError}[kind]("boom")

    CliRunner().invoke(app, ["user"])
    with pytest.raises(AssertionError, match="not caught: KeyError"):
        CliRunner().invoke(app, ["bug"])
    for command, is_ours in (
        (["/x/bin/roarfast", "info"], True),
        ([sys.executable, "-m", "roarfast", "run"], True),
        ([sys.executable, "-c", "1"], False),
    ):
        assert no_traceback.is_command(command) == is_ours
    with pytest.raises(AssertionError, match="showed a traceback"):
        no_traceback.check_process(SimpleNamespace(args=[], stderr=f"{no_traceback.TRACEBACK}: …".encode()))
    assert subprocess.run([sys.executable, "-c", "raise ValueError"], capture_output=True, check=False).returncode == 1


def test_our_own_mistakes_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyError), cli.clear_errors():
        raise KeyError("a bug")
    monkeypatch.setenv("ROARFAST_TRACEBACK", "1")
    with pytest.raises(ValueError, match="shown"), cli.clear_errors():
        raise ValueError("shown")
