"""Trainings that are killed, interrupted, or spread over two processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

JOB = Path(__file__).with_name("_train_job.py")


def environment(**more):
    root = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH", "")) if p)
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


def start(**options):
    return subprocess.Popen(
        [sys.executable, str(JOB), json.dumps(options)], env=environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process):
    _, error = process.communicate(timeout=240)
    assert process.returncode == 0, error[-3000:]


def result(out):
    return torch.load(f"{out}.pt", weights_only=True), json.loads(Path(f"{out}.json").read_text())


def wait_for_progress(checkpoint, process, after=None):
    """Until the checkpoint exists (and is newer than `after`)."""
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        if checkpoint.exists() and (after is None or checkpoint.stat().st_mtime_ns > after):
            return checkpoint.stat().st_mtime_ns
        assert process.poll() is None, process.communicate()[1][-3000:]
        time.sleep(0.01)
    raise AssertionError("no checkpoint was written")


def test_killed_training_resumes_to_the_same_weights(tmp_path):
    """SIGKILL in the middle of an epoch, twice; then Ctrl-C; then to the end."""
    options = {"dropout": 0.1, "slow": True, "checkpoint_seconds": 0}
    checkpoint = tmp_path / "c.pt"
    written = None
    for _ in range(2):
        process = start(**options, checkpoint=str(checkpoint), out=str(tmp_path / "never"))
        written = wait_for_progress(checkpoint, process, written)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert not (tmp_path / "never.pt").exists()

    process = start(**options, checkpoint=str(checkpoint), out=str(tmp_path / "never"))
    wait_for_progress(checkpoint, process, written)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt: training stopped after step" in error
    assert str(checkpoint) in error

    finish(start(**options, checkpoint=str(checkpoint), out=str(tmp_path / "resumed")))
    finish(start(dropout=0.1, out=str(tmp_path / "whole"), slow=True))
    (resumed, facts), (whole, expected) = result(tmp_path / "resumed"), result(tmp_path / "whole")
    assert facts["resumed_at"] > 0
    assert expected["resumed_at"] is None
    assert facts["losses"] == expected["losses"]
    assert all(torch.equal(resumed[k], whole[k]) for k in whole)


def test_two_processes_train_like_one(tmp_path):
    """Same batches, same groups of batch normalisation: same losses up to rounding."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    options = {"n": 120, "epochs": 2, "ghost_batch": 10, "out": str(tmp_path / "two")}
    processes = [
        subprocess.Popen(
            [sys.executable, str(JOB), json.dumps(options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(
                RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port
            ),
        )
        for rank in range(2)
    ]  # fmt: skip
    for process in processes:
        finish(process)
    finish(start(**{**options, "out": str(tmp_path / "one")}))
    (two, facts), (one, expected) = result(tmp_path / "two"), result(tmp_path / "one")
    assert len(facts["losses"]) == len(expected["losses"]) == 12
    np.testing.assert_allclose(facts["losses"], expected["losses"], rtol=1e-4)
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=1e-3, atol=1e-4)
    assert facts["accuracy"] == pytest.approx(expected["accuracy"], abs=0.041)
