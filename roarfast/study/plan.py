"""From cells to tasks: shared work once, in an order that lets cells start early."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from roarfast.study.config import BASELINES, StudyConfig
from roarfast.study.grid import Cell, other_trial
from roarfast.study.identity import Identity
from roarfast.study.keys import digest
from roarfast.study.protocol import find
from roarfast.study.records import NO_ESTIMATOR


@dataclass(frozen=True)
class Task:
    """One unit of work for a worker.

    Attributes:
        key: Hash of what it makes; a cell's task has the key of the cell.
        kind: `base`, `maps`, `codes`, `examples` or `cell`.
        label: For people.
        needs: Keys of the tasks that come first.
        spec: What to do, as JSON.
        rank: Ready tasks with a smaller rank go first.
    """

    key: str
    kind: str
    label: str
    needs: tuple[str, ...]
    spec: dict[str, Any]
    rank: tuple[int, ...] = field(default=(9,), compare=False)

    @property
    def cost_class(self) -> str:
        """Tasks of one class take about the same time: what the ETA counts in."""
        return str(self.spec["cell"]["protocol"]) if self.kind == "cell" else self.kind


@dataclass(frozen=True)
class Plan:
    """All tasks of the chosen cells, and the cells with their keys (all of the grid)."""

    tasks: dict[str, Task]
    cells: dict[str, Cell]

    def needed(self, done: Collection[str], finished_work: Collection[str]) -> dict[str, Task]:
        """The tasks that are left: open cells and what they need, as far as it is not there."""
        left: dict[str, Task] = {}

        def visit(key: str) -> None:
            if key in left or key in finished_work:
                return
            left[key] = self.tasks[key]
            for needed in self.tasks[key].needs:
                visit(needed)

        for key, task in self.tasks.items():
            is_open = key not in done if task.kind in ("cell", "base") else task.kind == "examples"
            if is_open:
                visit(key)
        return left


def build_plan(config: StudyConfig, identity: Identity, grid: list[Cell], chosen: Iterable[Cell] | None = None) -> Plan:
    """The tasks for the chosen cells (default: all) of a grid."""
    chosen = grid if chosen is None else list(chosen)
    keys = {cell: identity.key(cell) for cell in grid}
    tasks: dict[str, Task] = {}
    bases = {cell.trial: keys[cell] for cell in grid if cell.protocol == "base"}
    trial_of = {key: trial for trial, key in bases.items()}
    maps = _map_tasks(config, identity, grid, bases)
    groups = list(dict.fromkeys(_group(c) for c in grid if c.protocol != "base"))
    codes = {group: _codes_task(identity, grid, group, maps, i) for i, group in enumerate(groups)}
    by_key = {task.key: task for task in [*maps.values(), *codes.values()]}

    def add_base(trial: int) -> None:
        cell = Cell("base", NO_ESTIMATOR, "plain", "morf", 0.0, trial)
        tasks[bases[trial]] = Task(bases[trial], "base", cell.label, (), {"cell": asdict(cell)}, (0, trial))

    def add_shared(key: str) -> None:
        for needed in by_key[key].needs:
            if needed in by_key:
                add_shared(needed)
            else:
                add_base(trial_of[needed])
        tasks[key] = by_key[key]

    for cell in chosen:
        if cell.protocol == "base":
            add_base(cell.trial)
            continue
        group = _group(cell)
        add_shared(codes[group].key)
        needs = [codes[group].key]
        protocol = find(cell.protocol)
        if not protocol.trains:
            add_base(cell.trial)
            needs.append(bases[cell.trial])
        spec = {
            "cell": asdict(cell),
            "codes": codes[group].key,
            "drops": codes[group].spec["drops"],
            "base": bases[cell.trial],
        }
        rank = (2, cell.trial, groups.index(group), 1, int(not protocol.trains))
        tasks[keys[cell]] = Task(keys[cell], "cell", cell.label, tuple(needs), spec, rank)
    if config.run.examples:
        _add_examples(config, identity, chosen, codes, tasks)
    return Plan(tasks, {key: cell for cell, key in keys.items()})


Group = tuple[str, str, int, int]
"""Estimator, post-processing, trial, and the trial whose base model was explained (another one for null `model`)."""


def _group(cell: Cell) -> Group:
    """The codes that a cell uses; baselines ask no model, so theirs are the same whoever is explained."""
    foreign = cell.null == "model" and cell.estimator not in BASELINES
    return cell.estimator, cell.postprocess, cell.trial, other_trial(cell.trial) if foreign else cell.trial


def _map_tasks(
    config: StudyConfig, identity: Identity, grid: list[Cell], bases: dict[int, str]
) -> dict[tuple[str, int], Task]:
    """(estimator, trial) → its task; estimators that share passes over the model share a task."""
    outside = {entry.name for entry in config.estimators}
    families: dict[tuple[int, str], list[str]] = {}
    for cell in grid:
        if cell.protocol != "base" and cell.estimator not in BASELINES:
            members = families.setdefault((_group(cell)[3], _family(cell.estimator, outside)), [])
            if cell.estimator not in members:
                members.append(cell.estimator)
    tasks: dict[tuple[str, int], Task] = {}
    for (trial, family), estimators in families.items():
        spec = {
            "trial": trial,
            "estimators": estimators,
            "base": bases[trial],
            "maps": {estimator: digest(identity.maps(estimator, trial)) for estimator in estimators},
        }
        label = f"maps {', '.join(estimators)}, trial {trial}"
        rank = (1, 0 if family != "clean" else 1, trial)  # the long passes first, beside the short ones
        task = Task(digest({"maps": spec["maps"]}), "maps", label, (bases[trial],), spec, rank)
        tasks |= {(estimator, trial): task for estimator in estimators}
    return tasks


def _family(estimator: str, outside: Collection[str]) -> str:
    """Estimators of a family come from the same passes, or cost next to nothing."""
    head = estimator.removesuffix("^2")
    if head in outside:
        return head
    if head.split("(")[0] in ("sg", "sg-sq", "vg"):
        return "noisy" + head[len(head.split("(")[0]) :]
    return "path" if head == "ig" else "clean"


def _codes_task(
    identity: Identity, grid: list[Cell], group: Group, maps: dict[tuple[str, int], Task], index: int
) -> Task:
    estimator, postprocess, trial, explained = group
    members = [c for c in grid if c.protocol != "base" and _group(c) == group]
    source = maps.get((estimator, explained))
    spec = {
        "estimator": estimator,
        "postprocess": postprocess,
        "trial": trial,
        "drops": sorted({c.drop for c in members}),
        "orders": {
            "test": sorted({c.order for c in members}),
            "train": sorted({c.order for c in members if find(c.protocol).trains}),
        },
        "map": source.spec["maps"][estimator] if source else None,
        "base": source.spec["base"] if source else None,
    }
    definition = identity.codes(estimator, postprocess, trial) | {"drops": spec["drops"], "orders": spec["orders"]}
    label = f"codes {estimator} {postprocess}, trial {trial}"
    if explained != trial:  # the seed of ties stays that of the trial: only the model is another one
        definition["explained"] = explained
        label += f", maps of trial {explained}"
    needs = (source.key,) if source else ()
    return Task(digest(definition), "codes", label, needs, spec, (2, trial, index, 0))


def _add_examples(
    config: StudyConfig,
    identity: Identity,
    chosen: list[Cell],
    codes: dict[Group, Task],
    tasks: dict[str, Task],
) -> None:
    """A strip of example images per estimator, of the first trial."""
    estimators = dict.fromkeys(c.estimator for c in chosen if c.protocol != "base" and c.trial == 0)
    for estimator in estimators:
        groups = [g for g in codes if g[0] == estimator and g[2] == g[3] == 0 and codes[g].key in tasks]
        if not groups:
            continue
        spec = {
            "estimator": estimator,
            "trial": 0,
            "count": config.run.examples,
            "codes": [{"key": codes[g].key} | codes[g].spec for g in groups],
        }
        definition = {"examples": spec, "fill": identity.removal["fill"]}
        needs = tuple(codes[group].key for group in groups)
        label = f"examples {estimator}"
        task = Task(digest(definition), "examples", label, needs, spec, (2, 0, list(codes).index(groups[-1]), 2))
        tasks[task.key] = task


def bytes_needed(config: StudyConfig, identity: Identity, plan: Plan) -> int:
    """About the disk space that maps and codes take."""
    pixels = sum(identity.data["images"]) * identity.data["shape"][0] * identity.data["shape"][1]
    width = 2 if config.explain.dtype == "float16" else 4
    maps = sum(len(t.spec["estimators"]) for t in plan.tasks.values() if t.kind == "maps")
    codes = sum(
        len(t.spec["drops"]) if t.spec["estimator"] == "block" else 1 for t in plan.tasks.values() if t.kind == "codes"
    )
    kept = codes if config.run.keep_codes else min(codes, 8)
    return int(pixels * (maps * width + kept))
