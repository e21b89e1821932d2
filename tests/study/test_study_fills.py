"""Fills of studies: constants, and those that depend on the image."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.study_helpers import TINY, write_tiny

pytest.importorskip("torch")
pytest.importorskip("pydantic")

import roarfast as rf
from roarfast.study import fills
from roarfast.study.cells import fill_split, fill_value
from roarfast.study.config import ConfigError, parse_config
from roarfast.study.keys import derive_seed
from roarfast.study.results import load
from roarfast.study.runfolder import RunFolder
from roarfast.study.study import Study
from roarfast.study.work import Clock, Work

BY_IMAGE = {"image_mean": "image_mean", "blur": "blur", "noise": "noise"}


def with_fill(fill: str) -> str:
    return TINY.replace("[[grid]]", f"[removal]\nfill = {fill}\n[[grid]]")


def pipeline(tmp_path: Path, fill: str) -> Work:
    return Work(parse_config(with_fill(fill)), RunFolder(tmp_path), "cpu", 1)


@pytest.mark.parametrize("fill", BY_IMAGE)
def test_fills_by_image_are_those_of_the_op(tmp_path: Path, fill: str, monkeypatch) -> None:
    monkeypatch.setattr("roarfast.study.fills._CHUNK", 7 * 32 * 32 * 3)  # several chunks, the last one smaller
    p = pipeline(tmp_path, f'"{fill}"')
    assert fill_value(p) is None
    clock = Clock()
    for split, data in (("train", p.train), ("test", p.test)):
        filled = fill_split(p, split, clock)
        assert filled is not None and filled.dtype == np.uint8 and filled is fill_split(p, split, clock)
        mask = np.random.default_rng(0).random(data.images.shape[:3]) < 0.4
        expected = rf.fill(
            data.images,
            mask,
            BY_IMAGE[fill],
            layout="NHWC",
            noise_mean=255 * float(np.mean(p.train.mean)),
            noise_std=255 * float(np.mean(p.train.std)),
            seed=derive_seed(0, "fill", split),
        )
        np.testing.assert_array_equal(np.where(mask[..., None], filled, data.images), expected)
    assert clock.seconds["impute"] > 0
    assert not np.array_equal(p.fills["train"][:40], p.fills["test"])


@pytest.mark.parametrize(
    ("fill", "value"), [('"zero"', (0.0, 0.0, 0.0)), ("[7]", (7.0, 7.0, 7.0)), ("[1, 2, 3]", (1.0, 2.0, 3.0))]
)
def test_constants_need_no_second_set_of_images(tmp_path: Path, fill: str, value: tuple[float, ...]) -> None:
    p = pipeline(tmp_path, fill)
    assert fill_value(p) == value and fill_split(p, "train", Clock()) is None and not p.fills


def test_the_mean_of_a_sample_of_train_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """001 took it of 2,000 images; with fewer it is that of all of them."""
    p = pipeline(tmp_path, '"sample_mean"')
    whole = fill_value(p)
    assert whole == pytest.approx(tuple(p.train.images.reshape(-1, 3).mean(0))) and fills.SAMPLE == 2000
    monkeypatch.setattr(fills, "SAMPLE", 10)
    some = fill_value(p)
    assert some == fill_value(p) != whole and some == pytest.approx(whole, abs=40)


def test_an_unknown_fill_is_an_error_that_lists_the_known() -> None:
    with pytest.raises(ConfigError, match=r"removal\.fill.*'image_mean', 'blur' or 'noise'"):
        parse_config(with_fill('"blurr"'))


def test_a_study_with_a_blurred_fill(tmp_path: Path) -> None:
    results = {}
    for fill in ('"dataset_mean"', '"blur"'):
        config = write_tiny(
            tmp_path,
            with_fill(fill),
            protocols='["roar", "kar", "no-retrain"]',
            estimators='["grad^2"]',
            postprocess='["plain"]',
            drops="[0.5]",
        )
        study = Study.from_toml(config, tmp_path / fill.strip('"'))
        assert study.run(workers=1).failed == []
        results[fill] = {r.protocol: r for r in load(study.folder)}
    mean, blur = results['"dataset_mean"'], results['"blur"']
    assert mean["base"].key == blur["base"].key
    for protocol in ("roar", "kar", "no-retrain"):
        assert mean[protocol].key != blur[protocol].key
        assert mean[protocol].true_class_probability != blur[protocol].true_class_probability
    kept = np.load(tmp_path / "blur" / "examples" / "grad.2.npz")
    mask, images, modified = kept["mask"][0, 0], kept["images"], kept["modified"][0, 0]
    expected = rf.blur_fill(images, mask, layout="NHWC")
    np.testing.assert_array_equal(modified, expected)


def test_a_fill_is_a_record(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="either a constant or images"):
        fills.Fill("both")
    negative = fills.Fill("negative", images=lambda images, seed, index, train: 255 - images)
    p = pipeline(tmp_path, '"zero"')
    np.testing.assert_array_equal(negative.replacements(p.test, 0, p.train), 255 - p.test.images)
    with pytest.raises(ValueError, match=r"must return uint8 images \(40, 32, 32, 3\), got float64"):
        fills.Fill("wrong", images=lambda images, *rest: images / 2).replacements(p.test, 0, p.train)
