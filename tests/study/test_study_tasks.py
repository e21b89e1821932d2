"""Tasks: records in the process, JSON between processes, and curves as units."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.study_helpers import TINY
from helpers.study_identity import IDENTITY

pytest.importorskip("torch")

from roarfast.study.config import parse_config
from roarfast.study.grid import grid_cells
from roarfast.study.plan import build_plan
from roarfast.study.runfolder import RunFolder
from roarfast.study.tasks import CellsTask, Damage, MapsTask, Outcome, decode, decode_outcome, encode, encode_outcome

CONFIG = parse_config(TINY)


def test_every_task_survives_the_way_to_a_worker() -> None:
    tasks = build_plan(CONFIG, IDENTITY, grid_cells(CONFIG)).tasks
    assert {task.kind for task in tasks.values()} == {"base", "maps", "codes", "cell", "curve", "examples"}
    for task in tasks.values():
        assert decode(json.loads(json.dumps(encode(task)))) == task


def test_outcomes_survive_the_way_back() -> None:
    outcome = Outcome({"k": {"accuracy": 0.1 + 0.2, "x": None}}, {"a": [1]}, {"training": 1 / 3}, ["note"], 2.5)
    assert decode_outcome(json.loads(json.dumps(encode_outcome(outcome)))) == outcome
    damaged = Outcome(damage=Damage("maps", base="b", estimator="grad"))
    assert decode_outcome(encode_outcome(damaged)) == damaged


def test_the_rates_of_a_curve_are_one_task() -> None:
    grid = grid_cells(CONFIG)
    plan = build_plan(CONFIG, IDENTITY, grid)
    tasks = [t for t in plan.tasks.values() if isinstance(t, CellsTask) and t.cell.protocol == "road"]
    assert {task.kind for task in tasks} == {"curve"}
    keys = [key for task in tasks for key in task.finishes]
    assert sorted(keys) == sorted(key for key, cell in plan.cells.items() if cell.protocol == "road")
    for task in tasks:
        assert [cell.drop for cell in task.cells.values()] == [0.3, 0.5]
        assert len({(c.estimator, c.postprocess, c.order, c.trial) for c in task.cells.values()}) == 1
        assert decode(encode(task)) == task
    done = set(tasks[0].finishes[:1])
    assert tasks[0].is_wanted(done) and not tasks[0].is_finished(done, ()) and not tasks[0].is_wanted(tasks[0].finishes)


def test_maps_are_made_only_for_the_splits_that_some_cell_needs(tmp_path: Path) -> None:
    for protocols, splits in (('["road"]', ("test",)), ('["roar", "road"]', ("train", "test"))):
        config = parse_config(TINY.replace('["roar", "road"]', protocols))
        plan = build_plan(config, IDENTITY, grid_cells(config))
        maps = [task for task in plan.tasks.values() if isinstance(task, MapsTask)]
        assert maps and all(task.splits == splits for task in maps)
        assert not maps[0].is_present(RunFolder(tmp_path))
