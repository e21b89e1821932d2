"""RowSource: the rows that indexing gives, from memory and from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
from roarfast.data.rows import RowSource

ROWS = np.array([3, 4, 5, 0, 9, 9, 1])


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    np.save(tmp_path / "a.npy", np.random.default_rng(0).integers(0, 256, (12, 5, 7, 3), dtype=np.uint8))
    return tmp_path / "a.npy"


def read(array: np.ndarray, rows: np.ndarray = ROWS) -> np.ndarray:
    target = np.zeros((len(rows), *array.shape[1:]), array.dtype)
    RowSource(array).read(rows, target)
    return target


@pytest.mark.parametrize("part", [slice(None), slice(2, 12), slice(None, None, 2), slice(1, 11)])
def test_rows_are_those_of_indexing(stored: Path, part: slice) -> None:
    mapped = np.load(stored, mmap_mode="r")
    rows = ROWS % len(mapped[part])
    expected = np.load(stored)[part][rows]
    for array in (np.load(stored)[part], mapped[part], np.asarray(mapped[part]), mapped[part][:]):
        np.testing.assert_array_equal(read(array, rows), expected)
    assert RowSource(mapped[part])._file is not None or part.step == 2
    assert RowSource(np.load(stored))._file is None


def test_other_dtypes_no_rows_and_private_maps(tmp_path: Path) -> None:
    values = np.random.default_rng(1).random((6, 4, 4)).astype(np.float16)
    np.save(tmp_path / "h.npy", values)
    mapped = np.load(tmp_path / "h.npy", mmap_mode="r")
    np.testing.assert_array_equal(read(mapped, np.array([5, 0])), values[[5, 0]])
    assert read(mapped, np.array([], np.int64)).shape == (0, 4, 4)
    private = np.load(tmp_path / "h.npy", mmap_mode="c")
    private[2] = 7  # in memory only: the file does not have it
    np.testing.assert_array_equal(read(private, np.array([2])), private[[2]])


def test_a_file_that_was_shortened_is_an_error(stored: Path) -> None:
    source = RowSource(np.load(stored, mmap_mode="r"))
    with stored.open("rb+") as file:
        file.truncate(300)
    with pytest.raises(OSError, match="ends too early"):
        source.read(np.array([11]), np.zeros((1, 5, 7, 3), np.uint8))
