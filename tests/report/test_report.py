"""The report as a whole: complete, self-contained, accessible, and honest about what is missing."""

from __future__ import annotations

import html
import html.parser
import math
import re
from pathlib import Path

import numpy as np
import pytest
from helpers import synthetic_study as synthetic
from helpers.browser import BROWSER, NO_BROWSER, dump
from helpers.result_files import rows

pytest.importorskip("matplotlib")

from roarfast.report import build, export, image_figures, summary
from roarfast.report.figures.plotting import _columns
from roarfast.report.leakage import leakage_line, leakages
from roarfast.report.material import run_view
from roarfast.report.page import render
from roarfast.report.text import duration, p_text, signed
from roarfast.report.times import LEGACY, OVERHEAD, PASSES, times
from roarfast.study.results import STAGES, StudyResults

FEW = ("grad", "ig^2", "sg-sq", "gc^2")


class Page(html.parser.HTMLParser):
    """Collects what the checks need: ids, tables, references, text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.labels: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.headers: list[dict[str, str | None]] = []
        self.headings: list[int] = []
        self.images_without_alt = 0
        self.tables = self.captions = 0
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if "id" in found:
            self.ids.append(str(found["id"]))
        self.labels += str(found.get("aria-labelledby") or "").split()
        self.tables += tag == "table"
        self.captions += tag == "caption"
        if tag == "th":
            self.headers.append(found)
        if tag == "a":
            self.links.append(str(found.get("href")))
        if tag in ("img", "script", "link", "iframe") and ("src" in found or "href" in found):
            self.sources.append(str(found.get("src") or found.get("href")))
        if tag == "img" and not found.get("alt"):
            self.images_without_alt += 1
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))


def words_of(path: Path) -> str:
    """The page with all white space as one blank, as a browser shows it."""
    return " ".join(path.read_text().split())


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with several protocols, failures, gaps, leakage and examples."""
    folder = tmp_path_factory.mktemp("full")
    synthetic.write_examples(folder, FEW[:2])
    (folder / "study.toml").write_text('name = "<made up>"\n')
    results = synthetic.study(
        estimators=FEW,
        trials=5,
        failed=3,
        missing=2,
        baseline_drops=(0.1, 0.3, 0.5),
        protocols=[("roar", "morf"), ("road", "lerf"), ("mask-only", "morf")],
    )
    return build(folder, results=results)


def test_everything_is_written(full: Path) -> None:
    assert full.name == "index.html" and full.parent.name == "report"
    figures = {p.name for p in (full.parent / "figures").iterdir()}
    for panel in ("cifar10-roar-morf", "cifar10-road-lerf"):
        for kind in ("curves", "table", "arrows", "scatter"):
            assert {f"{panel}-{kind}.svg", f"{panel}-{kind}.png"} <= figures
    assert {"examples-grad.png", "examples-ig.2.png"} <= figures
    names = {p.stem for p in (full.parent / "tables").glob("*.csv")}
    assert names == {
        "records",
        "cells",
        "differences",
        "counts",
        "ranks",
        "agreement",
        "fits",
        "leakage",
        "times",
        "scores",
        "random",
        "spread",
    }


def test_links_point_to_what_is_there(full: Path) -> None:
    page = Page(full.read_text())
    for link in page.links:
        assert link[1:] in page.ids if link.startswith("#") else (full.parent / link).exists(), link


