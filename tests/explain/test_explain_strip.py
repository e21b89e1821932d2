from __future__ import annotations

import numpy as np
import pytest
from helpers.explain_nets import one_thread, seeded, small_net  # noqa: F401

from roarfast.explain import Explainer, picture_strip

pytest.importorskip("matplotlib")
image_module = pytest.importorskip("PIL.Image")


def uint8_images(n=2, channels=3):
    return np.random.default_rng(0).integers(0, 256, (n, 8, 8, channels), np.uint8)


def test_a_row_per_post_processing_and_a_column_per_estimator(tmp_path):
    explainer = Explainer(seeded(small_net), ["grad", "sobel^2"])
    small = picture_strip(tmp_path / "a" / "one.png", explainer, uint8_images(1), postprocess=["plain"])
    large = picture_strip(
        tmp_path / "two.png", explainer, uint8_images(2), postprocess=["plain", "max(3)"], captions=["a", "b"]
    )
    with image_module.open(small) as a, image_module.open(large) as b:
        assert a.format == b.format == "PNG"
        assert b.height > 3 * a.height and a.width == b.width
        assert len(np.unique(np.asarray(b.convert("L")))) > 50  # there is something in it
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "two.png"]


def test_bad_images(tmp_path):
    explainer = Explainer(seeded(small_net), "grad")
    for bad in (uint8_images(0), uint8_images(channels=2), uint8_images().astype(float), uint8_images()[0]):
        with pytest.raises(ValueError, match="images must be uint8"):
            picture_strip(tmp_path / "x.png", explainer, bad)


def test_the_command(tmp_path):
    typer_testing = pytest.importorskip("typer.testing")
    typer = pytest.importorskip("typer")
    from roarfast.explain.cli import strip_command
    from roarfast.train import build_model

    app = typer.Typer()
    app.command()(strip_command)
    runner = typer_testing.CliRunner()
    import torch

    weights, out = tmp_path / "w.pt", tmp_path / "strip.png"
    torch.save(build_model("convnet", 10, seed=0).state_dict(), weights)
    data = tmp_path / "data.npz"
    np.savez(data, images=np.repeat(np.repeat(uint8_images(10), 4, 1), 4, 2), labels=np.arange(10))
    arguments = ["--out", str(out), "--data", str(data), "--split", "all", "--weights", str(weights)]
    arguments += ["--images", "0,3", "--estimators", "grad^2 gc"]
    done = runner.invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "2 estimators, 1 pass" in done.output and str(out) in done.output and out.exists()
    wrong = runner.invoke(app, [*arguments, "--estimators", "gradd"])
    assert wrong.exit_code == 2 and "no estimator 'gradd'" in wrong.output
    missing = runner.invoke(app, [*arguments, "--images", "123456789"])
    assert missing.exit_code == 2 and "images must be numbers in [0, " in missing.output
