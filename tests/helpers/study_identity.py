"""What the cells of a study hash, made up: for tests that need keys and no data."""

from __future__ import annotations

from roarfast.study.identity import Identity

IDENTITY = Identity(
    data={"train": "a", "test": "b"},
    model={"name": "convnet"},
    recipe={"epochs": 2},
    explain={"options": {"ig_steps": 2}},
    removal={"rule": "exact", "fill": "mean", "noise": 0.01, "tolerance": 1e-5},
    seed=0,
    numerics={"device": "cpu", "threads": 1},
)
