"""`roarfast compare`: results of others beside one's own, nothing run again; and tables as CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from helpers import synthetic_study as synthetic

pytest.importorskip("matplotlib")
pytest.importorskip("typer")

from typer.testing import CliRunner

from roarfast.commands import app
from roarfast.report.compare import compare, published, read_records, read_source, text_table, write_comparison
from roarfast.report.grid import panels
from roarfast.report.scores import areas, scores
from roarfast.report.table import Td, latex, table, write_table
from roarfast.study.errors import StudyError

COMMITTED = Path(__file__).parents[2] / "docs" / "results" / "cifar10-subset"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Records of a study with an estimator of one's own, as `roarfast run` leaves them."""
    folder = tmp_path / "mine"
    folder.mkdir()
    synthetic.MASK_TV["mine"] = 0.3
    results = synthetic.study(
        estimators=("mine",), trials=3, drops=(0.3, 0.5, 0.7), protocols=[("roar", "morf"), ("kar", "morf")]
    )
    results.to_csv(folder / "results.csv")
    return folder


def test_published_results_are_the_committed_ones() -> None:
    assert published() == ["cifar10-subset"]
    ours, committed = read_source("cifar10-subset").results, read_source(str(COMMITTED)).results
    fields = ("protocol", "estimator", "postprocess", "order", "drop", "trial", "accuracy")
    assert [[getattr(r, f) for f in fields] for r in ours] == [[getattr(r, f) for f in fields] for r in committed]
    assert (COMMITTED / "study.toml").read_text() == _packaged("cifar10-subset.toml")


def _packaged(name: str) -> str:
    from importlib import resources

    return (resources.files("roarfast.report") / "published" / name).read_text(encoding="utf-8")


def test_records_survive_the_way_through_csv() -> None:
    results = synthetic.study(estimators=("grad",), trials=2, failed=1)
    back = read_records(results.to_csv(), {}, "x")
    assert [(r.protocol, r.drop, r.trial, r.status, r.accuracy, r.tv_mask) for r in back] == [
        (r.protocol, r.drop, r.trial, r.status, r.accuracy, r.tv_mask) for r in results
    ]


def test_own_estimator_beside_published_ones(mine: Path) -> None:
    found = compare([str(mine), "cifar10-subset"])
    (one,) = found.tables  # kar is not published, road was not run
    assert one.name == "compare-roar-morf" and "through 0.3, 0.5," in one.caption
    studies = {row[2].text for row in one.rows}
    assert studies == {"mine", "cifar10-subset"} and "mine" in {row[0].text for row in one.rows}
    panel = next(p for p in panels(read_source("cifar10-subset").results) if p.protocol == "roar")
    vg = next(s for s in scores(panel, rates=(0.3, 0.5)) if (s.estimator, s.postprocess) == ("vg", "plain"))
    row = next(r for r in one.rows if [c.text for c in r[:3]] == ["vg", "plain", "cifar10-subset"])
    assert row[3].sort == pytest.approx(vg.area.mean) and row[4].sort == pytest.approx(vg.random.difference.mean)  # type: ignore[union-attr]
    own = panels(read_source(str(mine)).results)[0]
    assert sum(areas(own, "mine", "plain", (0.3, 0.5)).values()) / 3 == pytest.approx(
        next(r for r in one.rows if r[0].text == "mine" and r[1].text == "plain")[3].sort
    )
    ranked = [r[-1].sort for r in one.rows if r[-1].text != "–"]
    assert ranked == sorted(ranked) and ranked[0] >= 1
    assert any("base models of mine and cifar10-subset differ" in doubt for doubt in found.doubts)


