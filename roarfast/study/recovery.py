"""A store whose pages do not fit together any more: it is kept under another name, and a new one takes over what is whole in it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from roarfast.study.migrations import VERSION, expected_columns, table_damage, version_of
from roarfast.study.rows import is_whole
from roarfast.study.runfolder import RunFolder
from roarfast.study.store import Store, text

_TABLES = ("cells", "work")


def recover(folder: str | Path) -> list[str]:
    """Replaces the damaged store of a run folder by a new one with the rows that are still what was written.

    For a run, which makes the other rows again; the caller holds the folder's lock. Readers refuse such a store.

    Returns:
        What was done, for the run to say; nothing if the store is well, missing, or of a newer version.
    """
    path = RunFolder(folder).store
    if not path.is_file():
        return []
    damage, rows = _look(path)
    if not damage:
        return []
    kept = _set_aside(path)
    with Store.create(folder) as store:
        for table in _TABLES:
            store.restore(table, rows[table])
    saved = sum(len(found) for found in rows.values())
    return [
        f"{path} is damaged ({damage}): it is kept as {kept.name}, {saved} rows were saved, making the others again"
    ]


def _look(path: Path) -> tuple[str, dict[str, list[dict[str, object]]]]:
    """What SQLite finds wrong with a file, and if anything is, the rows that are whole."""
    rows: dict[str, list[dict[str, object]]] = {table: [] for table in _TABLES}
    connection = sqlite3.connect(path, isolation_level=None, timeout=30)
    connection.text_factory = text
    try:
        found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(3)")]
        if found == ["ok"] and not (damage := table_damage(connection)):
            return "", rows
        if found == ["ok"]:
            found = [damage]
        if version_of(connection) == VERSION:
            for table in _TABLES:
                rows[table] = _whole_rows(connection, table)
        return "; ".join(found), rows
    except sqlite3.OperationalError as error:
        if "malformed" not in str(error):
            return "", rows  # locked, not readable, …: the store says so itself
        return str(error), rows
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        return str(error), rows
    finally:
        connection.close()


def _whole_rows(connection: sqlite3.Connection, table: str) -> list[dict[str, object]]:
    """Read from both ends, each time up to the page that cannot be read."""
    names = [name for name, _ in expected_columns(VERSION)[table]]  # the table's own may be damaged
    found: dict[str, dict[str, object]] = {}
    for direction in ("ASC", "DESC"):
        try:
            for values in connection.execute(f"SELECT * FROM {table} ORDER BY rowid {direction}"):
                row = dict(zip(names, values))
                if len(values) == len(names) and is_whole(row, table):
                    found[row["key"]] = row
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            continue
    return list(found.values())


def _set_aside(path: Path) -> Path:
    number = 1
    while (kept := path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")).exists():
        number += 1
    os.replace(path, kept)
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    return kept
