"""A study of own things: images, data sets of torch, maps on disk, captum's estimators, a training of one's own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("pydantic")

from roarfast.data import load
from roarfast.study import Study
from roarfast.study.errors import StudyError

CODE = """\
import numpy as np
import torch
from roarfast.data import load

class Shapes(torch.utils.data.Dataset):
    def __init__(self, train):
        self.data = load("shapes", "train" if train else "test", n=40)
        self.classes = list(self.data.class_names)
    def __len__(self):
        return len(self.data)
    def __getitem__(self, i):
        return torch.from_numpy(self.data.images[i]).permute(2, 0, 1) / 255, int(self.data.labels[i])

def by_split(split):
    return Shapes(split == "train")

def fit(model, batches, seed):
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(batches.epochs):
        assert len(batches) == 2
        for x, y in batches(epoch):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    return model.state_dict()

def forgets(model, batches, seed):
    return None

def wrong_shape(maps):
    return maps[:, 1:]

def numpy_map(model, x, target):
    return x.numpy()
"""
CONFIG = """\
name = "own"
[data]
name = "shapes"
train_size = 40
test_size = 40
[model]
options = { widths = [4, 4] }
[train]
epochs = 1
batch_size = 20
[[grid]]
protocols = ["road"]
estimators = ["rand"]
drops = [0.3]
[run]
examples = 0
device = "cpu"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_code", raising=False)
    (tmp_path / "own_code.py").write_text(CODE)
    return tmp_path


def study(folder: Path, *changes: tuple[str, str], out: str = "run") -> Study:
    text = CONFIG
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "study.toml").write_text(text)
    return Study.from_toml(folder / "study.toml", folder / out)


def accuracies(done: Study) -> dict[tuple[str, str, str], Any]:
    assert done.run(workers=1).failed == []
    return {(r.protocol, r.estimator, r.order): r.accuracy for r in done.results}


def maps(split: str) -> Any:
    return load("shapes", split, n=40).images.astype(np.float32).mean(3)


def test_stored_maps_give_what_the_function_gives(folder: Path) -> None:
    """Maps of a file or folder are ranked as the same maps from an estimator are."""
    (folder / "own_code.py").write_text(CODE + "\ndef bright(model, x, target):\n    return 255 * x.mean(1)\n")
    labels = {f"{split}_labels": load("shapes", split, n=40).labels for split in ("train", "test")}
    np.savez(folder / "bright.npz", train=maps("train"), test=maps("test"), **labels)
    (folder / "in_files").mkdir()
    for split in ("train", "test"):
        np.save(folder / "in_files" / f"{split}.npy", np.repeat(maps(split)[:, None], 3, 1))
    wanted = ('["rand"]', '["own_code:bright", "maps:in_files", "mine", "mine^2"]')
    table = ("[[grid]]", '[[estimators]]\nname = "mine"\nobject = "maps:bright.npz"\n[[grid]]')
    protocols = ('["road"]', '["road", "roar"]')
    found = accuracies(study(folder, wanted, table, protocols))
    for (protocol, estimator, order), accuracy in found.items():
        if estimator in ("in_files", "mine", "mine^2"):
            assert accuracy == found[protocol, "bright", order], (protocol, estimator)
    assert len(found) == 1 + 4 * 3


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"train": maps("train")}, "has no array 'test': the maps of the test images are needed"),
        (
            {"test": maps("test")[:30]},
            r"must be numbers of shape \(40, 32, 32\) or \(40, 3, 32, 32\), one per image.*\(30, 32, 32\)",
        ),
        ({"test": maps("test")[:, :16]}, r"got float32 of shape \(40, 16, 32\)"),
        (
            {"test": np.full((40, 32, 32), np.nan, np.float32)},
            r"40 maps of the test images are not finite, the first of image 0",
        ),
        (
            {"test": maps("test"), "test_labels": np.zeros(40, int)},
            r"test_labels are not the labels of the data .* another order",
        ),
        ({"test": np.array([["a"]])}, r"got <U1 of shape"),
    ],
)
def test_stored_maps_that_do_not_fit_are_refused_before_anything_trains(
    folder: Path, arrays: dict[str, Any], message: str
) -> None:
    np.savez(folder / "m.npz", **arrays)
    with pytest.raises(StudyError, match=message):
        study(folder, ('["rand"]', '["maps:m.npz"]')).run(workers=1)
    assert not (folder / "run" / "results.sqlite").exists()


def test_maps_without_labels_are_noted_and_absent_ones_refused(folder: Path) -> None:
    np.savez(folder / "m.npz", test=maps("test"))
    setup = study(folder, ('["rand"]', '["maps:m.npz"]')).setup(device="cpu", workers=1)
    assert any("has no test_labels, so it cannot be checked" in note for note in setup.notes)
    with pytest.raises(StudyError, match=r"there is no folder or \.npz file .*absent\.npz"):
        study(folder, ('["rand"]', '["maps:absent.npz"]'))
    before = list(setup.cells)
    np.savez(folder / "m.npz", test=2 * maps("test"))
    assert list(study(folder, ('["rand"]', '["maps:m.npz"]')).setup(device="cpu", workers=1).cells) != before


