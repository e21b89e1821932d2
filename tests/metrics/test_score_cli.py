"""`roarfast score`: a torchvision model with a local state dict, a folder of images, an .npz of maps."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
typer_testing = pytest.importorskip("typer.testing")
image = pytest.importorskip("PIL.Image")
if importlib.util.find_spec("torchvision") is None:
    pytest.skip("needs torchvision", allow_module_level=True)

from roarfast._torchvision import import_torchvision  # noqa: E402
from roarfast.commands import app  # noqa: E402

models = import_torchvision("models")

RUN = typer_testing.CliRunner()


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    for split in ("train", "test"):
        for name in ("cat", "dog"):
            (tmp_path / "data" / split / name).mkdir(parents=True)
            for i in range(4):
                picture = rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
                image.fromarray(picture).save(tmp_path / "data" / split / name / f"{i}.png")
    torch.manual_seed(0)
    torch.save(models.resnet18(num_classes=5).state_dict(), tmp_path / "r18.pt")
    np.savez(tmp_path / "maps.npz", noise=rng.random((8, 32, 32)), channels=rng.standard_normal((8, 3, 32, 32)))
    return tmp_path


def call(files, *more: str):
    return RUN.invoke(
        app,
        [
            "score",
            "--model",
            "torchvision.models:resnet18",
            "--weights",
            str(files / "r18.pt"),
            "--data",
            str(files / "data"),
            "--maps",
            str(files / "maps.npz"),
            "--metrics",
            "deletion(rates=(0.3,)) insertion(rates=(0.3,))",
            *more,
        ],
    )


def test_score(files) -> None:
    result = call(files, "--out", str(files / "scores"))
    assert result.exit_code == 0, result.output
    assert "normalised by ImageNet's statistics" in result.output and "channels by mean(abs)" in result.output
    for name in ("noise", "channels", "random"):
        assert name in result.output
    found = json.loads((files / "scores" / "scores.json").read_text())
    assert len(found["scores"]) == 6 and len(found["comparisons"]) == 6
    for name in ("scores.csv", "scores.html", "scores.png", "scores.txt"):
        assert (files / "scores" / name).stat().st_size > 100


def test_errors(files) -> None:
    for more, message in (
        (("--metrics", "deletoin"), "did you mean 'deletion'?"),
        (("--normalize", "1,2"), "normalize must be"),
        (("--images", "3", "--maps", str(files / "r18.pt")), "cannot be read"),
        (("--weights", str(files / "none.pt")), "is no file"),
    ):
        result = call(files, *more)
        assert result.exit_code == 2 and message in result.output
    np.savez(files / "maps.npz", few=np.zeros((3, 32, 32)))
    result = call(files)
    assert result.exit_code == 2 and "has 3 maps of 'few', the data has 8 images" in result.output
    assert call(files, "--images", "3").exit_code == 0
