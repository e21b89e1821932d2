"""The code blocks of README and docs, and how they are run.

What a reader brings (a model, images) is in `docs_setup/<page>.py`, what lies in the working folder of his shell in
`<page>_shell.py`; a page of docs/compat is called `compat_<page>` there. A block that cannot run here stands under
`<!-- norun: why -->`.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETUP = ROOT / "tests" / "helpers" / "docs_setup"
WRITTEN = [page for page in sorted((ROOT / "docs").rglob("*.md")) if "gallery" not in page.parts]
NEED_PEERS = [ROOT / "docs" / "compat" / page for page in ("README.md", "quantus.md")]  # run by `make compat`
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(page for page in WRITTEN if page not in NEED_PEERS)]


def name(path: Path) -> str:
    """A page's name in the list of tests."""
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path, language: str = "python") -> list[tuple[str | None, str]]:
    """Why a block is not run (None: it is), and its code."""
    found = re.findall(
        rf"^(?:<!-- norun: ([^\n]*?) -->\n)?```{language}\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL
    )
    return [(why or None, code) for why, code in found]


def pages_with(language: str) -> list[Path]:
    """Pages of PAGES with a block to run."""
    return [path for path in PAGES if any(why is None for why, _ in blocks(path, language))]


def _set_up(path: Path, suffix: str) -> dict[str, object]:
    stem = f"compat_{path.stem}" if path.parent.name == "compat" else path.stem
    setup = SETUP / f"{stem}{suffix}.py"
    return runpy.run_path(str(setup)) if setup.exists() else {}


def run_python(path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Runs a page's Python blocks in order, in one namespace."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.chdir(folder)
    namespace: dict[str, object] = {**_set_up(path, ""), "__name__": "docs"}
    for target, replacement in namespace.pop("PATCHES", {}).items():  # type: ignore[attr-defined]
        monkeypatch.setattr(target, replacement)
    for number, (why, block) in enumerate(blocks(path), 1):
        if why is None:
            exec(compile(block, f"{path.name}, block {number}", "exec"), namespace)


def run_shell(path: Path, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Runs a page's shell blocks in order, in one folder."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("MPLBACKEND", "agg")
    for variable in [name for name in os.environ if name.startswith("PYTEST_")]:
        monkeypatch.delenv(variable)  # a block may run pytest, which is not a worker of ours
    _set_up(path, "_shell")
    for why, block in blocks(path, "sh"):
        if why is None:
            done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], capture_output=True, text=True)
            assert done.returncode == 0, f"{block}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
