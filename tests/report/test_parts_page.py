"""tools/parts_tables.py and tools/parts_page.py: from a run to the page of parts."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from helpers.result_files import ROOT, rows, run_tool
from helpers.study_helpers import run_tiny, tiny

pytest.importorskip("torch")
pytest.importorskip("pydantic")

from roarfast.study import load

TOOLS = ROOT / "tools"
TEXT = tiny(
    trials=3,
    protocols=["road", "deletion"],
    estimators=["grad^2", "gc^2", "sobel^2", "rand"],
    postprocess=["plain", "gaussian(1)"],
    drops='[0.3, 0.6]\norders = ["morf"]\nnull = ["own", "swap", "models"]',
    examples=0,
)


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parts")
    run_tiny(folder, TEXT)
    run_tool("parts_tables.py", folder / "run", "--out", folder / "out").check_returncode()
    run_tool("parts_page.py", folder / "out").check_returncode()
    return folder


def test_the_parts_are_those_of_the_cells(tables: Path) -> None:
    results = load(tables / "run")
    base = np.mean([r.accuracy for r in results.select(protocol="base")])
    found = [r for r in rows(tables / "out" / "parts.csv") if r["of"] == "accuracy"]
    assert len(found) == 2 * 7  # rand has no filtered maps
    for row in found:
        chosen = {"protocol": row["protocol"], "estimator": row["estimator"], "postprocess": row["postprocess"]}
        mean = {
            arm: np.mean([r.accuracy for null in nulls for r in results.select(null=null, **chosen)])
            for arm, nulls in {"own": ["own"], "swap": ["swap"], "model": ["model", "model-2"]}.items()
        }
        expected = (base - mean["swap"], mean["swap"] - mean["model"], mean["model"] - mean["own"])
        assert [float(row[p]) for p in ("shape", "image", "model")] == pytest.approx(expected, abs=1e-5)


def test_rows_of_other_data_sets_stay(tables: Path, tmp_path: Path) -> None:
    first = rows(tables / "out" / "gates.csv")
    other = tmp_path / "gates.csv"
    text = (tables / "out" / "gates.csv").read_text()
    other.write_text(text.replace(f"{first[0]['dataset']},", "elsewhere,"))
    for _ in range(2):  # a second run replaces its own rows
        run_tool("parts_tables.py", tables / "run", "--out", tmp_path).check_returncode()
    assert [row for row in rows(other) if row["dataset"] != "elsewhere"] == first
    assert [row["gate"] for row in rows(other)[: len(first)]] == [row["gate"] for row in first]


def test_changes_are_differences_of_parts(tables: Path) -> None:
    parts = {(r["protocol"], r["of"], r["estimator"], r["postprocess"]): r for r in rows(tables / "out" / "parts.csv")}
    for row in rows(tables / "out" / "changes.csv"):
        mine = [row["estimators"]] if row["estimators"] in ("grad^2", "gc^2", "sobel^2") else ["grad^2"]
        mine = ["grad^2", "gc^2"] if row["estimators"] == "estimators that ask the model" else mine
        for name in ("own", "shape", "model"):
            change = np.mean(
                [
                    float(parts[row["protocol"], row["of"], e, row["postprocess"]][name])
                    - float(parts[row["protocol"], row["of"], e, "plain"][name])
                    for e in mine
                ]
            )
            assert float(row[name]) == pytest.approx(change, abs=2e-6)


def test_the_page_shows_them(tables: Path) -> None:
    page = (tables / "out" / "README.md").read_text()
    assert page.startswith("# A score taken apart") and "| grad² | gaussian(1) |" in page
    assert (tables / "out" / "road-parts.png").stat().st_size > 5000
    gates = rows(tables / "out" / "gates.csv")
    assert all(g["holds"] == "yes" for g in gates if "ask no model" in g["gate"])


def test_photos_are_a_panel_of_their_own(tables: Path, tmp_path: Path) -> None:
    shutil.copytree(tables / "out", tmp_path / "parts")
    photos = tmp_path / "imagenet-photos"
    photos.mkdir()
    for name, key in (("parts", "estimator"), ("changes", "estimators")):
        road = [
            r
            for r in rows(tables / "out" / f"{name}.csv")
            if (r["protocol"], r["of"]) == ("road", "accuracy") and r["postprocess"] in ("plain", "gaussian(1)")
        ]
        for r in road:
            r["postprocess"] = r["postprocess"].replace("gaussian(1)", "gaussian(7)")
        found = [{"other": other, "images": "50", **r} for other in ("untrained", "lite1") for r in road]
        with (photos / ("parts.csv" if name == "parts" else "parts-changes.csv")).open("w", newline="") as file:
            out = csv.DictWriter(file, list(found[0]))
            out.writeheader()
            out.writerows(found)
        assert {r[key] for r in found} >= {"grad^2", "gc^2"}
    run_tool("parts_page.py", tmp_path / "parts").check_returncode()
    page, before = ((folder / "README.md").read_text() for folder in (tmp_path / "parts", tables / "out"))
    assert page.count("EfficientNet-Lite1 as the other model") == 1 and "EfficientNet-Lite1" not in before
    assert (tmp_path / "parts" / "road-parts.png").read_bytes() != (tables / "out" / "road-parts.png").read_bytes()
    same = (folder / "deletion-parts.png" for folder in (tmp_path / "parts", tables / "out"))
    assert len({path.read_bytes() for path in same}) == 1


def test_the_parts_of_a_retrained_net_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(TOOLS)
    import parts_page
    import parts_tables

    rng = np.random.default_rng(0)
    kinds = [(e, k) for e in ("grad^2", "ig^2", "sobel^2") for k in ("plain", "gaussian(1)")]
    arms = {
        ("roar", e, k, null): {t: rng.random() for t in range(4)}
        for e, k in kinds
        for null in ("own", "swap", "swap-class")
    }
    del arms["roar", "ig^2", "plain", "swap"][
        2
    ]  # a cell that failed: its trial is left out of this map, and of no other
    arms["roar", "grad^2", "plain", "model"] = {0: 0.5}
    arms["mask-only", "grad^2", "plain", "own"] = {0: 0.3}
    base = {t: 0.9 for t in range(4)}
    found = {(r["what"], r["estimators"], r["postprocess"]): r for r in parts_tables.roar_parts(arms, base)}
    one = found["parts", "sobel^2", "gaussian(1)"]
    own = np.mean(list(arms["roar", "sobel^2", "gaussian(1)", "own"].values()))
    assert one["damage"] == pytest.approx(0.9 - own) and one["trials"] == 4
    assert one["shape"] + one["class"] + one["image"] == pytest.approx(one["damage"])
    assert found["parts", "ig^2", "plain"]["trials"] == 3 and ("change", "ig^2", "gaussian(1)") not in found
    change = found["change", "sobel^2", "gaussian(1)"]
    assert change["class"] == pytest.approx(one["class"] - found["parts", "sobel^2", "plain"]["class"])
    assert not [key for key in found if key[1] == "estimators that ask the model"], "of one estimator there is no mean"

    arms["roar", "ig^2", "plain", "swap"][2] = 0.5
    rows_ = parts_tables.roar_parts(arms, base)
    mean = next(r for r in rows_ if r["estimators"] == "estimators that ask the model")
    changes = {r["estimators"]: r for r in rows_ if r["what"] == "change"}
    assert mean["image"] == pytest.approx((changes["grad^2"]["image"] + changes["ig^2"]["image"]) / 2)
    parts_tables.write_rows(tmp_path / "roar.csv", parts_tables.roar_rows(arms, base, "cifar10-subset"))
    parts_tables.write_rows(tmp_path / "roar-parts.csv", rows_)
    (tmp_path / "parts.csv").write_text("dataset,protocol\n")
    shown = "\n".join(parts_page.roar(parts_page.Tables(tmp_path)))
    assert (
        shown.count("| sobel² | gaussian(1) |") == 1 + 2 + 2
        and "| estimators that ask the model | gaussian(1) |" in shown
    )
    assert "A net that sees nothing but the masks: grad² plain 30.0 %" in shown
