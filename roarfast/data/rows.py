"""Rows of large arrays: from memory, or straight from the file behind a memory map."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from roarfast._types import Numpy


class RowSource:
    """Reads rows of an array `[N, ...]`.

    Of a memory map they are read from its file, a call for each run of neighbours: a page that is not in memory costs a map a
    fault of its own, and a disk answers a request for a whole image sooner than for each of its pages.

    Args:
        array: NumPy array or memory map; a part of a map (`images[first:last]`) is fine.
    """

    def __init__(self, array: Any) -> None:
        self._array = array
        self._file: Any = None
        base, first = array, 0
        while not isinstance(base, np.memmap) and isinstance(getattr(base, "base", None), np.ndarray):
            base = base.base
        if (
            isinstance(base, np.memmap)
            and base.mode != "c"
            and base.filename
            and array.flags.c_contiguous
            and len(array)
        ):
            whole: Any = base
            while isinstance(whole.base, np.memmap):
                whole = whole.base
            first = array.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
            self._file = open(whole.filename, "rb", buffering=0)  # noqa: SIM115  (as long as this lives)
            self._begin, self._stride = int(whole.offset) + first, int(array.strides[0])

    def read(self, rows: Numpy, target: Numpy) -> None:
        """Copies rows to `target` `[len(rows), ...]`, which is contiguous and of the array's dtype."""
        if self._file is None or not target.flags.c_contiguous:
            np.take(self._array, rows, axis=0, out=target, mode="clip")  # "raise" would copy the output first
            return
        bytes_of = target.reshape(-1).view(np.uint8).data
        ends = np.flatnonzero(np.diff(rows) != 1) + 1
        runs = zip([0, *ends.tolist()], [*ends.tolist(), len(rows)])
        for first, last in sorted(runs, key=lambda run: rows[run[0]] if run[1] else 0):  # as they lie on the disk
            if last > first:
                self._fill(bytes_of[first * self._stride : last * self._stride], int(rows[first]) * self._stride)

    def _fill(self, part: memoryview, at: int) -> None:
        done = 0
        while done < len(part):
            count = os.preadv(self._file.fileno(), [part[done:]], self._begin + at + done)
            if not count:
                raise OSError(f"{self._file.name} ends too early: it was shortened while it was read")
            done += count

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()
