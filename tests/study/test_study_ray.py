"""Studies on a Ray cluster of two nodes on this machine: the same store as a local run, whatever dies in between."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.ray_cluster import NODE, two_nodes
from helpers.study_helpers import TINY, outcome, write_tiny

torch = pytest.importorskip("torch")
pytest.importorskip("pydantic")
ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'roarfast[ray]'")

from roarfast.study.cluster import connect as connecting
from roarfast.study.cluster.errors import why
from roarfast.study.cluster.files import NodeFiles
from roarfast.study.cluster.slots import Needs, Node, choose_device, place
from roarfast.study.cluster.worker import RayWorker
from roarfast.study.errors import StudyError
from roarfast.study.images import load_data
from roarfast.study.progress import TaskProgress
from roarfast.study.study import Study
from roarfast.study.workers import Settings

SMALL = TINY.replace('["grad^2", "sg-sq", "rand", "block"]', '["grad^2", "rand"]')


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head that does no work, and two nodes of one CPU."""
    with two_nodes() as found:
        yield found


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, ...]]:
    """What one process finds."""
    folder = tmp_path_factory.mktemp("local")
    Study.from_toml(write_tiny(folder, SMALL), folder / "run").run(workers=1)
    return outcome(folder / "run")


class After(TaskProgress):
    """Does something once a number of tasks has been done, and remembers what was said."""

    def __init__(self, count: int, action: Callable[[], None]) -> None:
        super().__init__()
        self._count, self._action, self.notes = count, action, list[str]()

    def finish(self, *arguments: Any) -> None:
        super().finish(*arguments)
        self._count -= 1
        if self._count == 0:
            self._action()

    def note(self, text: str) -> None:
        self.notes.append(text)


def study(folder: Path, artefacts: str) -> Study:
    return Study.from_toml(write_tiny(folder, SMALL + f'artefacts = "{artefacts}"\n'), folder / "run")


def test_a_shared_folder_gives_the_store_of_a_local_run(cluster: Any, local: Any, tmp_path: Path) -> None:
    found = study(tmp_path, "shared").run(ray=cluster.address)
    assert not found.failed
    assert outcome(tmp_path / "run") == local
    assert not list((tmp_path / "run").glob(".probe-*"))


def test_a_node_that_goes_loses_nothing_without_a_shared_folder(cluster: Any, local: Any, tmp_path: Path) -> None:
    """Its task runs again on the other, and so does what only it had."""
    victim = cluster.worker_nodes and sorted(cluster.worker_nodes, key=lambda node: node.node_id)[0]
    progress = After(6, lambda: cluster.remove_node(victim, allow_graceful=False))
    found = study(tmp_path, "transfer").run(ray=cluster.address, progress=progress)
    cluster.add_node(**NODE)
    assert not found.failed, progress.notes
    assert outcome(tmp_path / "run") == local
    assert not (tmp_path / "run" / "codes").exists() or not any((tmp_path / "run" / "codes").iterdir())
    assert any((tmp_path / "run" / "maps").rglob("maps.npy"))  # what is kept is in the run folder


