"""The run folder: layout, the config it belongs to, and whether a run may go on in it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from roarfast._files import write_atomic
from roarfast.study.cells import Cell
from roarfast.study.config import StudyConfig
from roarfast.study.errors import StudyError
from roarfast.study.store import Store

CONFIG_NAME = "study.toml"
PARTS = ("maps", "codes", "models", "examples", "report")
_FREE_TO_CHANGE = ("run", "grid", "trials")
"""Sections whose change is not an error by itself: the keys of the cells tell whether results still fit."""


def prepare(folder: Path, config: StudyConfig, source: Path | None) -> None:
    """Makes the folder and its parts, and keeps a copy of the config in it."""
    try:
        for part in PARTS:
            (folder / part).mkdir(parents=True, exist_ok=True)
        if source is not None:
            text = source.read_text(encoding="utf-8")
            write_atomic(folder / CONFIG_NAME, text)
    except OSError as error:
        raise StudyError(f"cannot write to the run folder {folder}: {error.strerror or error}") from None


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
    return [] if old == new else [f"{path}: {old!r} → {new!r}"]
