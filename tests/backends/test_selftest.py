"""`roarfast selftest` on the kernels that run here, and on kernels that are wrong."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path

import pytest

import roarfast as rf
from roarfast import _backend, selftest

torch = pytest.importorskip("torch")
COVERED = {row.op for row in selftest._cases()}


@pytest.mark.parametrize("device", ["cpu", "simt", pytest.param("ptx", marks=pytest.mark.slow)])
def test_passes(device: str) -> None:
    try:
        report = selftest.run(device, quick=True)
    except rf.BackendError as error:
        pytest.skip(str(error))
    assert report["ok"], selftest.render(report)
    selftest.check_report(json.loads(json.dumps(report)))
    assert {row["op"] for row in report["ops"]} == COVERED
    assert "passed" in selftest.render(report)


def test_every_op_is_covered() -> None:
    from roarfast.ops import _op

    assert {op.name for op in _op._ops} - COVERED == {"pixel_random", "block_random"}  # they take no array


def test_a_wrong_kernel_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sobel = rf.sobel
    monkeypatch.setattr(rf, "sobel", lambda a: sobel(a) + (_backend._host_backend == "simt"))
    try:
        report = selftest.run("simt", quick=True)
    except rf.BackendError as error:
        pytest.skip(str(error))
    (row,) = (row for row in report["ops"] if row["op"] == "sobel")
    assert not report["ok"] and row["different"] == row["comparisons"] and row["worst"] >= 1
    assert "sobel" in selftest.render(report) and "DIFFERENT" in selftest.render(report)


def test_bad_devices_and_reports() -> None:
    with pytest.raises(ValueError, match="device must be 'cuda', 'cuda:N' or one of cpu, simt, ptx, got 'gpu'"):
        selftest.run("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(rf.BackendError, match="sees no CUDA device"):
            selftest.run("cuda")
    report = {
        "schema": 1,
        "ok": True,
        "device": "cuda",
        "device_name": "x",
        "torch": "2",
        "build": {},
        "seed": 0,
        "seconds": 1.0,
        "ops": [{"op": "sobel", "comparisons": 1, "different": 0, "worst": 0.0, "first_difference": ""}],
        "checks": [],
    }
    selftest.check_report(report)
    for change, message in (
        ({"schema": 2}, "report.schema must be 1, got 2"),
        ({"ok": 1}, "report.ok must be"),
        ({"ops": [{}]}, r"report.ops\[0\] must have the fields op"),
        ({"more": 1}, "report must have the fields"),
    ):
        with pytest.raises(ValueError, match=message):
            selftest.check_report({**copy.deepcopy(report), **change})


def test_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "roarfast", "selftest", "--device", "cpu", "--quick", "--json", "--out", "r.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ok"] and json.loads((tmp_path / "r.json").read_text())["device"] == "cpu"
    if not torch.cuda.is_available():
        done = subprocess.run(
            [sys.executable, "-m", "roarfast", "selftest"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 2 and "sees no CUDA device" in done.stderr
