"""README and docs run as they are written: every Python block, in order, one namespace per page.

What a reader brings (a model, images) is in `helpers/docs_setup/<page>.py`. A block that cannot run here stands under
`<!-- norun: why -->`.
"""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SETUP = ROOT / "tests" / "helpers" / "docs_setup"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DROP_INS = sorted((ROOT / "docs" / "compat").glob("*.md"))  # their blocks need the packages they replace: `make compat`
MOST_NOT_RUN = 10


def blocks(path: Path) -> list[tuple[str | None, str]]:
    """Why a block is not run (None: it is), and its code."""
    found = re.findall(
        r"^(?:<!-- norun: ([^\n]*?) -->\n)?```python\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL
    )
    return [(why or None, code) for why, code in found]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


RUN = [path for path in PAGES if any(why is None for why, _ in blocks(path))]


@pytest.mark.parametrize("path", RUN, ids=name)
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


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    left_out = [f"{name(path)}: {why}" for path in PAGES for why, _ in blocks(path) if why is not None]
    assert len(left_out) <= MOST_NOT_RUN, "\n".join(left_out)


@pytest.mark.parametrize("path", [ROOT / "CONTRIBUTING.md", *PAGES, *DROP_INS], ids=name)
def test_links_inside_lead_somewhere(path: Path) -> None:
    made = {"gallery"}  # by `make docs`, which checks links to it
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
        if target.split("/")[0] not in made:
            assert "://" in target or (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 700
