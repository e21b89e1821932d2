"""README and docs run as they are written: every Python block, in order, one namespace per page; every shell block.

What a reader brings (a model, images) is in `helpers/docs_setup/<page>.py`, what lies in the working folder of his
shell in `<page>_shell.py`. A block that cannot run here stands under `<!-- norun: why -->`.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SETUP = ROOT / "tests" / "helpers" / "docs_setup"
DROP_INS = sorted((ROOT / "docs" / "compat").glob("*.md"))  # their blocks need the packages they replace: `make compat`
WRITTEN = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "gallery" not in page.parts]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(page for page in WRITTEN if page not in DROP_INS)]
LANGUAGES = {"python", "sh", "toml", "text"}  # and directives of Sphinx; a block without a language would not be run
TAKE_LONG = {"README.md", "docs/studies.md", "docs/explain.md"}  # the demo's study; a training
MOST_NOT_RUN = 10


def blocks(path: Path, language: str = "python") -> list[tuple[str | None, str]]:
    """Why a block is not run (None: it is), and its code."""
    found = re.findall(
        rf"^(?:<!-- norun: ([^\n]*?) -->\n)?```{language}\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL
    )
    return [(why or None, code) for why, code in found]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def pages_with(language: str) -> list[Path]:
    return [path for path in PAGES if any(why is None for why, _ in blocks(path, language))]


@pytest.mark.parametrize("path", pages_with("python"), ids=name)
def test_python_blocks_run(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "docs"}
    setup = SETUP / f"{path.stem}.py"
    if setup.exists():
        namespace |= runpy.run_path(str(setup))
        for target, replacement in namespace.pop("PATCHES", {}).items():  # type: ignore[attr-defined]
            monkeypatch.setattr(target, replacement)
    for number, (why, block) in enumerate(blocks(path), 1):
        if why is None:
            exec(compile(block, f"{path.name}, block {number}", "exec"), namespace)


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=pytest.mark.slow if name(path) in TAKE_LONG else ()) for path in pages_with("sh")],
    ids=name,
)
def test_shell_blocks_run(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MPLBACKEND", "agg")
    setup = SETUP / f"{path.stem}_shell.py"
    if setup.exists():
        runpy.run_path(str(setup))
    for why, block in blocks(path, "sh"):
        if why is None:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], capture_output=True, text=True)
            assert done.returncode == 0, f"{block}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    left_out = [
        f"{name(path)}: {why}"
        for path in [*PAGES, *DROP_INS]
        for language in LANGUAGES
        for why, _ in blocks(path, language)
        if why is not None
    ]
    assert len(left_out) <= MOST_NOT_RUN, "\n".join(left_out)


@pytest.mark.parametrize("path", [*PAGES, *DROP_INS], ids=name)
def test_every_block_has_a_language(path: Path) -> None:
    opening = re.findall(r"^```([^\n]*)\n.*?^```$", path.read_text(), re.MULTILINE | re.DOTALL)
    unknown = [language for language in opening if language not in LANGUAGES and not language.startswith("{")]
    assert not unknown, f"{unknown}: one of {sorted(LANGUAGES)}"


@pytest.mark.parametrize("path", pages_with("toml"), ids=name)
def test_toml_blocks_are_toml(path: Path) -> None:
    for _, block in blocks(path, "toml"):
        tomllib.loads(block)


@pytest.mark.parametrize("path", [*PAGES, *DROP_INS], ids=name)
def test_links_inside_lead_somewhere(path: Path) -> None:
    made = {"gallery"}  # by `make docs`, which checks links to it
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
        if target.split("/")[0] not in made:
            assert "://" in target or (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_readme_is_short() -> None:
    shown = re.sub(r"<!--.*?-->", "", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(shown.split()) <= 700
