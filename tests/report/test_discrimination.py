"""Better than random pixels at each rate, the spread of estimators, the families of 001 and the page of its claims."""

# ruff: noqa: E402  (the imports below need what is skipped for)

from __future__ import annotations

import csv
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.study_helpers import TINY
from helpers.synthetic_study import record

pytest.importorskip("matplotlib")
scipy_stats = pytest.importorskip("scipy.stats")

from roarfast.report import build
from roarfast.report.discrimination import (
    block,
    mean_spread,
    random_rows,
    random_table,
    random_tests,
    spread_difference,
    spread_table,
    spreads,
)
from roarfast.report.families import family, methods
from roarfast.report.figures.families import family_figures
from roarfast.report.grid import panels
from roarfast.study.records import StudyResults

TOOL = Path(__file__).resolve().parents[2] / "tools" / "roar_families.py"
NAMES = ("grad", "gb", "ig", "sg", "sg(gb)", "sg(ig)", "grad^2", "gb^2", "ig^2", "sg-sq", "sg-sq(gb)", "sg-sq(ig)")
SHIFT = {"raw": 0.05, "SG": 0.06, "SQ": -0.05, "SG-SQ": -0.2}  # of accuracy in ROAR, as 001 has it


def made(
    trials: int = 2, sd: float = 0.005, seed: int = 0, names=NAMES, protocols=("roar", "kar", "no-retrain")
) -> StudyResults:
    """A study in which 001 is right, with a shift of every trial that all its cells share."""
    rng = np.random.default_rng(seed)
    records = []
    for trial in range(trials):
        shared = 0.1 * rng.normal()
        records.append(record("base", "none", "plain", 0.0, trial, accuracy=0.8 + shared))
        for protocol in protocols:
            for e in (*names, "rand"):
                for t in (0.3, 0.9):
                    shift = (
                        0.0 if e == "rand" else SHIFT[family(e)[1]] * {"roar": 1.0, "kar": 0.1}.get(protocol, 0.5) * t
                    )
                    level = {"roar": 0.7, "kar": 0.6, "no-retrain": 0.3}[protocol]
                    accuracy = level - 0.1 * t + shift + shared + sd * rng.normal()
                    records.append(record(protocol, e, "plain", t, trial, accuracy=accuracy))
    return StudyResults(records, {})


def by_protocol(results: StudyResults):
    return {p.protocol: p for p in panels(results)}


def test_noise_is_what_estimators_and_trials_leave() -> None:
    found = block(by_protocol(made(trials=40, sd=0.01))["roar"], 0.3)
    assert found.values.shape == (13, 40) and found.df == 12 * 39
    assert found.sd == pytest.approx(0.01, rel=0.1)  # and not the 0.1 that trials differ by


def test_differences_are_those_of_a_two_way_analysis() -> None:
    roar = by_protocol(made())["roar"]
    cells = block(roar, 0.9)
    x = cells.values
    left = x - x.mean(1, keepdims=True) - x.mean(0, keepdims=True) + x.mean()
    error = math.sqrt((left**2).sum() / 12 * 2 / 2)
    tests = {t.estimator: t for t in random_tests(roar) if t.drop == 0.9}
    for name in NAMES:
        d = (x[cells.names.index(name)] - x[cells.names.index("rand")]).mean()
        assert tests[name].difference.mean == pytest.approx(d)
        assert tests[name].p == pytest.approx(2 * scipy_stats.t.sf(abs(d / error), 12))
        assert tests[name].difference.half_width == pytest.approx(scipy_stats.t.ppf(0.975, 12) * error)
    assert {name: t.verdict for name, t in tests.items() if family(name)[1] == "SG-SQ"} == dict.fromkeys(
        NAMES[-3:], "better"
    )
    assert all(tests[name].verdict == "worse" for name in NAMES[:3])


def test_holm_is_over_the_estimators_of_a_rate() -> None:
    tests = [t for t in random_tests(by_protocol(made(sd=0.02))["roar"]) if t.drop == 0.3]
    order = sorted(tests, key=lambda t: t.p)
    assert order[0].p_holm == pytest.approx(min(1, 12 * order[0].p))
    assert all(t.p_holm >= t.p for t in tests)


def test_nothing_is_called_better_where_all_are_equal() -> None:
    verdicts = []
    for seed in range(60):
        results = made(sd=0.01, seed=seed, protocols=("roar",))
        flat = [r for r in results if r.estimator in ("rand", "none", "grad")]
        copies = [
            record(
                "roar",
                e,
                "plain",
                r.drop,
                r.trial,
                accuracy=r.accuracy - SHIFT["raw"] * r.drop + np.random.default_rng([seed, i, r.trial]).normal(0, 0.01),
            )
            for i, e in enumerate(NAMES)
            for r in flat
            if r.estimator == "grad"
        ]
        same = StudyResults([r for r in flat if r.estimator != "grad"] + copies, {})
        verdicts.append(any(t.verdict != "open" for t in random_tests(by_protocol(same)["roar"])))
    assert np.mean(verdicts) < 0.25  # two rates of one family each: 10 %, and random pixels are less noisy here


