"""The tasks of a study: one record per kind, with what it makes, what it needs, and which cells it finishes.

The executor knows no more of them than `Task` says. They cross to worker processes as JSON (`encode`, `decode`) and are
records everywhere else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, TypeAdapter

from roarfast._sealed import Damaged, read_sealed
from roarfast._types import Json
from roarfast.explain.store import AttributionStore
from roarfast.study.errors import StudyError
from roarfast.study.protocol import Scores
from roarfast.study.protocols import find
from roarfast.study.records import Cell
from roarfast.study.runfolder import RunFolder

Info = dict[str, Any]
"""What shared work leaves in the store beside its files: JSON."""
Splits = dict[str, tuple[str, ...]]
"""Split → what is needed of it."""


@dataclass(frozen=True)
class Damage:
    """A file that an earlier task left, missing or damaged: of which kind of task, and its `key`, or `base` and `estimator`."""

    kind: str
    key: str = ""
    base: str = ""
    estimator: str = ""


class ArtefactDamaged(StudyError):
    """A file that an earlier task left is missing or damaged; the task that made it must run again."""

    def __init__(self, message: str, damage: Damage) -> None:
        super().__init__(message)
        self.damage = damage


@dataclass
class Outcome:
    """What a worker did for a task.

    Attributes:
        scores: Key of a cell → its scores.
        info: Of shared work.
        seconds: Stage → seconds.
        notes: What the run should say.
        wall: Seconds in all.
        damage: The file to be made again, if that ended the task.
        torch: The version that computed it.
    """

    scores: dict[str, Scores] = field(default_factory=dict)
    info: Info = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    wall: float = 0.0
    damage: Damage | None = None
    torch: str | None = None


@dataclass(frozen=True, kw_only=True)
class Task:
    """One unit of work for a worker.

    Attributes:
        key: Hash of what it makes; the task of one cell has the key of the cell.
        label: For people.
        needs: Keys of the tasks that come first.
        rank: Ready tasks with a smaller rank go first.
    """

    key: str
    label: str
    needs: tuple[str, ...] = ()
    rank: tuple[int, ...] = field(default=(9,), compare=False)
    kind: str = ""
    passing: ClassVar[bool] = False
    """Whether its files go when no open task needs them any more."""

    @property
    def cost_class(self) -> str:
        """Tasks of one class take about the same time: what the ETA counts in."""
        return self.kind

    @property
    def finishes(self) -> tuple[str, ...]:
        """Keys of the cells that are done when it is."""
        return ()

    def is_wanted(self, done: Collection[str]) -> bool:
        """Whether it is to be done for its own sake, not only for tasks that need it."""
        return any(key not in done for key in self.finishes)

    def is_finished(self, done: Collection[str], known: Collection[str]) -> bool:
        """Whether it has been done, as far as the store tells: keys of cells, and of shared work."""
        return all(key in done for key in self.finishes) if self.finishes else self.key in known

    def is_present(self, files: RunFolder) -> bool:
        """Whether its files are there; workers check what is in them when they use them."""
        return True

    def made(self, damage: Damage) -> bool:
        """Whether it made a file."""
        return damage.kind == self.kind and damage.key == self.key

    def scores(self, outcome: Outcome, known: Mapping[str, Info]) -> dict[str, Scores]:
        """Key → scores of the cells it finished; `known` is what the tasks it needs have left in the store."""
        return outcome.scores


@dataclass(frozen=True, kw_only=True)
class BaseTask(Task):
    """The model of a trial, trained on whole images."""

    cell: Cell
    kind: Literal["base"] = "base"

    @property
    def finishes(self) -> tuple[str, ...]:
        """See `Task`."""
        return (self.key,)

    def is_present(self, files: RunFolder) -> bool:
        """See `Task`."""
        return files.base_model(self.key).exists()

    def scores(self, outcome: Outcome, known: Mapping[str, Info]) -> dict[str, Scores]:
        """See `Task`."""
        return {self.key: {"removed_fraction": 0.0, "removed_fraction_train": 0.0} | outcome.scores[self.key]}


@dataclass(frozen=True, kw_only=True)
class MapsTask(Task):
    """Maps of estimators that share passes over a base model.

    Attributes:
        trial: Of the base model.
        estimators: Canonical names.
        base: Key of the base model.
        splits: Whose images are explained.
    """

    trial: int
    estimators: tuple[str, ...]
    base: str
    splits: tuple[str, ...] = ("train", "test")
    kind: Literal["maps"] = "maps"

    def is_present(self, files: RunFolder) -> bool:
        """See `Task`."""
        stores = [AttributionStore(files.maps(self.base, split)) for split in self.splits]
        return all(estimator in store for store in stores for estimator in self.estimators)

    def made(self, damage: Damage) -> bool:
        """See `Task`."""
        return damage.kind == "maps" and damage.base == self.base and damage.estimator in self.estimators


@dataclass(frozen=True, kw_only=True)
class CodesTask(Task):
    """Rank codes of an estimator after a post-processing, for all drop rates.

    Attributes:
        drops: Ascending.
        orders: Split → orders that some cell needs.
        rule: Which pixels count as the top; as in `roarfast.rank_codes`.
        map: Key of the maps; None for a random baseline or an oracle.
        base: Key of the base model that was explained; None for a random baseline or an oracle.
    """

    estimator: str
    postprocess: str
    trial: int
    drops: tuple[float, ...]
    orders: Splits
    rule: str
    map: str | None
    base: str | None
    kind: Literal["codes"] = "codes"
    passing: ClassVar[bool] = True

    def is_present(self, files: RunFolder) -> bool:
        """See `Task`."""
        return files.codes_info(self.key).exists()

    def definition(self) -> dict[str, object]:
        """Its fields as the key of examples hashes them."""
        names = ("estimator", "postprocess", "trial", "drops", "orders", "map", "base")
        return {"key": self.key} | {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class CellsTask(Task):
    """Cells that differ in nothing but their drop rate: one, or all of a curve.

    Attributes:
        cells: Key → cell, in ascending order of the rates.
        codes: Which pixels go.
        base: Key of the base model.
    """

    cells: dict[str, Cell]
    codes: CodesTask
    base: str
    kind: Literal["cell", "curve"] = "cell"

    @property
    def cell(self) -> Cell:
        """The only cell, or the first of a curve."""
        return next(iter(self.cells.values()))

    @property
    def cost_class(self) -> str:
        """See `Task`."""
        return self.cell.protocol

    @property
    def finishes(self) -> tuple[str, ...]:
        """See `Task`."""
        return tuple(self.cells)

    def scores(self, outcome: Outcome, known: Mapping[str, Info]) -> dict[str, Scores]:
        """See `Task`."""
        facts = known[self.codes.key]
        return {key: mask_facts(cell, facts) | outcome.scores[key] for key, cell in self.cells.items()}


def mask_facts(cell: Cell, info: Info) -> Scores:
    """What the codes of a cell tell: how much goes, and how rough maps and masks are."""
    drop, protocol = f"{cell.drop:g}", find(cell.protocol)
    test = info["test"][cell.order][drop]
    train = info["train"].get(cell.order, {}).get(drop) if protocol.trains else None
    roughness = {} if train is None else {"tv_map_train": train.get("tv_map", info.get("tv_map_train"))}
    return {
        "removed_fraction": 0.0 if protocol.whole_test else protocol.removed(test["removed"]),
        "removed_fraction_train": None if train is None else protocol.removed(train["removed"]),
        "tv_map": test["tv_map"] if "tv_map" in test else info["tv_map"],
        "tv_mask": None if cell.null == "roll" else test["tv_mask"],  # a shift opens a seam
    } | {name: value for name, value in roughness.items() if value is not None}  # codes of before have none


@dataclass(frozen=True, kw_only=True)
class ExamplesTask(Task):
    """A strip of example images of an estimator, of the first trial.

    Attributes:
        count: How many images.
        codes: The codes of each of its post-processings.
    """

    estimator: str
    trial: int
    count: int
    codes: tuple[CodesTask, ...]
    kind: Literal["examples"] = "examples"

    def is_wanted(self, done: Collection[str]) -> bool:
        """See `Task`."""
        return True

    def is_present(self, files: RunFolder) -> bool:
        """See `Task`."""
        try:
            return bool(read_sealed(files.example(self.estimator)))
        except Damaged:
            return False

    def definition(self) -> dict[str, object]:
        """What its key hashes."""
        codes = [one.definition() for one in self.codes]
        return {"estimator": self.estimator, "trial": self.trial, "count": self.count, "codes": codes}


AnyTask = BaseTask | MapsTask | CodesTask | CellsTask | ExamplesTask
_TASK: TypeAdapter[AnyTask] = TypeAdapter(Annotated[AnyTask, Discriminator("kind")])
_OUTCOME = TypeAdapter(Outcome)


def encode(task: Task) -> Json:
    """A task as JSON values."""
    return _TASK.dump_python(task, mode="json")  # type: ignore[arg-type]


def decode(values: object) -> AnyTask:
    """What `encode` made."""
    return _TASK.validate_python(values)


def encode_outcome(outcome: Outcome) -> Json:
    """An outcome as JSON values."""
    return _OUTCOME.dump_python(outcome, mode="json")


def decode_outcome(values: object) -> Outcome:
    """What `encode_outcome` made."""
    return _OUTCOME.validate_python(values)
