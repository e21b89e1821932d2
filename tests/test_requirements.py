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
        "numpy>=1",
        "cmake",
        "scipy",
        "torch",
        "rich",
        "pytest",
    ]
    with pytest.raises(KeyError, match="nothing"):
        requirements.requirements(pyproject, ["nothing"])


def test_every_requirement_is_pinned_for_development() -> None:
    names = {re.split(r"[=<>\[]", line)[0].lower() for line in (ROOT / "constraints.txt").read_text().split()}
    extras = ["build", *PYPROJECT["project"]["optional-dependencies"]]
    wanted = {re.split(r"[=<>\[]", r)[0].lower() for r in requirements.requirements(PYPROJECT, extras)}
    assert wanted - names == set()


_lock_spec = importlib.util.spec_from_file_location("lock", ROOT / "tools" / "lock.py")
assert _lock_spec is not None and _lock_spec.loader is not None
lock = importlib.util.module_from_spec(_lock_spec)
_lock_spec.loader.exec_module(lock)


def test_every_pin_has_a_hash() -> None:
    """After a change of constraints.txt: `make lock`."""
    text = (ROOT / "constraints.lock").read_text()
    assert lock.missing((ROOT / "constraints.txt").read_text(), text) == []
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)


def test_a_lock_of_other_versions_is_noticed() -> None:
    assert lock.missing("a==1.0\nB_c==2\n", "# head\nA==1.0+cpu --hash=sha256:00\nb.c==3 --hash=sha256:11\n") == [
        "b-c==2"
    ]


def test_entries_come_from_what_pip_reports() -> None:
    item = {
        "metadata": {"name": "Zed", "version": "1"},
        "download_info": {"archive_info": {"hashes": {"sha256": "ab"}}},
    }
    assert lock.entries({"install": [item]}) == ["Zed==1 --hash=sha256:ab"]
    item["download_info"]["archive_info"] = {}
    with pytest.raises(SystemExit, match="no SHA-256 for Zed"):
        lock.entries({"install": [item]})
