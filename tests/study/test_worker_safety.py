"""Workers and full disks: no stranger's module is imported, no signal without a message, no absurd value accepted."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.study_helpers import TINY, write_tiny

torch = pytest.importorskip("torch")
pytest.importorskip("pydantic")

from roarfast._files import WriteError, create_memmap, is_disk_full
from roarfast.study.config import load_config, parse_config
from roarfast.study.errors import ConfigError
from roarfast.study.tasks import MapsTask
from roarfast.study.workers import ProcessPool, Settings, Worker

SMALL = TINY.replace('["roar", "road"]', '["road"]').replace('["grad^2", "sg-sq", "rand", "block"]', '["rand"]')
ROARFAST = [sys.executable, "-c", "import sys; sys.path.pop(0); from roarfast.cli import main; main()"]
"""The command as installed: without the working folder on the path."""


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p and "roarfast" not in p)}
    root = Path(__file__).parents[2]
    environment["PYTHONPATH"] += os.pathsep + str(root)
    return subprocess.run(
        [*ROARFAST, *map(str, arguments)], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_modules_beside_the_config_serve_as_models_and_shadow_nothing(tmp_path: Path) -> None:
    """In the parent and in workers alike; a planted `random.py` there is never imported."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("random.py", "selectors.py", "torchvision.py"):
        (tmp_path / name).write_text(
            f"open({str(tmp_path / 'executed')!r}, 'a').write(__name__)\nraise SystemExit(7)\n"
        )
        (elsewhere / name).write_text((tmp_path / name).read_text())
    (tmp_path / "my_net.py").write_text(
        "from roarfast.train.models import ConvNet\n"
        "def make(num_classes, in_channels=3):\n    return ConvNet(num_classes, in_channels, widths=(4, 4, 4, 4))\n"
    )
    text = SMALL.replace('name = "convnet"\noptions = { widths = [4, 4, 4, 4] }', 'name = "my_net:make"')
    config = write_tiny(tmp_path, text)
    for workers, folder in ((1, tmp_path), (2, tmp_path), (2, elsewhere)):
        out = tmp_path / f"run-{workers}-{folder.name}"
        done = run("run", config, "--out", out, "--workers", workers, cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "executed").exists()


def test_a_worker_that_dies_of_sigbus_is_a_full_disk(tmp_path: Path) -> None:
    config = parse_config(SMALL)
    pool = ProcessPool([Settings(config.model_dump(mode="json"), str(tmp_path), "cpu", 1)])
    try:
        task = MapsTask(key="k", label="maps", trial=0, estimators=("grad",), base="b")
        pool.submit(0, task)
        os.kill(pool._processes[0].pid, signal.SIGBUS)
        found = []
        while not found:
            found = list(pool.events())
        assert [(event.kind, event.text) for event in found] == [("fatal", "disk full")]
    finally:
        pool.close()


def test_a_worker_that_is_killed_may_have_used_up_the_memory(tmp_path: Path) -> None:
    pool = ProcessPool([Settings(parse_config(SMALL).model_dump(mode="json"), str(tmp_path), "cpu", 1)])
    try:
        pool.submit(0, MapsTask(key="k", label="maps", trial=0, estimators=("grad",), base="b"))
        os.kill(pool._processes[0].pid, signal.SIGKILL)
        found = []
        while not found:
            found = list(pool.events())
        assert found[0].kind == "died"
        assert "(signal SIGKILL, as when the system runs out of memory)" in found[0].text
    finally:
        pool.close()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "Tried to allocate 2 GiB"),
        (MemoryError("Unable to allocate 8 GiB"), "Unable to allocate 8 GiB"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "can't allocate memory"),
        (RuntimeError("shapes do not fit"), None),
    ],
)
def test_a_task_out_of_memory_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, told: str | None
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("roarfast.study.workers.do_task", fail)
    worker = Worker(
        Settings(parse_config(SMALL).model_dump(mode="json"), str(tmp_path), "cpu", torch.get_num_threads())
    )
    task = MapsTask(key="k", label="maps", trial=0, estimators=("grad",), base="b")
    kind, text, _ = worker.execute(task, lambda line: None)
    last = text.strip().splitlines()[-1]
    assert kind == "failed" and "Traceback" in text
    if told is None:
        assert last == "RuntimeError: shapes do not fit"
    else:
        assert last.startswith("out of memory: make train.batch_size or explain.batch_size smaller") and told in last


def test_memory_maps_have_their_space_before_they_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = create_memmap(tmp_path / "a.npy", np.float32, (300, 1000))
    status = (tmp_path / "a.npy").stat()
    assert status.st_blocks * 512 >= status.st_size > made.nbytes
    made[:] = 3
    made.flush()
    assert (np.load(tmp_path / "a.npy") == 3).all()
    assert create_memmap(tmp_path / "empty.npy", np.uint8, (0, 3)).shape == (0, 3)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(WriteError, match=r"cannot write .*b\.npy: the disk is full") as caught:
        create_memmap(tmp_path / "b.npy", np.float32, (10, 10))
    assert is_disk_full(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("train_size", "1_000_000_000_000", "train_size"),
        ("train_size", "1_000_000_000", "at most 1000000 shapes are generated"),
        ("trials", "1_000_000_000", "trials"),
        ("drops", str([round(0.001 * i, 3) for i in range(1, 400)]), "399 drop rates, and at most 254"),
    ],
)
def test_absurd_values_are_refused(tmp_path: Path, key: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(write_tiny(tmp_path, TINY, **{key: value}))


@pytest.mark.parametrize("line", ["workers = 100_000_000", "threads = 1_000_000_000"])
def test_absurd_numbers_of_processes_and_threads(line: str) -> None:
    with pytest.raises(ConfigError, match=f"run.{line.split()[0]}.*1024"):
        parse_config(TINY.replace("[run]", f"[run]\n{line}"))


def test_rates_are_counted_over_blocks() -> None:
    first, second = ([round(0.001 * i, 3) for i in part] for part in (range(1, 200), range(150, 300)))
    text = TINY.replace("drops = [0.3, 0.5]", f"drops = {first}")
    text += f'\n[[grid]]\nprotocols = ["roar"]\nestimators = ["sg-sq"]\ndrops = {second}\n'
    with pytest.raises(ConfigError, match="'sg-sq' has 299 drop rates"):
        parse_config(text)


def test_configs_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_bytes(b"name = '\xff\xfe'")
    with pytest.raises(ConfigError, match="is no text in UTF-8"):
        load_config(path)
    path.write_text("a = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(ConfigError, match="nested too deeply"):
        load_config(path)
