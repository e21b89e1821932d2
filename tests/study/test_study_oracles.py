"""Masks that see the label in studies: what they remove, `roar-clean`, and that no ranking or audit has them."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.result_files import rows
from helpers.study_helpers import run_tiny, tiny, write_tiny

torch = pytest.importorskip("torch")
pytest.importorskip("pydantic")

import roarfast as rf
from roarfast.explain.oracles import ORACLES, oracle_maps
from roarfast.report import build, summary
from roarfast.report.audit import audit
from roarfast.report.grid import BASELINES, mask_only, panels
from roarfast.report.oracles import oracle_cells
from roarfast.report.run_tables import removed_table
from roarfast.study import Study, load
from roarfast.study.config import ConfigError, parse_config
from roarfast.study.curves import CurveWork
from roarfast.study.errors import StudyError
from roarfast.study.presets import PRESETS
from roarfast.study.results import StudyResults
from roarfast.study.runfolder import RunFolder
from roarfast.study.tasks import CellsTask
from roarfast.study.work import Clock, Work

TEXT = tiny(
    protocols=["roar", "no-retrain", "mask-only"],
    estimators=["grad^2", "Center", "center + edge", "rand"],
    drops='[0.5]\nnull = ["own", "model"]',
    trials=2,
    batch_size="20\nflip = false\nrandom_crop = false\npad = 0",
    examples="2\nkeep_codes = true",
).replace(
    "[run]",
    '[[grid]]\nprotocols = ["roar-clean"]\nestimators = ["edge", "grad^2"]\ndrops = [0.1]\ntrials = 1\n[run]',
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("oracles")
    run_tiny(folder, TEXT)
    return folder


@pytest.fixture(scope="module")
def results(finished: Path) -> StudyResults:
    return load(finished / "run")


@pytest.fixture(scope="module")
def tasks(finished: Path) -> tuple[Work, dict[tuple[str, str, int, str], CellsTask]]:
    study = Study.from_toml(finished / "study.toml", finished / "run")
    plan = study.setup(device="cpu", workers=1).plan
    found = (t for t in plan.tasks.values() if isinstance(t, CellsTask))
    return Work(study.config, RunFolder(finished / "run"), "cpu", 1), {
        (t.cell.protocol, t.cell.estimator, t.cell.trial, t.cell.null): t
        for t in found
        if t.cell.postprocess == "plain"
    }


@pytest.mark.parametrize("name", ["center", "center+edge"])
def test_codes_remove_what_the_oracle_says(tasks, name: str) -> None:
    work, by_cell = tasks
    for split, data in (("train", work.train), ("test", work.test)):
        task = by_cell["roar", name, 1, "own"]
        codes, rate_index = work.codes(task, task.cell, split)
        maps = oracle_maps(name, data.labels, data.image_shape[:2], data.num_classes)
        assert np.array_equal(codes <= rate_index, rf.removal_mask(maps, 0.5))
        masks = {mask.tobytes() for mask in codes <= rate_index}
        assert len(masks) == (1 if name == "center" else len(np.unique(data.labels)))


def test_the_rest_of_edge_is_removed_at_random(tasks) -> None:
    work, by_cell = tasks
    task = by_cell["roar-clean", "edge", 0, "own"]
    codes, rate_index = work.codes(task, task.cell, "train")
    masks = codes <= rate_index
    assert (masks.reshape(len(masks), -1).sum(1) == int(0.1 * masks[0].size)).all()
    assert len({mask.tobytes() for mask in masks}) == len(masks)  # the patch is 5 %, the other half differs


def test_oracles_ask_no_model(results: StudyResults, tasks) -> None:
    work, by_cell = tasks
    assert by_cell["roar", "center", 0, "own"].codes == by_cell["roar", "center", 0, "model"].codes
    for name in ("center", "center+edge"):
        own, other = (
            [r.accuracy for r in results.select(estimator=name, null=null)] for null in ("own", "model")
        )  # of every protocol and trial
        assert own == other
    assert not any("center" in path.name or "edge" in path.name for path in (work.folder.path / "maps").rglob("*"))
    assert {r.postprocess for r in results if r.estimator in ORACLES} == {"plain"}


def test_the_mask_gives_the_class_away_or_nothing(results: StudyResults, tasks) -> None:
    shares = np.bincount(tasks[0].test.labels) / len(tasks[0].test)
    for r in results.select(protocol="mask-only", estimator="center"):
        assert r.accuracy in shares  # one mask for all images, so one answer


def test_attribution_of_an_oracle_is_its_map(tasks) -> None:
    work, by_cell = tasks
    found = CurveWork(work, by_cell["no-retrain", "center", 0, "own"], Clock(), lambda text: None).attribution()
    assert np.array_equal(found, oracle_maps("center", work.test.labels, work.test.image_shape[:2], 10))


def test_roar_clean_trains_on_black_patches_and_tests_whole_images(tasks, results: StudyResults, monkeypatch) -> None:
    work, by_cell = tasks
    task = by_cell["roar-clean", "edge", 0, "own"]
    seen = {}

    def fit(name, seed, add_seconds, on_update, data, start):
        (x, _), *_ = data.train.batches([np.arange(4)], _units(data.removal.fields()))
        (whole, _), *_ = data.test.batches([np.arange(4)], _units({}))
        seen.update(train=x, test=whole, removal=data.removal)
        return None, {"accuracy": 0.0}

    monkeypatch.setattr(work.trainer, "fit", fit)
    from roarfast.study.cells import CellWork

    CellWork(work, task, Clock(), lambda text: None).trained_with_black_pixels()
    codes, rate_index = work.codes(task, task.cell, "train")
    gone = codes[:4] <= rate_index
    images = np.where(gone[..., None], 0, work.train.images[:4]).transpose(0, 3, 1, 2) / 255
    np.testing.assert_allclose(seen["train"].numpy(), images, atol=1e-6)
    np.testing.assert_allclose(seen["test"].numpy(), work.test.images[:4].transpose(0, 3, 1, 2) / 255, atol=1e-6)
    assert seen["removal"].of_test is None
    (r,) = results.select(protocol="roar-clean", estimator="edge")
    assert r.removed_fraction == 0 and r.removed_fraction_train == pytest.approx(0.1, abs=1e-3)


def _units(removed):
    from roarfast.data.device import Transform

    return Transform(mean=(0.0,) * 3, std=(1.0,) * 3, **removed)


def test_the_report_shows_them_apart(finished: Path, results: StudyResults, tmp_path: Path) -> None:
    assert not set(ORACLES) & set(BASELINES)
    for panel in panels(results):
        assert not set(ORACLES) & set(panel.estimators)
    assert {key.estimator for key in mask_only(results, "shapes", "morf")} == {"grad^2", "rand"}
    page = " ".join(Path(build(finished / "run", tmp_path)).read_text().split())
    assert "Masks that see the label" in page
    found = rows(tmp_path / "tables" / "oracles.csv")
    assert [(r["protocol"], r["oracle"], r["trials"]) for r in found] == [
        ("roar", "center", "2"),
        ("roar", "center+edge", "2"),
        ("roar-clean", "edge", "1"),
        ("no-retrain", "center", "2"),
        ("no-retrain", "center+edge", "2"),
        ("mask-only", "center", "2"),
        ("mask-only", "center+edge", "2"),
    ]
    for table in ("cells", "differences", "counts", "ranks", "agreement", "leakage", "scores"):
        assert "center" not in (tmp_path / "tables" / f"{table}.csv").read_text(), table
    (found,) = oracle_cells(results)
    test = next(iter(found.tests))
    means = [
        np.mean([r.accuracy for r in results.select(protocol="roar", estimator=e, null="own")])
        for e in ("center", "center+edge")
    ]
    assert found.apart(test).mean == pytest.approx(means[1] - means[0])
    assert "Masks that see the label, ROAR, t = 0.5: center " in page and "best plain estimator center" not in page


def test_a_study_of_oracles_alone_has_a_summary_and_a_page(
    results: StudyResults, finished: Path, tmp_path: Path
) -> None:
    alone = StudyResults([r for r in results if r.estimator in (*ORACLES, "none")], results.meta)
    said = summary(alone)
    assert "Masks that see the label, ROAR, t = 0.5" in said and "Caution" not in said
    page = Path(build(finished / "run", tmp_path, alone)).read_text()
    assert page.count("oracles.png") == 1 and "No cell is finished yet" not in page and "Audit" not in page


def test_whole_test_images_are_not_flagged_as_removed_too_little(results: StudyResults) -> None:
    audits = [audit(panel) for panel in panels(results)]
    assert "roar-clean" in {a.panel.protocol for a in audits} and removed_table(audits).rows == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"Center"', '"centre"'), r"there is no estimator 'centre'; did you mean 'center'"),
        (('"center + edge"', '"center-edge"'), r"did you mean 'center\+edge'"),
        (('"center + edge"', '"center^2"'), r"there is no estimator 'center'"),
        (('["roar-clean"]', '["roar-clear"]'), r"no protocol 'roar-clear'; did you mean 'roar-clean'"),
        (
            ('estimators = ["edge", "grad^2"]', 'estimators = ["edge", "rand"]\npostprocess = ["max(3)"]'),
            r"edge and rand take no post-processing, so this block has no cells",
        ),
    ],
)
def test_bad_names(change: tuple[str, str], message: str) -> None:
    assert change[0] in TEXT
    with pytest.raises(ConfigError, match=message):
        parse_config(TEXT.replace(*change))


def test_more_classes_than_places_are_refused_before_anything_runs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (40, 4, 4, 3), dtype=np.uint8), np.arange(40) % 20
    np.savez(tmp_path / "train.npz", images=images, labels=labels)
    np.savez(tmp_path / "test.npz", images=images, labels=labels)
    text = TEXT.replace('name = "shapes"', 'name = "small"\ntrain = "train.npz"\ntest = "test.npz"')
    study = Study.from_toml(write_tiny(tmp_path, text), tmp_path / "run")
    with pytest.raises(StudyError, match=r"estimator 'edge': 20 classes need as many places along the border"):
        study.run(workers=1)


@pytest.mark.parametrize("setting", ["flip = true", "random_crop = true\npad = 2"])
def test_training_that_moves_the_patch_is_doubted(tmp_path: Path, setting: str) -> None:
    key = setting.split(" =")[0]
    lines = [setting.splitlines()[0] if line.startswith(key) else line for line in TEXT.splitlines()]
    text = "\n".join(lines).replace("pad = 0", "pad = 2")
    notes = Study(parse_config(text), tmp_path).setup("cpu", 1).notes
    assert any("center+edge tell the class by a place at the border, and training moves it" in note for note in notes)
    assert not any("border" in note for note in Study(parse_config(TEXT), tmp_path).setup("cpu", 1).notes)


def test_the_preset_runs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    for name, n in (("train_10k", 40), ("test_2k", 20)):
        images = rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
        np.savez(tmp_path / "data" / f"cifar10_{name}.npz", images=images, labels=np.arange(n) % 10)
    text = PRESETS["falsification"]
    for old, new in (("width = 8", "width = 2"), ("epochs = 6", "epochs = 1"), ("batch_size = 64", "batch_size = 20")):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "study.toml").write_text(text)
    study = Study.from_toml(tmp_path / "study.toml", tmp_path / "run")
    recipe = study.config.resolved_recipe()
    assert (recipe.optimizer, recipe.flip, recipe.random_crop, recipe.pad) == ("adam", False, False, 0)
    assert study.run(workers=1).failed == []
    (found,) = oracle_cells(study.results)
    assert {(t.protocol, t.drop): sorted(cells) for t, cells in found.tests.items()} == {
        ("roar", 0.7): ["center", "center+edge"],
        ("no-retrain", 0.7): ["center", "center+edge"],
        ("mask-only", 0.7): ["center", "center+edge"],
        ("roar-clean", 0.05): ["edge"],
    }
    assert all(r.accuracy == 0.1 for r in study.results.select(protocol="mask-only", estimator="center"))
