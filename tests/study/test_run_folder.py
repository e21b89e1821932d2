"""A run writes and deletes nothing but its own: whose folder it may work in, and what it leaves alone."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.study_helpers import tiny, write_tiny

torch = pytest.importorskip("torch")
pytest.importorskip("pydantic")

from typer.testing import CliRunner

from roarfast._files import delete_own_folder
from roarfast.commands import app
from roarfast.data.pack import write_pack
from roarfast.explain.store import AttributionStore
from roarfast.study import Study, images
from roarfast.study.config import parse_config
from roarfast.study.errors import StudyError
from roarfast.study.runfolder import RunFolder, check_claim

SMALL = tiny(protocols=["road"], estimators=["rand"])


def command(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_folder_with_other_files_is_refused_and_untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write_tiny(tmp_path, SMALL)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine.npz").write_bytes(b"months of work")
    before = files(tmp_path)
    monkeypatch.chdir(tmp_path)
    result = command("run", config.name, "--out", ".")
    assert result.exit_code == 2
    assert "--out . is not empty and holds no study (data)" in result.stderr and "--out run" in result.stderr
    assert files(tmp_path) == before


def test_a_run_beside_its_config_leaves_later_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder of a config and nothing else is a good run folder; what its owner adds to it later stays."""
    config = write_tiny(tmp_path, SMALL)
    monkeypatch.chdir(tmp_path)
    assert command("run", config.name, "--out", ".", "--workers", "2").exit_code == 0
    text = config.read_text()
    mine = {name: tmp_path / name for name in ("data/mine.npz", ".shared/mine.txt", "codes/mine.npy", "mine.csv")}
    for path in mine.values():
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    config.write_text(text.replace("drops = [0.3, 0.5]", "drops = [0.3, 0.5, 0.7]"))
    assert command("run", config.name, "--out", ".", "--workers", "2").exit_code == 0
    assert all(path.read_text() == "mine" for path in mine.values())
    assert sorted(path.name for path in (tmp_path / ".shared").iterdir()) == ["mine.txt"]


def test_leftovers_of_a_killed_run_do_not_keep_it_from_going_on(tmp_path: Path) -> None:
    config = write_tiny(tmp_path, SMALL)
    out = tmp_path / "run"
    for name in (".lock", ".workers.lock", ".study.toml.123.tmp"):
        out.mkdir(exist_ok=True)
        (out / name).touch()
    (out / "shards").mkdir()
    check_claim(out, config)
    (out / "study.toml").write_text(config.read_text())
    check_claim(out, config)
    assert Study.from_toml(config, out).run(workers=1).failed == []
    (out / "notes.txt").write_text("an owner may add what they like to a study's folder")
    check_claim(out, config)


def test_the_config_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    config = write_tiny(tmp_path, SMALL)
    out = tmp_path / "other"
    out.mkdir()
    (out / "study.toml").write_text("name = 'other'")
    with pytest.raises(StudyError, match="is another config than"):
        Study.from_toml(config, out).run(workers=1)
    assert (out / "study.toml").read_text() == "name = 'other'"


def test_out_that_is_a_file_or_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    config = write_tiny(tmp_path, SMALL)
    (tmp_path / "file").touch()
    for arguments in (("run", config), ("demo",)):
        result = command(*arguments, "--out", tmp_path / "file")
        assert result.exit_code == 2 and "is a file: choose a folder" in result.stderr
    for out in (tmp_path / "file" / "below", Path("/proc/nowhere")):
        result = command("run", config, "--out", out)
        assert result.exit_code == 2 and "cannot make the run folder" in result.stderr, result.stderr


def test_lock_files_are_not_opened_through_links(tmp_path: Path) -> None:
    config, out = write_tiny(tmp_path, SMALL), tmp_path / "run"
    out.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in (".lock", ".workers.lock"):
        (out / name).unlink(missing_ok=True)
        (out / name).symlink_to(victim)
        with pytest.raises(StudyError, match=r"cannot lock the run folder with .*lock: it is a symbolic link"):
            Study.from_toml(config, out).run(workers=1)
        (out / name).unlink()
    assert victim.read_text() == "precious"


def test_only_shared_files_of_runs_are_forgotten(tmp_path: Path) -> None:
    data = parse_config(SMALL).data
    images.share_data(RunFolder(tmp_path), data)
    shared = tmp_path / ".shared"
    (shared / f"{'0' * 32}.npz").touch()  # of a run that was killed
    (shared / f".{'0' * 32}.npz.77.tmp").touch()
    (shared / "mine.npz").touch()
    images.forget_shared_data(RunFolder(tmp_path))
    assert [path.name for path in shared.iterdir()] == ["mine.npz"]
    (shared / "mine.npz").unlink()
    images.forget_shared_data(RunFolder(tmp_path))
    assert not shared.exists()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / f"{'0' * 32}.npz").touch()
    shared.symlink_to(elsewhere)
    images.forget_shared_data(RunFolder(tmp_path))
    assert len(list(elsewhere.iterdir())) == 1


def test_folders_that_are_started_over_are_deleted_only_if_all_in_them_is_ours(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    delete_own_folder(folder, ("x",))
    folder.mkdir()
    for name in ("x", ".x.12.tmp"):
        (folder / name).touch()
    delete_own_folder(folder, ("x",))
    assert not folder.exists()

    store = AttributionStore(tmp_path / "maps")
    (tmp_path / "maps" / "grad").mkdir(parents=True)
    (tmp_path / "maps" / "grad" / "thesis.tex").write_text("mine")
    identity = {"estimator": "grad", "shape": [1, 2, 2], "postprocess": ["plain"]}
    refused = pytest.raises(FileExistsError, match=r"holds files of somebody else: thesis\.tex")
    with refused, store.writer(identity, overwrite=True):
        pass
    assert (tmp_path / "maps" / "grad" / "thesis.tex").read_text() == "mine"

    from PIL import Image

    (tmp_path / "images" / "train" / "a").mkdir(parents=True)
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(tmp_path / "images" / "train" / "a" / "0.png")
    (tmp_path / "set.partial").mkdir()
    (tmp_path / "set.partial" / "thesis.tex").write_text("mine")
    with pytest.raises(FileExistsError, match=r"thesis\.tex"):
        write_pack(tmp_path / "images", tmp_path / "set", size=4)
    assert (tmp_path / "set.partial" / "thesis.tex").read_text() == "mine"


def test_no_traceback_on_a_read_only_folder(tmp_path: Path) -> None:
    """Also for root, whom permissions do not stop: /proc cannot be written by anybody."""
    config = write_tiny(tmp_path, SMALL)
    done = subprocess.run(
        [sys.executable, "-m", "roarfast", "run", str(config), "--out", "/proc/sys/nowhere"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr and "cannot make the run folder" in done.stderr
