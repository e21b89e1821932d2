"""A table of the page, which is also a CSV and a LaTeX file."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from roarfast._files import write_atomic

BRIEF = 16  # tables of so many rows are kept on one page when printed


@dataclass(frozen=True)
class Td:
    """A cell of a table: what is shown, what it sorts by (and has in the CSV), a class for its colour, a hint.

    `bar` is drawn under the text: parts of 100 by name, as in `{"shape": 20.0, "image": 5.0}`.
    """

    text: str
    sort: float | str | None = None
    css: str = ""
    title: str = ""
    bar: dict[str, float] | None = None

    @property
    def key(self) -> str:
        """What the script sorts by; empty: the text itself."""
        return "" if self.sort is None or (isinstance(self.sort, float) and math.isnan(self.sort)) else str(self.sort)


Cells = Sequence[Td | str]
"""A row of a table; a plain string is a cell that sorts by its text."""

Row: TypeAlias = "dict[str, str | float | None]"
"""A row of a CSV file: column → value."""


@dataclass(frozen=True)
class Table:
    """A sortable table. The first cell of a row is its header.

    Attributes:
        name: Of its files.
        caption: What it shows; read out first by screen readers.
        columns: Header of each column.
        rows: The cells.
        groups: (label, number of columns) of a first header row, spanning all columns.
    """

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Td]]
    groups: Sequence[tuple[str, int]] = ()

    @property
    def left(self) -> set[int]:
        """Columns of text, which are aligned to the left."""
        return {i for row in self.rows for i, cell in enumerate(row) if "text" in cell.css.split()}

    @property
    def brief(self) -> bool:
        """Whether it fits a printed page."""
        return len(self.rows) <= BRIEF

    def labels(self) -> list[str]:
        """Names of the columns that stand alone, as a CSV needs them: with the name of their group before them."""
        groups = [label for label, width in self.groups for _ in range(width)] or [""] * len(self.columns)
        return [f"{group}: {column}" if group else column for group, column in zip(groups, self.columns)]

    def csv(self) -> str:
        """As CSV; numbers with 6 significant digits instead of their text where the page has one."""
        rows = [{label: _plain(cell) for label, cell in zip(self.labels(), row)} for row in self.rows]
        return csv_text(rows, self.labels())

    def latex(self) -> str:
        r"""As a LaTeX `tabular` for `\usepackage{booktabs}`, cells as shown."""
        align = "".join("l" if i == 0 or i in self.left else "r" for i in range(len(self.columns)))
        lines = [f"% {self.caption}", rf"\begin{{tabular}}{{{align}}}", r"\toprule"]
        if self.groups:
            spans = (rf"\multicolumn{{{n}}}{{c}}{{{latex(label)}}}" for label, n in self.groups)
            lines.append(" & ".join(spans) + r" \\")
        lines += [" & ".join(map(latex, self.columns)) + r" \\", r"\midrule"]
        lines += [" & ".join(latex(cell.text) for cell in row) + r" \\" for row in self.rows]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def table(
    name: str, caption: str, columns: Sequence[str], rows: Iterable[Cells], groups: Sequence[tuple[str, int]] = ()
) -> Table:
    """A `Table` whose rows may have plain strings as cells."""
    cells = [[Td(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    return Table(name, caption, columns, cells, groups)


def csv_text(rows: Iterable[Mapping[str, object]], columns: Sequence[str] = ()) -> str:
    """Rows of equal keys as CSV; numbers with 6 significant digits, nothing for NaN."""
    listed = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns or (listed[0] if listed else ["empty"])), lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _short(value) for key, value in row.items()} for row in listed)
    return text.getvalue()


def write_table(found: Table, folder: Path) -> None:
    """Writes `<name>.csv` and `<name>.tex`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / f"{found.name}.csv", found.csv())
    write_atomic(folder / f"{found.name}.tex", found.latex())


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": "$<$", ">": "$>$", "|": "$|$", "−": "$-$", "±": r"$\pm$",
    "²": "$^2$", "τ": r"$\tau$", "ρ": r"$\rho$", "σ": r"$\sigma$", "→": r"$\to$", "–": "--", "…": r"\dots{}", "\u00a0": "~",
    "✓": r"$\checkmark$", "×": r"$\times$", "≥": r"$\ge$", "≤": r"$\le$",
}  # fmt: skip
_SPECIAL = re.compile("[" + re.escape("".join(_LATEX)) + "]")


def latex(text: str) -> str:
    r"""Text for LaTeX: special characters and the symbols of the report.

    Example:
        >>> print(latex("grad² 5 % ± 0.3 & a_b"))
        grad$^2$ 5 \% $\pm$ 0.3 \& a\_b
    """
    return _SPECIAL.sub(lambda match: _LATEX[match.group()], text)


def _plain(cell: Td) -> float | str:
    return cell.sort if isinstance(cell.sort, (int, float)) else cell.text


def _short(value: object) -> object:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return value
