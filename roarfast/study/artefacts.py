"""Which files of the run folder a task reads and leaves, for workers that do not share it."""

from __future__ import annotations

from dataclasses import dataclass

from roarfast._objects import is_reference
from roarfast.explain.store import AttributionStore
from roarfast.study.protocols import find
from roarfast.study.runfolder import RunFolder
from roarfast.study.tasks import BaseTask, CellsTask, CodesTask, Damage, ExamplesTask, MapsTask, Task


@dataclass(frozen=True)
class Artefact:
    """A file or folder that one task leaves for others.

    Attributes:
        path: Below the run folder.
        lost: What is said when it is nowhere any more: names the task that makes it.
    """

    path: str
    lost: Damage


def inputs(task: Task) -> list[Artefact]:
    """What must be there before a task starts."""
    if isinstance(task, MapsTask):
        return [_base(task.base)]
    if isinstance(task, CodesTask):
        return _maps(task, [split for split, orders in task.orders.items() if orders])
    if isinstance(task, CellsTask):
        protocol = find(task.cell.protocol)
        found = [Artefact(RunFolder("").codes(task.codes.key).as_posix(), Damage("codes", task.codes.key))]
        foreign = is_reference(task.cell.protocol)  # nobody knows what it looks at
        if task.base in task.needs or (foreign and task.codes.base is not None):
            found.append(_base(task.base))
        return found + (_maps(task.codes, ["test"]) if protocol.values or foreign else [])
    if isinstance(task, ExamplesTask):
        found = [one for codes in task.codes for one in _maps(codes, ["test"])]
        bases = [codes.base for codes in task.codes if codes.base is not None]
        return list(dict.fromkeys([*found, *(_base(base) for base in bases)]))
    return []


def outputs(task: Task) -> list[str]:
    """Paths of what a task has always left when it is done."""
    files = RunFolder("")
    if isinstance(task, BaseTask):
        paths = [files.base_model(task.key)]
    elif isinstance(task, MapsTask):
        paths = [
            AttributionStore(files.maps(task.base, split)).folder(estimator)
            for split in task.splits
            for estimator in task.estimators
        ]
    elif isinstance(task, CodesTask):
        paths = [files.codes(task.key)]
    else:
        paths = [files.example(task.estimator)] if isinstance(task, ExamplesTask) else []
    return [path.as_posix() for path in paths]


def extras(task: Task, keep_models: bool = False) -> list[str]:
    """Paths of what a task may have left for the user beside that: no other task reads it, and protocols of the user's need not write it."""
    files = RunFolder("")
    if not isinstance(task, CellsTask):
        return []
    if task.kind == "curve":
        return [files.responses(f"{task.key}*").as_posix()]
    return [files.cell_model(task.key).as_posix()] if keep_models else []


def _base(key: str) -> Artefact:
    return Artefact(RunFolder("").base_model(key).as_posix(), Damage("base", key))


def _maps(codes: CodesTask, splits: list[str]) -> list[Artefact]:
    if codes.base is None:
        return []
    stores = [AttributionStore(RunFolder("").maps(codes.base, split)) for split in splits]
    lost = Damage("maps", base=codes.base, estimator=codes.estimator)
    return [Artefact(store.folder(codes.estimator).as_posix(), lost) for store in stores]
