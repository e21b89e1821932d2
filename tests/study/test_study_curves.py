"""Curves: protocols without retraining through `roarfast.metrics.respond`, one task and one file each."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.study_helpers import TINY, outcome, run_tiny, tiny, write_tiny

torch = pytest.importorskip("torch")

import roarfast as rf
from roarfast._temperature import TEMPERATURES
from roarfast.data.device import Transform
from roarfast.metrics.engine import respond
from roarfast.metrics.perturbation import Perturbation
from roarfast.metrics.responses import Responses
from roarfast.metrics.scores.soundness import soundness_of
from roarfast.study import Study, load
from roarfast.study.cells import fill_split, fill_value, impute_split
from roarfast.study.config import ConfigError, parse_config
from roarfast.study.curve_scores import cross_entropy
from roarfast.study.curves import AsTested, CurveWork
from roarfast.study.grid import grid_cells
from roarfast.study.protocols import PROTOCOLS
from roarfast.study.results import curve_scores
from roarfast.study.runfolder import RunFolder
from roarfast.study.tasks import CellsTask
from roarfast.study.work import Clock, Work
from roarfast.train import evaluate

SCORES = ("deletion", "insertion", "flip", "completeness", "soundness")
TEXT = (
    tiny(
        protocols=["road", "no-retrain", "deletion", "insertion", "flip"],
        estimators=["grad^2", "rand", "block"],
        postprocess=["plain"],
        examples="2\nkeep_codes = true",
    )
    + """
