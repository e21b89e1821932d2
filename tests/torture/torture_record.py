"""Sums what `torture.py --record` wrote: `python tests/torture/torture_record.py torture.jsonl > tests/torture/RECORD.md`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

_HEAD = """\
# The last torture

Made by `tests/torture/torture_record.py` from the lines that `torture.py --record` wrote. "Finished as undisturbed": after the
kills or on the emptied disk, rows, examples and files equal those of a run in peace. "Noticed, made again": a message named the
file. "The same result, no message": the byte is one that nothing depends on, or (examples) the file is made again without a word.
"""


def summed(lines: Iterable[str]) -> tuple[dict[str, Counter[str]], list[str], list[int]]:
    """Tables of several runs as one, their failures and seeds."""
    table: dict[str, Counter[str]] = {}
    failures: list[str] = []
    seeds = []
    for line in lines:
        run = json.loads(line)
        seeds.append(run["seed"])
        failures += run["failures"]
        for row, counts in run["table"].items():
            table.setdefault(row, Counter()).update(counts)
    return table, failures, sorted(set(seeds))


_OF_KILLS = ("kills", "finished as undisturbed", "FAILED")


def section(title: str, key: str, table: dict[str, Counter[str]]) -> Iterator[str]:
    """Rows that share their columns; responses and packs are both killed and damaged."""
    found = {what for row in table.values() for what in row}
    if key != "disks":
        found = {what for what in found if (what in _OF_KILLS) == (key == "kills") or what == "WRONG"}
    columns = sorted(found, key=lambda c: (c.isupper(), c != key, c))
    yield f"\n## {title}\n"
    yield f"| | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    for name, row in table.items():
        yield f"| {name} | {' | '.join(str(row[c]) for c in columns)} |"
    yield f"| **sum** | {' | '.join(str(sum(row[c] for row in table.values())) for c in columns)} |"


def report(lines: Iterable[str]) -> Iterator[str]:
    """The page."""
    table, failures, seeds = summed(lines)
    yield _HEAD
    yield f"Seeds {', '.join(map(str, seeds))}: {len(failures)} failures" + ("." if not failures else ":")
    yield from (f"- {line[:300]}" for line in failures)
    for title, key in (("Kills", "kills"), ("Damaged bytes", "damaged"), ("Full disks", "disks")):
        rows = {name: row for name, row in table.items() if key in row}
        if rows:
            yield from section(title, key, rows)


if __name__ == "__main__":
    print("\n".join(report(line for name in sys.argv[1:] for line in Path(name).read_text().splitlines())))
