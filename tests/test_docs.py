"""README and docs run as they are written: every Python block, every shell block; see helpers/docs_pages.py."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from helpers.docs_pages import NEED_PEERS, PAGES, ROOT, blocks, name, pages_with, run_python, run_shell

LANGUAGES = {"python", "sh", "toml", "text"}  # and directives of Sphinx; a block without a language would not be run
# The demo's study; a training; torchrun, of which a process may abort on its way out on a busy machine.
TAKE_LONG = {"README.md", "docs/studies.md", "docs/explain.md", "docs/training.md"}
MOST_NOT_RUN = 10
ALL = [*PAGES, *NEED_PEERS]


@pytest.mark.parametrize("path", pages_with("python"), ids=name)
def test_python_blocks_run(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    run_python(path, monkeypatch, tmp_path)


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow if name(path) in TAKE_LONG else ()) for path in pages_with("sh")],
    ids=name,
)
def test_shell_blocks_run(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    run_shell(path, monkeypatch, tmp_path)


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    left_out = [
        f"{name(path)}: {why}"
        for path in ALL
        for language in LANGUAGES
        for why, _ in blocks(path, language)
        if why is not None
    ]
    assert len(left_out) <= MOST_NOT_RUN, "\n".join(left_out)


@pytest.mark.parametrize("path", ALL, ids=name)
def test_every_block_has_a_language(path: Path) -> None:
    opening = re.findall(r"^```([^\n]*)\n.*?^```$", path.read_text(), re.MULTILINE | re.DOTALL)
    unknown = [language for language in opening if language not in LANGUAGES and not language.startswith("{")]
    assert not unknown, f"{unknown}: one of {sorted(LANGUAGES)}"


@pytest.mark.parametrize("path", pages_with("toml"), ids=name)
def test_toml_blocks_are_toml(path: Path) -> None:
    for _, block in blocks(path, "toml"):
        if "grid" in tomllib.loads(block):  # a whole config, not a part of one
            pytest.importorskip("pydantic")
            from roarfast.study.config import parse_config

            assert parse_config(block).grid


@pytest.mark.parametrize("path", ALL, ids=name)
def test_links_inside_lead_somewhere(path: Path) -> None:
    made = {"gallery"}  # by `make docs`, which checks links to it
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
        if target.split("/")[0] not in made:
            assert "://" in target or (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_readme_is_short() -> None:
    shown = re.sub(r"<!--.*?-->", "", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(shown.split()) <= 700


def test_speeds_of_the_readme_are_measured() -> None:
    """Each is a ratio of docs/performance.md, of that op and size."""
    shown = (ROOT / "README.md").read_text().split("## Speed")[1].split("## Install")[0]
    rows = re.findall(r"^\| `(\w+)[^`]*` \| ([^|]+) \| [^|]+: (\d+) \|$", shown, re.MULTILINE)
    measured, op = set(), ""
    for name_, case, rivals in re.findall(
        r"^\| (?:`(\w+)`)? *\| ([^|]+) \| [^|]+ \| ([^|]+) \|$",
        (ROOT / "docs/performance.md").read_text(),
        re.MULTILINE,
    ):
        op = name_ or op
        measured |= {(op, case, ratio) for ratio in re.findall(r"\*\*(\d+)\*\*", rivals)}
    assert len(rows) == 5
    for op, size, ratio in rows:
        words = size.split(", ")
        assert any(m[0] == op and m[2] == ratio and all(word in m[1] for word in words) for m in measured), (
            op,
            size,
            ratio,
        )


def test_the_api_reference_lists_every_public_name() -> None:
    """autodoc looks at what a module has already: names that load when they are asked for must be there."""
    pytest.importorskip("torch")
    pages = [path.stem for path in (ROOT / "docs" / "api").glob("*.md") if path.stem != "index"]
    code = f"""
import importlib, runpy
runpy.run_path({str(ROOT / "docs" / "conf.py")!r})
for name in {sorted(pages)!r}:
    module = importlib.import_module("roarfast." + name)
    print(*(f"{{name}}.{{public}}" for public in module.__all__ if public not in vars(module)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stdout.split(), done.stdout
