"""Versions of the store: one numbered step from each to the next.

`PRAGMA user_version` of the file says which version it has. A change of the store is a new function at the end of
`MIGRATIONS`, and a run folder of the version before it in `tests/study/data/runs`; steps that have landed never change.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable

from roarfast.study.old_names import translate

Migration = Callable[[sqlite3.Connection], None]


def _tables(database: sqlite3.Connection) -> None:
    """Version 1: cells with their scores, shared work, sessions, and facts by name."""
    for statement in (
        "CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
        """CREATE TABLE cells (
            key TEXT PRIMARY KEY, position INTEGER NOT NULL,
            protocol TEXT NOT NULL, dataset TEXT NOT NULL, estimator TEXT NOT NULL, postprocess TEXT NOT NULL,
            "order" TEXT NOT NULL, "drop" REAL NOT NULL, trial INTEGER NOT NULL,
            status TEXT NOT NULL CHECK (status IN ('done', 'failed', 'pending', 'running')),
            accuracy REAL, true_class_probability REAL, removed_fraction REAL, removed_fraction_train REAL,
            tv_map REAL, tv_mask REAL, seconds TEXT, error TEXT, started TEXT, finished TEXT
        ) STRICT""",
        """CREATE TABLE work (
            key TEXT PRIMARY KEY, kind TEXT NOT NULL, label TEXT NOT NULL,
            info TEXT NOT NULL, seconds TEXT NOT NULL, finished TEXT NOT NULL
        ) STRICT""",
        """CREATE TABLE sessions (
            id INTEGER PRIMARY KEY, started TEXT NOT NULL, finished TEXT, facts TEXT NOT NULL
        ) STRICT""",
    ):
        database.execute(statement)


def _nulls_and_extra_scores(database: sqlite3.Connection) -> None:
    """Version 2: whose masks a cell removes (`null`), and scores beyond the fixed columns as JSON (`extra`)."""
    database.execute("ALTER TABLE cells ADD COLUMN \"null\" TEXT NOT NULL DEFAULT 'own'")
    database.execute("ALTER TABLE cells ADD COLUMN extra TEXT NOT NULL DEFAULT '{}'")
    database.execute("DELETE FROM meta WHERE name = 'schema'")  # where version 1 kept its number


def _names_of_fills(database: sqlite3.Connection) -> None:
    """Version 3: the stored config says `dataset_mean`, `image_mean` and `layout`."""
    row = database.execute("SELECT value FROM meta WHERE name = 'config'").fetchone()
    if row is not None:
        config = json.loads(row[0])
        translate(config)
        database.execute("UPDATE meta SET value = ? WHERE name = 'config'", (json.dumps(config),))


def _digests(database: sqlite3.Connection) -> None:
    """Version 4: finished cells and work carry a digest of their row; rows from before have none."""
    database.execute("ALTER TABLE cells ADD COLUMN digest TEXT")
    database.execute("ALTER TABLE work ADD COLUMN digest TEXT")


MIGRATIONS: tuple[Migration, ...] = (_tables, _nulls_and_extra_scores, _names_of_fills, _digests)
VERSION = len(MIGRATIONS)


def version_of(database: sqlite3.Connection) -> int:
    """The version of a store; 0 for an empty file."""
    number = int(database.execute("PRAGMA user_version").fetchone()[0])
    if number == 0 and database.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
        return 1  # written before the file itself carried the number
    return number


def migrate(database: sqlite3.Connection) -> None:
    """Brings a store to `VERSION`, each step a transaction; the connection must be in autocommit mode."""
    while version_of(database) < VERSION:
        database.execute("BEGIN IMMEDIATE")
        try:
            number = version_of(database)  # read again: another process may have been first
            if number < VERSION:
                MIGRATIONS[number](database)
                database.execute(f"PRAGMA user_version = {number + 1}")
            database.execute("COMMIT")
        except BaseException:
            database.execute("ROLLBACK")
            raise
