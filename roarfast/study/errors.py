"""Errors that a user can act on: the command line prints their message without a traceback. With the lines of configs."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


class StudyError(Exception):
    """A study cannot start or be resumed; the message says what to do."""


class FolderInUse(StudyError):
    """Another process works in the run folder."""


class OutOfSpace(StudyError):
    """The disk is full; nothing finished is lost."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a config: where (dotted path), what, and the line if known."""

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = self.path or "(file)"
        return f"{where} (line {self.line}): {self.message}" if self.line else f"{where}: {self.message}"


class ConfigError(StudyError):
    """Everything that is wrong with a config, at once."""

    def __init__(self, problems: Iterable[Problem], source: str = "the config") -> None:
        self.problems = list(problems)
        count = len(self.problems)
        head = f"{source} has {count} problem{'s' if count != 1 else ''}:"
        super().__init__("\n".join([head, *(f"  - {problem}" for problem in self.problems)]))


def nearest(word: str, allowed: Iterable[str]) -> str:
    """`"; did you mean 'x'?"` for a close match, else the list of what is allowed."""
    names = [str(name) for name in allowed]
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; allowed: {', '.join(names)}" if names else ""


_TABLE = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"^\s*(\"[^\"]+\"|'[^']+'|[A-Za-z0-9_.-]+)\s*=")


def line_of(text: str | None, path: Sequence[str]) -> int | None:
    r"""The line (from 1) where the deepest findable part of `path` stands; None without a text or a match.

    Example:
        >>> line_of("a = 1\n[data]\nname = 'x'\n[[grid]]\ndrops = [3]\n", ["grid", "0", "drops", "0"])
        5
    """
    if text is None:
        return None
    lines: dict[tuple[str, ...], int] = {}
    counts: dict[str, int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header = _TABLE.match(line)
        if header and "=" not in header[2]:
            table = tuple(part.strip("\"' ") for part in header[2].split("."))
            if header[1] == "[[":
                counts[header[2]] = counts.get(header[2], -1) + 1
                table = (*table, str(counts[header[2]]))
            lines.setdefault(table, number)
            continue
        key = _KEY.match(line)
        if key:
            lines.setdefault((*table, *(part.strip("\"'") for part in key[1].split("."))), number)
    for length in range(len(path), 0, -1):
        if tuple(path[:length]) in lines:
            return lines[tuple(path[:length])]
    return None
