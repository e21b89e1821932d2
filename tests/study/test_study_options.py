"""Options that the papers' own code has: retraining from the base model, the ends t = 0 and 0.99, roughness of train maps."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from helpers import synthetic_study as synthetic
from helpers.study_helpers import run_tiny, tiny, write_tiny

torch = pytest.importorskip("torch")
pytest.importorskip("pydantic")

from torch import Tensor

import roarfast as rf
from roarfast._sealed import read_sealed
from roarfast.explain.store import AttributionStore
from roarfast.report.audit import audit
from roarfast.report.facts import STARTED_FROM_BASE, doubts
from roarfast.report.grid import panels
from roarfast.report.regression import fit_at
from roarfast.study import Study, load
from roarfast.study.config import parse_config
from roarfast.study.errors import ConfigError
from roarfast.study.records import StudyResults
from roarfast.study.runfolder import RunFolder
from roarfast.study.tasks import BaseTask, CellsTask

TEXT = tiny(
    epochs='1\nlr = 1e-12\nwarmup_epochs = 0\nweight_decay = 0.0\nstart = "base"',
    estimators=["grad^2", "rand", "block"],
    postprocess=["plain"],
    drops=[0.0, 0.99],
    examples="1\nkeep_models = true",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("options")
    return run_tiny(folder, TEXT)


def weights(path: Path) -> dict[str, Tensor]:
    state = torch.load(io.BytesIO(read_sealed(path)), weights_only=True)
    return {name: value for name, value in state.items() if "running" not in name and value.is_floating_point()}


def test_retraining_starts_from_the_base_model(finished: Study) -> None:
    """With a learning rate of next to nothing, what a training starts from is what it ends with."""
    files, tasks = RunFolder(finished.folder), finished.setup("cpu", 1).plan.tasks
    (base,) = [t for t in tasks.values() if isinstance(t, BaseTask)]
    trained = [t for t in tasks.values() if isinstance(t, CellsTask) and t.cell.protocol == "roar"]
    expected = weights(files.base_model(base.key))
    for task in trained:
        assert base.key in task.needs
        found = weights(files.model(f"cell-{task.key[:16]}"))
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=0, atol=1e-6)
    assert STARTED_FROM_BASE in doubts(load(finished.folder))


def test_where_models_start_is_part_of_the_keys_of_what_is_retrained_alone(tmp_path: Path) -> None:
    keys = {}
    for start in ("fresh", "base", None):
        text = TEXT.replace('start = "base"', "" if start is None else f'start = "{start}"')
        study = Study.from_toml(write_tiny(tmp_path, text), tmp_path / "run")
        keys[start] = {cell.label: key for key, cell in study.setup("cpu", 1).cells.items()}
    assert keys["fresh"] == keys[None], "results of before keep their keys"
    for label, key in keys["base"].items():
        assert (key != keys["fresh"][label]) == label.startswith("roar"), label
    fresh = parse_config(TEXT.replace('start = "base"', ""))
    assert fresh.train.start == "fresh"
    with pytest.raises(ConfigError, match=r"train\.start \(line \d+\): must be 'fresh' or 'base', got 'bse'"):
        parse_config(TEXT.replace('start = "base"', 'start = "bse"'))


def test_the_ends_of_the_rates(finished: Study) -> None:
    results = load(finished.folder)
    (base,) = results.select(protocol="base")
    for record in results.select(drop=0.0):
        assert record.removed_fraction == 0, record
        if record.protocol == "road":
            assert record.accuracy == base.accuracy
    for record in results.select(drop=0.99):
        if record.estimator != "block":
            assert record.removed_fraction == int(0.99 * 1024) / 1024
        else:
            assert record.removed_fraction == pytest.approx(0.99, abs=0.02)
    (roar,) = [p for p in panels(results) if p.protocol == "roar"]
    assert roar.drops == [0.0, 0.99] and roar.main_drops == [0.99]
    assert audit(roar).changes == []


def test_a_filter_is_not_audited_where_nothing_is_removed() -> None:
    records = [
        synthetic.record("roar", "grad", k, t, 0, accuracy=0.9 - t * (k != "plain"))
        for k in ("plain", "max(3)")
        for t in (0.0, 0.5)
    ]
    (panel,) = panels(StudyResults(records, {}))
    assert [c.drop for c in audit(panel).changes] == [0.5]
    (only,) = panels(StudyResults([r for r in records if r.drop == 0], {}))
    assert only.main_drops == [0.0], "a study of nothing else is still shown"


def test_total_variation_of_the_maps_of_train_images(finished: Study) -> None:
    results = load(finished.folder)
    (base,) = results.select(protocol="base")
    maps = AttributionStore(RunFolder(finished.folder).maps(base.key, "train")).open("grad^2")
    expected = np.asarray(rf.total_variation(np.asarray(maps[0:60], np.float32), normalize="minmax"), np.float64).mean()
    for record in results.select(protocol="roar", estimator="grad^2"):
        assert record.extra["tv_map_train"] == pytest.approx(expected, rel=1e-9)
        assert record.extra["tv_map_train"] != record.tv_map
    blocks = {r.drop: r.extra["tv_map_train"] for r in results.select(protocol="roar", estimator="block")}
    assert set(blocks) == {0.0, 0.99} and blocks[0.0] == 0, "a rectangle per rate"
    assert not any("tv_map_train" in r.extra for r in results.select(protocol="road"))


def test_fits_on_the_roughness_of_train_maps() -> None:
    found = synthetic.study(trials=2)
    for record in found.records:
        if record.tv_map is not None:
            record.extra["tv_map_train"] = 2 * record.tv_map
    (panel,) = panels(found)
    train, test = fit_at(panel, "tv_map_train", 0.5), fit_at(panel, "tv_map", 0.5)
    assert train.n == test.n and train.r2 == pytest.approx(test.r2) and train.slope == pytest.approx(test.slope / 2)
