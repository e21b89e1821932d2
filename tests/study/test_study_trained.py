"""Studies of a model that is trained already: nothing is trained, and only test images are explained."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.study_helpers import TINY, run_tiny, tiny, write_tiny

torch = pytest.importorskip("torch")

from typer.testing import CliRunner

from roarfast.commands import app
from roarfast.study import Study, load
from roarfast.study.config import ConfigError, parse_config
from roarfast.study.errors import StudyError
from roarfast.study.identity import identify
from roarfast.study.images import data_warnings, load_data
from roarfast.train import build_model

ROAD = tiny(protocols=["road", "no-retrain"], estimators=["grad^2", "rand", "block"])
NET = "options = { widths = [4, 4, 4, 4] }"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that trained its base model."""
    folder = tmp_path_factory.mktemp("trained")
    run_tiny(folder, ROAD)
    return folder


def weights_of(folder: Path) -> Path:
    (path,) = (folder / "run" / "models").glob("base-*.pt")
    return path


def results(folder: Path) -> dict[tuple[str, str, str, str, float], tuple[float | None, float | None]]:
    return {
        (r.protocol, r.estimator, r.postprocess, r.order, r.drop): (r.accuracy, r.true_class_probability)
        for r in load(folder)
    }


def trained_config(folder: Path, weights: Path | str) -> Path:
    return write_tiny(folder, ROAD.replace(NET, f'{NET}\nweights = "{weights}"\ntrained = true'))


def test_weights_from_a_file_give_the_scores_of_the_study_that_trained_them(finished: Path, tmp_path: Path) -> None:
    config = trained_config(tmp_path, weights_of(finished))
    assert Study.from_toml(config, tmp_path / "run").run(workers=1).failed == []
    assert results(tmp_path / "run") == results(finished / "run")
    found = load(tmp_path / "run")
    assert found.meta["stage_seconds"]["training"] == 0
    assert {path.parent.name for path in (tmp_path / "run" / "maps").glob("*/*/*")} == {"test"}
    assert not list((tmp_path / "run" / "models").glob("*.ckpt"))


def test_the_dry_run_says_that_nothing_is_trained(finished: Path, tmp_path: Path) -> None:
    config = trained_config(tmp_path, weights_of(finished))
    shown = CliRunner().invoke(app, ["run", str(config), "--out", str(tmp_path / "run"), "--dry-run"])
    assert shown.exit_code == 0, shown.output
    assert "base models as given, nothing is trained" in shown.output and "test images only" in shown.output
    lines = [line for line in shown.output.splitlines() if "road grad^2 plain trial 0" in line]
    assert len(lines) == 1 and lines[0].endswith("2 rates")  # a line per curve, not per rate


def test_a_factory_that_loads_its_own_weights(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_net.py").write_text(
        "import torch\nfrom roarfast.train import build_model, load_weights\n"
        "def make(num_classes, in_channels, path):\n"
        "    net = build_model('convnet', num_classes, in_channels, widths=[4, 4, 4, 4])\n"
        "    load_weights(net, path)\n    return net\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "weights.pt"
    path.write_bytes(weights_of(finished).read_bytes())
    text = ROAD.replace(
        f'name = "convnet"\n{NET}', f'name = "own_net:make"\noptions = {{ path = "{path}" }}\ntrained = true'
    )
    study = Study.from_toml(write_tiny(tmp_path, text), tmp_path / "run")
    before = set(study.setup("cpu", 1).cells)
    assert study.run(workers=1).failed == []
    assert results(tmp_path / "run") == results(finished / "run")
    torch.save(build_model("convnet", 10, widths=[4, 4, 4, 4], seed=5).state_dict(), path)
    assert not before & set(study.setup("cpu", 1).cells), "other weights are another model"


def test_a_protocol_that_trains_is_refused() -> None:
    text = TINY.replace(NET, f"{NET}\ntrained = true")
    with pytest.raises(
        ConfigError, match=r"grid\.0\.protocols \(line \d+\): 'roar' trains a model per cell, but model\.trained"
    ):
        parse_config(text)
    text = ROAD.replace(NET, f"{NET}\ntrained = true").replace("trials = 1", "trials = 2")
    with pytest.raises(ConfigError, match=r"with model\.trained = true all trials have the same one"):
        parse_config(text.replace("drops = ", 'null = ["own", "model"]\ndrops = '))


def test_weights_that_leave_a_layer_to_chance_are_refused(tmp_path: Path) -> None:
    torch.save(build_model("convnet", 7, widths=[4, 4, 4, 4], seed=0).state_dict(), tmp_path / "seven.pt")
    config = trained_config(tmp_path, tmp_path / "seven.pt")
    outcome = Study.from_toml(config, tmp_path / "run").run(workers=1)
    assert outcome.failed and "model.options.num_classes" in load(tmp_path / "run").records[0].error


def test_the_normalisation_of_the_model_can_be_given(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="mean and std come together"):
        parse_config(ROAD.replace("train_size", "mean = [0.5]\ntrain_size"))
    text = ROAD.replace("train_size = 60", "train_size = 60\nmean = [0.4, 0.5, 0.6]\nstd = [0.2]")
    study = Study(parse_config(text), tmp_path / "run")
    assert not set(study.setup("cpu", 1).cells) & {r.key for r in load(finished / "run")}
    train, test = load_data(study.config.data)
    assert train.mean == test.mean == (0.4, 0.5, 0.6) and train.std == (0.2, 0.2, 0.2)
    with pytest.raises(StudyError, match=r"data\.mean has 2 values, but the images have 3 channels"):
        load_data(study.config.data.model_copy(update={"mean": (0.1, 0.2), "std": (1.0,)}))


def test_a_trained_model_needs_test_images_only(tmp_path: Path) -> None:
    labels = np.arange(40) // 10  # sorted by class
    images = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3), np.uint8)
    np.savez(tmp_path / "photos.npz", images=images, labels=labels)
    text = ROAD.replace(
        'name = "shapes"\ntrain_size = 60\ntest_size = 40', 'name = "photos"\ntest = "photos.npz"\ntest_size = 9'
    )
    with pytest.raises(ConfigError, match=r"data\.train is missing: .* unless model\.trained = true"):
        parse_config(text)
    config = parse_config(text.replace(NET, f"{NET}\ntrained = true")).data.model_copy(update={"root": str(tmp_path)})
    train, test = load_data(config)
    assert train.split == "train" and train.images is test.images and set(test.labels) == {0}
    assert data_warnings(config) == ()
    dealt = [load_data(config.model_copy(update={"shuffle": True, "seed": seed}))[1] for seed in (0, 0, 1)]
    assert len(dealt[0]) == 9 and len(set(dealt[0].labels)) > 1
    assert (dealt[0].labels == dealt[1].labels).all() and (dealt[0].images != dealt[2].images).any()
    some = load_data(config.model_copy(update={"shuffle": True, "classes": ("3", "1")}))[1]
    assert len(some) == 9 and set(some.labels) == {0, 1}


def test_keys_of_studies_that_train_are_those_of_before() -> None:
    config = parse_config(ROAD)
    identity = identify(config, *load_data(config.data), "cpu")
    assert "trained" not in identity.model and "normalised by" not in identity.data
