"""The preset `cub20` at a tiny size on generated photos, and its page: every number from the tables beside it."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.result_files import ROOT, rows, run_tool

pytest.importorskip("torch")
Image = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")

from roarfast.study import Study
from roarfast.study.config import parse_config
from roarfast.study.presets import PRESETS

TOOLS = ROOT / "tools"
TEST_IMAGES = 16
CHANGES = (
    ("image_size = 96", "image_size = 32"),
    ('root = "data"', 'root = "."'),
    ("noise_samples = 8", "noise_samples = 2"),
    ('gc_layer = "_bn1", ', ""),
    ("epochs = 6", "epochs = 1"),
    ("warmup_epochs = 0.5", "warmup_epochs = 0"),
    ("roarfast.train.finetune:efficientnet_lite", "convnet"),
    ("fixed_blocks = 3, fixed_norm = true", "widths = [4, 4, 4, 4]"),
)


def photos(path: Path) -> None:
    """Packed JPEG of four classes, each with a colour, wider than high."""
    rng, parts = np.random.default_rng(0), []
    for i in range(24 + TEST_IMAGES):
        image = rng.integers(0, 60, (40, 50, 3), dtype=np.uint8)
        image[..., i % 3] += np.uint8(60 * (1 + i % 4 // 3))
        file = io.BytesIO()
        Image.fromarray(image).save(file, "JPEG")
        parts.append(file.getvalue())
    n = len(parts)
    np.savez(
        path,
        jpeg=np.frombuffer(b"".join(parts), np.uint8),
        offsets=np.cumsum([0, *map(len, parts)]),
        labels=np.arange(n) % 4,
        is_train=np.arange(n) < 24,
        class_names=np.array(list("abcd")),
    )


def make_page(*arguments: Any) -> None:
    run_tool("cub20.py", *arguments).check_returncode()


def test_the_committed_study_is_the_preset() -> None:
    study = (ROOT / "docs" / "results" / "cub20" / "study.toml").read_text()
    assert parse_config(study) == parse_config(PRESETS["cub20"])


def test_from_photos_to_the_page(tmp_path: Path) -> None:
    text = PRESETS["cub20"]
    for old, new in CHANGES:
        assert old in text, old
        text = text.replace(old, new)
    photos(tmp_path / "cub20_224_jpeg.npz")
    (tmp_path / "study.toml").write_text(text)
    study = Study.from_toml(tmp_path / "study.toml", tmp_path / "run")
    few = "estimator=rand,estimator=block,estimator=sobel^2,estimator=gc^2"
    assert study.run(workers=1, only=few).failed == []
    assert sum(record.status == "done" for record in study.results) == 1 + 10 + 12 + 40
    out = tmp_path / "page"
    make_page(tmp_path / "run", "--images", TEST_IMAGES, "--out", out)
    first = rows(out / "table1.csv")
    assert len(first) == 10
    for row in first:
        (record,) = study.results.select(protocol="roar", estimator=row["removed"], drop=float(row["drop"]))
        assert float(row["accuracy"]) == pytest.approx(record.accuracy, rel=1e-5)
        assert float(row["low"]) <= float(row["accuracy"]) <= float(row["high"])
    assert [float(row["paper"]) for row in first if row["removed"] == "rand"] == [
        0.7556,
        0.7269,
        0.7099,
        0.6772,
        0.6195,
    ]
    assert len(rows(out / "smoothing.csv")) == 2 * 2 * (2 + 5)
    page = (out / "README.md").read_text()
    assert page.splitlines()[2].startswith("**What did not hold:**")
    for row in first:
        assert f"{float(row['accuracy']):.3f} [{float(row['low']):.3f}, {float(row['high']):.3f}]" in page
    made = [file for file in out.iterdir() if file.suffix == ".png"]
    assert {file.name for file in made} == {"table1.png", "smoothing.png"}
    assert sum(file.stat().st_size for file in made) < 300_000
    (out / "README.md").unlink()
    make_page("--out", out)  # again, from the tables alone
    assert (out / "README.md").read_text() == page


def test_what_held_and_what_did_not(tmp_path: Path) -> None:
    """Known accuracies end in the right lists."""
    header = "protocol,estimator,postprocess,order,drop,trial,accuracy,true_class_probability,tv_mask"
    lines = [header, "base,none,plain,morf,0,0,0.7,0.6,"]
    for drop, pixels, block in ((0.1, 0.7, 0.4), (0.3, 0.6, 0.59), (0.5, 0.4, 0.6)):
        lines += [f"roar,rand,plain,morf,{drop},0,{pixels},0.5,0.3", f"roar,block,plain,morf,{drop},0,{block},0.5,0.01"]
    for i, estimator in enumerate(("grad^2", "gi^2", "gc^2")):
        for postprocess, change in (("plain", 0.0), ("max(3)", 0.2), ("gaussian(1)", -0.2)):
            value = 0.5 + change + 0.01 * i
            lines.append(f"roar,{estimator},{postprocess},morf,0.3,0,{value},0.5,{0.3 + change}")
    (tmp_path / "records.csv").write_text("\n".join(lines) + "\n")
    sys.path.insert(0, str(TOOLS))
    try:
        import cub20  # type: ignore[import-not-found]
        import cub20_page  # type: ignore[import-not-found]
    finally:
        sys.path.remove(str(TOOLS))
    cells = cub20.Cells(rows(tmp_path / "records.csv"))
    differences = cub20.smoothing(cells, 578)
    cub20.write_rows(tmp_path / "table1.csv", cub20.table1(cells, 578))
    cub20.write_rows(tmp_path / "smoothing.csv", differences)
    cub20.write_rows(tmp_path / "summary.csv", cub20.summary(cells, 578, differences))
    found = cub20_page.claims(tmp_path)
    failed, unclear, held = ("\n".join(found[k]) for k in (False, None, True))
    assert "the base model reaches 0.700" in failed and "less than the 0.75" in failed
    assert "random pixels at 0.1" in held and "random pixels at 0.3" in unclear and "random pixels at 0.5" in failed
    assert "gaussian(1) lowers the ROAR" in held and "falls in 3 of 3" in held
    assert "max(3) lowers the ROAR" in failed and "falls in 0 of 3" in failed
    assert "GC² is inconclusive" in failed and "0 of 2 intervals hold 0" in failed
    assert "smoother masks, lower ROAR accuracy at 0.3" in held