def test_differences_in_the_configs_are_named(tmp_path: Path) -> None:
    for name, epochs in (("a", 6), ("b", 12)):
        (tmp_path / name).mkdir()
        synthetic.study(estimators=("grad",), trials=2).to_csv(tmp_path / name / "results.csv")
        (tmp_path / name / "study.toml").write_text(f'[model]\nname = "convnet"\n[train]\nepochs = {epochs}\n')
    assert compare([str(tmp_path / "a"), str(tmp_path / "b")]).doubts == ["train.epochs: 6 in a, 12 in b"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["cifar10-subse"], "at least two studies"),
        (["cifar10-subset", "cifar10-subse"], "did you mean 'cifar10-subset'"),
        (["cifar10-subset", "nowhere/at/all"], "published are: cifar10-subset"),
    ],
)
def test_bad_sources(given: list[str], words: str) -> None:
    result = CliRunner().invoke(app, ["compare", *given])
    assert result.exit_code == 2 and words in result.output + (result.stderr or "")


def test_bad_tables_of_records(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"x is no table of records: it has no column accuracy, dataset"):
        read_records("a,b\n1,2\n", {}, "x")
    text = synthetic.study(estimators=("grad",), trials=1).to_csv().replace(",0.3,", ",much,", 1)
    with pytest.raises(StudyError, match=r"x, line \d+: drop must be a number, got 'much'"):
        read_records(text, {}, "x")
    (tmp_path / "one.csv").write_text(
        synthetic.study(estimators=("grad",), drops=(0.15,), baselines=(), trials=1).to_csv()
    )
    with pytest.raises(
        StudyError,
        match=r"no protocol with a drop rate in common \(one: roar morf at 0.15; cifar10-subset: roar morf at",
    ):
        compare([str(tmp_path / "one.csv"), "cifar10-subset"])


def test_command_prints_and_writes(mine: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["compare", str(mine), "cifar10-subset", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "mine: cifar10" in result.output and "doubtful: " in result.output
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<script src" not in page and "cifar10-subset" in page
    for link in re.findall(r'href="(tables/[^"]+)"', page):
        assert (tmp_path / "out" / link).exists()


def test_page_of_a_comparison_is_that_of_its_tables(mine: Path, tmp_path: Path) -> None:
    found = compare([str(mine), "cifar10-subset"])
    write_comparison(found, tmp_path)
    rows = list(csv.reader((tmp_path / "tables" / "page" / "compare-roar-morf.csv").open()))
    assert rows[0] == list(found.tables[0].columns) and len(rows) == 1 + len(found.tables[0].rows)
    assert text_table(found.tables[0]).count("\n") == 1 + len(found.tables[0].rows)


def test_a_table_as_csv_and_latex(tmp_path: Path) -> None:
    found = table(
        "one",
        "A & B",
        ["Name", "x %", "k_1"],
        [["grad²", Td("5.0 ± 0.1", 0.0501234567), Td("max(3)", css="text")], ["a_b", Td("–", float("nan")), "−1"]],
        [("", 1), ("t = 0.3", 2)],
    )
    write_table(found, tmp_path)
    rows = list(csv.reader(io.StringIO((tmp_path / "one.csv").read_text())))
    assert rows == [["Name", "t = 0.3: x %", "t = 0.3: k_1"], ["grad²", "0.0501235", "max(3)"], ["a_b", "", "−1"]]
    text = (tmp_path / "one.tex").read_text()
    assert r"\begin{tabular}{lrl}" in text and r" & \multicolumn{2}{c}{t = 0.3} \\" in text
    assert r"grad$^2$ & 5.0 $\pm$ 0.1 & max(3) \\" in text and r"a\_b & -- & $-$1 \\" in text
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert all(line.count("&") == 2 for line in body[1:]), "as many cells as columns"


def test_latex_leaves_no_character_that_breaks_it() -> None:
    assert (
        latex("100 % of {a} #1 $x$ ~ ^ \\")
        == r"100 \% of \{a\} \#1 \$x\$ \textasciitilde{} \textasciicircum{} \textbackslash{}"
    )
    every = latex("".join(map(chr, range(32, 127))))
    assert not re.search(r"(?<!\\)[&%#_]", every)