def test_kar_is_better_when_higher() -> None:
    tests = {t.estimator: t for t in random_tests(by_protocol(made(sd=1e-4))["kar"]) if t.drop == 0.9}
    assert tests["grad"].verdict == "better" and tests["sg-sq"].verdict == "worse"


def test_one_trial_tests_nothing_and_says_so() -> None:
    results = made(trials=1)
    roar = by_protocol(results)["roar"]
    assert all(t.verdict == "open" and math.isnan(t.p) for t in random_tests(roar)) and random_table(roar) is None
    assert math.isnan(spreads(roar)[0].low) and spread_table([roar]) is not None
    assert math.isnan(mean_spread(spreads(roar))[1])
    assert math.isnan(spread_difference(spreads(roar), spreads(by_protocol(results)["kar"])).low)


def test_without_random_pixels_or_estimators_there_is_nothing() -> None:
    results = made()
    bare = StudyResults([r for r in results if r.estimator != "rand"], {})
    assert random_tests(by_protocol(bare)["roar"]) == []
    alone = StudyResults([r for r in results if r.estimator in ("rand", "none")], {})
    assert spreads(by_protocol(alone)["roar"]) == [] and spread_table(panels(alone)) is None
    assert list(random_rows(panels(alone))) == []


def test_equal_accuracies_are_no_division_by_zero() -> None:
    results = StudyResults(
        [record("roar", e, "plain", 0.3, t, accuracy=0.5) for e in ("grad", "gb", "rand") for t in (0, 1)], {}
    )
    (roar,) = panels(results)
    assert all(t.verdict == "open" for t in random_tests(roar)) and spreads(roar)[0].value == 0


def test_spreads_cover_the_truth() -> None:
    truth, covered, above = 0.26 * 0.9, 0, 0
    for seed in range(150):
        (one,) = (
            s for s in spreads(by_protocol(made(sd=0.02, seed=seed, protocols=("roar",)))["roar"]) if s.drop == 0.9
        )
        covered += one.low <= truth <= one.high
        above += one.value > truth
        assert one.highest in NAMES[3:6] + NAMES[:3] and one.lowest in NAMES[-3:]
    assert covered / 150 >= 0.95 and above / 150 > 0.6  # noise widens a range
    assert 0.02 < one.chance < 0.1


def test_roar_and_kar() -> None:
    by = by_protocol(made())
    found = spread_difference(spreads(by["roar"]), spreads(by["kar"]))
    assert found.low > 0 and found.mean == pytest.approx(0.26 * 0.6 * 0.9, abs=0.02)


def test_families() -> None:
    roar = by_protocol(made())["roar"]
    assert list(methods(roar)) == ["grad", "gb", "ig"]
    assert methods(roar)["ig"] == {"raw": "ig", "SG": "sg(ig)", "SQ": "ig^2", "SG-SQ": "sg-sq(ig)"}
    assert family("center+edge") is None and family("sg^2") is None


def test_figures_are_those_that_the_protocols_allow(tmp_path: Path) -> None:
    names = [f.name for f in family_figures(panels(made()), tmp_path)]
    assert names == ["cifar10-families-retrained", "cifar10-families-sg-sq", "cifar10-families-parts"]
    few = made(names=("grad", "gb", "grad^2", "gb^2"), protocols=("roar",))
    assert [f.name for f in family_figures(panels(few), tmp_path)] == ["cifar10-families-parts"]
    assert family_figures(panels(made(names=("grad", "grad^2", "gb"))), tmp_path) == []  # one method in two families


def test_the_report_has_them(tmp_path: Path) -> None:
    page = " ".join(Path(build(tmp_path, tmp_path / "report", made())).read_text().split())
    assert "Better than random pixels? Rate by rate" in page and "Raw, averaged, squared, and both" in page
    assert "How far estimators are apart" in page
    with (tmp_path / "report" / "tables" / "random.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * 12 * 2 and {
        r["verdict"] for r in rows if r["estimator"] == "sg-sq" and r["protocol"] == "roar"
    } == {"better"}
    assert (tmp_path / "report" / "tables" / "spread.csv").read_text().count("\n") == 1 + 3 * 2


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, TOOL, *map(str, arguments)], capture_output=True, text=True, check=False)


def as_in_the_paper() -> StudyResults:
    """The same with next to no noise, and with what the paper says of guided backprop alone."""

    def more(r) -> float:
        averaged = r.protocol == "roar" and r.estimator == "sg(gb)"
        kept = r.protocol == "kar" and r.estimator in ("gb", "sg-sq(gb)")
        return -0.03 * r.drop if averaged else -0.05 if kept else 0.0

    return StudyResults([replace(r, accuracy=r.accuracy + more(r)) for r in made(sd=1e-4)], {})


