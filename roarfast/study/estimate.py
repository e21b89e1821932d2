"""`--dry-run`: what a run would do, and about how long it would take."""

from __future__ import annotations

from typing import Any

from roarfast.study.config import StudyConfig
from roarfast.study.plan import Plan, Task
from roarfast.study.progress import duration
from roarfast.study.protocol import find


def task_seconds(task: Task, pace: dict[str, Any]) -> float:
    """The time of a task at the pace a calibration measured (seconds per image and pass)."""
    train, test = pace["train_images"], pace["test_images"]
    training = pace["train"] * train * pace["epochs"] + pace["evaluate"] * test
    if task.kind == "base":
        return float(training)
    if task.kind == "maps":
        return float(pace["passes"](task.spec["estimators"]) * pace["gradient"] * (train + test))
    if task.kind == "codes":
        return float(pace["codes"] * (train + test))
    if task.kind == "examples":
        return 0.5
    protocol = find(task.spec["cell"]["protocol"])
    seconds = training if protocol.trains else pace["evaluate"] * test
    if protocol.imputes:
        seconds += pace["impute"] * (train + test if protocol.trains else test)
    return float(seconds)


def describe(config: StudyConfig, plan: Plan, left: dict[str, Task], pace: dict[str, Any] | None, workers: int) -> str:
    """The tasks by kind with their share of the time, and the total."""
    lines = [f"{config.name}: {len(plan.cells)} cells in the grid"]
    kinds = {
        "base": "base models, one per trial",
        "maps": "passes for maps: estimators that share passes are computed together",
        "codes": "rank codes, one per (estimator, post-processing, trial), for all drop rates and protocols",
        "examples": "example strips",
    }
    counts: dict[str, list[Task]] = {}
    for task in plan.tasks.values():
        counts.setdefault(task.cost_class, []).append(task)
    order = sorted(counts, key=lambda name: list(kinds).index(name) if name in kinds else len(kinds))
    for name in order:
        tasks = counts[name]
        open_tasks = [task for task in tasks if task.key in left]
        what = kinds.get(name) or ("cells, retrained" if find(name).trains else "cells on the base model")
        line = f"  {name:<13}{len(tasks):>5}  {what}"
        if len(open_tasks) < len(tasks):
            line += f" ({len(tasks) - len(open_tasks)} done)"
        if pace is not None and open_tasks:
            line += f": about {duration(sum(task_seconds(task, pace) for task in open_tasks))}"
        lines.append(line)
    if pace is not None:
        total = sum(task_seconds(task, pace) for task in left.values()) / workers
        lines.append(f"  about {duration(total)} with {workers} worker{'s' * (workers != 1)}, from a short calibration")
    return "\n".join(lines)


def list_cells(plan: Plan, left: dict[str, Task]) -> str:
    """One line per cell: key, label, and whether it is done."""
    lines = []
    for key, cell in plan.cells.items():
        if key in plan.tasks:
            lines.append(f"  {key[:12]}  {cell.label}{'' if key in left else '  (done)'}")
    return "\n".join(lines)