def test_page_is_self_contained(full: Path) -> None:
    text = full.read_text()
    assert all(s.startswith("data:") for s in Page(text).sources)
    assert not re.findall(r"@import|url\((?!#)", text)
    namespaces = {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert set(re.findall(r"https?://[^\s\"'<>)]+", text)) <= namespaces


def test_page_is_readable_by_screen_readers(full: Path) -> None:
    page = Page(full.read_text())
    assert len(page.ids) == len(set(page.ids)), "ids are unique, also inside the figures"
    assert set(page.labels) <= set(page.ids)
    assert page.tables == page.captions > 5
    assert all(h.get("scope") in ("col", "row", "colgroup") for h in page.headers)
    assert page.images_without_alt == 0
    assert page.headings[0] == 1 and all(b - a <= 1 for a, b in zip(page.headings, page.headings[1:]))


def test_failures_and_gaps_are_shown_and_escaped(full: Path) -> None:
    text = words_of(full)
    assert "loss is &lt;NaN&gt; &amp; stays so" in text and "<NaN>" not in text
    assert "&lt;made up&gt;" in text
    assert "3 failed" in text
    assert "differs from the nominal" in text  # gc^2 removes more than asked in the made-up study


def test_audit_warns_in_plain_words(full: Path) -> None:
    text = words_of(full)
    assert "A good score here is not proof of a good explanation" in text
    assert "Holm-corrected" in text and "Kendall" in text
    assert "from the masks alone" in text and "leakage (%)" in text


def test_numbers_in_the_csv_are_those_of_the_records(full: Path) -> None:
    records = [r for r in rows(full.parent / "tables" / "records.csv") if r["status"] == "done"]
    for cell in rows(full.parent / "tables" / "cells.csv"):
        keys = ("dataset", "protocol", "order", "estimator", "postprocess")
        mine = [
            float(r["accuracy"])
            for r in records
            if all(r[k] == cell[k] for k in keys) and float(r["drop"]) == float(cell["drop"])
        ]
        assert int(cell["trials"]) == len(mine) and float(cell["accuracy"]) == pytest.approx(np.mean(mine), abs=1e-6)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("one trial, no baselines", {"trials": 1, "baselines": ()}, ["One trial only", "No random baseline was run"]),
        ("two trials", {"trials": 2}, ["Two trials", "12.7 standard errors"]),
        (
            "one estimator",
            {"estimators": ("sg-sq(ig)",), "trials": 2},
            ["no ranking to compare", "no line can be fitted"],
        ),
        (
            "plain only",
            {"postprocesses": ("plain",), "trials": 2},
            ["no post-processing to audit", "no arrows to draw"],
        ),
        ("baselines only", {"estimators": (), "trials": 2}, ["baselines only"]),
        ("not retrained", {"protocols": [("no-retrain", "morf")], "trials": 2}, ["reverse the effect of smoothing"]),
        ("kept", {"protocols": [("kar", "morf")], "trials": 2}, ["fraction of pixels kept", "keeping what matters"]),
    ],
)
def test_studies_of_every_shape(tmp_path: Path, name: str, options: dict[str, object], words: list[str]) -> None:
    results = synthetic.study(**{"estimators": FEW[:3], **options})  # type: ignore[arg-type]
    text = words_of(build(tmp_path, tmp_path / "out", results))
    for phrase in words:
        assert phrase in text, f"{name}: {phrase}"
    assert (
        "nan"
        not in re.sub(r"<[^>]*>", " ", re.sub(r"<(script|style).*?</\1>", "", text, flags=re.DOTALL)).lower().split()
    )
    assert len(summary(results, tmp_path).splitlines()) <= 10


def test_an_empty_or_unfinished_study_gives_a_report(tmp_path: Path) -> None:
    unfinished = StudyResults([synthetic.record("roar", "grad", "plain", 0.3, 0, status="pending")], {})
    assert "No cell is finished yet" in build(tmp_path, results=unfinished).read_text()
    assert "0 of 1 cells done, 1 pending" in summary(unfinished)
    assert build(tmp_path, results=StudyResults([], {})).exists()


def test_records_without_total_variation(tmp_path: Path) -> None:
    records = [
        synthetic.record("roar", e, k, 0.5, t, accuracy=0.5 + t / 50)
        for e in FEW
        for k in ("plain", "max(3)")
        for t in (0, 1)
    ]
    text = build(tmp_path, results=StudyResults(records, {})).read_text()
    assert "no arrows to draw" in text and "no line can be fitted" in text and "No times were recorded" in text


def test_broken_examples_do_not_stop_the_report(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "grad.npz").write_bytes(b"not a zip")
    np.savez(tmp_path / "examples" / "ig.2.npz", images=np.zeros((1, 4, 4, 3), np.uint8))
    text = build(tmp_path, results=synthetic.study(estimators=FEW[:2], trials=1, baselines=())).read_text()
    assert "The study kept no example images" in text


def test_same_results_give_the_same_page(tmp_path: Path) -> None:
    results = synthetic.study(estimators=FEW[:2], trials=2, baselines=())
    pages = [build(tmp_path, tmp_path / name, results).read_text() for name in "ab"]
    assert pages[0] == pages[1]


def test_summary_is_ten_lines_and_ends_with_the_path() -> None:
    results = synthetic.study(
        estimators=FEW, trials=3, failed=2, protocols=[("roar", "morf"), ("road", "morf"), ("road", "lerf")]
    )
    lines = summary(results, Path("run/report/index.html")).splitlines()
    assert len(lines) <= 10 and lines[-1] == "Report: run/report/index.html"
    assert "2 failed" in lines[0] and lines[-2].startswith("Caution")


