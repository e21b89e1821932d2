"""`bench/run.py --device`: the code that a GPU owner runs, on nvcc's PTX and tiny images; and its report."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from helpers.ptx import ptx_backend, ptx_missing  # noqa: E402

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture(scope="module")
def on_device() -> Iterator[Any]:
    sys.path.insert(0, str(BENCH))
    try:
        import on_device

        yield on_device
    finally:
        sys.path.remove(str(BENCH))


@pytest.fixture(scope="module")
def report(on_device: Any) -> dict[str, Any]:
    if ptx_missing():
        pytest.skip(ptx_missing())
    with ptx_backend():
        return on_device.run("ptx", on_device.TINY)


def test_every_op_is_measured(report: dict[str, Any]) -> None:
    from roarfast.ops import _op

    scores = {"code_sums", "distance_transform", "mask_geometry"}  # of evaluations: bench_<op>.py on the CPU
    assert {row["op"] for row in report["ops"]} == {op.name for op in _op._ops} - scores
    assert not any(row["wrong"] for row in report["ops"]), "a rival differs"
    assert report["training"]["resident"] and not report["streaming"]["resident"]


def test_report_can_be_sent_and_rendered(report: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report))
    done = subprocess.run(
        [sys.executable, str(BENCH / "run.py"), "--render", str(file)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "| `gather_batch` | 1x8x8x3, to NHWC |" in done.stdout and "streamed from a pack" in done.stdout


def test_bad_reports_are_refused(on_device: Any, report: dict[str, Any]) -> None:
    for change, message in (
        ({"schema": 2}, "report.schema must be 1, got 2"),
        ({"ops": [{}]}, r"report.ops\[0\] must have the fields op"),
        ({"ops": [{**report["ops"][0], "rivals": {"torch": 0}}]}, r"rivals\['torch'\] must be a time > 0, got 0"),
        ({"streaming": {}}, "report.streaming must have the fields model"),
        ({"more": 1}, "report must have the fields"),
    ):
        with pytest.raises(ValueError, match=message):
            on_device.check_report({**copy.deepcopy(report), **change})


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_device(on_device: Any) -> None:
    done = subprocess.run([sys.executable, str(BENCH / "run.py"), "--device", "cuda"], capture_output=True, text=True)
    assert done.returncode == 2 and "sees no CUDA device" in done.stderr
