"""The store and the lock: atomic, readable while written, one process at a time."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pydantic")

from roarfast._progress import duration
from roarfast.study.actions import describe_status
from roarfast.study.errors import FolderInUse, OutOfSpace, StudyError
from roarfast.study.progress import Eta
from roarfast.study.records import Cell
from roarfast.study.results import load
from roarfast.study.runfolder import RunFolder
from roarfast.study.store import Store

CELLS = [(f"key{i}", Cell("roar", "grad^2", "plain", "morf", 0.1 * (i + 1), 0)) for i in range(4)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store.create(tmp_path)
    store.register(CELLS, "shapes")
    return store


def test_results_come_back_as_records(store: Store, tmp_path: Path) -> None:
    store.put(config={"name": "x"}, seeds={"study": 0})
    session = store.begin_session({"workers": 2})
    store.finish({"key1": {"accuracy": 0.5, "tv_mask": 0.25}}, {"training": 2.0, "other": 0.5})
    store.fail(["key2"], "Traceback: boom")
    store.finish_work("w", "maps", "maps grad", {"passes": 1}, {"map_passes": 3.0, "map_other": 0.5})
    store.mark(["key3"], "running")
    store.end_session(session)
    results = load(tmp_path)  # while the writer is open
    assert [r.status for r in results] == ["pending", "done", "failed", "running"]
    assert results.records[1].accuracy == 0.5 and results.records[1].seconds == {"training": 2.0, "other": 0.5}
    assert results.records[2].error == "Traceback: boom"
    assert results.meta["stage_seconds"]["map_passes"] == 3.0 and results.meta["stage_seconds"]["training"] == 2.0
    assert results.meta["config"] == {"name": "x"} and results.meta["finished"] is None
    assert results.select(status="done", drop=0.2) == [results.records[1]]
    with pytest.raises(ValueError, match="no field droop"):
        results.select(droop=1)


def test_csv_and_dataframe(store: Store, tmp_path: Path) -> None:
    store.finish({"key0": {"accuracy": 0.5}}, {"training": 2.0})
    text = load(tmp_path).to_csv(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == text
    header, first, *_ = text.splitlines()
    assert header.startswith("key,protocol,dataset,estimator,postprocess,order,drop,trial,status,accuracy")
    assert first.startswith("key0,roar,shapes,grad^2,plain,morf,0.1,0,done,0.5")
    pd = pytest.importorskip("pandas")
    frame = load(tmp_path).to_dataframe()
    assert isinstance(frame, pd.DataFrame) and len(frame) == 4 and frame.seconds_training[0] == 2.0


def test_registering_again_keeps_results_and_takes_the_new_order(store: Store, tmp_path: Path) -> None:
    store.finish({"key0": {"accuracy": 0.5}}, {})
    store.register([*reversed(CELLS), ("key9", Cell("roar", "vg", "plain", "morf", 0.1, 0))], "shapes")
    assert [r.key for r in load(tmp_path)] == ["key3", "key2", "key1", "key0", "key9"]
    assert store.statuses()["key0"] == "done"


def test_what_a_killed_run_left_is_tried_again(store: Store) -> None:
    store.mark(["key0"], "running")
    store.fail(["key1"], "boom")
    store.finish({"key2": {"accuracy": 1.0}}, {})
    store.reopen()
    assert store.statuses() == {"key0": "pending", "key1": "pending", "key2": "done", "key3": "pending"}


def test_a_transaction_happens_or_not(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"damaged|cannot write"), store._transaction():
        store._connection.execute("UPDATE cells SET status = 'done'")
        store._connection.execute("UPDATE cells SET status = 'no such status'")
    assert set(Store.open_readonly(tmp_path).statuses().values()) == {"pending"}


def test_kill_while_writing_leaves_a_readable_store(tmp_path: Path) -> None:
    script = f"""
from roarfast.study.store import Store
from roarfast.study.records import Cell
store = Store.create({str(tmp_path)!r})
store.register([(f"key{{i}}", Cell("roar", "grad", "plain", "morf", 0.1, i)) for i in range(100000)], "x")
print("go", flush=True)
for i in range(100000):
    store.finish({{f"key{{i}}": {{"accuracy": i / 100000}}}}, {{"training": 1.0}})
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.2)
    process.kill()
    process.wait()
    done = [r for r in load(tmp_path) if r.status == "done"]
    assert 0 < len(done) < 100000
    assert [r.accuracy for r in done] == [r.trial / 100000 for r in done]
    Store.create(tmp_path).close()


def test_missing_and_damaged_stores(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="is no run folder"):
        load(tmp_path)
    RunFolder(tmp_path).store.write_bytes(b"this is no database" * 100)
    with pytest.raises(StudyError, match="cannot be read"):
        load(tmp_path)
    with pytest.raises(StudyError, match="damaged"):
        Store.create(tmp_path)


