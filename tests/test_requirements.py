"""tools/requirements.py: the extras of pyproject.toml as arguments of pip."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_spec = importlib.util.spec_from_file_location("requirements", ROOT / "tools" / "requirements.py")
assert _spec is not None and _spec.loader is not None
requirements = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(requirements)
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_extras_are_followed_and_nothing_comes_twice() -> None:
    pyproject = {
        "build-system": {"requires": ["cmake"]},
        "project": {
            "name": "p",
            "dependencies": ["numpy>=1"],
            "optional-dependencies": {"a": ["scipy", "torch"], "b": ["torch", "rich"], "c": ["p[a, b]", "pytest"]},
        },
    }
    assert requirements.requirements(pyproject, ["build", "c"]) == [
        "numpy>=1", "cmake", "scipy", "torch", "rich", "pytest",
    ]  # fmt: skip
    with pytest.raises(KeyError, match="nothing"):
        requirements.requirements(pyproject, ["nothing"])


def test_every_requirement_is_pinned_for_development() -> None:
    names = {re.split(r"[=<>\[]", line)[0].lower() for line in (ROOT / "constraints.txt").read_text().split()}
    extras = ["build", *PYPROJECT["project"]["optional-dependencies"]]
    wanted = {re.split(r"[=<>\[]", r)[0].lower() for r in requirements.requirements(PYPROJECT, extras)}
    assert wanted - names == set()
