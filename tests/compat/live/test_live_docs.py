"""The pages of docs/compat whose blocks need the packages they replace. Run by `make compat`."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.docs_pages import NEED_PEERS, blocks, name, run_python, run_shell

from roarfast import compat
from roarfast._torchvision import import_torchvision

import_torchvision()  # some builds of it do not load by themselves
pytest.importorskip("quantus")
pytest.importorskip("pytorch_grad_cam")


@pytest.fixture(autouse=True)
def restored():
    yield
    compat.disable()


@pytest.mark.parametrize("path", NEED_PEERS, ids=name)
def test_python_blocks_run(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run_python(path, monkeypatch, tmp_path)


@pytest.mark.parametrize("path", [path for path in NEED_PEERS if blocks(path, "sh")], ids=name)
def test_shell_blocks_run(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run_shell(path, monkeypatch, tmp_path)
