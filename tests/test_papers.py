"""docs/papers.md: its numbers come from the committed summaries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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


class Records:
    """Summaries given by hand."""

    def __init__(self, *rows: dict[str, str]) -> None:
        self.all = rows

    def table(self, name: str) -> tuple[dict[str, str], ...]:
        return self.all

    def rows(self, name: str, **where: str) -> list[dict[str, str]]:
        return [r for r in self.all if all(r[k] == v for k, v in where.items())]


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(TOOL.parent))
    import paper_claims

    return paper_claims


@pytest.mark.parametrize(
    ("low", "high", "whole", "verdict"),
    [
        (-1.0, 0.2, 1.0, "holds"),
        (0.1, 0.2, 1.0, "holds"),  # something, but at most a quarter
        (-1.0, 0.3, 1.0, "cannot be told"),
        (0.1, 0.3, 1.0, "does not hold"),
    ],
)
def test_a_part_is_negligible_only_where_its_interval_says_so(claims, low, high, whole, verdict) -> None:
    assert claims.negligible(low, high, whole) == verdict


def test_a_claim_holds_if_all_of_its_comparisons_do(claims) -> None:
    holds, fails, tells_nothing = claims.HOLDS, claims.FAILS, claims.OPEN
    assert claims.of_all([holds, holds]) == holds
    assert claims.of_all([holds, fails]) == claims.of_all([holds, tells_nothing]) == claims.PARTLY
    assert claims.of_all([fails, tells_nothing]) == fails
    assert claims.of_all([tells_nothing]) == tells_nothing


@pytest.mark.parametrize(
    ("low", "high", "usual", "verdict"),
    [
        ("-0.01", "0.01", "-0.09", "holds"),
        ("-0.10", "0.10", "-0.09", "cannot be told"),  # it would hold 0 whatever happened
        ("-0.02", "-0.01", "-0.09", "does not hold"),
    ],
)
def test_an_unclear_effect_is_told_from_an_interval_too_wide_to_show_one(claims, low, high, usual, verdict) -> None:
    own = {"estimator": "gc^2", "postprocess": "max(3)", "drop": "0.3", "difference": "0", "low": low, "high": high}
    assert claims.unmoved([own, own | {"estimator": "grad", "difference": usual}])[1] == verdict


@pytest.mark.parametrize(
    ("expected", "bounds", "verdict"),
    [
        ("at least 10.0", (0.11, 0.2), "holds"),
        ("at least 10.0", (0.05, 0.2), "cannot be told"),
        ("below 40.0", (0.1, 0.5), "cannot be told"),
        ("below 40.0", (0.45, 0.5), "does not hold"),
        ("10.0", (0.1, 0.1), "holds"),
    ],
)
def test_what_was_expected_of_oracles_is_judged_by_its_interval(claims, expected, bounds, verdict) -> None:
    row = {"gate": "g", "value": "0.15", "low": str(bounds[0]), "high": str(bounds[1]), "expected": expected}
    assert claims.falsified("g")(Records(row))[1] == verdict


def test_curves_are_told_apart_in_pairs(claims) -> None:
    def table(gaps: list[float]) -> Records:
        keys = [(scheme, name) for scheme in ("constant", "random", "partial") for name in ("ig", "gc")]
        distances = {
            "completeness": [0.5] * 6,
            "soundness(step=0.02)": [0.1 + gap for gap in gaps],
            "deletion": [0.05] * 6,
            "road": [0.1] * 6,
        }
        return Records(
            *(
                {"score": score, "scheme": scheme, "estimator": name, "distance": str(value)}
                for score, values in distances.items()
                for (scheme, name), value in zip(keys, values)
            )
        )

    assert claims.separation(table([0.1] * 6))[1] == "holds"
    assert claims.separation(table([0.3, -0.1, 0.3, -0.1, 0.3, -0.1]))[1] == "holds in part"


def test_most_of_many_cells_is_more_than_a_coin_would_give(claims) -> None:
    assert claims.more_than_half(30, 36) and not claims.more_than_half(22, 36)


def test_pages_name_papers_by_numbers_that_the_list_has() -> None:
    page = (TOOL.parents[1] / "docs" / "papers.md").read_text()
    assert all(f"| {number} | " in page for number in ("000", "001", "002", "004"))
