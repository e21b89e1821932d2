"""The store's versions: every step is one transaction, and old and new files end with the same tables."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

pytest.importorskip("pydantic")

from roarfast.study import migrations
from roarfast.study.errors import StudyError
from roarfast.study.results import load
from roarfast.study.store import Store

V1 = Path(__file__).parent / "data" / "runs" / "v1"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A run folder with nothing but a store of version 1."""
    shutil.copy(V1 / "results.sqlite", tmp_path)
    return tmp_path


def columns(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    with sqlite3.connect(folder / "results.sqlite") as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: database.execute(f"PRAGMA table_info({name})").fetchall() for name in sorted(tables)}


def version(folder: Path) -> int:
    with sqlite3.connect(folder / "results.sqlite") as database:
        return migrations.version_of(database)


def test_an_old_store_is_read_without_being_changed(old: Path) -> None:
    before = (old / "results.sqlite").read_bytes()
    results = load(old)
    assert {r.null for r in results} == {"own"} and {r.status for r in results} == {"done"}
    assert (old / "results.sqlite").read_bytes() == before
    assert version(old) == 1


def test_an_old_store_becomes_a_new_one_when_written(old: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    expected = load(old).records
    Store.create(old).close()
    fresh = tmp_path_factory.mktemp("fresh")
    Store.create(fresh).close()
    assert version(old) == version(fresh) == migrations.VERSION
    assert columns(old) == columns(fresh)
    assert load(old).records == expected


def test_a_step_that_fails_leaves_the_store_as_it_was(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(database: sqlite3.Connection) -> None:
        database.execute("ALTER TABLE cells ADD COLUMN half TEXT")
        raise KeyboardInterrupt

    before = columns(old)
    monkeypatch.setattr(migrations, "MIGRATIONS", (migrations.MIGRATIONS[0], half))
    with pytest.raises(KeyboardInterrupt):
        Store.create(old)
    assert columns(old) == before and version(old) == 1


def test_a_store_from_the_future_is_refused(old: Path) -> None:
    Store.create(old).close()
    with sqlite3.connect(old / "results.sqlite") as database:
        database.execute(f"PRAGMA user_version = {migrations.VERSION + 1}")
    for use in (Store.create, Store.open_readonly):
        with pytest.raises(StudyError, match=f"newer roarfast.*version {migrations.VERSION + 1}"):
            use(old)


def test_scores_without_a_column_are_kept_and_become_columns_of_the_csv(old: Path) -> None:
    with Store.create(old) as store:
        key = next(iter(store.statuses()))
        store.finish({key: {"accuracy": 0.5, "insertion": 0.25}}, {})
    results = load(old)
    assert results.records[0].extra == {"insertion": 0.25}
    header, first, second, *_ = results.to_csv().splitlines()
    at = header.split(",").index("insertion")
    assert (first.split(",")[at], second.split(",")[at]) == ("0.25", "")
