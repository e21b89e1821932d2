"""The store of a run folder: SQLite in WAL mode, written by one process, readable while it runs."""

from __future__ import annotations

import contextlib
import json
import operator
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, cast

from roarfast.study.errors import OutOfSpace, StudyError
from roarfast.study.keys import digest
from roarfast.study.migrations import VERSION, migrate, table_damage, version_of
from roarfast.study.records import STAGES, Cell, Record, record_from_row
from roarfast.study.rows import (
    CELL_COLUMNS,
    SCORES,
    WORK_COLUMNS,
    CellRow,
    SessionRow,
    WorkRow,
    is_damaged,
    row_digest,
)
from roarfast.study.runfolder import RunFolder


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
        path = RunFolder(folder).store
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, isolation_level=None, timeout=30)
        except (OSError, sqlite3.Error) as error:
            raise StudyError(f"cannot write to the run folder {path.parent}: {error}") from None
        connection.text_factory = text
        store = cls(connection, path)
        with store._guarded():
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            _refuse_newer(connection, path)
            _check_pages(connection, path)
            migrate(connection)
        connection.row_factory = sqlite3.Row
        return store

    @classmethod
    def open_readonly(cls, folder: str | Path) -> Store:
        """Opens the store of a folder for reading; of an older version, a copy in memory that is brought up to date.

        Raises:
            FileNotFoundError: If there is none.
        """
        path = RunFolder(folder).store
        if not path.is_file():
            raise FileNotFoundError(
                f"{folder} is no run folder: {path} does not exist (roarfast run FILE --out {folder})"
            )
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=30)
        connection.text_factory = text
        try:
            _refuse_newer(connection, path)
            _check_pages(connection, path)
            if 0 < version_of(connection) < VERSION:
                copy = sqlite3.connect(":memory:", isolation_level=None)
                connection.backup(copy)
                connection.close()
                migrate(copy)
                connection = copy
                connection.text_factory = text
            connection.execute("SELECT 1 FROM meta")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # messages quote damaged names
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

    def put(self, **facts: object) -> None:
        """Stores facts by name, as JSON, in one transaction."""
        rows = [(name, json.dumps(value)) for name, value in facts.items()]
        with self._transaction():
            self._connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)

    def get(self, name: str, default: object) -> Any:
        """A fact by name."""
        row = self._connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        try:
            return default if row is None else json.loads(row[0])
        except ValueError:  # damaged; a run writes every fact again
            return default

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
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending') ON CONFLICT (key) DO UPDATE SET position = excluded.position, dataset = excluded.dataset",
                rows,
            )

    def reopen(self) -> None:
        """Cells that a killed run left `running`, and failed ones, become pending again."""
        with self._transaction():
            self._connection.execute(
                "UPDATE cells SET status = 'pending', error = NULL, started = NULL, finished = NULL "
                "WHERE status IN ('running', 'failed')"
            )

    def mark(self, keys: Iterable[str], status: str) -> None:
        """Sets cells to `running` or back to `pending`."""
        with self._transaction():
            self._connection.executemany(
                "UPDATE cells SET status = ?, started = ? WHERE key = ?", [(status, now(), key) for key in keys]
            )

    def finish(
        self, cells: Mapping[str, Mapping[str, float | None]], seconds: dict[str, float], torch: str | None = None
    ) -> None:
        """Records the results of cells; scores without a column of their own go into `extra`.

        Args:
            cells: Key → scores.
            seconds: Stage → seconds spent on each of them.
            torch: The version that computed them.
        """
        assignments = ", ".join(f"{name} = ?" for name in SCORES)
        with self._transaction():
            for key, scores in cells.items():
                extra = {name: value for name, value in scores.items() if name not in SCORES}
                self._connection.execute(
                    f"UPDATE cells SET status = 'done', error = NULL, {assignments}, extra = ?, seconds = ?, torch = ?, finished = ? "
                    "WHERE key = ?",
                    (
                        *(scores.get(name) for name in SCORES),
                        json.dumps(extra),
                        json.dumps(seconds),
                        torch,
                        now(),
                        key,
                    ),
                )
                self._seal_cell(key)

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
        """All cells in the order of the grid.

        Raises:
            StudyError: If a row is not what was written.
        """
        return [record_from_row(row) for row in self.rows()]

    def rows(self) -> list[CellRow]:
        """All cells as raw rows, checked as in `records`."""
        found = self._connection.execute("SELECT * FROM cells ORDER BY position, key")
        rows = [cast("CellRow", dict(row)) for row in found]  # the columns are checked when the store is opened
        for row in rows:
            if is_damaged(row, CELL_COLUMNS):
                raise StudyError(
                    f"{self.path} is damaged: a row of its cells ({row['protocol']} {row['estimator']}, trial {row['trial']}) "
                    "is not what was written. Run the study again: this cell is computed anew, the others stay"
                )
        return rows

    def drop_damaged(self) -> list[str]:
        """Deletes rows of cells and work that are not what was written; returns what they were, for the run to say."""
        found = []
        with self._transaction():
            for table, columns in (("cells", CELL_COLUMNS), ("work", WORK_COLUMNS)):
                for row in self._connection.execute(f"SELECT rowid AS place, * FROM {table}").fetchall():
                    if is_damaged(dict(row), columns):
                        self._connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row["place"],))
                        what = (
                            row["label"]
                            if table == "work"
                            else f"{row['protocol']} {row['estimator']}, trial {row['trial']}"
                        )
                        found.append(f"{self.path} is damaged: a row of its {table} ({what})")
        return found

    def forget(self, keys: Iterable[str]) -> None:
        """Deletes cells, finished or not."""
        with self._transaction():
            self._connection.executemany("DELETE FROM cells WHERE key = ?", [(key,) for key in keys])

    def adopt(self, rows: Iterable[CellRow]) -> None:
        """Takes over finished cells of another store; ours must have registered them."""
        names = [*SCORES, "torch", "extra", "status", "seconds", "error", "started", "finished"]
        assignments = ", ".join(f"{name} = ?" for name in names)
        taken, values = list(rows), operator.itemgetter(*names)
        with self._transaction():
            self._connection.executemany(
                f"UPDATE cells SET {assignments} WHERE key = ?",
                [(*values(row), row["key"]) for row in taken],
            )
            for row in taken:
                if row["status"] == "done":
                    self._seal_cell(row["key"])

    def restore(self, table: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Puts back rows of `cells` or `work` as they were, digest and all."""
        with self._transaction():
            for row in rows:
                names = ", ".join(f'"{name}"' for name in row)
                places = ", ".join("?" * len(row))
                self._connection.execute(
                    f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({places})", (*row.values(),)
                )

    # shared work

    def finish_work(
        self, key: str, kind: str, label: str, info: Mapping[str, object], seconds: dict[str, float]
    ) -> None:
        """Records finished shared work; its files are in place already."""
        row = dict(zip(WORK_COLUMNS, (key, kind, label, json.dumps(info), json.dumps(seconds))))
        with self._transaction():
            self._connection.execute(
                "INSERT OR REPLACE INTO work (key, kind, label, info, seconds, finished, digest) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*row.values(), now(), digest(row)),
            )

    def work(self) -> dict[str, WorkRow]:
        """Key → row of finished shared work, with `info` and `seconds` decoded."""
        rows = {row["key"]: dict(row) for row in self._connection.execute("SELECT * FROM work")}
        for row in rows.values():
            row["info"], row["seconds"] = json.loads(row["info"]), json.loads(row["seconds"])
        return cast("dict[str, WorkRow]", rows)

    # sessions and the summary

    def begin_session(self, facts: Mapping[str, object]) -> int:
        """Notes that a process starts working; returns the number of the session."""
        with self._transaction():
            cursor = self._connection.execute(
                "INSERT INTO sessions (started, facts) VALUES (?, ?)", (now(), json.dumps(facts))
            )
        return int(cursor.lastrowid or 0)

    def end_session(self, number: int, facts: Mapping[str, object] | None = None) -> None:
        """Notes that it ended by itself, and what is known only then."""
        with self._transaction():
            row = self._connection.execute("SELECT facts FROM sessions WHERE id = ?", (number,)).fetchone()
            known = {**_facts(row[0]), **(facts or {})}
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
        try:
            meta = {row["name"]: json.loads(row["value"]) for row in self._connection.execute("SELECT * FROM meta")}
        except ValueError as error:
            raise StudyError(f"{self.path} is damaged: a fact is no JSON ({error}). Run the study again") from None
        sessions: list[SessionRow] = [
            cast("SessionRow", dict(row) | {"facts": _facts(row["facts"])})
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

    def _seal_cell(self, key: str) -> None:
        """Gives a finished cell the digest of its row; inside a transaction."""
        row = self._connection.execute("SELECT * FROM cells WHERE key = ?", (key,)).fetchone()
        if row is not None:
            values = (row_digest(dict(row), CELL_COLUMNS), key)
            self._connection.execute("UPDATE cells SET digest = ? WHERE key = ?", values)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._guarded():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._connection.in_transaction:  # on a full disk SQLite has rolled back already
                    self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            if "full" in str(error) or ("I/O" in str(error) and _is_full(self.path.parent)):
                raise OutOfSpace(disk_full_message(self.path.parent)) from None
            raise StudyError(f"cannot write {self.path}: {error}") from None
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # messages quote damaged names
            raise StudyError(f"{self.path} is damaged or no store of results: {error}") from None


def text(content: bytes) -> str:
    """Text of the store; damaged bytes become other characters, which the digest of the row then does not fit."""
    return content.decode("utf-8", "replace")


def _facts(text: str) -> dict[str, Any]:
    """The facts of a session; none if they are damaged, as no result depends on them."""
    try:
        facts = json.loads(text)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _check_pages(database: sqlite3.Connection, path: Path) -> None:
    """Refuses a file whose pages do not fit together.

    Raises:
        StudyError: With what SQLite found, and what to do.
    """
    try:
        found = [str(row[0]) for row in database.execute("PRAGMA integrity_check(3)")]
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        found = [str(error)]
    if found == ["ok"] and (damage := table_damage(database)):
        found = [damage]
    if found != ["ok"]:
        raise StudyError(
            f"{path} is damaged or no store of results ({'; '.join(found)}). `sqlite3 {path.name} .recover` may save "
            f"what is left of it; or move {path.parent} away and run the study again"
        )


def _refuse_newer(database: sqlite3.Connection, path: Path) -> None:
    found = version_of(database)
    if found > VERSION:
        raise StudyError(
            f"{path} was written by a newer roarfast: its store has version {found}, this one knows up to {VERSION}"
        )


def _is_full(folder: Path) -> bool:
    """Whether not even a page fits: SQLite calls that an I/O error where it maps a file (`-shm`)."""
    return shutil.disk_usage(folder).free < 64 << 10


def disk_full_message(folder: Path) -> str:
    """What to tell when the disk is full."""
    return f"no space left on the disk of {folder}; finished cells are safe: free some space and give the same command again"


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
