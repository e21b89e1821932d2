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


def test_what_is_undefined_is_null(files) -> None:
    """JSON has no NaN: a file with one is refused by other languages."""

    def refuse(token):
        raise AssertionError(token)

    np.savez(files / "maps.npz", zeros=np.zeros((8, 32, 32)), noise=np.random.default_rng(0).random((8, 32, 32)))
    result = call(files, "--metrics", "soundness(step=0.25)", "--out", str(files / "scores"))
    assert result.exit_code == 0, result.output
    found = json.loads((files / "scores" / "scores.json").read_text(), parse_constant=refuse)
    values = {row["map"]: row["value"] for row in found["scores"]}
    assert values["zeros"] is None
    assert any(pair["p"] is None for pair in found["comparisons"])


def test_errors(files) -> None:
    for more, message in (
        (("--metrics", "deletoin"), "did you mean 'deletion'?"),
        (("--normalize", "1,2"), "normalize must be"),
        (("--images", "3", "--maps", str(files / "r18.pt")), "cannot be read"),
        (("--weights", str(files / "none.pt")), "is no file"),
    ):
        result = call(files, *more)
        assert result.exit_code == 2 and message in result.output
    for name, content, message in (
        ("text.pt", b"no weights", "text.pt is no file that torch.save wrote, or is damaged"),
        ("cut.pt", (files / "r18.pt").read_bytes()[:5000], "cut.pt is damaged or was not written by torch.save"),
    ):
        (files / name).write_bytes(content)
        result = call(files, "--weights", str(files / name))
        assert result.exit_code == 2 and message in result.output, result.output
    torch.save([1, 2], files / "list.pt")
    result = call(files, "--weights", str(files / "list.pt"))
    assert result.exit_code == 2 and "list.pt must hold a state dict, names with tensors, got list" in result.output
    np.savez(files / "maps.npz", few=np.zeros((3, 32, 32)))
    result = call(files)
    assert result.exit_code == 2 and "has 3 maps of 'few', the data has 8 images" in result.output
    assert call(files, "--images", "3").exit_code == 0
