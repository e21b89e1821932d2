"""What earlier versions wrote: names in configs, and the store, with one numbered step from each version to the next.

Old names in a config are an error that says the new one, except in the `study.toml` of a run folder. Keys of cells go on
hashing the old spelling (`hashed_removal`, `Recipe.as_hashed`, `Options.as_dict`), so that results of old run folders are
found under the new names.

`PRAGMA user_version` of the file says which version it has. A change of the store is a new function at the end of
`MIGRATIONS`, and a run folder of the version before it in `tests/study/data/runs`; steps that have landed never change.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass

Migration = Callable[[sqlite3.Connection], None]
_FILLS = {"mean": "dataset_mean", "image-mean": "image_mean"}


@dataclass(frozen=True)
class Renamed:
    """One old name found in a config: where (key path), what stood there, and what to write."""

    path: tuple[str, ...]
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.old} is called {self.new} now"


def translate(raw: dict[str, object]) -> list[Renamed]:
    """Replaces old names in a parsed config, in place; returns what it found."""
    found = []
    removal, train, explain = (_table(raw, name) for name in ("removal", "train", "explain"))
    options = _table(explain, "options")
    for table, path in ((removal, ("removal", "fill")), (options, ("explain", "options", "ig_baseline"))):
        value = table.get(path[-1])
        if isinstance(value, str) and value in _FILLS and (table is removal or value == "image-mean"):
            table[path[-1]] = _FILLS[value]
            found.append(Renamed(path, f'{path[-1]} = "{value}"', f'"{_FILLS[value]}"'))
    if isinstance(value := train.get("channels_last"), bool):
        del train["channels_last"]
        train["layout"] = "NHWC" if value else "NCHW"
        found.append(
            Renamed(
                ("train", "channels_last"), f"channels_last = {str(value).lower()}", f'layout = "{train["layout"]}"'
            )
        )
    return found


def hashed_removal(removal: dict[str, object]) -> dict[str, object]:
    """The `[removal]` section as keys hash it: fills by their first names."""
    first = {new: old for old, new in _FILLS.items()}
    fill = removal["fill"]
    return removal | {"fill": first.get(fill, fill) if isinstance(fill, str) else fill}


def _table(raw: dict[str, object], name: str) -> dict[str, object]:
    value = raw.get(name)
    return value if isinstance(value, dict) else {}


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


def _cross_entropy(database: sqlite3.Connection) -> None:
    """Version 5: cells have the mean cross entropy of the test images; those from before do not."""
    database.execute("ALTER TABLE cells ADD COLUMN cross_entropy REAL")


def _torch_versions(database: sqlite3.Connection) -> None:
    """Version 6: cells know which torch computed them; those from before do not."""
    database.execute("ALTER TABLE cells ADD COLUMN torch TEXT")


MIGRATIONS: tuple[Migration, ...] = (
    _tables,
    _nulls_and_extra_scores,
    _names_of_fills,
    _digests,
    _cross_entropy,
    _torch_versions,
)
VERSION = len(MIGRATIONS)


def version_of(database: sqlite3.Connection) -> int:
    """The version of a store; 0 for an empty file."""
    number = int(database.execute("PRAGMA user_version").fetchone()[0])
    if number == 0 and database.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
        return 1  # written before the file itself carried the number
    return number


def columns_of(database: sqlite3.Connection) -> dict[str, list[tuple[str, str]]]:
    """Names and types of the columns of every table of a store, in order."""
    tables = [str(row[0]) for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {
        table: [
            (str(name), str(kind))
            for name, kind in database.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
        ]
        for table in tables
    }


def expected_columns(version: int) -> dict[str, list[tuple[str, str]]]:
    """What `columns_of` gives for a whole store of a version."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        for step in MIGRATIONS[:version]:
            step(database)
        return columns_of(database)


def table_damage(database: sqlite3.Connection) -> str:
    """Which tables of a store are not what its version wrote, which no check of SQLite sees; empty if all are well."""
    version = version_of(database)
    if not 0 < version <= VERSION:
        return ""
    found = columns_of(database)
    wrong = [table for table, columns in expected_columns(version).items() if found.get(table) != columns]
    return f"the columns of {', '.join(wrong)} are not those of version {version}" if wrong else ""


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
            if database.in_transaction:  # on a full disk SQLite has rolled back already
                database.execute("ROLLBACK")
            raise
