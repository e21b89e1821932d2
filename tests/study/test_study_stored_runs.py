"""Run folders that earlier versions made: they open, report, and resume to what they held.

`data/runs/<version>` are whole run folders, images included (`data/runs/README.md` says how they came about). Keys,
removed fractions and total variations must come back exactly. A model trained on another processor, or with another
torch, differs in the last bits of its weights: probabilities may differ by 1e-3, accuracies by one image. A wrong seed,
fill or mask moves them by ten times as much (the cells of the folder differ by 0.01 among each other).
"""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("pydantic")

from roarfast.report import build
from roarfast.study import Study, load
from roarfast.study.config import ConfigError, load_config
from roarfast.study.results import Record

RUNS = Path(__file__).parent / "data" / "runs"
VERSIONS = sorted(path.name for path in RUNS.iterdir() if path.is_dir())
pytestmark = pytest.mark.filterwarnings("ignore:.*is called:UserWarning")


@pytest.fixture
def run_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of a stored run folder."""
    return Path(shutil.copytree(RUNS / request.param, tmp_path / "run"))


def resume(folder: Path) -> dict[str, Record]:
    outcome = Study.from_toml(folder / "study.toml", folder).run(workers=1, device="cpu")
    assert outcome.failed == []
    return {record.key: record for record in load(folder)}


def assert_same(found: dict[str, Record], expected: dict[str, Record], roughness: float = 0.0) -> None:
    assert list(found) == list(expected)
    for key, record in expected.items():
        new = found[key]
        for name in ("protocol", "dataset", "estimator", "postprocess", "order", "drop", "trial", "status"):
            assert getattr(new, name) == getattr(record, name), (key, name)
        for name in ("removed_fraction", "removed_fraction_train"):
            assert getattr(new, name) == getattr(record, name), (key, name)
        for name in ("tv_map", "tv_mask"):
            if getattr(record, name) is not None:
                assert getattr(new, name) == pytest.approx(getattr(record, name), rel=roughness), (key, name)
        assert new.accuracy == pytest.approx(record.accuracy, abs=1.01 / 24), key  # of 24 test images
        assert new.true_class_probability == pytest.approx(record.true_class_probability, abs=1e-3), key


@pytest.mark.parametrize("run_folder", VERSIONS, indirect=True)
def test_a_finished_run_has_nothing_left_to_do(run_folder: Path) -> None:
    expected = {r.key: r for r in load(run_folder)}
    outcome = Study.from_toml(run_folder / "study.toml", run_folder).run(workers=1, device="cpu")
    assert (outcome.failed, outcome.skipped) == ([], len(expected))
    assert {r.key: r for r in load(run_folder)} == expected


@pytest.mark.parametrize("run_folder", VERSIONS, indirect=True)
def test_a_report_can_be_made(run_folder: Path) -> None:
    text = Path(build(run_folder)).read_text()
    assert "tiny-shapes" in text and "roar" in text.lower()


@pytest.mark.parametrize(
    ("run_folder", "condition"),
    [
        ("v1", "protocol = 'roar' AND estimator = 'grad' AND postprocess = 'max(3)' AND \"drop\" = 0.5"),
        ("v1", "protocol = 'kar' AND estimator = 'block' AND \"drop\" = 0.3"),
        ("v1", "protocol = 'road' AND estimator = 'rand' AND \"order\" = 'lerf' AND \"drop\" = 0.5"),
        ("v1-image-mean", "protocol = 'no-retrain'"),
        ("v1-image-mean", "protocol = 'road-retrain'"),
        ("v3", "protocol = 'roar'"),
    ],
    indirect=["run_folder"],
)
def test_a_deleted_cell_comes_back_as_it_was(run_folder: Path, condition: str) -> None:
    expected = {r.key: r for r in load(run_folder)}
    with sqlite3.connect(run_folder / "results.sqlite") as database:
        assert database.execute(f"DELETE FROM cells WHERE {condition}").rowcount == 1
    assert_same(resume(run_folder), expected)


@pytest.mark.parametrize("run_folder", VERSIONS, indirect=True)
def test_the_same_config_gives_the_same_store_today(run_folder: Path, tmp_path: Path) -> None:
    expected = {r.key: r for r in load(run_folder)}
    (run_folder / "results.sqlite").unlink()  # no run folder now, so names must be those of today
    config = run_folder / "study.toml"
    text = config.read_text()
    for old, new in {'"mean"': '"dataset_mean"', '"image-mean"': '"image_mean"'}.items():
        text = text.replace(f"fill = {old}", f"fill = {new}")
    config.write_text(text)
    outcome = Study.from_toml(config, tmp_path / "again").run(workers=1, device="cpu")
    assert outcome.failed == []
    found = {r.key: r for r in load(tmp_path / "again")}
    assert_same(found, expected, roughness=0.01)  # the maps come from a model that was trained anew


@pytest.mark.parametrize("run_folder", ["v1", "v1-image-mean"], indirect=True)
def test_old_names_are_translated_in_a_run_folder_and_refused_elsewhere(run_folder: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r'fill = "[a-z-]+" is called "[a-z]+_mean" now \(results keep') as caught:
        config = load_config(run_folder / "study.toml")
    assert len(caught) == 1
    assert config.removal.fill in ("dataset_mean", "image_mean")
    assert load(run_folder).meta["config"]["removal"]["fill"] == config.removal.fill
    elsewhere = tmp_path / "study.toml"
    shutil.copy(run_folder / "study.toml", elsewhere)
    with pytest.raises(ConfigError, match=r'removal.fill \(line 16\): fill = "[a-z-]+" is called "[a-z]+_mean" now'):
        load_config(elsewhere)
