"""User code is part of a study: found beside the config, checked before anything trains, and a change of it is noticed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("pydantic")

import torch

from roarfast.study import Study, usercode
from roarfast.study.errors import StudyError
from roarfast.study.results import load

CONFIG = """\
name = "mine"
[data]
name = "shapes"
train_size = 40
test_size = 40
[model]
name = "uc_model:make"
[train]
epochs = 1
batch_size = 20
[[grid]]
protocols = ["road"]
estimators = ["uc_maps:brightness"]
postprocess = ["uc_maps:doubled"]
drops = [0.3]
[run]
examples = 0
device = "cpu"
"""
MODEL = """\
from torch import nn

def make(num_classes):
    from uc_sizes.widths import WIDTH  # inside a function, and two imports away
    return nn.Sequential(nn.Conv2d(3, WIDTH, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH, num_classes))

def none():
    return nn.Identity()

def features(num_classes):
    return nn.Conv2d(3, num_classes, 3)

def table(num_classes):
    class Table(nn.Module):
        def forward(self, x):
            return {"logits": x}
    return Table()

def small(num_classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(3072, 2))

def grey(num_classes):
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, num_classes))

NOT_A_FUNCTION = 3
"""
MAPS = "def brightness(model, x, target):\n    return x.mean(1)\n\ndef doubled(maps):\n    return 2 * maps\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if name.startswith("uc_")]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "uc_sizes").mkdir()
    (tmp_path / "uc_sizes" / "__init__.py").write_text("from . import widths\n")
    (tmp_path / "uc_sizes" / "widths.py").write_text("import random\nWIDTH = 4\n")
    (tmp_path / "uc_model.py").write_text(MODEL)
    (tmp_path / "uc_maps.py").write_text(MAPS)
    (tmp_path / "random.py").write_text("raise RuntimeError('shadowed')\n")
    (tmp_path / "study.toml").write_text(CONFIG)
    return tmp_path


def test_every_file_behind_a_name_is_found(folder: Path) -> None:
    Study.from_toml(folder / "study.toml")
    assert list(usercode.source_of("uc_model:make")) == ["uc_model", "uc_sizes", "uc_sizes.widths"]
    assert list(usercode.source_of("uc_maps:brightness")) == ["uc_maps"]
    assert usercode.source_of("torch.nn:Linear") == {"torch": f"version {torch.__version__}"}


def keys(folder: Path) -> dict[str, str]:
    setup = Study.from_toml(folder / "study.toml", folder / "none").setup(device="cpu", workers=1)
    return {cell.protocol: key for key, cell in setup.cells.items()}


@pytest.mark.parametrize(
    ("file", "changes"),
    [("uc_sizes/widths.py", {"base", "road"}), ("uc_model.py", {"base", "road"}), ("uc_maps.py", {"road"})],
)
def test_a_change_of_any_file_changes_the_keys_that_depend_on_it(folder: Path, file: str, changes: set[str]) -> None:
    before = keys(folder)
    assert keys(folder) == before
    (folder / file).write_text((folder / file).read_text() + "# another comment\n")
    after = keys(folder)
    assert {name for name in before if before[name] != after[name]} == changes


def test_a_version_takes_the_place_of_the_files(folder: Path) -> None:
    versioned = CONFIG.replace('"uc_model:make"', '"uc_model:make"\nversion = 1')
    (folder / "study.toml").write_text(versioned)
    before = keys(folder)
    (folder / "uc_sizes" / "widths.py").write_text("WIDTH = 4  # tidied\n")
    assert keys(folder) == before
    (folder / "study.toml").write_text(versioned.replace("version = 1", "version = 2"))
    assert keys(folder) != before


def test_a_run_with_changed_code_is_refused_and_the_file_named(folder: Path) -> None:
    study = Study.from_toml(folder / "study.toml", folder / "run")
    assert study.run(workers=2).failed == [], "the workers find the files too, and no random.py but Python's"
    assert study.run(workers=1).done == 0
    (folder / "uc_sizes" / "widths.py").write_text("WIDTH = 5\n")
    with pytest.raises(
        StudyError, match=r"(?s)Changed:\n  - uc_sizes/widths\.py, which results .*--redo to make the 3 cells"
    ):
        study.run(workers=1)


def test_redo_makes_again_what_depends_on_a_file_and_nothing_else(folder: Path) -> None:
    (folder / "study.toml").write_text(CONFIG.replace("examples = 0", "examples = 2"))
    study = Study.from_toml(folder / "study.toml", folder / "run")
    study.run(workers=2)
    old = {record.key: record for record in load(folder / "run")}
    examples = {path.name: path.read_bytes() for path in (folder / "run" / "examples").glob("*.npz")}
    (folder / "uc_maps.py").write_text(MAPS.replace("x.mean(1)", "x.mean(1).flip(-1)"))
    with pytest.raises(StudyError, match=r"uc_maps\.py changed after this process imported it"):
        study.run(workers=1, redo=True)
    assert {record.key for record in load(folder / "run")} == old.keys(), (
        "nothing is dropped before it is certain to be made"
    )
    assert study.run(workers=2, redo=True).failed == []
    new = {record.key: record for record in load(folder / "run")}
    kept = old.keys() & new.keys()
    assert {old[key].protocol for key in kept} == {"base"} and len(new) == len(old)
    assert all(old[key] == new[key] for key in kept), "the base model does not depend on it"
    assert {path.name: path.read_bytes() for path in (folder / "run" / "examples").glob("*.npz")} != examples
    fresh = Study.from_toml(folder / "study.toml", folder / "fresh")
    fresh.run(workers=2)
    values = [(r.key, r.accuracy, r.true_class_probability, r.tv_map) for r in load(folder / "fresh")]
    assert values == [(r.key, r.accuracy, r.true_class_probability, r.tv_map) for r in new.values()]
    assert values != [(r.key, r.accuracy, r.true_class_probability, r.tv_map) for r in old.values()]
    assert study.run(workers=2, redo=True).done == 0
    (folder / "study.toml").write_text(CONFIG.replace("epochs = 1", "epochs = 2"))
    (folder / "uc_maps.py").write_text(MAPS)
    with pytest.raises(StudyError, match=r"Changed:\n  - train\.epochs: 1 → 2\n  - uc_maps.py"):
        Study.from_toml(folder / "study.toml", folder / "run").run(workers=2, redo=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none", r"none\(\) got an unexpected keyword argument 'num_classes'. It is called as f\(num_classes=10\)"),
        (
            "features",
            r"must map images \[N, C, H, W\] to logits \[N, classes\], one tensor, got a tensor of shape \(2, 10,",
        ),
        ("table", r"one tensor, got dict"),
        ("small", r"has 2 outputs, but the data has 10 classes"),
        ("grey", r"does not take images of 32x32 with 3 channels: RuntimeError"),
        ("absent", r"module 'uc_model' has no attribute 'absent'"),
        ("NOT_A_FUNCTION", r"is not callable"),
    ],
)
def test_a_model_that_cannot_work_is_one_error_before_anything_trains(folder: Path, name: str, message: str) -> None:
    (folder / "study.toml").write_text(CONFIG.replace("uc_model:make", f"uc_model:{name}"))
    study = Study.from_toml(folder / "study.toml", folder / "run")
    with pytest.raises(StudyError, match=message) as error:
        study.run(workers=1)
    assert "model.name" in str(error.value) and "\n" not in str(error.value)
    assert not (folder / "run" / "results.sqlite").exists()
