"""Pages of results are what their tools write from the records beside them."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")
ROOT = Path(__file__).parents[1]
RESULTS, TOOLS = ROOT / "docs" / "results", ROOT / "tools"
if not RESULTS.exists() or not TOOLS.exists():
    pytest.skip("not a checkout", allow_module_level=True)


@pytest.mark.parametrize(
    ("tool", "folder"), [("planted_truth.py", "planted-truth"), ("watermark_study.py", "watermark")]
)
def test_the_page_is_what_the_records_say(tool, folder, tmp_path) -> None:
    shutil.copytree(RESULTS / folder / "records", tmp_path / "records")
    if (speed := RESULTS / folder / "speed.csv").exists():
        shutil.copy(speed, tmp_path)
    done = subprocess.run(
        [sys.executable, str(TOOLS / tool), "--page", "--out", str(tmp_path)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    written = [p for p in tmp_path.iterdir() if p.suffix in (".md", ".csv")]
    assert len(written) > 1
    for path in written:
        assert path.read_text() == (RESULTS / folder / path.name).read_text(), path.name


@pytest.mark.parametrize(
    ("folder", "command"),
    [
        ("cub20", ["cub20.py", "--out", "OUT"]),
        ("roar-001", ["roar_families.py", "--out", "OUT"]),
        ("svhn-subset", ["subset_page.py", "OUT"]),
        ("scores-cifar10", ["score_claims.py", "--out", "OUT"]),
        ("imagenet-photos", ["photo_page.py", "--out", "OUT"]),
        ("enhancement", ["enhancement.py", "--out", "OUT"]),
    ],
)
def test_the_page_is_what_the_tables_say(folder, command, tmp_path) -> None:
    out = tmp_path / folder
    shutil.copytree(RESULTS / folder, out)
    if folder != "scores-cifar10":  # of which only the verdicts are written again
        (out / "README.md").unlink()
    words = [str(TOOLS / command[0]), *(str(out) if word == "OUT" else word for word in command[1:])]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert {p.name for p in out.rglob("*")} == {p.name for p in (RESULTS / folder).rglob("*")}
    for path in (p for p in out.rglob("*") if p.suffix in (".md", ".csv")):
        assert path.read_text() == (RESULTS / folder / path.relative_to(out)).read_text(), path.name


@pytest.mark.parametrize("page", sorted(RESULTS.glob("*/README.md")), ids=lambda page: page.parent.name)
def test_a_page_says_first_what_did_not_hold(page: Path) -> None:
    first = page.read_text().split("\n\n")[1]
    said = ("not hold", "Not shown", "Not as", "Not enhanced", "Hold in part", "Nothing of")
    assert any(words in first for words in said), first


def test_planted_truth_of_the_page() -> None:
    with (RESULTS / "planted-truth" / "trust.csv").open() as file:
        rows = {(r["objects"], r["score"]): r for r in csv.DictReader(file)}
    assert len({k[0] for k in rows}) == 4 and sum(name.startswith("seed") for name in next(iter(rows.values()))) == 5
    assert np.isnan(float(rows["all", "ROAD, model part"]["rank correlation"]))  # 0 for every map
    for group in {k[0] for k in rows}:
        assert np.isfinite(float(rows[group, "ROAD, equal damage"]["rank correlation"]))
    with (RESULTS / "planted-truth" / "nulls.csv").open() as file:
        nulls = {(r["map"], r["null"]): r for r in csv.DictReader(file)}
    assert nulls["rand | plain", "swap"]["within two"] == "True"


def test_the_page_of_an_audit(tmp_path, monkeypatch) -> None:
    from torch import nn

    from roarfast import metrics

    monkeypatch.syspath_prepend(str(TOOLS))
    from audit_page import write_page

    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 3))
    images, labels = rng.integers(0, 256, (12, 3, 8, 8), dtype=np.uint8), rng.integers(0, 3, 12)
    scores = {"deletion": ["dataset_mean", "zero"], "insertion": ["blur"], "infidelity": ["dataset_mean"]}
    parts = []
    for trial in range(2):
        maps = {f"{name}, model {trial}": rng.random((12, 8, 8)) for name in ("a", "b", "c")}
        parts.append(
            metrics.audit(net, images, maps, labels=labels, scores=scores, layout="NCHW", resamples=20, progress=False)
        )
    write_page(parts, np.array([0.5, 0.6]), ["a", "b", "c"], tmp_path)
    page = (tmp_path / "README.md").read_text()
    assert "2 base models (50.0%, 60.0% of the test images), 12 test images" in page
    assert "| deletion | zero |" in page and "not by a bit, with any fill" in page
    for name, count in (("audit.csv", 4 * 6), ("trials.csv", 2 * 4), ("values.csv", 4 * 2 * 3)):
        with (tmp_path / name).open() as file:
            assert len(list(csv.DictReader(file))) == count, name


def test_the_page_of_parts_is_what_its_tables_say(tmp_path: Path) -> None:
    for folder in ("parts", "imagenet-photos"):  # one panel is of the photos
        shutil.copytree(RESULTS / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.md", "*.png"))
    page = tmp_path / "parts" / "README.md"
    subprocess.run([sys.executable, str(TOOLS / "parts_page.py"), str(page.parent)], check=True, cwd=ROOT)
    assert page.read_text() == (RESULTS / "parts" / "README.md").read_text()


@pytest.mark.parametrize(
    ("says", "low", "high", "negligible", "verdict"),
    [
        (">", 0.1, 0.2, 0, "holds"),
        (">", -0.1, 0.2, 0, "open"),
        (">", -0.2, -0.1, 0, "fails"),
        ("<", -0.2, -0.1, 0, "holds"),
        ("<", 0.1, 0.2, 0, "fails"),
        ("not >", -0.2, -0.1, 0, "holds"),
        ("not >", -0.2, 0.1, 0, "open"),  # too wide to say that nothing happens
        ("not >", -0.2, 0.1, 0.1, "holds"),
        ("not >", 0.01, 0.1, 0, "fails"),
        ("not <", 0.1, 0.2, 0, "holds"),
        ("not <", -0.1, 0.2, 0, "open"),
        ("not <", -0.1, 0.2, 0.1, "holds"),
        ("not <", -0.2, -0.1, 0, "fails"),
        (">", np.nan, np.nan, 0, "open"),
    ],
)
def test_what_does_not_happen_holds_only_where_an_interval_excludes_it(
    says, low, high, negligible, verdict, monkeypatch
) -> None:
    monkeypatch.syspath_prepend(TOOLS)
    from compared import Comparison, Fixed

    one = Comparison("a − b, deletion", Fixed((low + high) / 2, low, high), says, negligible)
    assert one.verdict == verdict
    assert one.claimed == (f"{says} {'−' if '<' in says and negligible else ''}{negligible:g}")


def test_claims_are_read_as_they_were_written_and_soundness_needs_twice_its_interval(tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(TOOLS)
    from compared import Claim, Comparison, Fixed, read_claims, write_claims

    made = [
        Claim("p", "one", [Comparison("a − b, soundness", Fixed(0.2, 0.05, 0.4), ">")]),
        Claim("p", "two", [Comparison("a − b, soundness", Fixed(0.2, 0.15, 0.4), ">")]),
        Claim("q", "three", [Comparison("a, excess", Fixed(0.01, -0.02, 0.02), "not >", 0.03)] * 2),
    ]
    assert [c.verdict for c in made] == ["cannot be told here", "holds", "holds"]
    write_claims(tmp_path / "claims.csv", made)
    assert read_claims(tmp_path / "claims.csv") == made


def test_the_claims_of_the_tool_are_those_of_the_committed_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(TOOLS)
    import score_claims

    class Nothing:
        value = 0.0

        def __sub__(self, other: object) -> Nothing:
            return self

        def interval(self) -> tuple[float, float]:
            return -1.0, 1.0

    with (RESULTS / "scores-cifar10" / "claims.csv").open() as file:
        committed = [tuple(r[c] for c in ("paper", "claim", "comparison", "claimed")) for r in csv.DictReader(file)]
    made = score_claims.claims(lambda *key: Nothing())
    assert [(c.paper, c.text, d.what, d.claimed) for c in made for d in c.comparisons] == committed
