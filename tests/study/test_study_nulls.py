"""The grid axis `null`: cells whose masks were moved, or made by another model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from helpers.result_files import rows
from helpers.study_helpers import run_tiny, tiny

pytest.importorskip("torch")
pytest.importorskip("pydantic")

from roarfast.metrics import null_maps
from roarfast.report import build
from roarfast.report.answers import stored_answers
from roarfast.report.parts import study_parts
from roarfast.study import Study
from roarfast.study.config import ConfigError, parse_config
from roarfast.study.grid import explained_trial, grid_cells
from roarfast.study.keys import Seeds
from roarfast.study.results import StudyResults, load
from roarfast.study.runfolder import RunFolder
from roarfast.study.tasks import CellsTask
from roarfast.study.work import Work

NULLS = ("own", "swap", "swap-class", "roll", "turn", "model")
TEXT = tiny(
    trials=2,
    protocols=["road", "no-retrain"],
    estimators=["grad^2", "sobel", "rand", "block"],
    postprocess=["plain"],
    drops=f"[0.5]\nnull = {json.dumps(NULLS)}",
    examples="0\nkeep_codes = true",
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nulls")
    run_tiny(folder, TEXT)
    return folder


@pytest.fixture(scope="module")
def results(finished: Path) -> StudyResults:
    return load(finished / "run")


def test_every_null_has_its_cells(results: StudyResults) -> None:
    assert {r.status for r in results} == {"done"} and len({r.key for r in results}) == len(results)
    for null in NULLS:  # 4 estimators × 2 trials × (road in two orders, no-retrain in one)
        assert len([r for r in results if r.null == null and r.protocol != "base"]) == 24, null
    own = results.select(null="own", protocol="road", estimator="grad^2")
    assert all(r.removed_fraction == own[0].removed_fraction for r in results.select(estimator="grad^2"))


@pytest.mark.parametrize("estimator", ["sobel", "rand", "block"])
def test_the_model_part_of_what_asks_no_model_is_zero_to_the_bit(results: StudyResults, estimator: str) -> None:
    own, other = (results.select(null=null, estimator=estimator) for null in ("own", "model"))
    assert len(own) == len(other) == 6
    for a, b in zip(own, other):
        assert (a.trial, a.order, a.protocol) == (b.trial, b.order, b.protocol)
        assert (a.accuracy, a.true_class_probability) == (b.accuracy, b.true_class_probability)


def test_masks_of_another_model_are_other_masks(results: StudyResults) -> None:
    own, other = (results.select(null=null, estimator="grad^2") for null in ("own", "model"))
    assert any(a.true_class_probability != b.true_class_probability for a, b in zip(own, other))


@pytest.mark.parametrize("null", NULLS[1:-1])
def test_codes_are_moved_by_the_function_of_the_metrics(finished: Path, null: str) -> None:
    study = Study.from_toml(finished / "study.toml", finished / "run")
    plan = study.setup(device="cpu", workers=1).plan
    work = Work(study.config, RunFolder(finished / "run"), "cpu", 1)
    tasks = {
        t.cell.null: t
        for t in plan.tasks.values()
        if isinstance(t, CellsTask) and t.label.startswith("road grad^2") and t.cell.trial == 1
    }
    assert tasks[null].codes == tasks["own"].codes != tasks["model"].codes
    own, _ = work.codes(tasks["own"], tasks["own"].cell, "test")
    moved, _ = work.codes(tasks[null], tasks[null].cell, "test")
    expected = null_maps(np.asarray(own), null, seed=Seeds(0).null(1, "test"), labels=work.test.labels)
    assert np.array_equal(moved, expected) and not np.array_equal(moved, own)


def test_nulls_share_maps_and_models_and_cost_no_training(finished: Path) -> None:
    tasks = list(Study.from_toml(finished / "study.toml", finished / "run").setup("cpu", 1).plan.tasks.values())
    kinds = [task.kind for task in tasks]
    assert (kinds.count("base"), kinds.count("maps")) == (2, 2)
    assert kinds.count("codes") == 2 * 4 + 2 * 2  # own; and grad^2 and sobel of the other model


def test_own_cells_keep_their_keys(finished: Path) -> None:
    text = "\n".join(line for line in TEXT.splitlines() if not line.startswith("null"))
    study = Study(parse_config(text), finished / "other")
    keys = set(study.setup("cpu", 1).cells)
    assert keys == {r.key for r in load(finished / "run") if r.null == "own"}


def test_the_report_takes_the_damage_apart(finished: Path, results: StudyResults, tmp_path: Path) -> None:
    page = Path(build(finished / "run", tmp_path)).read_text()
    assert "Shape, image, model" in page
    found = {(r["protocol"], r["order"], r["estimator"]): r for r in rows(tmp_path / "tables" / "parts.csv")}
    assert len(found) == 3 * 4
    for (protocol, order, estimator), row in found.items():
        chosen = {"protocol": protocol, "order": order, "estimator": estimator}
        mean = {n: np.mean([r.accuracy for r in results.select(null=n, **chosen)]) for n in ("own", "swap", "model")}
        base = np.mean([r.accuracy for r in results.select(protocol="base")])
        expected = (base - mean["swap"], mean["swap"] - mean["model"], mean["model"] - mean["own"])
        assert [float(row[p]) for p in ("shape", "image", "model")] == pytest.approx(expected, abs=1e-5)
        assert estimator == "grad^2" or float(row["model"]) == 0
    assert {r["null"] for r in rows(tmp_path / "tables" / "records.csv")} == set(NULLS)
    assert {r["trials"] for r in rows(tmp_path / "tables" / "cells.csv")} == {"2"}  # curves are made of own cells alone


def test_a_study_without_nulls_has_no_parts(finished: Path, results: StudyResults, tmp_path: Path) -> None:
    own = StudyResults([r for r in results if r.null == "own"], results.meta)
    assert "Shape, image, model" not in Path(build(finished / "run", tmp_path, own)).read_text()
    assert not (tmp_path / "tables" / "parts.csv").exists()


def test_retraining_with_moved_masks(tmp_path: Path) -> None:
    text = TEXT.replace('["road", "no-retrain"]', '["roar"]').replace(
        '["grad^2", "sobel", "rand", "block"]', '["rand"]'
    )
    text = text.replace(str(list(NULLS)).replace("'", '"'), '["own", "swap-class", "model"]')
    run_tiny(tmp_path, text)
    found = {r.null: r.true_class_probability for r in load(tmp_path / "run").select(protocol="roar", trial=0)}
    assert found["own"] == found["model"] != found["swap-class"]


def test_the_other_trial_is_another_one_however_many_there_are() -> None:
    assert [explained_trial(trial, "model") for trial in range(4)] == [1, 0, 1, 2]
    for trial in range(5):
        others = [explained_trial(trial, null) for null in ("model", "model-2", "model-3", "model-4")]
        assert sorted([trial, *others]) == [0, 1, 2, 3, 4]


def test_models_are_all_ordered_pairs_of_trials() -> None:
    text = TEXT.replace("trials = 2", "trials = 3").replace('"model"', '"models"')
    cells = [c for c in grid_cells(parse_config(text)) if c.protocol == "road" and c.estimator == "grad^2"]
    pairs = {(c.trial, explained_trial(c.trial, c.null)) for c in cells if c.null.startswith("model")}
    assert pairs == {(a, b) for a in range(3) for b in range(3) if a != b}


def test_the_report_takes_the_mean_over_other_models(tmp_path: Path) -> None:
    text = TEXT.replace("trials = 2", "trials = 3").replace(
        str(list(NULLS)).replace("'", '"'), '["own", "swap", "models"]'
    )
    text = text.replace('["road", "no-retrain"]', '["road"]').replace(
        '["grad^2", "sobel", "rand", "block"]', '["grad^2", "sobel"]'
    )
    run_tiny(tmp_path, text)
    results = load(tmp_path / "run")
    files = RunFolder(tmp_path / "run")
    for answers in ([], stored_answers(results, files, lambda _: True)):
        (one, *_) = study_parts(results, answers)
        for estimator in ("grad^2", "sobel"):
            row = one.rows[estimator, "plain"]
            chosen = {"protocol": "road", "order": one.order, "estimator": estimator, "postprocess": "plain"}
            own = np.mean([r.accuracy for r in results.select(null="own", **chosen)])
            other = [np.mean([r.accuracy for r in results.select(null=n, **chosen)]) for n in ("model", "model-2")]
            assert row.model.value == pytest.approx(np.mean(other) - own, abs=1e-9)
        assert one.rows["sobel", "plain"].model.value == 0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"roll"', '"rol"', r"grid\.0\.null\.3 \(line \d+\): must be one of own.* got 'rol'; did you mean 'roll'\?"),
        ('"roll"', '"swap"', r"grid\.0\.null \(line \d+\): 'swap' is there twice"),
        ("null = ", "nul = ", r"grid\.0\.nul \(line \d+\): there is no such key; did you mean 'null'\?"),
        ("trials = 2", "trials = 1", r"grid\.0\.null.*'model' .* needs trials = 2 or more, got 1"),
        ('"model"', '"model-2"', r"grid\.0\.null.*'model-2' .* needs trials = 3 or more, got 2"),
        ('"model"', '"model-0"', r"grid\.0\.null.*must be one of own.*model-2.* got 'model-0'"),
    ],
)
def test_bad_input_is_named(old: str, new: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(TEXT.replace(old, new))


def test_cells_of_one_null_can_be_run_alone() -> None:
    from roarfast.study.grid import filter_cells

    cells = filter_cells(grid_cells(parse_config(TEXT)), "null=swap,protocol=road")
    assert {c.null for c in cells} == {"swap"}
