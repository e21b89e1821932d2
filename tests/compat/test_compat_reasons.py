"""Level G: every reason of `status()` stands in a test that provokes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from roarfast import compat

HERE = Path(__file__).parent
PLACES = {"require": 1, "Outside": 0, "passed_on": 2}  # which argument is the reason


def reasons() -> Iterator[tuple[str, str]]:
    """(file, text) of every reason; of one with values in it the longest text between them."""
    for path in sorted(Path(compat.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            place = PLACES.get(getattr(node.func, "attr", getattr(node.func, "id", "")), 9)
            if len(node.args) <= place:
                continue
            reason = node.args[place]
            parts = reason.values if isinstance(reason, ast.JoinedStr) else [reason]
            texts = [part.value for part in parts if isinstance(part, ast.Constant)]
            if texts:
                yield path.name, max(texts, key=len)


FOUND = sorted(set(reasons()))
TESTS = "".join(path.read_text() for path in sorted(HERE.rglob("*.py")))


def test_they_are_found():
    assert len(FOUND) > 70
    assert ("soco.py", "images that are not plain floats") in FOUND


@pytest.mark.parametrize(("file", "reason"), FOUND, ids=[f"{file}-{reason}" for file, reason in FOUND])
def test_a_test_provokes_it(file, reason):
    assert reason in TESTS