def test_export_copies_what_a_page_needs(full: Path, tmp_path: Path) -> None:
    written = export(full.parent, tmp_path / "docs")
    figures, tables = tmp_path / "docs" / "figures", tmp_path / "docs" / "tables"
    assert sorted(written) == sorted([*figures.iterdir(), *tables.iterdir()])
    assert {p.suffix for p in figures.iterdir()} == {".png"} and {p.suffix for p in tables.iterdir()} == {".csv"}
    for path in written:
        assert path.read_bytes() == (full.parent / path.parent.name / path.name).read_bytes()


def test_export_leaves_out_images_of_the_data_set_unless_asked(full: Path, tmp_path: Path) -> None:
    drawn = {p.stem for p in (full.parent / "figures").glob("*.svg")}
    pictures = {p.stem for p in (full.parent / "figures").glob("*.png")} - drawn
    assert {p.stem for p in image_figures(full.parent)} == pictures >= {"examples-grad"}, "photos have no SVG"
    without, with_images = (export(full.parent, tmp_path / str(i), images=i) for i in (False, True))
    assert {p.stem for p in without if p.suffix == ".png"} == drawn and not image_figures(tmp_path / "False")
    assert {p.stem for p in with_images if p.suffix == ".png"} == drawn | pictures
    assert not list(tmp_path.rglob("*.html")), "the page holds images"


def test_command_says_what_export_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typer_testing = pytest.importorskip("typer.testing")
    from roarfast.commands import app

    def run(*options: str) -> tuple[int, str]:
        result = typer_testing.CliRunner().invoke(app, ["report", str(tmp_path / "run"), *options])
        return result.exit_code, result.output + (result.stderr or "")

    synthetic.write_examples(tmp_path / "run", FEW[:2])
    results = synthetic.study(estimators=FEW[:2], trials=1, baselines=())
    monkeypatch.setattr("roarfast.report.cli.load", lambda folder: results)
    figures, export_to = tmp_path / "Docs" / "figures", ("--export", str(tmp_path / "Docs"))
    code, said = run(*export_to)
    kept = len(image_figures(tmp_path / "run" / "report"))
    left_out = f"Left out {kept} figures with images of the data set (figures/examples-*.png); --images copies them too"
    assert code == 0 and said.splitlines()[-1] == left_out and kept > 2 and not list(figures.glob("examples-*"))
    code, said = run(*export_to, "--images")
    assert code == 0 and said.splitlines()[-1].startswith("Exported") and len(list(figures.glob("examples-*"))) == kept
    code, said = run(*export_to)
    earlier = f"{left_out}. Still there from an earlier export: {kept} figures with images, in {figures}"
    assert code == 0 and said.splitlines()[-1] == earlier
    code, said = run("--images")
    assert code == 2 and "add --export FOLDER" in said


def test_figures_are_small_enough_to_commit_and_sharp_enough_to_read(full: Path) -> None:
    from PIL import Image

    for path in (full.parent / "figures").glob("cifar10-*.png"):
        width, height = Image.open(path).size
        assert path.stat().st_size < 150_000 and width >= 1200, (path.name, path.stat().st_size, width, height)


def test_leakage_is_a_figure_a_table_and_a_finding(full: Path, tmp_path: Path) -> None:
    assert (full.parent / "figures" / "cifar10-mask-only-morf-leakage.png").exists()
    text = words_of(full)
    assert "Masks alone, cifar10: a network that sees no image, only the masks, reaches" in text
    listed = rows(full.parent / "tables" / "leakage.csv")
    assert {r["estimator"] for r in listed} == {*FEW, "rand", "block"} and {r["chance"] for r in listed} == {""}
    results = synthetic.study(estimators=FEW[:2], trials=1, protocols=[("mask-only", "morf")], baselines=("rand",))
    results.meta["classes"] = 10
    (leakage,) = leakages(results)
    assert leakage.chance == 0.1 and leakage_line(leakage).endswith("chance is 10.0 %")
    assert "Dashed: chance, 10.0 %" in words_of(build(tmp_path, results=results))


def test_what_holds_for_all_protocols_is_said_once_a_section(tmp_path: Path) -> None:
    results = synthetic.study(estimators=FEW[:2], trials=2, protocols=[("roar", "morf"), ("no-retrain", "morf")])
    text = words_of(build(tmp_path, results=results))
    assert text.count("12.7 standard errors") == 2  # accuracy and audit
    assert "No retraining, constant fill (comparison only), cifar10" in text


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (4, 4), (6, 3), (8, 4), (9, 3), (10, 5), (11, 4), (12, 4)])
def test_small_panels_fill_their_rows(count: int, columns: int) -> None:
    assert _columns(count) == columns