def verdicts(folder: Path) -> dict[str, str]:
    with (folder / "claims.csv").open() as file:
        return {r["claim"]: r["verdict"] for r in csv.DictReader(file)}


def test_the_page_of_claims(tmp_path: Path) -> None:
    as_in_the_paper().to_csv(tmp_path / "records.csv")
    done = run("--out", tmp_path)
    assert done.returncode == 0, done.stderr
    assert {v.split(" (")[0] for v in verdicts(tmp_path).values()} == {"holds"} and len(verdicts(tmp_path)) == 12
    page = (tmp_path / "README.md").read_text()
    assert page.splitlines()[2] == "**Did not hold:** nothing."
    assert all(
        (tmp_path / name).is_file() for name in ("retrained.png", "sg-sq.png", "parts.png", "random.csv", "spread.csv")
    )


def test_what_does_not_happen_holds_only_where_the_noise_allows_to_say_so(tmp_path: Path) -> None:
    made(sd=0.05, protocols=("roar",)).to_csv(tmp_path / "records.csv")  # SG is no better, as nobody can tell here
    assert run("--out", tmp_path).returncode == 0
    found = verdicts(tmp_path)
    assert not found["SG alone is no better than raw grad and IG in ROAR"].startswith("holds (")
    assert not any(v.startswith("holds (") for k, v in found.items() if "random" in k)


def test_claims_that_fail_come_first(tmp_path: Path) -> None:
    wrong = [record(r.protocol, r.estimator, "plain", r.drop, r.trial, accuracy=1 - r.accuracy) for r in made()]
    StudyResults(wrong, {}).to_csv(tmp_path / "records.csv")
    assert run("--out", tmp_path).returncode == 0
    first = (tmp_path / "README.md").read_text().splitlines()[2]
    assert "raw estimators are worse than random pixels in ROAR (4.2.3): does not hold (6 fail of 6)" in first
    assert "points above grad² in ROAR at t = 0.3 (expected at least 3)" in first


@pytest.mark.parametrize(
    ("kept", "message"),
    [
        (
            ("grad", "grad^2", "rand"),
            "ROAR cells of rand and of two methods or more, each in two of raw, SG, SQ, SG-SQ",
        ),
        (("grad", "grad^2", "gb", "gb^2"), "these results have roar of grad, gb, grad^2, gb^2"),
        (("gb", "gb^2", "ig", "ig^2", "rand"), "no finished ROAR cell of grad and grad^2 at t = 0.3"),
        ((), "no table of records"),
    ],
)
def test_results_of_something_else_are_refused(tmp_path: Path, kept: tuple[str, ...], message: str) -> None:
    StudyResults([r for r in made(protocols=("roar",)) if r.estimator in kept], {}).to_csv(tmp_path / "records.csv")
    done = run("--out", tmp_path)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


def test_the_study_of_001_end_to_end(tmp_path: Path) -> None:
    """The committed config at a tiny size, its run, and the page."""
    pytest.importorskip("torch")
    from roarfast.study import Study
    from roarfast.study.config import parse_config

    text = (TOOL.parents[1] / "docs" / "results" / "roar-001" / "study.toml").read_text()
    whole = parse_config(text)
    cells = Study(whole, tmp_path / "none").cells
    assert len({c.estimator for c in cells} - {"none"}) == 13 and whole.explain.aggregate == "mean(raw)"
    assert len([c for c in cells if c.protocol in ("roar", "kar")]) == 260
    head = TINY.split("[explain]")[0].replace("trials = 1", "trials = 2").replace("epochs = 2", "epochs = 1")
    tail = text[text.index("[explain]") :].replace("ig_steps = 4, noise_samples = 8", "ig_steps = 1, noise_samples = 2")
    for dropped in (
        '  "sg", "sg(gb)", "sg(ig)",\n',
        '  "sg-sq", "sg-sq(gb)", "sg-sq(ig)",\n',
        '"ig", ',
        '"ig^2", ',
        "0.1, ",
        "0.5, 0.7, ",
    ):
        tail = tail.replace(dropped, "")
    tail = tail.replace('"gb", "ig",', '"gb",').replace('"gb^2", "ig^2",', '"gb^2",')
    (tmp_path / "study.toml").write_text(head + tail)
    study = Study.from_toml(tmp_path / "study.toml", tmp_path / "run")
    assert study.run(workers=1).failed == []
    done = run(tmp_path / "run", "--out", tmp_path / "page")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "page" / "retrained.png").is_file() and "base models of" in (
        tmp_path / "page" / "README.md"
    ).read_text()
