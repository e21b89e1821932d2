"""Every file of a run, damaged in every way: the next run says which, makes it again, and ends as if nothing had been."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.study_helpers import outcome, run_tiny, tiny

pytest.importorskip("torch")
pytest.importorskip("pydantic")

from roarfast._sealed import Damaged, read_sealed, seal
from roarfast.study import Study, training
from roarfast.study.errors import StudyError
from roarfast.study.progress import TaskProgress
from roarfast.study.records import Cell
from roarfast.study.recovery import recover
from roarfast.study.results import load
from roarfast.study.store import Store
from roarfast.study.training import Trainer

TEXT = tiny(estimators=["grad^2"], postprocess=["plain"], drops=[0.5], examples="1\nkeep_codes = true")


class Notes(TaskProgress):
    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x04
    path.write_bytes(content)


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: 2 * len(content) // 3])


def empty(path: Path) -> None:
    path.write_bytes(b"")


WAYS: dict[str, Callable[[Path], None]] = {"flip": flip, "cut": cut, "empty": empty, "delete": Path.unlink}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run that still has its codes and the checkpoint of its retrained model."""
    folder = tmp_path_factory.mktemp("damage")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "_CHECKPOINT_PAUSE", 0.0)
        patch.setattr(Trainer, "forget", lambda self, name: None)
        run_tiny(folder, TEXT)
    assert list((folder / "run" / "models").glob("cell-*.ckpt"))
    return folder


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def forget(folder: Path, *statements: str) -> None:
    with sqlite3.connect(folder / "run" / "results.sqlite") as database:
        for statement in statements:
            assert database.execute(statement).rowcount > 0


def run(folder: Path, workers: int = 1) -> list[str]:
    notes = Notes()
    assert Study.from_toml(folder / "study.toml", folder / "run").run(workers=workers, progress=notes).failed == []
    return notes.notes


ROAD = "DELETE FROM cells WHERE protocol = 'road' AND \"order\" = 'morf'"
NO_CODES = ("DELETE FROM cells WHERE protocol = 'road'", "DELETE FROM work WHERE kind = 'codes'")
KINDS = {
    "models/base-*.pt": (ROAD,),
    "codes/*/test-morf.npy": (ROAD,),
    "codes/*/info.json": (ROAD,),
    "maps/*/test/grad*/maps.npy": NO_CODES,
    "maps/*/test/grad*/scales.npy": NO_CODES,
    "maps/*/test/grad*/meta.json": NO_CODES,
    "maps/*/test/grad*/identity.json": NO_CODES,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_made_again(finished: Path, copy: Path, kind: str, way: str) -> None:
    forget(copy, *KINDS[kind])
    (path,) = (copy / "run").glob(kind)
    WAYS[way](path)
    notes = run(copy)
    assert outcome(copy / "run") == outcome(finished / "run")
    if (
        not kind.endswith(".json") and way != "delete"
    ):  # JSON: only what is read from it matters; deleted: simply absent
        assert any(path.name in note and "making it again" in note for note in notes), notes
    forget(copy, *KINDS[kind])
    assert not any("damaged" in note for note in run(copy)), "it was not made again"


@pytest.mark.parametrize("way", ["flip", "cut", "empty"])
def test_a_training_with_a_damaged_checkpoint_starts_over(finished: Path, copy: Path, way: str) -> None:
    forget(copy, "DELETE FROM cells WHERE protocol = 'roar'")
    (path,) = (copy / "run" / "models").glob("cell-*.ckpt")
    WAYS[way](path)
    notes = run(copy)
    assert any(path.name in note and "starts over" in note for note in notes), notes
    assert outcome(copy / "run") == outcome(finished / "run") and not path.exists()


@pytest.mark.parametrize("way", ["flip", "empty"])
def test_examples_are_made_again(copy: Path, way: str) -> None:
    (path,) = (copy / "run" / "examples").glob("*.npz")
    WAYS[way](path)
    run(copy)
    assert read_sealed(path)[:2] == b"PK"


def test_with_two_workers_too(finished: Path, copy: Path) -> None:
    forget(copy, *NO_CODES)
    for kind in ("models/base-*.pt", "maps/*/test/grad*/maps.npy", "maps/*/train/grad*/maps.npy"):
        (path,) = (copy / "run").glob(kind)
        flip(path)
    assert len([note for note in run(copy, workers=2) if "making it again" in note]) >= 3
    assert outcome(copy / "run") == outcome(finished / "run")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE cells SET accuracy = accuracy + 1e-9 WHERE protocol = 'road' AND \"order\" = 'morf'",
        "UPDATE cells SET estimator = 'grae^2' WHERE protocol = 'roar'",
        "UPDATE cells SET key = 'x' || key WHERE protocol = 'roar'",
        "UPDATE cells SET extra = '{' WHERE protocol = 'base'",
    ],
)
def test_a_changed_row_is_refused_by_readers_and_made_again_by_a_run(finished: Path, copy: Path, change: str) -> None:
    forget(copy, change)
    with pytest.raises(StudyError, match=r"results\.sqlite is damaged: a row of its cells"):
        load(copy / "run")
    assert any("a row of its cells" in note for note in run(copy))
    assert outcome(copy / "run") == outcome(finished / "run")


def test_a_changed_row_of_work_is_made_again(finished: Path, copy: Path) -> None:
    forget(copy, ROAD, "UPDATE work SET info = replace(info, '0.', '1.') WHERE kind = 'codes'")
    assert any("a row of its work (codes" in note for note in run(copy))
    assert outcome(copy / "run") == outcome(finished / "run")


