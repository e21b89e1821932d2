"""Pieces of the HTML page: text, tables that screen readers and scripts can use, figures, the page itself."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from itertools import count
from typing import Any

from roarfast.report.plotting import Figure

BRIEF = 16  # tables of so many rows are kept on one page when printed


@dataclass(frozen=True)
class Td:
    """A cell of a table: what is shown, what it sorts by, and a class for its colour."""

    text: str
    sort: float | str | None = None
    css: str = ""
    title: str = ""


Cells = list[Td | str]
"""A row of a table; a plain string is a cell that sorts by its text."""


class TableIds:
    """Numbers the tables and figures of one page."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def next(self) -> str:
        """A new id."""
        return f"item-{next(self._numbers)}"


def paragraph(text: str, css: str = "") -> str:
    """A paragraph of plain text."""
    return f"<p{_class(css)}>{escape(text)}</p>"


def bullets(items: Iterable[str]) -> str:
    """A list of plain texts."""
    return "<ul>" + "".join(f"<li>{escape(i)}</li>" for i in items) + "</ul>"


def note(text: str) -> str:
    """Something to know before reading what follows."""
    return f'<p class="note">{escape(text)}</p>'


def heading(level: int, text: str, anchor: str = "") -> str:
    """A heading, with an id if other parts link to it."""
    identity = f' id="{anchor}"' if anchor else ""
    return f"<h{level}{identity}>{escape(text)}</h{level}>"


def details(summary: str, content: str, printed: bool = False) -> str:
    """Content that is folded away on screen; if `printed`, the script opens it before printing."""
    return f"<details{_class('print' if printed else '')}><summary>{escape(summary)}</summary>{content}</details>"


def table(
    ids: TableIds,
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Cells],
    groups: Sequence[tuple[str, int]] = (),
) -> str:
    """A sortable table. The first cell of a row is its header.

    Args:
        ids: Source of ids.
        caption: What the table shows; read out first by screen readers.
        columns: Header of each column.
        rows: Cells; plain strings are shown as they are.
        groups: (label, number of columns) of a first header row, spanning all columns.
    """
    identity = ids.next()
    listed = list(rows)
    left = {
        i for cells in listed for i, cell in enumerate(cells) if isinstance(cell, Td) and "text" in cell.css.split()
    }
    head = ""
    if groups:
        cells = (f'<th scope="colgroup" colspan="{n}">{escape(label)}</th>' if label else f'<td colspan="{n}"></td>' for label, n in groups)  # fmt: skip
        head = f'<tr class="groups">{"".join(cells)}</tr>'
    names = (f'<th scope="col"{_class("text" if i in left else "")}>{escape(c)}</th>' for i, c in enumerate(columns))
    head += f"<tr>{''.join(names)}</tr>"
    body = "".join(_row(cells) for cells in listed)
    return (
        f'<div class="scroll" role="region" aria-labelledby="{identity}" tabindex="0">'
        f'<table class="sortable{" brief" if len(listed) <= BRIEF else ""}"><caption id="{identity}">{escape(caption)}</caption>'
        f"<thead>{head}</thead><tbody>{body}</tbody></table></div>"
    )


def _row(cells: Cells) -> str:
    parts = []
    for i, cell in enumerate(cells):
        td = Td(cell) if isinstance(cell, str) else cell
        attributes = _class(td.css)
        if td.sort is not None and not (isinstance(td.sort, float) and math.isnan(td.sort)):
            attributes += f' data-sort="{escape(str(td.sort))}"'
        if td.title:
            attributes += f' title="{escape(td.title)}"'
        tag, scope = ("th", ' scope="row"') if i == 0 else ("td", "")
        parts.append(f"<{tag}{scope}{attributes}>{escape(td.text)}</{tag}>")
    return f"<tr>{''.join(parts)}</tr>"


def figure(ids: TableIds, picture: Figure, text: str) -> str:
    """A figure with its caption; the drawing itself is one image with a description for screen readers."""
    identity = ids.next()
    if picture.png:
        data = base64.b64encode(picture.png).decode()
        drawing = f'<img class="strip" alt="{escape(picture.description)}" src="data:image/png;base64,{data}">'
        files = f'<a href="figures/{picture.name}.png">PNG</a>'
    else:
        drawing = f'<div role="img" aria-label="{escape(picture.description)}" class="drawing">{picture.svg}</div>'
        files = f'<a href="figures/{picture.name}.svg">SVG</a>, <a href="figures/{picture.name}.png">PNG</a>'
    caption = f'<figcaption id="{identity}"><strong>{escape(picture.title)}.</strong> {escape(text)} '
    caption += f'<span class="files">{files}</span></figcaption>'
    if picture.png:  # several follow each other: the name above tells which is which
        return f'<figure class="pictures" aria-labelledby="{identity}">{caption}{drawing}</figure>'
    return f'<figure aria-labelledby="{identity}">{drawing}{caption}</figure>'


def page(title: str, header: str, sections: Sequence[tuple[str, str, str]]) -> str:
    """The whole file: style and script inside, nothing fetched.

    Args:
        title: Of the document.
        header: HTML before the table of contents.
        sections: (anchor, title, HTML).
    """
    links = "".join(f'<li><a href="#{anchor}">{escape(name)}</a></li>' for anchor, name, _ in sections)
    body = "".join(
        f'<section aria-labelledby="{anchor}"><h2 id="{anchor}">{escape(name)}</h2>{content}</section>'
        for anchor, name, content in sections
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{asset('page.css')}</style></head><body>"
        f'<a class="skip" href="#main">Skip to the results</a><header>{header}</header>'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav><main id="main">{body}</main>'
        '<p class="visually-hidden" id="announce" role="status" aria-live="polite"></p>'
        f"<script>{asset('page.js')}</script></body></html>\n"
    )


def asset(name: str) -> str:
    """A file beside this module."""
    return (resources.files("roarfast.report") / name).read_text(encoding="utf-8")


def percent(value: float, digits: int = 1) -> str:
    """A fraction as percent without the sign, or a dash."""
    return "–" if math.isnan(value) else f"{100 * value:.{digits}f}"


def number(value: Any, digits: int = 3) -> str:
    """A number with a few significant digits, or a dash for NaN."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.{digits}g}".replace("-", "−")
    return str(value)


def _class(css: str) -> str:
    return f' class="{css}"' if css else ""
