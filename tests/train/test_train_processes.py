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
from helpers.train_job import run_job  # noqa: E402

TESTS = Path(__file__).resolve().parents[1]
JOB = TESTS / "helpers" / "train_job.py"


def environment(**more):
    root = str(TESTS.parent)
    path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH", "")) if p)
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **more}


def start(options, **more):
    return subprocess.Popen(
        [sys.executable, str(JOB), json.dumps(options)],
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_checkpoint(path, process):
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        if path.exists():
            return
        assert process.poll() is None, process.communicate()[1][-3000:]
        time.sleep(0.01)
    raise AssertionError("no checkpoint was written")


@pytest.fixture(autouse=True)
def _restore_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_killed_training_resumes_to_the_same_weights(tmp_path):
    """SIGKILL in the middle of an epoch, then continued to the end."""
    checkpoint, never = tmp_path / "c.pt", tmp_path / "never"
    options = {"dropout": 0.1, "checkpoint": str(checkpoint)}
    process = start({**options, "slow": 0.05, "out": str(never)})
    wait_for_checkpoint(checkpoint, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()

    assert not Path(f"{never}.pt").exists()

    resumed, whole = run_job(options), run_job({"dropout": 0.1})
    assert 0 < resumed.resumed_at < whole.steps
    assert whole.resumed_at is None
    assert resumed.step_losses == whole.step_losses
    assert resumed.accuracy == whole.accuracy
    expected = whole.model.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in resumed.model.state_dict().items())


def test_two_processes_train_like_one(tmp_path):
    """Same batches, same groups of batch normalisation: same losses up to rounding."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    options = {"n": 120, "epochs": 2, "ghost_batch": 10}
    world = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    job = {**options, "out": str(tmp_path / "two")}
    processes = [start(job, RANK=str(rank), LOCAL_RANK=str(rank), **world) for rank in range(2)]
    one = run_job(options)
    for process in processes:
        _, error = process.communicate(timeout=240)
        assert process.returncode == 0, error[-3000:]
    facts = json.loads((tmp_path / "two.json").read_text())
    assert len(facts["losses"]) == len(one.step_losses) == 12
    np.testing.assert_allclose(facts["losses"], one.step_losses, rtol=1e-4)
    two = torch.load(tmp_path / "two.pt", weights_only=True)
    for name, value in one.model.state_dict().items():
        torch.testing.assert_close(two[name], value, rtol=1e-3, atol=1e-4)
    assert facts["accuracy"] == pytest.approx(one.accuracy, abs=0.041)
