"""README and docs run as they are written: every Python block of the pages listed here, in order, one namespace per page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
# Blocks of these pages use names that a reader brings (a model, a data set); they are not run yet.
NOT_RUN = {"data.md", "explain.md", "imputation.md", "studies.md", "training.md", "truth.md"}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(path: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)


RUN = [path for path in PAGES if blocks(path) and path.name not in NOT_RUN]


@pytest.mark.parametrize("path", RUN, ids=lambda path: path.name)
def test_python_blocks_run(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for number, block in enumerate(blocks(path), 1):
        exec(compile(block, f"{path.name}, block {number}", "exec"), namespace)


@pytest.mark.parametrize("path", [ROOT / "CONTRIBUTING.md", *PAGES], ids=lambda path: path.name)
def test_links_inside_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text()):
        assert "://" in target or (path.parent / target).exists(), f"{path.name}: {target}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 700