def test_a_killed_driver_loses_nothing(cluster: Any, local: Any, tmp_path: Path) -> None:
    """Without a shared folder; the same command resumes, and does not wait for what it has."""
    scratch = tmp_path / "scratch"
    text = SMALL + f'artefacts = "transfer"\nscratch = "{scratch}"\n'
    one = Study.from_toml(write_tiny(tmp_path, text), tmp_path / "run")
    arguments = ["-m", "roarfast", "run", one.source, "--out", one.folder, "--ray", cluster.address, "--no-report"]
    with subprocess.Popen([sys.executable, *map(str, arguments)], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        lines = []
        for line in iter(driver.stdout.readline, ""):
            lines.append(line)
            if "[7/" in line:
                driver.send_signal(signal.SIGKILL)
                break
    kept = [key for key, values in outcome(one.folder).items() if values[0] == "done"]
    assert kept, lines
    found = one.run(ray=cluster.address)
    assert found.skipped >= len(kept) and not found.failed
    assert outcome(one.folder) == local
    assert not list(scratch.glob("roarfast-*/*-*"))  # neither its own copies nor those of the driver that was killed


def test_copies_that_nobody_holds_are_deleted(tmp_path: Path) -> None:
    """Those of a killed driver; never those of one that runs, nor what is not ours."""

    def files(run: str) -> NodeFiles:
        return NodeFiles(str(tmp_path / "nowhere"), ("probe", "x"), str(tmp_path / "scratch"), run, "node", "auto")

    running, killed = files("1"), files("2")
    (killed.root / "maps").mkdir(exist_ok=True)
    os.close(killed._alive)  # as the end of its process does
    foreign = killed.root.parent / "foreign"
    foreign.mkdir()
    last = files("3")
    assert running.root.exists() and last.root.exists() and foreign.exists() and not killed.root.exists()
    last.leave()
    assert not last.root.exists()


def test_a_node_with_other_images_is_refused(tmp_path: Path) -> None:
    one = Study.from_toml(write_tiny(tmp_path, SMALL), tmp_path / "run")
    images = tuple(part.data_hash for part in load_data(one.config.data))

    def worker(*hashes: str) -> RayWorker:
        settings = Settings(one.config.model_dump(mode="json"), str(one.folder), "cpu", 1, hashes)
        return RayWorker(json.dumps(settings.encode()), 0, None, str(tmp_path), {})

    (tmp_path / "run").mkdir()
    here = Path.cwd()
    try:
        assert worker(*images).ready() == ""
        assert "its test images or labels are not the driver's" in worker(images[0], "0" * 32).ready()
    finally:
        os.chdir(here)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_torch_does_not_see_is_said(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    config = Study.from_toml(write_tiny(tmp_path, SMALL)).config
    settings = Settings(config.model_dump(mode="json"), str(tmp_path / "run"), "cuda", 1)
    said = RayWorker(json.dumps(settings.encode()), 0, None, str(tmp_path / "nowhere"), {}).ready()
    assert "Ray gave it a GPU, but torch sees none there: install a torch with CUDA" in said


@pytest.mark.slow
def test_a_worker_that_dies_is_replaced(cluster: Any, local: Any, tmp_path: Path) -> None:
    progress = After(3, kill_one_worker)
    found = study(tmp_path, "auto").run(ray=cluster.address, progress=progress)
    assert not found.failed, progress.notes
    assert outcome(tmp_path / "run") == local


def kill_one_worker() -> None:
    """The process of an actor that works; Linux only, as all of this."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if b"ray::RayWorker" in (folder / "cmdline").read_bytes() and _is_ours(int(folder.name)):
                    os.kill(int(folder.name), signal.SIGKILL)
                    return
            except OSError:
                continue


def _is_ours(pid: int) -> bool:
    """Whether a process is below this one: other tests may run a cluster too."""
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


def test_no_gpu_where_one_is_asked_for(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"none of the 3 nodes of the Ray cluster has a GPU.*--num-gpus"):
        study(tmp_path, "auto").run(ray=cluster.address, device="cuda")
    assert not ray.is_initialized()


def test_no_room_for_a_worker(cluster: Any, tmp_path: Path) -> None:
    text = SMALL + "memory = 100000.0\n"
    with pytest.raises(StudyError, match=r"no node .* has room .* 1e\+05 GB \(run.memory\).* largest has 1 CPUs"):
        Study.from_toml(write_tiny(tmp_path, text), tmp_path / "run").run(ray=cluster.address)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1.*ray start --head"),
        ("no.such.host.invalid:6379", "no Ray cluster answers at no.such.host.invalid:6379"),
        ("rubbish", "--ray must be 'auto' or HOST:PORT"),
        ("ray://head:10001", "not through Ray's client.*ray job submit"),
    ],
)
def test_a_wrong_address_is_an_error_at_once(address: str, message: str, tmp_path: Path) -> None:
    begun = time.monotonic()
    with pytest.raises(StudyError, match=message):
        study(tmp_path, "auto").run(ray=address)
    assert time.monotonic() - begun < 60  # Ray itself would try for ten minutes


def test_a_cluster_that_was_killed_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray leaves the address of the last one in a file, and would ask there for minutes."""
    from ray._private import services

    asked = list[str]()
    monkeypatch.setattr(ray, "init", lambda address, **options: asked.append(address))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.setenv("RAY_worker_niceness", "0")  # which it would leave set
    monkeypatch.setattr(services, "find_gcs_addresses", lambda: set())
    (tmp_path / "ray").mkdir()
    for address, expected in (("127.0.0.1:1", "local"), (None, "local"), ("listening", "auto")):
        with socket.create_server(("127.0.0.1", 0)) as server:
            listening = f"127.0.0.1:{server.getsockname()[1]}"
            text = listening if address == "listening" else address
            (tmp_path / "ray" / "ray_current_cluster").unlink(missing_ok=True)
            if text is not None:
                (tmp_path / "ray" / "ray_current_cluster").write_text(text)
            assert connecting.connect("auto") == (ray, expected == "local")
        assert asked.pop() == expected
    assert not asked


def test_ray_is_not_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(StudyError, match=r"--ray needs the package ray .*pip install 'roarfast\[ray\]'"):
        study(tmp_path, "auto").run(ray="auto")


def test_other_versions_are_named() -> None:
    said = RuntimeError("Version mismatch: The cluster was started with:\n  Ray: 2.1.0\n  Python: 3.10.1\n")
    error = connecting.explained(said, "2.60.0")
    assert isinstance(error, StudyError) and "Ray: 2.1.0 Python: 3.10.1" in str(error)
    assert "pip install 'ray==2.60.0'" in str(error)
    other = RuntimeError("something else")
    assert connecting.explained(other, "2.60.0") is other


def test_a_worker_out_of_memory_says_what_to_do() -> None:
    for error in (
        ray.exceptions.OutOfMemoryError("the node is full"),
        RuntimeError("1 worker(s) were killed due to the node running low on memory."),
    ):
        text = why(error, "node7")
        assert "a worker on node7 ran out of memory" in text and "run.memory" in text and "batch_size" in text
    assert "ran out of memory" not in why(RuntimeError("The actor is dead: SIGSEGV"), "node7")


def test_the_page_names_commands_that_ray_has() -> None:
    from ray.scripts.scripts import cli

    text = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.S)
    named = set(re.findall(r"(?:^| )ray ([a-z-]+)", "\n".join(blocks), re.M))
    assert named >= {"start", "stop", "up", "down"}
    assert named <= set(cli.commands), named - set(cli.commands)


NODES = [Node(str(i), f"host{i}", {"CPU": 8.0, "GPU": float(i), "memory": 32e9}) for i in range(3)]


def test_workers_are_spread_over_the_nodes_that_have_room() -> None:
    assert [node.name for node in place(NODES, Needs(threads=4), None)] == ["0", "1", "2", "0", "1", "2"]
    assert [node.name for node in place(NODES, Needs(gpus=1), None)] == ["1", "2", "2"]
    assert [node.name for node in place(NODES, Needs(threads=1, memory=int(16e9)), 4)] == ["0", "1", "2", "0"]
    assert place(NODES, Needs(threads=9), None) == []


def test_devices_are_those_of_the_cluster() -> None:
    assert choose_device("auto", NODES) == "cuda" and choose_device("auto", NODES[:1]) == "cpu"
    assert choose_device("cpu", NODES) == "cpu"
    with pytest.raises(StudyError, match="Ray chooses the GPU"):
        choose_device("cuda:1", NODES)
    with pytest.raises(StudyError, match="must be 'auto', 'cpu' or 'cuda'"):
        choose_device("tpu", NODES)