def test_overhead_is_what_is_not_the_model() -> None:
    stages = {"training": 70, "evaluation": 5, "map_passes": 10, "map_other": 4, "codes": 2, "start": 6, "other": 3}
    t = times({"stage_seconds": stages})
    assert (t.total, t.low, t.high) == pytest.approx((100, 0.15, 0.15)) and t.share == "15.0 %"
    assert t.rest == {"map_other": 4, "codes": 2, "start": 6, "other": 3}
    assert times({}).total == 0 and math.isnan(times({}).high)


def test_overhead_of_a_run_that_did_not_time_the_passes_of_maps_is_a_range() -> None:
    t = times({"stage_seconds": {"training": 80, "evaluation": 5, "explain": 10, "codes": 2, "other": 3}})
    assert (t.total, t.low, t.high) == pytest.approx((100, 0.05, 0.15)) and t.share == "5.0 to 15.0 %"


def test_every_stage_of_a_study_has_a_meaning() -> None:
    assert set(PASSES) | set(OVERHEAD) == set(STAGES)


@pytest.mark.parametrize(
    ("stages", "waiting", "found"),
    [
        ({"training": 90, "map_passes": 4, "codes": 6}, None, ["Overhead: 6.0 % of it, within the aim of 10 %"]),
        ({"training": 80, "codes": 20}, 25.0, ["20.0 % of it, above the aim", "waited 25 s (20.0 % of their time)"]),
        (
            {"training": 80, "explain": 15, "codes": 5},
            None,
            ["5.0 to 20.0 % of it, perhaps above", "all of it as passes"],
        ),
    ],
)
def test_the_page_shows_overhead_with_its_definition(stages, waiting, found) -> None:
    results = StudyResults([], {"stage_seconds": stages, "waiting_seconds": waiting})
    page = " ".join(render("provenance.html", run=run_view(results))[0].split())
    for text in (*found, "passes of training, of evaluation and of the estimators are no overhead"):
        assert text in page
    for stage in stages:
        assert (PASSES | OVERHEAD | LEGACY)[stage] in page


def test_words_for_numbers() -> None:
    assert [signed(v) for v in (-0.012, 0.012, 0.0001, -0.0001, 0.0)] == ["−1.2", "+1.2", "0.0", "0.0", "0.0"]
    assert [p_text(v) for v in (0.0001, 0.012, 0.5, float("nan"))] == ["p < 0.001", "p = 0.012", "p = 0.50", "no p"]
    assert [duration(s) for s in (0.5, 48, 300, 6130)] == ["0.50 s", "48 s", "5 min", "1 h 42 min"]


def test_command_explains_a_folder_without_results(tmp_path: Path) -> None:
    typer_testing = pytest.importorskip("typer.testing")
    from roarfast.commands import app

    result = typer_testing.CliRunner().invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 2 and "results.sqlite" in result.output + (result.stderr or "")


def test_command_writes_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typer_testing = pytest.importorskip("typer.testing")
    from roarfast.commands import app

    results = synthetic.study(estimators=FEW[:2], trials=1, baselines=())
    monkeypatch.setattr("roarfast.report.cli.load", lambda folder: results)
    result = typer_testing.CliRunner().invoke(app, ["report", str(tmp_path), "--out", str(tmp_path / "here")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "here" / "index.html").exists() and "Report: " in result.output


PROBE = """<script>
window.addEventListener("error", function (e) { document.documentElement.setAttribute("data-error", e.message); });
window.addEventListener("load", function () {
  var table = Array.from(document.querySelectorAll("table")).find(function (t) { return t.caption.textContent.includes("plain accuracy"); });
  var headers = table.tHead.rows[table.tHead.rows.length - 1].cells;
  function column(i) { return Array.from(table.tBodies[0].rows).map(function (r) { return r.cells[i].textContent; }).join("|"); }
  headers[1].querySelector("button").click();
  var up = column(1), state = headers[1].getAttribute("aria-sort");
  headers[1].querySelector("button").click();
  document.documentElement.setAttribute("data-up", up);
  document.documentElement.setAttribute("data-down", column(1));
  document.documentElement.setAttribute("data-states", state + "," + headers[1].getAttribute("aria-sort"));
  document.documentElement.setAttribute("data-said", document.getElementById("announce").textContent);
  document.documentElement.setAttribute("data-overflow", document.documentElement.scrollWidth - window.innerWidth);
});
</script>"""


@pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)
@pytest.mark.parametrize("width", [1280, 400])
def test_in_a_browser(full: Path, tmp_path: Path, width: int) -> None:
    """Tables sort both ways and say so, no script error, nothing wider than the window."""
    page = tmp_path / "probe.html"
    page.write_text(full.read_text().replace("<head>", "<head>" + PROBE, 1))
    dom = dump(page, tmp_path / "profile", width)
    tag = re.search(r"<html[^>]*>", dom)
    assert tag is not None
    found = dict(re.findall(r'(data-[a-z]+)="([^"]*)"', tag.group()))
    assert "data-error" not in found
    up = [float(v.split()[0]) for v in found["data-up"].split("|")]
    down = [float(v.split()[0]) for v in found["data-down"].split("|")]
    assert up == sorted(up) and down == sorted(down, reverse=True) and len(set(up)) > 2
    assert found["data-states"] == "ascending,descending" and "descending" in found["data-said"]
    assert int(found["data-overflow"]) <= 0


