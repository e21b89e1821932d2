"""The page: Jinja2 templates with autoescape, filled once, into one file that fetches nothing."""

from __future__ import annotations

from base64 import b64encode
from itertools import count
from typing import TYPE_CHECKING

from roarfast.report.facts import base_text, data_text, model_text
from roarfast.report.table import Table
from roarfast.report.text import duration

if TYPE_CHECKING:
    import jinja2


class Book:
    """What a page has shown so far: numbers its tables and figures, and knows which tables need files."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.tables: dict[str, Table] = {}

    def new_id(self) -> str:
        """An id that no other element has."""
        return f"item-{next(self._numbers)}"

    def show(self, found: Table) -> str:
        """Notes that a table is shown; returns its id."""
        if self.tables.setdefault(found.name, found) is not found:
            raise ValueError(f"two tables are called {found.name}")
        return self.new_id()


def environment() -> jinja2.Environment:
    """The templates of this package: every value is escaped, an unknown name is an error."""
    # Imported here: `roarfast --help` imports this package, and must work without the extra `study`.
    import jinja2

    found = jinja2.Environment(
        loader=jinja2.PackageLoader("roarfast.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
    )
    found.filters |= {"duration": duration, "data": data_text, "model": model_text, "base": base_text}
    found.filters["base64"] = lambda data: b64encode(data).decode()
    return found


def render(template: str, **context: object) -> tuple[str, Book]:
    """Fills a template; also returns the tables that it showed."""
    book = Book()
    return environment().get_template(template).render(**context, book=book), book
