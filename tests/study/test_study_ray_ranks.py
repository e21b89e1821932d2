"""`run.gpus_per_training`: one cell trained by two processes in a placement group, on a Ray cluster of two nodes."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.ray_cluster import two_nodes
from helpers.study_helpers import tiny, write_tiny

torch = pytest.importorskip("torch")
pytest.importorskip("pydantic")
ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'roarfast[ray]'")

from roarfast.study.cluster.slots import Needs, Node, check_room, place
from roarfast.study.errors import StudyError
from roarfast.study.results import load
from roarfast.study.study import Study

# Groups of ten in batches of twenty, in one process and in two: the same sums, up to rounding.
ROAR = tiny(protocols=["roar"], estimators=["rand"])
GHOST = ROAR.replace("batch_size = 20\n", "batch_size = 20\nghost_batch = 10\n", 1) + "keep_models = true\n"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with two_nodes(cpus=2) as found:
        yield found


def weights(folder: Path) -> dict[str, dict[str, Any]]:
    """Name of a model file → its values; a cell's file is named after its key, so by order."""
    from roarfast._sealed import read_sealed

    found = {}
    for path in sorted((folder / "models").rglob("*.pt")):
        import io

        found[path.name] = torch.load(io.BytesIO(read_sealed(path)), weights_only=True)
    return found


@pytest.mark.parametrize("artefacts", ["shared", "transfer"])
def test_two_processes_train_as_one_does_with_the_same_groups(cluster: Any, tmp_path: Path, artefacts: str) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    Study.from_toml(write_tiny(one, GHOST), one / "run").run(workers=1)
    text = GHOST + f'gpus_per_training = 2\nartefacts = "{artefacts}"\n'
    found = Study.from_toml(write_tiny(two, text), two / "run").run(ray=cluster.address)
    assert not found.failed
    label = {r.key: (r.protocol, r.estimator, r.postprocess, r.drop) for r in load(one / "run")}
    assert {r.status for r in load(two / "run")} == {"done"}
    ours = {(r.protocol, r.estimator, r.postprocess, r.drop): r for r in load(two / "run")}
    for record in load(one / "run"):
        other = ours[label[record.key]]
        assert record.key != other.key  # other groups of batch normalisation, in general: another result
        assert other.true_class_probability == pytest.approx(record.true_class_probability, abs=1e-3)
        assert other.accuracy == pytest.approx(record.accuracy, abs=0.051)  # 2 of 40 images
    first, second = weights(one / "run"), weights(two / "run")
    assert len(first) == len(second) == 3
    (base,), (mine,) = ([values for name, values in found.items() if "base" in name] for found in (first, second))
    for name, value in base.items():
        np.testing.assert_allclose(mine[name], value, rtol=1e-3, atol=1e-4)
    assert not list((two / "run").glob(".meeting-*"))


def test_an_error_in_a_training_is_told_and_ends(cluster: Any, tmp_path: Path) -> None:
    """Both processes fail, and neither waits for the other."""
    text = ROAR.replace("batch_size = 20\n", "batch_size = 20\nlr = 1e30\n", 1) + "gpus_per_training = 2\n"
    found = Study.from_toml(write_tiny(tmp_path, text), tmp_path / "run").run(ray=cluster.address)
    assert found.failed and "DivergenceError" in found.failed[0], found.failed


def test_without_ray_it_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"run.gpus_per_training = 2 .* --ray auto"):
        Study.from_toml(write_tiny(tmp_path, ROAR + "gpus_per_training = 2\n"), tmp_path / "run").run(workers=1)


def test_room_for_workers_of_several_processes() -> None:
    nodes = [Node(str(i), f"host{i}", {"CPU": 8.0, "GPU": 4.0}) for i in range(2)]
    assert [node.name for node in place(nodes, Needs(gpus=1, ranks=2), None)] == ["0", "1", "0", "1"]
    assert place(nodes, Needs(gpus=1, ranks=8), None) == []
    with pytest.raises(StudyError, match=r"8 times \(run.gpus_per_training\) 1 CPUs.*1 GPUs"):
        check_room(nodes, Needs(gpus=1, ranks=8))
