"""tools/check_comments.py: torn comments are found, whole ones are not."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_spec = importlib.util.spec_from_file_location("check_comments", ROOT / "tools" / "check_comments.py")
assert _spec is not None and _spec.loader is not None
check_comments = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(check_comments)

FULL = "// " + "word " * 19 + "ab"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("// ---- sobel\n// ------------------------------------\nint x;", 2),
        ("// ---- sobel ------------------------------- more", 1),
        ("//  - an item that goes\n//  on", 2),
        ("//  1. an item\n//     that goes on\n//   wrongly", 3),
        (FULL + "\n// alone\nint x;", 2),
        ("int x;  // " + "y" * 100, 1),
    ],
)
def test_torn_comments_are_found(text: str, line: int) -> None:
    assert [number for number, _ in check_comments.torn(text.split("\n"))] == [line]


@pytest.mark.parametrize(
    "text",
    [
        "// ==== sobel\nint x;",
        "//  - an item that goes\n//    on\n//  - another\n// and prose again",
        FULL + "\n// two words\nint x;",
        "//\n//   x = a - b - c\n//\n",
        "int x;  // short",
    ],
)
def test_whole_comments_pass(text: str) -> None:
    assert list(check_comments.torn(text.split("\n"))) == []
