"""Cells: the grid, the keys, --only and --shard."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from helpers.study_helpers import TINY
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("pydantic")

from helpers.study_identity import IDENTITY

from roarfast.study.config import parse_config
from roarfast.study.errors import StudyError
from roarfast.study.grid import filter_cells, grid_cells, parse_shard, shard_cells
from roarfast.study.keys import derive_seed, digest
from roarfast.study.plan import build_plan
from roarfast.study.records import Cell

CONFIG = parse_config(TINY.replace("trials = 1", "trials = 2"))
GRID = grid_cells(CONFIG)
ROAR = Cell("roar", "grad^2", "plain", "morf", 0.3, 0)


def test_the_grid_has_every_combination_once_and_baselines_plain_only() -> None:
    assert len(GRID) == len(set(GRID))
    by_protocol = {p: [c for c in GRID if c.protocol == p] for p in ("base", "roar", "road")}
    assert len(by_protocol["base"]) == 2
    assert len(by_protocol["roar"]) == (2 * 2 + 2) * 2 * 2  # (estimators x k + baselines) x drops x trials
    assert len(by_protocol["road"]) == 2 * len(by_protocol["roar"])  # both orders
    assert all(c.postprocess == "plain" for c in GRID if c.estimator in ("rand", "block"))


def test_blocks_that_overlap_do_not_double_cells() -> None:
    block = TINY[TINY.index("[[grid]]") : TINY.index("[run]")]
    assert grid_cells(parse_config(TINY.replace(block, block + block))) == grid_cells(parse_config(TINY))


def test_keys_are_different_for_different_cells() -> None:
    assert len({IDENTITY.key(cell) for cell in GRID}) == len(GRID)


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"train": "x", "test": "b"}},
        {"model": {"name": "resnet8"}},
        {"recipe": {"epochs": 3}},
        {"explain": {"options": {"ig_steps": 3}}},
        {"seed": 1},
        {"numerics": {"device": "cpu", "threads": 2}},
        {"removal": IDENTITY.removal | {"rule": "strict"}},
        {"removal": IDENTITY.removal | {"fill": "zero"}},
    ],
)
def test_keys_change_with_everything_that_defines_a_result(change: dict) -> None:
    assert replace(IDENTITY, **change).key(ROAR) != IDENTITY.key(ROAR)


def test_keys_do_not_change_with_what_does_not_matter() -> None:
    noisier = replace(IDENTITY, removal=IDENTITY.removal | {"noise": 0.5})
    assert noisier.key(ROAR) == IDENTITY.key(ROAR)  # roar imputes nothing
    road = replace(ROAR, protocol="road")
    assert noisier.key(road) != IDENTITY.key(road)
    other_options = replace(IDENTITY, explain={"options": {"ig_steps": 99}})
    rand = replace(ROAR, estimator="rand")
    assert other_options.key(rand) == IDENTITY.key(rand)  # random pixels ask no estimator


def test_the_key_of_a_cell_is_pinned() -> None:
    """If this fails, old results are no longer found: raise RESULT_VERSION only when results really change."""
    assert IDENTITY.key(ROAR) == "a5cb7c919668010568a3fcd526ef0630"
    assert digest({"a": [1, 0.1, "x", None]}) == "7fadd71a4d75b443bb3c5cbc6b344e1c"


@given(st.integers(0, 2**31 - 1), st.integers(0, 100))
def test_seeds_fit_and_differ_by_use(seed: int, trial: int) -> None:
    values = {derive_seed(seed, use, trial) for use in ("base", "retrain", "explain")}
    assert len(values) == 3
    assert all(0 <= value < 2**31 for value in values)


def test_only_selects_and_teaches() -> None:
    chosen = filter_cells(GRID, "estimator=SG-SQ,drop=0.3,protocol=roar")
    assert {(c.estimator, c.drop, c.protocol) for c in chosen} == {("sg-sq", 0.3, "roar")}
    either = filter_cells(GRID, "drop=0.3,drop=0.5,estimator=rand,protocol=roar,trial=1")
    assert [(c.drop, c.trial) for c in either] == [(0.3, 1), (0.5, 1)]
    for text, message in [
        ("estimater=rand", "did you mean 'estimator'"),
        ("drop=0.4", "no cell of this study has drop=0.4"),
        ("drop", "field=value"),
        ("estimator=vg", "no cell of this study has estimator=vg"),
        ("estimator=rand,postprocess=max(3)", "as a whole"),
    ]:
        with pytest.raises(StudyError, match=message.replace("(", r"\(")):
            filter_cells(GRID, text)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 50])
def test_shards_are_a_partition(count: int) -> None:
    parts = [[c for c in shard_cells(GRID, i + 1, count) if c.protocol != "base"] for i in range(count)]
    together = [cell for part in parts for cell in part]
    assert sorted(map(repr, together)) == sorted(repr(c) for c in GRID if c.protocol != "base")
    if count == 2:  # one trial each: no base model is trained twice
        assert [{c.trial for c in part} for part in parts] == [{0}, {1}]


@pytest.mark.parametrize("text", ["3/2", "0/2", "a/b", "2"])
def test_bad_shards(text: str) -> None:
    with pytest.raises(StudyError, match="--shard"):
        parse_shard(text)


def test_shared_work_is_planned_once() -> None:
    plan = build_plan(CONFIG, IDENTITY, GRID)
    counts = Counter(task.cost_class for task in plan.tasks.values())
    assert counts["base"] == 2
    assert counts["maps"] == 4  # {clean: grad^2} and {noisy: sg-sq}, per trial
    assert counts["codes"] == (2 * 2 + 2) * 2  # (estimators x k + baselines) x trials, for all drops and protocols
    assert counts["roar"] + 2 * counts["road"] + counts["base"] == len(GRID)  # both rates of a road curve are one task
    for task in plan.tasks.values():
        assert all(needed in plan.tasks for needed in task.needs)


def test_a_part_of_the_grid_needs_a_part_of_the_work() -> None:
    plan = build_plan(CONFIG, IDENTITY, GRID, filter_cells(GRID, "estimator=rand,protocol=roar,trial=0"))
    assert {task.kind for task in plan.tasks.values()} == {"codes", "cell", "examples"}  # no model, no maps
    left = plan.needed(done=set(plan.tasks), finished_work=set(plan.tasks))
    assert left == {}
