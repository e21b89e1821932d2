"""tools/falsification.py: gates, page and CSV files from records; what did not hold comes first."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from helpers.result_files import rows, run_tool
from helpers.synthetic_study import record

from roarfast.study.records import StudyResults

pytest.importorskip("matplotlib")
ACCURACY = {
    ("base", "none"): 0.60,
    ("roar", "center"): 0.40,
    ("roar", "center+edge"): 0.70,
    ("no-retrain", "center"): 0.2,
    ("no-retrain", "center+edge"): 0.15,
    ("mask-only", "center"): 0.1,
    ("mask-only", "center+edge"): 1.0,
    ("roar-clean", "edge"): 0.15,
}


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_tool("falsification.py", *arguments)


def written(folder: Path, **changes: float) -> Path:
    """records.csv and facts.csv as the tool writes them; `changes` by protocol."""
    rates = {"roar-clean": 0.05, "base": 0.0}
    records = [
        record(
            p,
            e,
            "plain",
            rates.get(p, 0.7),
            trial,
            accuracy=changes.get(p, accuracy) + 0.01 * trial * (p != "mask-only"),
        )
        for (p, e), accuracy in ACCURACY.items()
        for trial in (0, 1)
        if p not in changes or changes[p] >= 0
    ]
    folder.mkdir()
    StudyResults(records, {}).to_csv(folder / "records.csv")
    (folder / "facts.csv").write_text("cells,work_minutes,clock_minutes\n16 of 16 cells done,15.0,8.0\n")
    return folder


def test_all_gates_hold(tmp_path: Path) -> None:
    folder = written(tmp_path / "page")
    done = run("--out", folder)
    assert done.returncode == 0, done.stderr
    gates = rows(folder / "gates.csv")
    assert [g["holds"] for g in gates] == ["True"] * 6
    assert [float(g["value"]) for g in gates] == pytest.approx([0.3, 0.205, 0.155, 0.1, 1.0, 0.45])
    page = (folder / "README.md").read_text()
    assert "**Did not hold:** nothing" in page.splitlines()[2] and "8.0 on the clock" in page
    assert "**Not as in the paper:** the base model 60.5 % (paper 88.7); center, retrained and tested" in page
    assert (folder / "figure.png").read_bytes()[:4] == b"\x89PNG"


def test_what_fails_is_said_first(tmp_path: Path) -> None:
    folder = written(tmp_path / "page", **{"roar-clean": 0.55, "no-retrain": 0.41})
    assert run("--out", folder).returncode == 0
    first = (folder / "README.md").read_text().splitlines()[2]
    assert first.startswith("**Did not hold:** base model, center removed: 41.5 (expected below 40.0)")
    assert "on whole images: 5.0 (expected at least 15.0)" in first


@pytest.mark.parametrize("missing", ["roar", "roar-clean", "mask-only"])
def test_an_unfinished_run_is_refused(tmp_path: Path, missing: str) -> None:
    done = run("--out", written(tmp_path / "page", **{missing: -1.0}))
    assert done.returncode == 2 and "is not finished, or no run of the preset falsification" in done.stderr
    assert "Traceback" not in done.stderr


def test_no_run_and_no_records(tmp_path: Path) -> None:
    for arguments in ([tmp_path / "nothing", "--out", tmp_path], ["--out", tmp_path]):
        done = run(*arguments)
        assert done.returncode == 2 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr
