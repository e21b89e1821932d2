"""Finds comments of the C++ sources that a formatter or a careless edit has torn; prints them and fails.

    python tools/check_comments.py [files]     default: every C++ and CUDA file that git knows

clang-format is told to leave comments alone (`ReflowComments: Never`), so nothing else looks at them:

- a rule of dashes on a line of its own is the torn half of a banner: write `// ==== title`;
- a line that goes on a list item is indented as far as the item's text;
- a lone word at the end of a paragraph of full lines was pushed there: balance the lines;
- no comment is longer than a line of code may be.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = 100
_COMMENT = re.compile(r"^(?P<indent>\s*)//(?P<space> *)(?P<text>.*)$")
_ITEM = re.compile(r"^(?:[-*]|\d+\.) +")


def torn(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Line numbers, from 1, and what is wrong there."""
    previous: re.Match[str] | None = None
    item_text = 0  # column at which the text of the list item above begins, 0 outside of lists
    formatted = True  # outside of `// clang-format off`, where lines may be long
    for number, line in enumerate(lines, 1):
        comment = _COMMENT.match(line)
        if "clang-format o" in line:
            formatted = "clang-format on" in line
        if formatted and "//" in line and len(line) > COLUMNS:
            yield number, f"a comment of {len(line)} columns, {COLUMNS} is the limit"
        if comment is None:
            previous, item_text = None, 0
            continue
        if re.search(r"[-=]{20,}", comment["text"]):
            yield number, "the rule of a torn banner; banners are `// ==== title`"
        item = _ITEM.match(comment["text"])
        begins = len(comment["space"])
        if item:
            item_text = begins + item.end()
        elif not comment["text"]:
            item_text = 0
        elif item_text and 1 < begins < item_text:
            yield number, "goes on a list item, but is not indented as far as its text"
        elif begins < item_text:
            item_text = 0  # prose again
        if (
            previous is not None
            and comment["indent"] == previous["indent"]
            and len(comment["text"].split()) == 1
            and len(lines[number - 2]) > COLUMNS - 5
            and not _next_is_comment(lines, number)
        ):
            yield number, "one word alone after a full line: balance the lines"
        previous = comment


def _next_is_comment(lines: Sequence[str], number: int) -> bool:
    return number < len(lines) and _COMMENT.match(lines[number]) is not None


def main(arguments: Sequence[str]) -> int:
    """Checks files and returns the exit status."""
    tracked = subprocess.run(
        ["git", "ls-files", "*.h", "*.cpp", "*.cu"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    paths = [Path(a) for a in arguments] or [ROOT / name for name in tracked.stdout.split()]
    found = [(path, *problem) for path in paths for problem in torn(path.read_text().splitlines())]
    for path, number, message in found:
        print(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}:{number}: {message}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
