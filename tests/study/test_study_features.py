"""`explain.aggregate = "none(…)"`: the channels of a pixel are ranked and removed apart, as in the code of Hooker et al."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.study_helpers import run_tiny, tiny, write_tiny

pytest.importorskip("torch")
pytest.importorskip("pydantic")

import roarfast as rf
from roarfast.data.device import Transform
from roarfast.explain.store import AttributionStore
from roarfast.report import build
from roarfast.report.facts import RANKS_FEATURES, doubts
from roarfast.study import Study, load
from roarfast.study.cells import CellWork, fill_value
from roarfast.study.config import parse_config
from roarfast.study.errors import ConfigError
from roarfast.study.runfolder import RunFolder
from roarfast.study.selection import Selection
from roarfast.study.tasks import CellsTask
from roarfast.study.training import mask_images
from roarfast.study.work import Clock, Work

TEXT = (
    tiny(
        epochs=1,
        protocols=["roar", "kar"],
        estimators=["grad", "gc", "rand", "block"],
        postprocess=["plain"],
        drops=[0.3],
        examples="2\nkeep_codes = true",
    ).replace("[explain]", '[explain]\naggregate = "none(raw)"')
    + """
[[grid]]
protocols = ["roar"]
estimators = ["grad"]
drops = [0.3]
null = ["roll"]
[[grid]]
protocols = ["road", "mask-only"]
estimators = ["grad"]
drops = [0.3]
aggregate = "mean(abs)"
"""
)
FEATURES = 32 * 32 * 3


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("features")
    return run_tiny(folder, TEXT)


def cell_of(study: Study, protocol: str, estimator: str, null: str = "own") -> CellWork:
    work = Work(study.config, RunFolder(study.folder), "cpu", 1)
    for task in study.setup("cpu", 1).plan.tasks.values():
        if isinstance(task, CellsTask) and (task.cell.protocol, task.cell.estimator, task.cell.null) == (
            protocol,
            estimator,
            null,
        ):
            return CellWork(work, task, Clock(), print)
    raise LookupError(protocol)


def test_features_are_removed_one_by_one(finished: Study) -> None:
    results = {(r.protocol, r.estimator): r for r in load(finished.folder) if r.null == "own"}
    assert {r.status for r in results.values()} == {"done"}
    assert results["roar", "grad"].removed_fraction == int(0.3 * FEATURES) / FEATURES
    assert results["kar", "grad"].removed_fraction == 1 - int(0.3 * FEATURES) / FEATURES
    assert results["roar", "gc"].removed_fraction == int(0.3 * 1024) / 1024, "maps without channels"
    assert results["roar", "rand"].removed_fraction == int(0.3 * FEATURES) / FEATURES
    assert results["road", "grad@mean(abs)"].removed_fraction == int(0.3 * 1024) / 1024
    assert RANKS_FEATURES in doubts(load(finished.folder))


@pytest.mark.parametrize("protocol", ["roar", "kar"])
def test_a_batch_has_the_channels_replaced_that_the_map_ranks(finished: Study, protocol: str) -> None:
    cell = cell_of(finished, protocol, "grad")
    w = cell.work
    maps = np.asarray(AttributionStore(w.folder.maps(cell.task.base, "test")).open("grad")[0:40], np.float32)
    assert maps.shape == (40, 3, 32, 32) and (maps < 0).any(), "signed"
    seed = w.seeds.ties(0, "test")
    mask = np.asarray(rf.removal_mask(maps, 0.3, seed=seed, index=np.arange(40), ndim=3, keep=protocol == "kar"), bool)
    fill = np.array(fill_value(w))
    expected = np.where(mask.transpose(0, 2, 3, 1), fill, w.test.images)
    removal = cell.removal()
    transform = Transform(mean=0.0, std=1.0, rate_index=removal.rate_index, keep=removal.keep, fill=removal.fill)
    found, _ = next(cell.modified("test").batches([np.arange(40)], transform))
    np.testing.assert_allclose(255 * found.numpy().transpose(0, 2, 3, 1), expected, atol=1e-3)
    if protocol == "roar":
        (record,) = load(finished.folder).select(protocol="roar", estimator="grad", null="own")
        assert record.tv_mask == pytest.approx(rf.total_variation(mask, normalize="mean").mean())
        assert record.tv_map == pytest.approx(np.mean(rf.total_variation(maps, normalize="minmax")), rel=1e-6)


def test_a_null_moves_the_channels_of_an_image_together(finished: Study) -> None:
    own, _ = cell_of(finished, "roar", "grad").codes("test")
    moved, _ = cell_of(finished, "roar", "grad", "roll").codes("test")
    assert own.shape == moved.shape == (40, 3, 32, 32) and not np.array_equal(own, moved)
    for before, after in zip(own, moved):
        shifts = [
            (y, x) for y in range(32) for x in range(32) if np.array_equal(np.roll(before[0], (y, x), (0, 1)), after[0])
        ]
        assert any(np.array_equal(np.roll(before, shift, (1, 2)), after) for shift in shifts)


def test_random_steps_draw_for_each_channel() -> None:
    maps = np.random.default_rng(0).random((4, 3, 8, 8)).astype(np.float32)
    selection = Selection((0.5,), "exact", "morf", "jitter(0,1)", seed=3)
    rows = np.arange(4)
    found = selection.processed(maps, rows, (8, 8))
    assert found.shape == maps.shape and not np.array_equal(found[:, 0] - maps[:, 0], found[:, 1] - maps[:, 1])
    np.testing.assert_array_equal(selection.processed(maps, rows[2:], (8, 8)), found[2:])


def test_masks_of_features_are_images_in_colour(finished: Study) -> None:
    cell = cell_of(finished, "roar", "grad")
    masks = np.random.default_rng(0).random((40, 3, 32, 32)) < 0.3
    found = mask_images(cell.work.test, masks).images
    np.testing.assert_array_equal(found, 255 * masks.transpose(0, 2, 3, 1))


def test_the_report_goes_without_strips_of_them(finished: Study) -> None:
    examples = {path.stem for path in (finished.folder / "examples").iterdir()}
    assert examples == {"block", "grad.mean.abs"}
    assert "Features were ranked, not pixels" in build(finished.folder).read_text(encoding="utf-8")


def test_protocols_that_remove_whole_pixels_are_refused() -> None:
    for protocol in ("road", "road-retrain", "no-retrain", "deletion", "soundness"):
        with pytest.raises(ConfigError, match=rf"grid\.0\.protocols.*'{protocol}' removes whole pixels, but explain"):
            parse_config(TEXT.replace('["roar", "kar"]', f'["roar", "{protocol}"]'))
    block = TEXT.replace('["grad", "gc", "rand", "block"]', '["block"]').replace('["roar", "kar"]', '["road"]')
    assert parse_config(block).explain.ranks_features, "rectangles are pixels anyway"


def test_random_features_are_another_baseline_than_random_pixels(tmp_path: Path) -> None:
    keys = {}
    for aggregate in ("none(raw)", "none(abs)", "mean(abs)", "sum(raw)"):
        text = TEXT.split('\n[[grid]]\nprotocols = ["roar"]\n')[0].replace("none(raw)", aggregate)
        cells = Study.from_toml(write_tiny(tmp_path, text), tmp_path / "run").setup("cpu", 1).cells
        keys[aggregate] = {key for key, cell in cells.items() if cell.estimator == "rand"}
    assert keys["none(raw)"] == keys["none(abs)"] and keys["mean(abs)"] == keys["sum(raw)"]
    assert not keys["none(raw)"] & keys["mean(abs)"]
    selection = Selection((0.5,), "exact", "morf", "plain", 3, "rand", channels=3)
    codes, noise = selection.codes(None, np.arange(5), (8, 8))
    assert codes.shape == (5, 3, 8, 8) and ((codes == 0).reshape(5, -1).sum(1) == 96).all()
    np.testing.assert_array_equal(selection.codes(None, np.arange(3, 5), (8, 8))[0], codes[3:])
    assert not np.array_equal(noise[:, 0], noise[:, 1])
