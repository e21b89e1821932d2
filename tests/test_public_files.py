"""What the hosting service reads agrees with what runs here: targets, versions, addresses, pinned tools."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import roarfast

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_every_job_calls_a_target_of_the_makefile() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert len(WORKFLOWS) >= 2
    for path in WORKFLOWS:
        text = path.read_text()
        jobs = re.split(r"^  (?=[\w-]+:$)", text.split("\njobs:\n")[1], flags=re.MULTILINE)[1:]
        assert jobs, path
        for job in jobs:
            called = re.findall(r"\bmake ([a-z][\w-]*)", "\n".join(re.findall(r"run: (.*)", job)))
            called = [name for name in called if name != "g"]  # `apt-get install make g++` names the program
            uses_cibuildwheel = "pypa/cibuildwheel" in job or "pypa/gh-action-pypi-publish" in job
            assert called or uses_cibuildwheel, f"{path.name}: a job runs no make target:\n{job}"
            assert set(called) <= targets, f"{path.name}: {set(called) - targets}"


def test_one_version() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == roarfast.__version__  # type: ignore[index]


def test_no_address_is_guessed() -> None:
    """Reports of weaknesses must not go to a stranger: an address stands in all three places, or in none."""
    home = PROJECT.get("urls", {}).get("Homepage")
    citation = (ROOT / "CITATION.cff").read_text()
    contact = (ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml").read_text()
    assert re.findall(r"^repository-code: (.*)$", citation, re.MULTILINE) == ([home] if home else [])
    assert all(url.startswith(home or "no address") for url in re.findall(r"https?://\S+", contact))


def test_python_versions_begin_with_the_oldest_allowed() -> None:
    listed = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert f">={listed[0]}" == PROJECT["requires-python"]
    tested = re.findall(r'python: \["([\d.]+)", "([\d.]+)"\]', (ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert tested and set(tested[0]) <= set(listed) and tested[0][0] == listed[0]


def test_hooks_are_the_pinned_tools() -> None:
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    for repository, package in (("ruff-pre-commit", "ruff"), ("mirrors-clang-format", "clang-format")):
        assert re.search(rf"{repository}\n\s+rev: v(\S+)", hooks)[1] == pinned[package]  # type: ignore[index]
