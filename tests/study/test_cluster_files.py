"""How artefacts travel between nodes: once, in pieces, checked, and never to somebody else's folder. No cluster is started."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("pydantic")
ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'roarfast[ray]'")

from helpers.fake_ray import Actor, FakeRay

from roarfast._files import write_atomic
from roarfast.study.cluster import files as module
from roarfast.study.cluster.files import NodeFiles
from roarfast.study.cluster.places import FOLDER, Places

FOLDER_OF_MAPS, MODEL = "maps/0123/test/grad", "models/base-0123.pt"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    found = FakeRay([])
    monkeypatch.setattr(ray, "get", found.get)
    return found


def home_and_node(fake: FakeRay, folder: Path) -> tuple[Actor, NodeFiles]:
    """The run folder with a model and maps, and a node that has nothing yet."""
    run = folder / "run"
    (run / FOLDER_OF_MAPS).mkdir(parents=True)
    (run / "models").mkdir()
    (run / FOLDER_OF_MAPS / "maps.npy").write_bytes(np.arange(1000, dtype=np.uint8).tobytes())
    (run / FOLDER_OF_MAPS / "meta.json").write_text("{}")
    (run / FOLDER_OF_MAPS / ".maps.npy.tmp").write_text("unfinished")
    (run / MODEL).write_bytes(os.urandom(2500))
    home = NodeFiles(str(run), ("probe", "x"), None, "1", "home", "auto", home=True)
    node = NodeFiles(str(run), ("probe", "x"), str(folder / "scratch"), "1", "node", "transfer")
    return Actor(fake, "home", home), node


def fetch(node: NodeFiles, source: Actor, *paths: str) -> Any:
    return json.loads(node.fetch([*paths], [source] * len(paths)))


def test_a_file_travels_once_to_a_node_in_a_few_pieces(
    fake: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PIECE", 100)
    home, node = home_and_node(fake, tmp_path)
    with ThreadPoolExecutor(4) as threads:  # as many tasks of a node that need the same
        found = list(threads.map(lambda _: fetch(node, home, FOLDER_OF_MAPS, MODEL), range(4)))
    assert sum(one["bytes"] for one in found) == 1000 + 2 + 2500
    assert all(one["gone"] == [] and not one["full"] for one in found)
    assert fetch(node, home, FOLDER_OF_MAPS, MODEL) == {"bytes": 0, "gone": [], "full": ""}
    for path in (f"{FOLDER_OF_MAPS}/maps.npy", f"{FOLDER_OF_MAPS}/meta.json", MODEL):
        assert (node.root / path).read_bytes() == (tmp_path / "run" / path).read_bytes()
    assert sorted(path.name for path in (node.root / FOLDER_OF_MAPS).iterdir()) == ["maps.npy", "meta.json"]
    assert sum(call[2] == "read" for call in fake.calls) == 10 + 1 + 25


def test_few_pieces_are_in_memory_at_a_time(fake: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PIECE", 100)
    home, node = home_and_node(fake, tmp_path)
    fetch(node, home, MODEL)
    assert sum(call[2] == "read" for call in fake.calls) == 25
    assert fake.most_asked == module._AHEAD


def test_what_changed_travels_again(fake: FakeRay, tmp_path: Path) -> None:
    home, node = home_and_node(fake, tmp_path)
    fetch(node, home, MODEL)
    write_atomic(tmp_path / "run" / MODEL, b"made again")
    assert fetch(node, home, MODEL)["bytes"] == len(b"made again")
    assert (node.root / MODEL).read_bytes() == b"made again"


def test_what_arrives_damaged_does_not_take_its_place(
    fake: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, node = home_and_node(fake, tmp_path)
    monkeypatch.setattr(home.thing, "read", lambda path, begin, size: np.zeros(2500, np.uint8))
    with pytest.raises(RuntimeError, match=r"models/base-0123.pt arrived damaged: its checksum does not fit"):
        fetch(node, home, MODEL)
    assert list((node.root / "models").iterdir()) == []


def test_what_the_source_has_no_more_is_said(fake: FakeRay, tmp_path: Path) -> None:
    home, node = home_and_node(fake, tmp_path)
    assert fetch(node, home, "codes/0123", MODEL) == {"bytes": 2500, "gone": ["codes/0123"], "full": ""}
    for path in ("../outside", "/etc/passwd"):
        with pytest.raises(ValueError, match="does not lie in the run folder"):
            node.fetch([path], [home])


def test_a_full_disk_is_said_by_its_node(fake: FakeRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, node = home_and_node(fake, tmp_path)

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(node, "_receive", full)
    assert str(node.root) in fetch(node, home, MODEL)["full"]


def test_copies_do_not_go_where_somebody_elses_link_leads(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"roarfast-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match=r"somebody else's folder, or a link: .* run.scratch"):
        NodeFiles(str(tmp_path / "run"), ("probe", "x"), str(tmp_path), "1", "node", "auto")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_places_know_what_is_where(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / MODEL).write_bytes(bytes(2500))
    places = Places(tmp_path)
    assert places.of(MODEL) == {FOLDER} and places.size(MODEL) == 2500  # of an earlier run
    assert places.of("codes/0") == set() and places.size("codes/0") == 1
    places.made(["codes/0"], "a")
    places.came(["codes/0", MODEL], "b")
    assert places.of("codes/0") == {"a", "b"} and places.of(MODEL) == {FOLDER, "b"}
    places.lose("a")
    places.deleted(["codes/0"], "b")
    assert places.of("codes/0") == set()
    places.made([MODEL], "b")  # made again: what others have is of before
    assert places.of(MODEL) == {"b"} and places.forget(MODEL) == {"b"}
