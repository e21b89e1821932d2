"""From cells to tasks: shared work once, in an order that lets cells start early."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from roarfast.study.grid import explained_trial
from roarfast.study.identity import Identity
from roarfast.study.keys import digest
from roarfast.study.names import shared_passes
from roarfast.study.protocols import find
from roarfast.study.records import NO_ESTIMATOR, Cell
from roarfast.study.schema import MODEL_FREE, StudyConfig
from roarfast.study.tasks import BaseTask, CellsTask, CodesTask, ExamplesTask, MapsTask, Task


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
            if task.is_wanted(done):
                visit(key)
        return left


_ANSWER_BYTES = 25  # of an image at a rate, in the file of a curve

Group = tuple[str, str, int, int, str]
"""Estimator, post-processing, trial, the trial whose base model was explained (another one for null `model`), rule."""


def build_plan(config: StudyConfig, identity: Identity, grid: list[Cell], chosen: Iterable[Cell] | None = None) -> Plan:
    """The tasks for the chosen cells (default: all) of a grid."""
    return _Builder(config, identity, grid).plan(grid if chosen is None else list(chosen))


class _Builder:
    """Tasks of one grid; `plan` picks those that some cells need."""

    def __init__(self, config: StudyConfig, identity: Identity, grid: list[Cell]) -> None:
        self.config, self.identity, self.grid = config, identity, grid
        self.keys = {cell: identity.key(cell) for cell in grid}
        self.bases = {cell.trial: self.keys[cell] for cell in grid if cell.protocol == "base"}
        self.trials = {key: trial for trial, key in self.bases.items()}
        self.maps = self._map_tasks()
        groups = list(dict.fromkeys(self._group(c) for c in grid if c.protocol != "base"))
        self.codes = {group: self._codes_task(group, i) for i, group in enumerate(groups)}
        self.positions = {group: i for i, group in enumerate(groups)}
        self.shared: dict[str, Task] = {t.key: t for t in [*self.maps.values(), *self.codes.values()]}
        self.tasks: dict[str, Task] = {}

    def plan(self, chosen: list[Cell]) -> Plan:
        curves: dict[Cell, list[Cell]] = {}
        for cell in chosen:
            if cell.protocol == "base":
                self._add_base(cell.trial)
            elif find(cell.protocol).unit == "curve":
                curves.setdefault(_curve(cell), []).append(cell)
            else:
                self._add_cells([cell])
        for cells in curves.values():
            self._add_cells(sorted(cells, key=lambda cell: cell.drop))
        if self.config.run.examples:
            self._add_examples(chosen)
        return Plan(self.tasks, {key: cell for cell, key in self.keys.items()})

    def _group(self, cell: Cell) -> Group:
        """The codes that a cell uses; baselines and oracles ask no model, so theirs are the same whoever is explained."""
        explained = cell.trial if cell.estimator in MODEL_FREE else explained_trial(cell.trial, cell.null)
        rule = find(cell.protocol).rule or self.identity.removal["rule"]
        return cell.estimator, cell.postprocess, cell.trial, explained, rule

    def _add_base(self, trial: int) -> None:
        cell, key = Cell("base", NO_ESTIMATOR, "plain", "morf", 0.0, trial), self.bases[trial]
        self.tasks[key] = BaseTask(key=key, label=cell.label, rank=(0, trial), cell=cell)

    def _add_shared(self, key: str) -> None:
        for needed in self.shared[key].needs:
            if needed in self.shared:
                self._add_shared(needed)
            else:
                self._add_base(self.trials[needed])
        self.tasks[key] = self.shared[key]

    def _add_cells(self, cells: list[Cell]) -> None:
        """The task of one cell, or of a curve."""
        first, protocol = cells[0], find(cells[0].protocol)
        group, curve = self._group(first), protocol.unit == "curve"
        codes, base = self.codes[group], self.bases[first.trial]
        self._add_shared(codes.key)
        asks_base = not protocol.trains or self.config.train.start == "base"
        if asks_base:
            self._add_base(first.trial)
        keys = [self.keys[cell] for cell in cells]
        task = CellsTask(
            key=digest({"curve": keys}) if curve else keys[0],
            label=f"{first.curve_label}, {len(cells)} rates" if curve else first.label,
            needs=(codes.key, base) if asks_base else (codes.key,),
            rank=(2, first.trial, self.positions[group], 1, int(not protocol.trains)),
            cells=dict(zip(keys, cells)),
            codes=codes,
            base=base,
            kind="curve" if curve else "cell",
        )
        self.tasks[task.key] = task

    def _map_tasks(self) -> dict[tuple[str, int], MapsTask]:
        """(estimator, trial) → its task; estimators that share passes over the model share a task."""
        outside = self.config.own_estimators()
        families: dict[tuple[int, str], dict[str, None]] = {}
        trained: set[tuple[int, str]] = set()
        for cell in self.grid:
            if cell.protocol != "base" and cell.estimator not in MODEL_FREE:
                family = (self._group(cell)[3], shared_passes(cell.estimator, outside))
                families.setdefault(family, {})[cell.estimator] = None
                if find(cell.protocol).trains:
                    trained.add(family)
        tasks: dict[tuple[str, int], MapsTask] = {}
        for (trial, passes), members in families.items():
            keys = {estimator: digest(self.identity.maps(estimator, trial)) for estimator in members}
            task = MapsTask(
                key=digest({"maps": keys}),
                label=f"maps {', '.join(members)}, trial {trial}",
                needs=(self.bases[trial],),
                rank=(1, 0 if passes != "clean" else 1, trial),  # the long passes first, beside the short ones
                trial=trial,
                estimators=tuple(members),
                base=self.bases[trial],
                splits=("train", "test") if (trial, passes) in trained else ("test",),
            )
            tasks |= {(estimator, trial): task for estimator in members}
        return tasks

    def _codes_task(self, group: Group, index: int) -> CodesTask:
        estimator, postprocess, trial, explained, rule = group
        members = [c for c in self.grid if c.protocol != "base" and self._group(c) == group]
        source = self.maps.get((estimator, explained))
        drops = tuple(sorted({c.drop for c in members}))
        orders = {
            "test": tuple(sorted({c.order for c in members})),
            "train": tuple(sorted({c.order for c in members if find(c.protocol).trains})),
        }
        definition = self.identity.codes(estimator, postprocess, trial, rule) | {"drops": drops, "orders": orders}
        label = f"codes {estimator} {postprocess}, trial {trial}"
        if rule != self.identity.removal["rule"]:
            label += f", rule {rule}"
        if explained != trial:  # the seed of ties stays that of the trial: only the model is another one
            definition["explained"] = explained
            label += f", maps of trial {explained}"
        return CodesTask(
            key=digest(definition),
            label=label,
            needs=(source.key,) if source else (),
            rank=(2, trial, index, 0),
            estimator=estimator,
            postprocess=postprocess,
            trial=trial,
            drops=drops,
            orders=orders,
            rule=rule,
            map=digest(self.identity.maps(estimator, explained)) if source else None,
            base=source.base if source else None,
        )

    def _add_examples(self, chosen: list[Cell]) -> None:
        """A strip of example images per estimator, of the first trial."""
        for estimator in dict.fromkeys(c.estimator for c in chosen if c.protocol != "base" and c.trial == 0):
            if self.config.explain.ranks_features_of(estimator):  # strips show masks of pixels
                continue
            codes = [
                task
                for group, task in self.codes.items()
                if group[0] == estimator
                and group[2] == group[3] == 0
                and group[4] == self.identity.removal["rule"]
                and task.key in self.tasks
            ]
            if not codes:
                continue
            task = ExamplesTask(
                key="",
                label=f"examples {estimator}",
                needs=tuple(one.key for one in codes),
                rank=(2, 0, list(self.codes.values()).index(codes[-1]), 2),
                estimator=estimator,
                trial=0,
                count=self.config.run.examples,
                codes=tuple(codes),
            )
            key = digest({"examples": task.definition(), "fill": self.identity.removal["fill"]})
            self.tasks[key] = replace(task, key=key)


def _curve(cell: Cell) -> Cell:
    """What the cells of a curve share."""
    return replace(cell, drop=0.0)


def bytes_needed(config: StudyConfig, identity: Identity, plan: Plan) -> int:
    """About the disk space that maps, codes and responses take."""
    train, test = identity.data["images"]
    pixels = identity.data["shape"][0] * identity.data["shape"][1]
    width = 2 if config.explain.dtype == "float16" else 4
    planes = identity.data["shape"][2] if config.explain.ranks_features else 1
    maps = [t for t in plan.tasks.values() if isinstance(t, MapsTask)]
    images = sum(len(t.estimators) * (train * ("train" in t.splits) + test) for t in maps)
    codes = [len(t.drops) if t.estimator == "block" else 1 for t in plan.tasks.values() if isinstance(t, CodesTask)]
    kept = sum(codes) if config.run.keep_codes else min(sum(codes), 8)
    answers = sum(len(t.cells) + 2 for t in plan.tasks.values() if t.kind == "curve" and isinstance(t, CellsTask))
    return int(pixels * planes * (images * width + kept * (train + test)) + answers * test * _ANSWER_BYTES)
