"""Puts the shards of a study together."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roarfast.study.errors import StudyError
from roarfast.study.grid import grid_cells
from roarfast.study.records import Cell
from roarfast.study.results import load
from roarfast.study.rows import CellRow, WorkRow
from roarfast.study.runfolder import RunFolder, check_claim
from roarfast.study.schema import StudyConfig
from roarfast.study.store import Store

_SAME_RESULT = 1e-9
"""Base models are trained by every shard that needs them: the same seed must have given the same accuracy."""


@dataclass(frozen=True)
class Merged:
    """What a merge found."""

    done: int
    failed: int
    missing: int


def merge(target: str | Path, sources: list[Path]) -> Merged:
    """Copies the finished cells of shard folders into one folder, which `report` and a later `run` then use.

    Raises:
        StudyError: If the shards belong to different studies, or disagree about a result.
    """
    target = Path(target)
    files = RunFolder(target)
    if not sources:
        raise StudyError("merge needs at least one shard folder")
    rows: dict[str, CellRow] = {}
    work: dict[str, WorkRow] = {}
    first: dict[str, Any] | None = None
    for source in sources:
        with Store.open_readonly(source) as store:
            summary = store.summary()
            if first is None:
                first = summary
            _check_same(first, summary, sources[0], source)
            for row in store.rows():
                _take(rows, row, source)
            work |= store.work()
    assert first is not None
    config = StudyConfig.of(first["config"])
    positions = {cell: i for i, cell in enumerate(grid_cells(config))}
    check_claim(target, _config_file(sources))
    with files.lock(), Store.create(target) as store:
        known = {row["key"]: row for row in store.rows()}
        files.prepare(_config_file(sources))
        store.put(**{name: first[name] for name in ("config", "numerics", "data", "versions", "hardware", "seeds")})
        cells = {key: _cell(row) for key, row in {**known, **rows}.items()}
        ordered = sorted(cells.items(), key=lambda item: positions.get(item[1], len(positions)))
        store.register(ordered, config.data.name)
        store.adopt(
            row
            for key, row in rows.items()
            if (key not in known or known[key]["status"] != "done") and row["status"] != "running"
        )
        for key, item in work.items():
            store.finish_work(key, item["kind"], item["label"], item["info"], item["seconds"])
        session = store.begin_session({"merged": [str(source) for source in sources], "workers": len(sources)})
        store.end_session(session)
        for part in map(RunFolder, sources):
            for theirs, ours in ((part.examples, files.examples), (part.response_files, files.response_files)):
                for path in theirs.glob("*.npz"):
                    ours.mkdir(parents=True, exist_ok=True)
                    if not (ours / path.name).exists():
                        shutil.copy2(path, ours / path.name)
        statuses = list(store.statuses().values())
    load(target).to_csv(files.results_csv)
    done, failed = statuses.count("done"), statuses.count("failed")
    return Merged(done, failed, len(positions) - done - failed)


def _take(rows: dict[str, CellRow], row: CellRow, source: Path) -> None:
    other = rows.get(row["key"])
    if other is None or other["status"] != "done":
        if other is None or row["status"] == "done":
            rows[row["key"]] = row
        return
    first, second = other["accuracy"], row["accuracy"]
    if row["status"] == "done" and first is not None and second is not None and abs(first - second) > _SAME_RESULT:
        raise StudyError(
            f"{source} disagrees with another shard about {_cell(row).label}: accuracy {second} and "
            f"{first}. Shards must run on the same kind of device with the same packages"
        )


def _check_same(first: Mapping[str, object], other: Mapping[str, object], a: Path, b: Path) -> None:
    for name in ("config", "numerics", "data"):
        left, right = first.get(name), other.get(name)
        if name == "config" and isinstance(left, dict) and isinstance(right, dict):
            left, right = ({k: v for k, v in c.items() if k not in ("run", "data", "model")} for c in (left, right))
        if left != right:
            raise StudyError(f"{a} and {b} are no shards of one study: their {name} differs")


def _cell(row: CellRow) -> Cell:
    return Cell(
        row["protocol"], row["estimator"], row["postprocess"], row["order"], row["drop"], row["trial"], row["null"]
    )


def _config_file(sources: list[Path]) -> Path | None:
    path = RunFolder(sources[0]).config
    return path if path.is_file() else None
