"""docs/papers.md: its numbers come from the committed summaries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[1] / "tools" / "papers.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(TOOL), *arguments], capture_output=True, text=True, check=False)


def test_the_page_is_what_the_summaries_give() -> None:
    done = run("--check")
    assert done.returncode == 0, done.stderr


def test_every_command_names_files_that_exist() -> None:
    root = TOOL.parents[1]
    files = [word for word in run("--commands").stdout.split() if word.startswith(("docs/", "tools/"))]
    assert files
    for name in files:
        assert (root / name).exists(), name


def test_a_summary_is_made_again_by_its_name(tmp_path: Path) -> None:
    assert (
        "there is no 'nothing'; there are cifar10-subset"
        in run("--run", "--data", str(tmp_path), "--only", "nothing").stderr
    )
    assert "--data FOLDER" in run("--run").stderr


def test_published_results_are_small_and_show_no_image_of_the_data_sets() -> None:
    results = TOOL.parents[1] / "docs" / "results"
    files = [path for path in results.rglob("*") if path.is_file()]
    assert not [path.name for path in files if path.name.startswith("examples-")], "strips show images of the data set"
    assert sum(path.stat().st_size for path in files) <= 3_000_000
