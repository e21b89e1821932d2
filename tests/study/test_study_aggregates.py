"""`aggregate` of a grid block: signed maps beside absolute ones, from the same passes, under keys of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.study_helpers import run_tiny, tiny, write_tiny

pytest.importorskip("torch")
pytest.importorskip("pydantic")

from roarfast.report import build
from roarfast.study import Study, load
from roarfast.study.config import ConfigError, parse_config
from roarfast.study.grid import filter_cells, grid_cells
from roarfast.study.results import StudyResults
from roarfast.study.runfolder import RunFolder
from roarfast.study.tasks import MapsTask
from roarfast.study.work import Work

PLAIN = tiny(protocols=["no-retrain"], estimators=["grad", "gc", "rand"], postprocess=["plain"])
SIGNED = """\
[[grid]]
protocols = ["no-retrain"]
estimators = ["grad", "grad^2", "rand", "center"]
drops = [0.5]
aggregate = "mean( RAW )"
[run]"""
TEXT = PLAIN.replace("[run]", SIGNED)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("aggregates")
    run_tiny(folder, TEXT)
    return folder


@pytest.fixture(scope="module")
def results(finished: Path) -> StudyResults:
    return load(finished / "run")


def test_cells_are_named_by_their_aggregate(results: StudyResults) -> None:
    """What asks no model has no channels to aggregate: its cells are those of the other block."""
    assert [r.estimator for r in results if r.protocol != "base" and r.drop == 0.5] == [
        "grad",
        "gc",
        "rand",
        "grad@mean(raw)",
        "grad^2@mean(raw)",
        "center",
    ]


def test_other_cells_keep_their_keys(results: StudyResults, tmp_path: Path) -> None:
    without = set(Study(parse_config(PLAIN), tmp_path).setup("cpu", 1).cells)
    assert without < {r.key for r in results}
    same = PLAIN.replace("drops = [0.3, 0.5]", 'drops = [0.3, 0.5]\naggregate = "mean"')  # what the study has
    assert set(Study(parse_config(same), tmp_path).setup("cpu", 1).cells) == without


def test_signed_and_absolute_maps_share_a_pass_and_not_a_file(finished: Path) -> None:
    study = Study.from_toml(finished / "study.toml", finished / "run")
    plan = study.setup("cpu", 1).plan
    (task,) = (t for t in plan.tasks.values() if isinstance(t, MapsTask))
    assert task.estimators == ("grad", "gc", "grad@mean(raw)", "grad^2@mean(raw)")
    work = Work(study.config, RunFolder(finished / "run"), "cpu", 1)
    maps = {name: work.stored_maps(name, task.base, "test")[:] for name in task.estimators}
    assert (maps["grad@mean(raw)"] < 0).any() and (maps["grad"] >= 0).all()
    assert (np.abs(maps["grad@mean(raw)"]) <= maps["grad"] * (1 + 1e-5)).all()


def test_signs_change_what_is_removed(results: StudyResults) -> None:
    signed, absolute = (results.select(estimator=e, drop=0.5)[0] for e in ("grad@mean(raw)", "grad"))
    assert signed.tv_mask != absolute.tv_mask and signed.removed_fraction == absolute.removed_fraction


def test_only_and_the_report_know_the_name(finished: Path, tmp_path: Path) -> None:
    cells = grid_cells(parse_config(TEXT))
    assert len(filter_cells(cells, "estimator=Grad @ mean(raw)")) == 1
    page = Path(build(finished / "run", tmp_path)).read_text()
    assert "grad², mean(raw)" in page and "@" not in page.split("<main")[1].split("Provenance")[0].replace("@media", "")


def test_maps_of_a_user_are_aggregated_by_the_block(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays = {s: rng.normal(size=(n, 3, 32, 32)).astype(np.float32) for s, n in (("train", 60), ("test", 40))}
    np.savez(tmp_path / "mine.npz", **arrays)
    text = PLAIN.replace('["grad", "gc", "rand"]', '["maps:mine.npz"]').replace("examples = 2", "examples = 0")
    text = text.replace("[run]", SIGNED.replace('["grad", "grad^2", "rand", "center"]', '["maps:mine.npz^2"]'))
    study = Study.from_toml(write_tiny(tmp_path, text), tmp_path / "run")
    assert study.run(workers=1).failed == []
    assert [c.estimator for c in study.cells[1:]] == ["mine", "mine", "mine^2@mean(raw)"]
    tasks = study.setup("cpu", 1).plan.tasks.values()
    base = next(t.base for t in tasks if isinstance(t, MapsTask))
    work = Work(study.config, RunFolder(tmp_path / "run"), "cpu", 1)
    np.testing.assert_allclose(
        work.stored_maps("mine^2@mean(raw)", base, "test")[:], arrays["test"].mean(1) ** 2, rtol=1e-4, atol=1e-7
    )
    np.testing.assert_allclose(work.stored_maps("mine", base, "test")[:], np.abs(arrays["test"]).mean(1), rtol=1e-5)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ('"mean(row)"', r"grid\.1\.aggregate .*got 'mean\(row\)'"),
        ('"none(raw)"', r"grid\.1\.aggregate .*keeps the channels apart"),
        ("3", r"grid\.1\.aggregate"),
        ('["mean(raw)"]', r"grid\.1\.aggregate"),
    ],
)
def test_bad_aggregates(value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_config(TEXT.replace('"mean( RAW )"', value))


def test_bad_aggregates_of_the_study_and_of_names() -> None:
    with pytest.raises(ConfigError, match=r"explain\.aggregate") as error:
        parse_config(TEXT.replace("[explain]", '[explain]\naggregate = "sum(row)"'))
    assert len(error.value.problems) == 1
    with pytest.raises(ConfigError, match=r"cannot read estimator 'grad@none'"):
        parse_config(TEXT.replace('"gc"', '"grad@none"'))
