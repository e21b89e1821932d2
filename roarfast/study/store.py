"""The store of a run folder: SQLite in WAL mode, written by one process, readable while it runs."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from roarfast.study.config import STORE_NAME
from roarfast.study.errors import OutOfSpace, StudyError
from roarfast.study.grid import Cell
from roarfast.study.migrations import VERSION, migrate, version_of
from roarfast.study.records import STAGES, Record, record_from_row

FILE_NAME = STORE_NAME
_SCORES = ("accuracy", "true_class_probability", "removed_fraction", "removed_fraction_train", "tv_map", "tv_mask")


class Store:
    """Results, shared work and facts of one run folder.

    Every method that writes is one transaction: after a kill at any moment it has happened or it has not.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @classmethod
    def create(cls, folder: str | Path) -> Store:
        """Opens the store of a folder for writing; makes both if needed."""
        path = Path(folder) / FILE_NAME
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        except (OSError, sqlite3.Error) as error:
            raise StudyError(f"cannot write to the run folder {path.parent}: {error}") from None
        store = cls(connection, path)
        with store._guarded():
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            _refuse_newer(connection, path)
            migrate(connection)
        connection.row_factory = sqlite3.Row
        return store

    @classmethod
    def open_readonly(cls, folder: str | Path) -> Store:
        """Opens the store of a folder for reading; of an older version, a copy in memory that is brought up to date.

        Raises:
            FileNotFoundError: If there is none.
        """
        path = Path(folder) / FILE_NAME
        if not path.is_file():
            raise FileNotFoundError(
                f"{folder} is no run folder: {path} does not exist (roarfast run FILE --out {folder})"
            )
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=30)
        try:
            _refuse_newer(connection, path)
            if 0 < version_of(connection) < VERSION:
                copy = sqlite3.connect(":memory:", isolation_level=None)
                connection.backup(copy)
                connection.close()
                migrate(copy)
                connection = copy
            connection.execute("SELECT 1 FROM meta")
        except sqlite3.DatabaseError as error:
            raise StudyError(f"{path} cannot be read as a store of results: {error}") from None
        connection.row_factory = sqlite3.Row
        return cls(connection, path)

    def close(self) -> None:
        """Closes the file; using the store after that is an error."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # facts

    def put(self, **facts: Any) -> None:
        """Stores facts by name, as JSON, in one transaction."""
        rows = [(name, json.dumps(value)) for name, value in facts.items()]
        with self._transaction():
            self._connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)

    def get(self, name: str, default: Any) -> Any:
        """A fact by name."""
        row = self._connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return default if row is None else json.loads(row[0])

    # cells

    def register(self, cells: Iterable[tuple[str, Cell]], dataset: str) -> None:
        """Adds cells that are not there yet, as pending, and puts all of them in the given order."""
        rows = [
            (key, i, c.protocol, dataset, c.estimator, c.postprocess, c.order, c.drop, c.trial, c.null)
            for i, (key, c) in enumerate(cells)
        ]
        with self._transaction():
            self._connection.executemany(
                'INSERT INTO cells (key, position, protocol, dataset, estimator, postprocess, "order", "drop", trial, "null", status) '
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending') ON CONFLICT (key) DO UPDATE SET position = excluded.position",
                rows,
            )

    def reopen(self) -> None:
        """Cells that a killed run left `running`, and failed ones, become pending again."""
        with self._transaction():
            self._connection.execute(
                "UPDATE cells SET status = 'pending', error = NULL, started = NULL, finished = NULL "
                "WHERE status IN ('running', 'failed')"
            )

    def mark(self, key: str, status: str) -> None:
        """Sets a cell to `running` or back to `pending`."""
        with self._transaction():
            self._connection.execute("UPDATE cells SET status = ?, started = ? WHERE key = ?", (status, now(), key))

    def finish(self, key: str, scores: dict[str, float | None], seconds: dict[str, float]) -> None:
        """Records the result of a cell; scores without a column of their own go into `extra`."""
        assignments = ", ".join(f"{name} = ?" for name in _SCORES)
        extra = {name: value for name, value in scores.items() if name not in _SCORES}
        with self._transaction():
            self._connection.execute(
                f"UPDATE cells SET status = 'done', error = NULL, {assignments}, extra = ?, seconds = ?, finished = ? "
                "WHERE key = ?",
                (*(scores.get(name) for name in _SCORES), json.dumps(extra), json.dumps(seconds), now(), key),
            )

    def fail(self, keys: Iterable[str], error: str, seconds: dict[str, float] | None = None) -> None:
        """Records why cells failed."""
        with self._transaction():
            self._connection.executemany(
                "UPDATE cells SET status = 'failed', error = ?, seconds = ?, finished = ? WHERE key = ?",
                [(error, json.dumps(seconds or {}), now(), key) for key in keys],
            )

    def statuses(self) -> dict[str, str]:
        """Key → status of every cell."""
        return {row["key"]: row["status"] for row in self._connection.execute("SELECT key, status FROM cells")}

    def records(self) -> list[Record]:
        """All cells in the order of the grid."""
        rows = self._connection.execute("SELECT * FROM cells ORDER BY position, key")
        return [record_from_row(dict(row)) for row in rows]

    def rows(self) -> list[dict[str, Any]]:
        """All cells as raw rows, for merging."""
        return [dict(row) for row in self._connection.execute("SELECT * FROM cells ORDER BY position, key")]

    def adopt(self, rows: Iterable[dict[str, Any]]) -> None:
        """Takes over finished cells of another store; ours must have registered them."""
        names = [*_SCORES, "extra", "status", "seconds", "error", "started", "finished"]
        assignments = ", ".join(f"{name} = ?" for name in names)
        with self._transaction():
            self._connection.executemany(
                f"UPDATE cells SET {assignments} WHERE key = ?",
                [(*(row[name] for name in names), row["key"]) for row in rows],
            )

    # shared work

    def finish_work(self, key: str, kind: str, label: str, info: dict[str, Any], seconds: dict[str, float]) -> None:
        """Records finished shared work; its files are in place already."""
        with self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO work VALUES (?, ?, ?, ?, ?, ?)",
                (key, kind, label, json.dumps(info), json.dumps(seconds), now()),
            )

    def work(self) -> dict[str, dict[str, Any]]:
        """Key → row of finished shared work, with `info` and `seconds` decoded."""
        rows = {row["key"]: dict(row) for row in self._connection.execute("SELECT * FROM work")}
        for row in rows.values():
            row["info"], row["seconds"] = json.loads(row["info"]), json.loads(row["seconds"])
        return rows

    # sessions and the summary

    def begin_session(self, facts: dict[str, Any]) -> int:
        """Notes that a process starts working; returns the number of the session."""
        with self._transaction():
            cursor = self._connection.execute(
                "INSERT INTO sessions (started, facts) VALUES (?, ?)", (now(), json.dumps(facts))
            )
        return int(cursor.lastrowid or 0)

    def end_session(self, number: int, facts: dict[str, Any] | None = None) -> None:
        """Notes that it ended by itself, and what is known only then."""
        with self._transaction():
            row = self._connection.execute("SELECT facts FROM sessions WHERE id = ?", (number,)).fetchone()
            known = json.loads(row[0]) | (facts or {})
            self._connection.execute(
                "UPDATE sessions SET finished = ?, facts = ? WHERE id = ?", (now(), json.dumps(known), number)
            )

    def summary(self) -> dict[str, Any]:
        """Everything `StudyResults.meta` holds."""
        totals = dict.fromkeys(STAGES, 0.0)
        for (text,) in self._connection.execute(
            "SELECT seconds FROM cells WHERE seconds IS NOT NULL UNION ALL SELECT seconds FROM work"
        ):
            for stage, value in json.loads(text).items():
                totals[stage] = totals.get(stage, 0.0) + value
        meta = {row["name"]: json.loads(row["value"]) for row in self._connection.execute("SELECT * FROM meta")}
        sessions = [
            dict(row) | {"facts": json.loads(row["facts"])}
            for row in self._connection.execute("SELECT * FROM sessions ORDER BY id")
        ]
        totals["start"] += sum(session["facts"].get("setup", 0.0) for session in sessions)
        waited = [s["facts"]["waiting"] for s in sessions if "waiting" in s["facts"]]
        last = self._connection.execute("SELECT MAX(finished) FROM cells").fetchone()[0]
        still_open = self._connection.execute(
            "SELECT COUNT(*) FROM cells WHERE status IN ('pending', 'running')"
        ).fetchone()
        return meta | {
            "stage_seconds": totals,
            "started": sessions[0]["started"] if sessions else None,
            "finished": None if still_open[0] else last,
            "waiting_seconds": sum(waited) if waited else None,
            "sessions": sessions,
        }

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._guarded():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "full" in str(error):
                raise OutOfSpace(disk_full_message(self.path.parent)) from None
            raise StudyError(f"cannot write {self.path}: {error}") from None
        except sqlite3.DatabaseError as error:
            raise StudyError(f"{self.path} is damaged or no store of results: {error}") from None


def _refuse_newer(database: sqlite3.Connection, path: Path) -> None:
    found = version_of(database)
    if found > VERSION:
        raise StudyError(
            f"{path} was written by a newer roarfast: its store has version {found}, this one knows up to {VERSION}"
        )


def disk_full_message(folder: Path) -> str:
    """What to tell when the disk is full."""
    return f"no space left on the disk of {folder}; finished cells are safe: free some space and give the same command again"


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