def test_a_full_disk_is_told_from_other_errors(store: Store) -> None:
    with pytest.raises(OutOfSpace, match="free some space and give the same command"), store._guarded():
        raise sqlite3.OperationalError("database or disk is full")


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="cannot write to the run folder"):
        Store.create(tmp_path / "file" / "run")


def test_the_lock_refuses_a_second_holder_and_dies_with_its_process(tmp_path: Path) -> None:
    script = f"""
import time
from pathlib import Path
from roarfast.study.runfolder import RunFolder
with RunFolder(Path({str(tmp_path)!r})).lock():
    print("held", flush=True)
    time.sleep(60)
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        assert RunFolder(tmp_path).is_running()
        with (
            pytest.raises(FolderInUse, match=rf"in use by another process \(pid {process.pid}\)"),
            RunFolder(tmp_path).lock(),
        ):
            pass
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert not RunFolder(tmp_path).is_running()
    with RunFolder(tmp_path).lock():
        pass


def test_status_text(store: Store, tmp_path: Path) -> None:
    store.put(config={"name": "x"})
    store.begin_session({"workers": 2})
    store.finish({"key0": {"accuracy": 0.5}}, {"training": 10.0})
    store.fail(["key1"], "Traceback\nRuntimeError: boom")
    store.mark(["key2"], "running")
    text = describe_status(tmp_path)
    assert "not running" in text and "1 done, 0 running, 1 failed, 2 pending of 4 cells" in text
    assert "about 10.0 s left" in text  # two cells of 10 s on two workers
    assert "failed: roar grad^2 plain morf t=0.2 trial 0: RuntimeError: boom" in text


def test_eta_uses_what_was_timed_and_guesses_the_rest() -> None:
    eta = Eta({"roar": 3, "road": 2})
    assert eta.seconds_left(1) is None
    eta.finished("roar", 10.0)
    assert eta.seconds_left(1) == pytest.approx(2 * 10 + 2 * 0.5)
    eta.finished("road", 2.0)
    assert eta.seconds_left(2) == pytest.approx((2 * 10 + 2) / 2)


@pytest.mark.parametrize(
    ("seconds", "text"), [(8.44, "8.4 s"), (59.97, "1 min 00 s"), (200, "3 min 20 s"), (7500, "2 h 05 min")]
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def _full(database: sqlite3.Connection) -> None:
    """A migration on a full disk: SQLite rolls back by itself."""
    database.execute("ROLLBACK")
    raise sqlite3.OperationalError("database or disk is full")


def test_a_full_disk_is_called_so_whatever_sqlite_calls_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from roarfast.study import migrations
    from roarfast.study import store as module
    from roarfast.study.errors import OutOfSpace

    with Store.create(tmp_path) as store:
        with pytest.raises(StudyError, match=r"cannot write .*results\.sqlite: disk I/O error"), store._guarded():
            raise sqlite3.OperationalError("disk I/O error")
        monkeypatch.setattr(module, "_is_full", lambda folder: True)
        with pytest.raises(OutOfSpace, match="no space left on the disk"), store._guarded():
            raise sqlite3.OperationalError("disk I/O error")
        monkeypatch.setattr(migrations, "version_of", lambda database: 0)
        with pytest.raises(OutOfSpace, match="no space left on the disk"), store._guarded():
            monkeypatch.setattr(migrations, "MIGRATIONS", [_full])
            migrations.migrate(store._connection)
        with pytest.raises(OutOfSpace, match="no space left on the disk"), store._transaction():
            store._connection.execute("ROLLBACK")  # as SQLite does by itself
            raise sqlite3.OperationalError("database or disk is full")


def test_cells_know_their_torch(store: Store, tmp_path: Path) -> None:
    store.finish({"key0": {"accuracy": 0.5}}, {}, "2.13.0")
    store.finish({"key1": {"accuracy": 0.5}}, {})
    assert [record.torch for record in load(tmp_path)] == ["2.13.0", None, None, None]
    assert "torch" in load(tmp_path).to_csv().splitlines()[0].split(",")
    store._connection.execute("UPDATE cells SET torch = '2.99' WHERE key = 'key0'")
    with pytest.raises(StudyError, match="is not what was written"):
        load(tmp_path)


def test_another_torch_is_said_at_the_start(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from roarfast.study import study

    monkeypatch.setattr(study, "versions", lambda: {"torch": "2.15.0"})
    store.finish({"key0": {"accuracy": 0.5}}, {}, "2.15.0")
    assert study.other_torch(store) == []
    store.finish({"key1": {"accuracy": 0.5}}, {}, "2.13.0")
    assert study.other_torch(store) == [
        "cells of this folder were computed with torch 2.13.0, and this is torch 2.15.0"
    ]