def test_cells_of_several_versions_of_torch_are_a_doubt(tmp_path: Path) -> None:
    from dataclasses import replace

    results = synthetic.study(estimators=("grad",), trials=1, baselines=())
    versions = ("2.13.0", "2.15.0", None)
    mixed = [replace(r, torch=versions[min(i, 2)]) for i, r in enumerate(results.records)]
    same = [replace(r, torch="2.13.0") for r in results.records]
    page = build(tmp_path / "a", results=StudyResults(mixed, results.meta)).read_text()
    assert "1 cell with torch 2.13.0" in page and "1 cell with torch 2.15.0" in page
    assert "cells with one that was not recorded" in page and "Doubtful" in page
    assert "version of torch" not in build(tmp_path / "b", results=StudyResults(same, results.meta)).read_text()


PHONE = """<!doctype html><meta charset="utf-8"><iframe src="page.html" width="400" height="800" style="border:0"></iframe><script>
function channel(v) { v /= 255; return v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); }
function light(c) { return 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]); }
function numbers(text) { return (text.match(/[0-9.]+/g) || [0, 0, 0, 0]).map(Number); }
window.addEventListener("load", function () {
  var inside = document.querySelector("iframe").contentWindow, page = inside.document, worst = [], seen = {}, count = 0;
  page.querySelectorAll("body *").forEach(function (e) {
    var own = Array.from(e.childNodes).some(function (n) { return n.nodeType === 3 && n.textContent.trim(); });
    if (!own || !e.getClientRects().length) return;
    var style = inside.getComputedStyle(e), drawn = e.namespaceURI.endsWith("svg");
    var ink = numbers(drawn ? style.fill : style.color), under = [255, 255, 255];
    for (var box = e; box && box.style; box = box.parentElement) {
      var b = numbers(inside.getComputedStyle(box).backgroundColor);
      if (b.length === 3 || b[3] > 0) { under = b; break; }
    }
    var a = light(ink), b2 = light(under), ratio = (Math.max(a, b2) + 0.05) / (Math.min(a, b2) + 0.05);
    var size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700);
    count += 1;
    var name = e.tagName + "." + (e.getAttribute("class") || "") + " " + ink.slice(0, 3) + " on " + under.slice(0, 3);
    if (ratio < (large ? 3 : 4.5) && !seen[name]) { seen[name] = 1; worst.push(name + ": " + ratio.toFixed(2) + " " + e.textContent.slice(0, 20)); }
  });
  var out = document.createElement("pre"); out.id = "found";
  out.textContent = JSON.stringify({ width: inside.innerWidth, overflow: page.documentElement.scrollWidth - inside.innerWidth, worst: worst, count: count });
  document.body.appendChild(out);
});
</script>"""


@pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)
def test_on_a_phone_nothing_is_cut_and_every_text_has_contrast(full: Path, tmp_path: Path) -> None:
    """A real 400 pixels: a window of a headless browser is never that narrow. Contrast as WCAG AA asks, 4.5 (3 if large)."""
    import json

    faint = '<p style="color:#888">control</p>'
    (tmp_path / "page.html").write_text(full.read_text().replace("</body>", f"{faint}</body>", 1))
    (tmp_path / "phone.html").write_text(PHONE)
    dom = dump(tmp_path / "phone.html", tmp_path / "profile", files=True)
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL).group(1)))  # type: ignore[union-attr]
    assert found["width"] == 400 and found["overflow"] <= 0
    assert [text.rpartition(" ")[2] for text in found["worst"]] == ["control"], found["worst"]
    assert found["count"] > 200
