"""`RunFolder`: where every file of a run lies, and whether a study may work there."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from roarfast._files import write_atomic
from roarfast._sealed import Damaged, read_sealed
from roarfast.explain.store import AttributionStore
from roarfast.study.config import STORE_NAME, StudyConfig
from roarfast.study.errors import StudyError
from roarfast.study.grid import Cell
from roarfast.study.lock import LOCK_NAME, WORKERS_LOCK_NAME
from roarfast.study.plan import Task
from roarfast.study.store import Store
from roarfast.study.validate import estimator_slug

CONFIG_NAME = "study.toml"
PARTS = ("maps", "codes", "models", "examples", "report")
_BEFORE_THE_STORE = (LOCK_NAME, WORKERS_LOCK_NAME, CONFIG_NAME, "shards")
"""What a run may leave that was killed before it had made its store."""
_FREE_TO_CHANGE = ("run", "grid", "trials")
"""Sections whose change is not an error by itself: the keys of the cells tell whether results still fit."""


class RunFolder:
    """The folder of a run.

    Example:
        >>> RunFolder("runs/demo").codes("0123").as_posix()
        'runs/demo/codes/0123'
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def store(self) -> Path:
        """The SQLite file with all results; a folder that has it is a run folder."""
        return self.path / STORE_NAME

    @property
    def config(self) -> Path:
        """The copy of the study's config."""
        return self.path / CONFIG_NAME

    @property
    def results_csv(self) -> Path:
        """All records as a table."""
        return self.path / "results.csv"

    @property
    def examples(self) -> Path:
        """Where the examples of all estimators are."""
        return self.path / "examples"

    @property
    def report(self) -> Path:
        """Where the report goes."""
        return self.path / "report"

    @property
    def shared(self) -> Path:
        """Generated images, while workers need them."""
        return self.path / ".shared"

    @property
    def logs(self) -> Path:
        """Where workers write what is not an event; made if it is not there."""
        path = self.path / "logs"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def maps(self, base: str, split: str) -> Path:
        """The attribution store of a base model and split."""
        return self.path / "maps" / base[:12] / split

    def codes(self, key: str) -> Path:
        """The folder with the codes of a task."""
        return self.path / "codes" / key

    def base_model(self, key: str) -> Path:
        """The weights of a base model."""
        return self.model(f"base-{key[:12]}")

    def model(self, name: str) -> Path:
        """The weights of a model by name."""
        return self.path / "models" / f"{name}.pt"

    def checkpoint(self, name: str) -> Path:
        """The state of a training under way."""
        return self.path / "models" / f"{name}.ckpt"

    def example(self, estimator: str) -> Path:
        """The examples of an estimator."""
        return self.examples / f"{estimator_slug(estimator)}.npz"

    def shard(self, index: int, count: int) -> Path:
        """Where a shard of the study works."""
        return self.path / "shards" / f"{index}-of-{count}"

    def find_shards(self) -> list[Path]:
        """The shard folders that exist."""
        found = sorted(path.parent for path in (self.path / "shards").glob(f"*-of-*/{STORE_NAME}"))
        if not found:
            raise StudyError(
                f"{self.path / 'shards'} has no shards: run them with `roarfast run FILE --out {self.path} --shard i/n`"
            )
        return found

    def has(self, task: Task) -> bool:
        """Whether the files of a finished task are there; workers check what is in them when they use them."""
        if task.kind == "base":
            return self.base_model(task.key).exists()
        if task.kind == "maps":
            stores = [AttributionStore(self.maps(task.spec["base"], split)) for split in ("train", "test")]
            return all(estimator in store for store in stores for estimator in task.spec["estimators"])
        if task.kind == "codes":
            return (self.codes(task.key) / "info.json").exists()
        try:
            return bool(read_sealed(self.example(task.spec["estimator"])))
        except Damaged:
            return False

    def delete_codes(self, key: str) -> None:
        """Codes are quickly made again from maps, so they go when the last cell that needs them is done."""
        (self.codes(key) / "info.json").unlink(missing_ok=True)
        shutil.rmtree(self.codes(key), ignore_errors=True)

    def prepare(self, source: Path | None) -> None:
        """Makes the folder and its parts, and keeps a copy of the config in it."""
        try:
            for part in PARTS:
                (self.path / part).mkdir(parents=True, exist_ok=True)
            if source is not None:
                write_atomic(self.config, source.read_text(encoding="utf-8"))
        except OSError as error:
            raise StudyError(f"cannot write to the run folder {self.path}: {error.strerror or error}") from None


