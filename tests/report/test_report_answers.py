"""What base models answered to single images: the report's numbers over images agree with those of the records."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from helpers.study_helpers import run_tiny, tiny

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from scipy import stats as scipy_stats

from roarfast.metrics.responses import Responses
from roarfast.report import build
from roarfast.report.answers import Answers, class_table, of_panel, random_over_images, stored_answers
from roarfast.report.grid import CellKey, Panel, panels
from roarfast.report.parts import parts_rows, study_parts
from roarfast.report.score_curves import agreement_matrix, curve_score_table, curve_scores
from roarfast.report.scores import areas, scores
from roarfast.report.summary import scored_panels
from roarfast.study import Study
from roarfast.study.results import StudyResults
from roarfast.study.runfolder import RunFolder

TEXT = (
    tiny(protocols=["no-retrain", "deletion", "insertion"], estimators=["grad^2", "rand"])
    + """
[[grid]]
protocols = ["road"]
orders = ["morf"]
estimators = ["grad^2", "rand"]
postprocess = ["plain", "max(3)"]
drops = [0.3, 0.5]
null = ["own", "swap", "model"]
trials = 2
"""
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    folder = tmp_path_factory.mktemp("answers")
    run_tiny(folder, TEXT)
    return RunFolder(folder / "run")


@pytest.fixture(scope="module")
def results(run: RunFolder) -> StudyResults:
    return Study.from_toml(run.config, run.path).results


@pytest.fixture(scope="module")
def answers(run: RunFolder, results: StudyResults) -> list[Answers]:
    return stored_answers(results, run, lambda curve: True)


@pytest.fixture(scope="module")
def road(results: StudyResults) -> Panel:
    return next(p for p in panels(results) if p.protocol == "road")


def test_every_curve_has_its_answers(results: StudyResults, answers: list[Answers]) -> None:
    assert len(answers) == len(results.curves) > 10
    assert stored_answers(results, RunFolder("nowhere"), lambda curve: True) == []


def test_difference_to_random_pixels_over_images_is_that_of_the_records(answers: list[Answers], road: Panel) -> None:
    found = random_over_images(answers, road)
    assert set(found) == {("grad^2", "plain"), ("grad^2", "max(3)")}
    for key, estimate in found.items():
        mine, random = areas(road, *key), areas(road, "rand", "plain")
        assert estimate.value == pytest.approx(np.mean([mine[t] - random[t] for t in (0, 1)]))
        assert estimate.low <= estimate.value <= estimate.high
    score = next(s for s in scores(road, images=found) if s.estimator == "grad^2")
    assert score.over_images == found["grad^2", score.postprocess]


def test_parts_over_images_are_those_of_the_records(results: StudyResults, answers: list[Answers]) -> None:
    (over_trials,), (over_images,) = study_parts(results), study_parts(results, answers)
    assert over_images.images == 40 and over_images.over == "test images" and over_trials.over == "trials"
    assert over_images.rates == over_trials.rates == 2 and over_images.trials == over_trials.trials == 2
    for key, row in over_images.rows.items():
        for part in ("damage", "shape", "image", "model"):
            value, other = getattr(row, part), getattr(over_trials.rows[key], part)
            assert value.value == pytest.approx(other.value) and value.low <= value.value <= value.high
            assert (row.over_trials[part].low, row.over_trials[part].high) == pytest.approx(
                (other.low, other.high), nan_ok=True
            )
    random = over_images.rows["rand", "plain"]
    assert random.model.value == 0 and random.p == 1, "random pixels know nothing of the model, to the bit"
    rows = parts_rows([over_images])
    assert all(r["shape"] + r["image"] + r["model"] == pytest.approx(r["damage"]) for r in rows)


def test_a_missing_file_leaves_the_intervals_over_trials(results: StudyResults, answers: list[Answers]) -> None:
    fewer = [a for a in answers if a.curve.null != "model" or a.curve.trial]
    (found,) = study_parts(results, fewer)
    assert found.over == "trials" and len(found.rows) == 3


def test_accuracy_per_class_sums_up_to_the_accuracy(answers: list[Answers], road: Panel) -> None:
    found = class_table(answers, road, ["zero", "one"])
    assert found is not None and found.columns[1:4] == ["zero", "one", "class 2"]
    labels = answers[0].responses.labels
    share = np.bincount(labels, minlength=10) / len(labels)
    row = next(r for r in found.rows if r[0].text == "grad²")
    values = np.array([float(c.sort) for c in row[1:]])  # type: ignore[arg-type]
    expected = np.mean([road.cells[CellKey("grad^2", "plain", t)].accuracy().mean for t in road.main_drops])
    assert np.nansum(values * share) == pytest.approx(expected)
    assert class_table([], road, []) is None


def test_panel_takes_only_its_own_masks(answers: list[Answers], road: Panel) -> None:
    mine = of_panel(answers, road)
    assert {a.curve.null for found in mine.values() for a in found} == {"own"} and len(mine["grad^2", "plain"]) == 2


def test_scores_of_curves_and_their_agreement(results: StudyResults) -> None:
    found = curve_scores(results)
    assert [one.protocol.name for one in found] == ["road", "no-retrain", "deletion", "insertion"]
    deletion = next(one for one in found if one.protocol.name == "deletion")
    stored = [
        c.score for c in results.curves if (c.protocol, c.estimator, c.postprocess) == ("deletion", "grad^2", "plain")
    ]
    assert deletion.better == "lower" and deletion.maps["grad^2", "plain"].mean == pytest.approx(stored[0])
    shown = curve_score_table(found)
    assert [n for _, n in shown.groups] == [2] * (1 + len(found)) and len(shown.rows) == 3
    matrix = agreement_matrix(found, scored_panels(panels(results)))
    assert matrix is not None and len(matrix.rows) == len(found) and matrix.rows[0][1].text == "–", (
        "two maps are no order"
    )


def test_agreement_is_kendalls_tau_with_better_up() -> None:
    from roarfast.report.score_curves import CurveScore
    from roarfast.report.stats import mean_interval
    from roarfast.study.protocols import find

    maps = [(f"m{i}", "plain") for i in range(5)]
    a, b = [0.1, 0.2, 0.3, 0.4, 0.5], [0.5, 0.3, 0.4, 0.2, 0.1]
    found = [
        CurveScore(find(name), "morf", {m: mean_interval([v]) for m, v in zip(maps, values)})
        for name, values in (("deletion", a), ("insertion", b))
    ]
    matrix = agreement_matrix(found, [])
    assert matrix is not None
    tau = scipy_stats.kendalltau(-np.array(a), b).statistic  # lower is better for deletion, higher for insertion
    assert matrix.rows[0][2].sort == pytest.approx(tau) and matrix.rows[0][1].sort == pytest.approx(1)


def test_the_page_shows_them(run: RunFolder, results: StudyResults, tmp_path: Path) -> None:
    text = " ".join(build(run.path, tmp_path, results).read_text().split())
    for phrase in (
        "Scores without retraining",
        "Accuracy per class",
        "Bits left",
        "Which scores agree?",
        "one-sided test over images",
    ):
        assert phrase in text, phrase
    assert {"score-curves.svg", "overview-bits.png"} <= {p.name for p in (tmp_path / "figures").iterdir()}


def test_a_damaged_file_is_left_out(run: RunFolder, results: StudyResults, tmp_path: Path) -> None:
    curve = results.curves[0]
    (tmp_path / "responses").mkdir()
    content = bytearray(run.responses(curve.key).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "responses" / f"{curve.key}.npz").write_bytes(content)
    assert stored_answers(results, RunFolder(tmp_path), lambda c: c.key == curve.key) == []
    assert isinstance(Responses.load(run.responses(curve.key)), Responses)
    assert math.isfinite(curve.score or 0.0)
