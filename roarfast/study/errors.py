"""Errors that a user can act on: the command line prints their message without a traceback."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class StudyError(Exception):
    """A study cannot start or go on; the message says what to do."""


class FolderInUse(StudyError):
    """Another process works in the run folder."""


class OutOfSpace(StudyError):
    """The disk is full; nothing finished is lost."""


class ArtefactDamaged(StudyError):
    """A file that an earlier task left is missing or damaged; the task that made it must run again.

    Attributes:
        kind: Of that task.
        spec: What its key or its spec has: `key` of a base model or codes; `base` and `estimator` of maps.
    """

    def __init__(self, message: str, kind: str, **spec: str) -> None:
        super().__init__(message)
        self.kind, self.spec = kind, spec


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
