"""What pages of results share: the CSV files beside them, and the lists that they begin with."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

Row = dict[str, str]


def read(path: Path, *, missing_ok: bool = False) -> list[Row]:
    """The rows of a CSV file; with `missing_ok` none if it is not there."""
    if missing_ok and not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def rows_of(folder: Path, name: str) -> list[Row]:
    """The rows of `<name>.csv` in a folder; none if it is not there."""
    return read(folder / f"{name}.csv", missing_ok=True)


def write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A CSV file; numbers with six digits."""
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(columns)
        out.writerows([[_short(value) for value in row] for row in rows])


def write_rows(path: Path, rows: Sequence[Mapping[str, object]], columns: Sequence[str] = ()) -> None:
    """The same of rows by column, which are those of the first row where `columns` names none."""
    with path.open("w", newline="") as file:
        out = csv.DictWriter(file, list(columns or rows[0]), lineterminator="\n")
        out.writeheader()
        out.writerows({name: _short(value) for name, value in row.items()} for row in rows)


def renew_rows(path: Path, rows: Sequence[Mapping[str, object]], key: str, columns: Sequence[str] = ()) -> None:
    """Writes rows in the place of those with the same `key`; others stay as they are in the file, in front."""
    new = {str(row[key]) for row in rows}
    kept = [row for row in read(path, missing_ok=True) if row[key] not in new]
    write_rows(path, [*kept, *rows], columns)


def opening(found: Mapping[bool | None, Sequence[str]]) -> list[str]:
    """What did not hold (False) in a sentence, then lists of what held (True) and of what cannot be told (None)."""
    lines = ["**What did not hold:** " + ("; ".join(found[False]) or "nothing that the intervals can tell") + ".", ""]
    for title, held in (("What held", True), ("What cannot be told here", None)):
        lines += [f"**{title}:**", "", *(f"- {text}" for text in found[held] or ["nothing"]), ""]
    return lines


def _short(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value