@pytest.mark.parametrize("page", [0, 1, -1])
def test_a_store_whose_pages_do_not_fit_is_refused_by_readers_and_replaced_by_a_run(
    finished: Path, copy: Path, page: int
) -> None:
    path = copy / "run" / "results.sqlite"
    content = bytearray(path.read_bytes())
    first = 4096 * page if page >= 0 else len(content) - 4096
    content[first : first + 4096] = bytes(4096)
    path.write_bytes(content)
    with pytest.raises(StudyError, match=r"results\.sqlite (is damaged|cannot be read)"):
        load(copy / "run")
    notes = run(copy)
    assert any("results.sqlite is damaged" in note and "kept as results.damaged-1.sqlite" in note for note in notes)
    assert path.with_name("results.damaged-1.sqlite").read_bytes() == content
    assert outcome(copy / "run") == outcome(finished / "run")
    assert not any("damaged" in note for note in run(copy))


@pytest.mark.parametrize(
    ("change", "saved"),
    [("ALTER TABLE cells RENAME COLUMN tv_map TO tv_mbp", True), ("ALTER TABLE cells RENAME TO cellr", False)],
)
def test_a_store_whose_tables_are_misnamed_is_refused_by_readers_and_replaced_by_a_run(
    finished: Path, copy: Path, change: str, saved: bool
) -> None:
    with contextlib.closing(sqlite3.connect(copy / "run" / "results.sqlite")) as database, database:
        cells, work = (database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("cells", "work"))
        database.execute(change)
    with pytest.raises(StudyError, match=r"results\.sqlite is damaged .*the columns of cells"):
        load(copy / "run")
    (note,) = (note for note in run(copy) if "the columns of cells" in note)
    assert f" {work + (cells if saved else 0)} rows were saved" in note
    assert outcome(copy / "run") == outcome(finished / "run")


@pytest.mark.parametrize("which", [0, 1])
def test_a_damaged_key_of_a_row_or_of_its_index_is_mended_by_a_run(finished: Path, copy: Path, which: int) -> None:
    store = copy / "run" / "results.sqlite"
    with contextlib.closing(sqlite3.connect(store)) as database:
        (key,) = database.execute("SELECT key FROM cells LIMIT 1").fetchone()
        database.execute("PRAGMA journal_mode=DELETE")
    whole = store.read_bytes()
    places = [found.start() for found in re.finditer(key.encode(), whole)]
    assert len(places) == 2, "a row and its entry in the index"
    store.write_bytes(whole[: places[which]] + bytes([whole[places[which]] ^ 0x01]) + whole[places[which] + 1 :])
    assert any("results.sqlite is damaged" in note and "index" in note for note in run(copy))
    assert outcome(copy / "run") == outcome(finished / "run")
    assert not any("damaged" in note for note in run(copy))


@pytest.mark.parametrize("bit", [0x01, 0x20, 0x80])
def test_no_damaged_byte_of_the_first_page_is_an_error_without_a_name(copy: Path, tmp_path: Path, bit: int) -> None:
    whole = (copy / "run" / "results.sqlite").read_bytes()
    folder = tmp_path / "one"
    folder.mkdir()
    for place in range(bit % 13, 4096, 13):
        (folder / "results.sqlite").write_bytes(whole[:place] + bytes([whole[place] ^ bit]) + whole[place + 1 :])
        try:
            with Store.open_readonly(folder) as store:
                store.records()
        except StudyError as error:
            assert "results.sqlite" in str(error)
        recover(folder)
        try:
            with Store.create(folder) as store:
                store.drop_damaged()
                store.rows()
        except StudyError as error:
            assert "results.sqlite" in str(error), place
        shutil.rmtree(folder)
        folder.mkdir()


def test_no_damaged_byte_of_a_store_hides_a_cell_or_doubles_it(copy: Path, tmp_path: Path) -> None:
    path = copy / "run" / "results.sqlite"
    with Store.open_readonly(copy / "run") as store:
        rows = store.rows()
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode=DELETE")
    names = ("protocol", "estimator", "postprocess", "order", "drop", "trial", "null")
    cells = [(row["key"], Cell(*(row[name] for name in names))) for row in rows]  # type: ignore[literal-required]
    whole, folder = path.read_bytes(), tmp_path / "one"
    for place in range(4096, len(whole), 97):
        folder.mkdir()
        (folder / "results.sqlite").write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        recover(folder)
        with Store.create(folder) as store:
            store.drop_damaged()
            store.register(cells, rows[0]["dataset"])
            for key, _ in cells:
                store.finish({key: {"accuracy": 0.5}}, {})
            found = [row["key"] for row in store.rows() if row["accuracy"] == 0.5]
            assert sorted(found) == sorted(key for key, _ in cells), place
        shutil.rmtree(folder)


def test_any_flipped_bit_of_a_sealed_file_is_noticed_or_harmless(tmp_path: Path) -> None:
    import io
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("weights", bytes(range(64)))
    whole, path = seal(buffer.getvalue()), tmp_path / "a.pt"
    noticed = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert read_sealed(path)[:-22] == whole[:-22]  # only the mark itself: taken for a file without a checksum
        except Damaged as error:
            assert str(path) in str(error)
            noticed += 1
    assert noticed >= len(whole) - 6