def test_estimators_of_captum_by_name(folder: Path) -> None:
    pytest.importorskip("captum")
    table = (
        '[[estimators]]\nname = "occlusion"\nobject = "captum.attr:Occlusion"\n'
        "options = { sliding_window_shapes = [3, 16, 16], strides = [3, 16, 16] }\n"
        '[[estimators]]\nname = "cam"\nobject = "captum.attr:LayerGradCam"\noptions = { layer = "features.0" }\n[[grid]]'
    )
    wanted = ('["rand"]', '["captum.attr:DeepLift", "captum.attr:Saliency", "grad", "occlusion", "cam"]')
    found = accuracies(study(folder, wanted, ("[[grid]]", table)))
    assert all(found["road", "saliency", order] == found["road", "grad", order] for order in ("morf", "lerf"))
    assert {"deeplift", "occlusion", "cam"} <= {estimator for _, estimator, _ in found}
    with pytest.raises(StudyError, match=r"estimator 'cam' .*layer 'nothing' is none of the model's: .*features"):
        study(folder, ('["rand"]', '["cam"]'), ("[[grid]]", table.replace("features.0", "nothing"))).run(workers=1)


@pytest.mark.parametrize("name", ["Shapes", "by_split"])
def test_torch_data_sets_are_the_same_images(folder: Path, name: str) -> None:
    ours = study(folder).setup(device="cpu", workers=1)
    theirs = study(folder, ('name = "shapes"', f'name = "own_code:{name}"')).setup(device="cpu", workers=1)
    assert ours.identity.data == theirs.identity.data


def test_own_training_is_used_and_part_of_the_keys(folder: Path) -> None:
    trained = study(folder, ("[train]", '[train]\nfunction = "own_code:fit"'), ('["road"]', '["roar"]'))
    found, again = (
        accuracies(trained),
        accuracies(
            study(folder, ("[train]", '[train]\nfunction = "own_code:fit"'), ('["road"]', '["roar"]'), out="again")
        ),
    )
    assert found == again, "seeded"
    plain = study(folder, ('["road"]', '["roar"]')).setup(device="cpu", workers=1)
    assert not set(plain.cells) & set(trained.setup(device="cpu", workers=1).cells)
    outcome = study(folder, ("[train]", '[train]\nfunction = "own_code:forgets"'), out="bad").run(workers=1)
    assert len(outcome.failed) == 1 and "must return model.state_dict(), got NoneType" in outcome.failed[0]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('["rand"]', '["own_code:numpy_map"]', "estimator 'numpy_map' .* must return a tensor, got ndarray"),
        ('["rand"]', '["own_code:by_split"]', r"estimator 'by_split' .*It is called as f\(model, x, target\)"),
        (
            '["rand"]',
            '["grad"]\npostprocess = ["own_code:wrong_shape"]',
            r"post-processing 'wrong_shape' .* \(2, 31, 32\)",
        ),
    ],
)
def test_functions_that_cannot_work_are_one_error_at_once(folder: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        study(folder, (old, new)).run(workers=1)


def test_init_own_fits_the_images_and_dry_run_shows_them(folder: Path) -> None:
    from typer.testing import CliRunner

    from roarfast.commands import app

    Image = pytest.importorskip("PIL.Image")
    data = load("shapes", "train", n=40)
    for i, split in enumerate(("train", "test")):
        for row in range(20 * i, 20 * i + 20):
            place = folder / "photos" / split / data.class_names[data.labels[row] % 2]
            place.mkdir(parents=True, exist_ok=True)
            big = Image.fromarray(data.images[row]).resize((70 + row, 90))
            big.save(place / f"{row}.png")
    run = CliRunner().invoke
    config = folder / "mine.toml"
    result = run(app, ["init", str(config), "--preset", "own", "--data", str(folder / "photos")])
    assert result.exit_code == 0, result.output
    text = config.read_text()
    assert 'path = "photos"' in text and "image_size = 64" in text and f"roarfast run {config}" in text
    result = run(app, ["run", str(config), "--dry-run", "--out", str(folder / "run")])
    assert result.exit_code == 0, result.output
    assert "train  20 images of 64x64x3, 2 classes: disk, ring" in result.output and "model  convnet" in result.output
    listed = [i for i, line in enumerate(result.output.splitlines()) if "trial 0" in line]
    shown = next(i for i, line in enumerate(result.output.splitlines()) if line.startswith("  train  "))
    assert listed and shown > max(listed), "what sums it up is not scrolled away by the list"
    for arguments, words in (
        (["--preset", "own"], "come together"),
        (["--preset", "own", "--data", str(folder / "nowhere")], "there is nothing at"),
        (["--preset", "own", "--data", str(folder / "photos" / "train")], "its folders are classes"),
    ):
        result = run(app, ["init", str(folder / "other.toml"), *arguments])
        assert result.exit_code == 2 and words in result.stderr.replace("\n", " "), result.stderr


def test_help_of_init_names_every_preset() -> None:
    from typer.testing import CliRunner

    from roarfast.commands import app
    from roarfast.study.own import NAME
    from roarfast.study.presets import PRESETS

    text = CliRunner().invoke(app, ["init", "--help"], env={"COLUMNS": "200"}).output
    assert [name for name in (NAME, *PRESETS) if name not in text] == []