def check_claim(folder: Path, source: Path | None) -> None:
    """Refuses a folder that a study would share with somebody else's files: it is new, empty, or a study's already.

    Args:
        folder: The run folder to be.
        source: The config file of the run; it may lie in the folder.

    Raises:
        StudyError: Naming what was found.
    """
    if folder.exists() and not folder.is_dir():
        raise StudyError(f"--out {folder} is a file: choose a folder")
    if not folder.exists() or (folder / STORE_NAME).exists():
        return
    try:
        strangers = sorted(entry.name for entry in folder.iterdir() if not _is_leftover(entry))
    except OSError as error:
        raise StudyError(f"cannot read the folder {folder}: {error.strerror or error}") from None
    if strangers:
        shown = ", ".join(strangers[:5]) + (" …" if len(strangers) > 5 else "")
        raise StudyError(
            f"--out {folder} is not empty and holds no study ({shown}): choose a new folder, for example "
            f"--out {folder / 'run'}"
        )
    own = folder / CONFIG_NAME
    if source is not None and own.exists() and not own.samefile(source) and own.read_bytes() != source.read_bytes():
        raise StudyError(f"{own} is another config than {source}, and the run would replace it: choose another --out")


def _is_leftover(entry: Path) -> bool:
    """Whether a run made it before it had a store: locks, a copy of the config, shards, unfinished files of these."""
    name = entry.name
    return name in _BEFORE_THE_STORE or (name.startswith(f".{CONFIG_NAME}.") and name.endswith(".tmp"))


def check_same_study(store: Store, config: StudyConfig, cells: dict[str, Cell], numerics: dict[str, Any]) -> None:
    """Refuses to mix results: an old folder may only grow.

    Raises:
        StudyError: With every changed key, its old and its new value.
    """
    old = store.get("config", None)
    if old is None:
        return
    new = config.model_dump(mode="json")
    changes = _changes(old, new)
    old_numerics = store.get("numerics", numerics)
    if old_numerics != numerics:
        changes += [
            f"{name}: {old_numerics.get(name)!r} → {numerics[name]!r} (it decides the last bits of results)"
            for name in numerics
            if old_numerics.get(name) != numerics[name]
        ]
    missing = set(store.statuses()) - set(cells)
    if not missing:
        return
    if not changes:
        changes.append(
            f"the grid lost {len(missing)} of its cells, or the images or the code behind them changed since the run began"
        )
    lines = "\n".join(f"  - {change}" for change in changes)
    raise StudyError(
        f"{store.path.parent} belongs to another study: a folder may get more cells, but what its results were made "
        f"with must stay. Changed:\n{lines}\nGo on with the old config, or choose another --out"
    )


def check_space(folder: Path, needed_bytes: int) -> None:
    """Refuses to start when maps and codes cannot fit."""
    free = shutil.disk_usage(folder).free
    if needed_bytes > free:
        raise StudyError(
            f"the maps and codes of this study need about {needed_bytes / 1e9:.1f} GB, the disk of {folder} has "
            f"{free / 1e9:.1f} GB free: free some space, choose another --out, or set explain.dtype = 'float16'"
        )


def _changes(old: Any, new: Any, path: str = "") -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        names = [name for name in {**old, **new} if path or name not in _FREE_TO_CHANGE]
        found = []
        for name in names:
            if path == "data" and name in ("root", "train", "test", "download"):
                continue  # where the images lie does not matter, what is in them does: the keys know
            found += _changes(old.get(name), new.get(name), f"{path}.{name}" if path else name)
        return found
    return [] if old == new or (not old and not new) else [f"{path}: {old!r} → {new!r}"]
