"""The line of a key in a TOML text, for error messages: TOML readers do not tell."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