[[grid]]
protocols = ["completeness", "soundness"]
estimators = ["grad^2", "rand", "block"]
[[grid]]
protocols = ["deletion"]
estimators = ["grad^2"]
drops = [0.3]
null = ["swap"]
"""
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("curves")
    run_tiny(folder, TEXT)
    return folder


@pytest.fixture(scope="module")
def tasks(finished: Path) -> dict[tuple[str, str, str, str], CurveWork]:
    """(protocol, estimator, order, null) → its curve, as a worker has it."""
    study = Study.from_toml(finished / "study.toml", finished / "run")
    work = Work(study.config, RunFolder(finished / "run"), "cpu", 1)
    return {
        (t.cell.protocol, t.cell.estimator, t.cell.order, t.cell.null): CurveWork(work, t, Clock(), print)
        for t in study.setup("cpu", 1).plan.tasks.values()
        if isinstance(t, CellsTask)
    }


def stored(cell: CurveWork, suffix: str = "") -> Responses:
    return Responses.load(cell.work.folder.responses(cell.task.key + suffix))


def test_a_curve_is_one_file_and_a_cell_per_rate(finished: Path, tasks: dict[tuple[str, ...], CurveWork]) -> None:
    found = load(finished / "run")
    assert {r.status for r in found} == {"done"}
    files = {path.name for path in (finished / "run" / "responses").iterdir()}
    matched = {f"{c.task.key}-matched.npz" for c in tasks.values() if c.cell.protocol == "completeness"}
    assert files == {f"{c.task.key}.npz" for c in tasks.values()} | matched
    assert len(found.select(protocol="soundness", estimator="grad^2")) == 97
    assert len(found.select(protocol="completeness", estimator="rand")) == 9
    assert not found.select(protocol="soundness", estimator="block"), "a block has no values"
    for cell in tasks.values():
        answers = stored(cell)
        for (key, one), correct in zip(cell.task.cells.items(), answers.correct):
            (record,) = [r for r in found if r.key == key]
            assert (record.drop, record.accuracy) == (one.drop, correct.mean())


@pytest.mark.parametrize("estimator", ["grad^2", "rand", "block"])
@pytest.mark.parametrize("protocol", ["road", "no-retrain"])
def test_the_engine_gives_the_accuracies_of_the_pass_inside_training(
    tasks: dict[tuple[str, ...], CurveWork], protocol: str, estimator: str
) -> None:
    """What these cells were before they were curves: images modified as a whole, then `evaluate`."""
    cell = tasks[protocol, estimator, "morf", "own"]
    w, answers = cell.work, stored(tasks[protocol, estimator, "morf", "own"])
    for j, one in enumerate(cell.task.cells.values()):
        codes, index = w.codes(cell.task, one, "test")
        other = (
            impute_split(w, one, cell.task.codes.drops, "test", codes, index, Clock(), print)
            if protocol == "road"
            else fill_split(w, "test", Clock())
        )
        data = w.trainer.whole.test.with_codes(codes, other)
        fill = None if protocol == "road" else fill_value(w)
        transform = Transform(mean=w.train.mean, std=w.train.std, rate_index=index, fill=fill, out_layout="NHWC")
        expected = evaluate(cell.base_model, data, transform)
        assert answers.correct[j].mean() == expected.accuracy
        assert answers.probability[j].mean(dtype=float) == pytest.approx(expected.true_class_probability, rel=1e-5)
        assert cross_entropy(answers.probability[j]) == pytest.approx(expected.loss, rel=1e-5)


def test_codes_of_a_curve_are_those_of_its_rates_alone(tasks: dict[tuple[str, ...], CurveWork]) -> None:
    cell = tasks["deletion", "grad^2", "morf", "own"]
    assert set(cell.task.codes.drops) > {0.3, 0.5}, "soundness shares the codes, with more rates"
    codes, _ = cell.codes("test")
    few = cell.curve_codes()
    for j, rate in enumerate((0.3, 0.5)):
        np.testing.assert_array_equal(few <= j, codes <= cell.task.codes.drops.index(rate))


def test_null_masks_of_a_curve_are_moved(tasks: dict[tuple[str, ...], CurveWork]) -> None:
    own, moved = (tasks["deletion", "grad^2", "morf", null].curve_codes() for null in ("own", "swap"))
    assert not np.array_equal(own <= 0, moved <= 0) and (own <= 0).sum() == (moved <= 0).sum()


def test_scores_are_those_of_the_metrics(finished: Path, tasks: dict[tuple[str, ...], CurveWork]) -> None:
    curves = {(c.protocol, c.estimator, c.order, c.null): c for c in load(finished / "run").curves}
    for (protocol, estimator, order, null), cell in tasks.items():
        curve, answers = curves[protocol, estimator, order, null], stored(cell)
        assert curve.rates == tuple(answers.rates)
        if protocol in ("deletion", "insertion"):
            assert curve.score == answers.area("probability")
        elif protocol == "flip":
            assert curve.score == answers.area("logit") and answers.perturbation.fill == "zero"
        elif protocol in ("road", "no-retrain"):
            assert curve.score == pytest.approx(answers.correct.mean())
        elif protocol == "completeness":
            assert answers.perturbation.rule == "value"
            lost = answers.whole.correct.mean() - answers.correct.mean(1)
            assert curve.score == pytest.approx(lost.mean())
            other = stored(cell, "-matched")
            np.testing.assert_allclose(other.removed, answers.removed)
            assert curve.details["excess"] == pytest.approx((other.correct.mean(1) - answers.correct.mean(1)).mean())
        else:
            mass = np.asarray(rf.code_sums(cell.attribution(), cell.curve_codes(), 98))
            aim = curve.details["level"]
            np.testing.assert_equal(curve.score or np.nan, soundness_of(answers, mass).at([aim])[0])


def test_insertion_keeps_and_asks_for_the_predicted_class(tasks: dict[tuple[str, ...], CurveWork]) -> None:
    cell = tasks["insertion", "grad^2", "morf", "own"]
    answers = stored(cell)
    assert answers.perturbation.keep and answers.perturbation.fill == "blur"
    np.testing.assert_array_equal(answers.scored, answers.whole.prediction)
    np.testing.assert_allclose(answers.removed.mean(1), [0.7, 0.5], atol=0.01)


def test_every_record_has_its_cross_entropy(finished: Path) -> None:
    for record in load(finished / "run"):
        assert record.cross_entropy is not None and record.cross_entropy > 0


def test_every_record_has_its_cross_entropy_after_temperature_scaling(
    finished: Path, tasks: dict[tuple[str, ...], CurveWork]
) -> None:
    for record in load(finished / "run"):
        assert record.extra["temperature"] in TEMPERATURES and record.extra["scaled_cross_entropy"] > 0
    cell = tasks["no-retrain", "grad^2", "morf", "own"]
    w, answers = cell.work, stored(cell)
    assert answers.halves is not None and answers.halves.sum() == len(w.test) // 2
    for j, (key, one) in enumerate(cell.task.cells.items()):
        codes, index = w.codes(cell.task, one, "test")
        transform = Transform(
            mean=w.train.mean, std=w.train.std, rate_index=index, fill=fill_value(w), out_layout="NHWC"
        )
        data = w.trainer.whole.test.with_codes(codes)
        expected = evaluate(cell.base_model, data, transform, halves=answers.halves).scaled
        (record,) = [r for r in load(finished / "run") if r.key == key]
        assert expected is not None and record.extra["temperature"] == expected.temperature
        assert record.extra["scaled_cross_entropy"] == pytest.approx(expected.cross_entropy, rel=1e-5), j


def test_a_base_model_is_cropped_in_the_middle_as_in_training(tasks: dict[tuple[str, ...], CurveWork]) -> None:
    cell = tasks["road", "rand", "morf", "own"]
    x = torch.randn(4, 3, 32, 32)
    cropped = AsTested(cell.base_model, 24, "float32", "NHWC")(x)
    torch.testing.assert_close(cropped, cell.base_model(x[:, :, 4:28, 4:28]))
    assert cell.tested is cell.tested
    assert next(cell.base_model.parameters()).is_contiguous(), "the model that is explained stays as it was loaded"


def test_more_rates_later_keep_what_is_there(finished: Path, tmp_path: Path) -> None:
    text = TEXT.replace('"no-retrain", "deletion", "insertion", "flip"', '"deletion"').split(
        '[[grid]]\nprotocols = ["comp'
    )[0]
    config = write_tiny(tmp_path, text)
    Study.from_toml(config, tmp_path / "run").run(workers=1)
    before = {r.key: r for r in load(tmp_path / "run")}
    grown = write_tiny(tmp_path, text.replace("[0.3, 0.5]", "[0.2, 0.3, 0.5]"))
    assert Study.from_toml(grown, tmp_path / "run").run(workers=1).failed == []
    after = {r.key: r for r in load(tmp_path / "run")}
    assert {key: after[key] for key in before} == before and {r.drop for r in after.values()} == {0.0, 0.2, 0.3, 0.5}
    curves = load(tmp_path / "run").curves
    assert all(c.rates == (0.2, 0.3, 0.5) for c in curves), "a curve that another one contains is not listed"


@pytest.mark.parametrize("way", ["cut", "flip a byte", "of something else"])
def test_a_damaged_file_of_responses_is_made_again(finished: Path, tmp_path: Path, way: str) -> None:
    import shutil

    folder = Path(shutil.copytree(finished, tmp_path / "copy"))
    with sqlite3.connect(folder / "run" / "results.sqlite") as database:
        database.execute("DELETE FROM cells WHERE protocol = 'deletion' AND estimator = 'rand'")
    study = Study.from_toml(folder / "study.toml", folder / "run")
    (task,) = [
        t
        for t in study.setup("cpu", 1).plan.tasks.values()
        if isinstance(t, CellsTask) and (t.cell.protocol, t.cell.estimator) == ("deletion", "rand")
    ]
    path = RunFolder(folder / "run").responses(task.key)
    expected = path.read_bytes()
    if way == "cut":
        path.write_bytes(expected[: len(expected) // 2])
    elif way == "flip a byte":
        path.write_bytes(expected[:1000] + bytes([expected[1000] ^ 1]) + expected[1001:])
    else:
        net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
        respond(
            net,
            np.zeros((2, 2, 2, 3), np.uint8),
            np.ones((2, 2, 2)),
            labels=[0, 1],
            perturbation=Perturbation(),
            file=tmp_path / "x.npz",
        )
        shutil.copy(tmp_path / "x.npz", path)
    assert study.run(workers=1).failed == []
    assert outcome(folder / "run") == outcome(finished / "run") and path.read_bytes() == expected


def test_two_workers_find_the_same(finished: Path, tmp_path: Path) -> None:
    assert Study.from_toml(write_tiny(tmp_path, TEXT), tmp_path / "run").run(workers=2).failed == []
    assert outcome(tmp_path / "run") == outcome(finished / "run")


def test_rates_of_its_own(tmp_path: Path) -> None:
    config = parse_config(
        TINY.replace("drops = [0.3, 0.5]", "").replace('["roar", "road"]', '["deletion", "soundness"]')
    )
    cells = grid_cells(config)
    assert {c.drop for c in cells if c.protocol == "deletion"} == set(PROTOCOLS["deletion"].rates)
    assert {c.order for c in cells if c.protocol == "soundness"} == {"lerf"}
    with pytest.raises(ConfigError, match="drops is missing: roar has no rates of its own"):
        parse_config(TINY.replace("drops = [0.3, 0.5]", ""))
    with pytest.raises(ConfigError, match="soundness need the values of maps, and block has none"):
        parse_config(
            TINY.replace('["roar", "road"]', '["soundness"]').replace(
                '["grad^2", "sg-sq", "rand", "block"]', '["block"]'
            )
        )


def test_which_way_a_score_is_better() -> None:
    assert [PROTOCOLS[name].better_score("morf") for name in SCORES[:4]] == ["lower", "higher", "lower", "higher"]
    assert PROTOCOLS["soundness"].better_score("lerf") == "higher"
    assert PROTOCOLS["deletion"].better_score("lerf") == PROTOCOLS["road"].better_score("lerf") == "higher"


def test_scores_of_curves_by_protocol(finished: Path) -> None:
    results = load(finished / "run")
    table = curve_scores(results)
    assert set(table) >= {"deletion morf", "insertion morf", "road lerf", "soundness lerf"}
    (deletion,) = [c for c in results.curves if (c.protocol, c.estimator, c.null) == ("deletion", "grad^2", "own")]
    assert table["deletion morf"]["grad^2 plain"] == [-deletion.score], "lower is better, so it is turned around"
    (insertion,) = [c for c in results.curves if (c.protocol, c.estimator) == ("insertion", "rand")]
    assert table["insertion morf"]["rand plain"] == [insertion.score]


@pytest.mark.slow
def test_twenty_kills_leave_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "helpers" / "kill_study.py"
    arguments = [sys.executable, str(script), str(write_tiny(tmp_path, TEXT)), str(tmp_path / "run"), "20", "0", "4"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 10, "most kills came after the end"
    assert outcome(tmp_path / "run") == outcome(finished / "run")
    for path in (finished / "run" / "responses").glob("*.npz"):
        assert (tmp_path / "run" / "responses" / path.name).read_bytes() == path.read_bytes(), path.name
