"""Pictures of one image at every rate, with the accuracy of the cell above it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import synthetic_study as synthetic

from roarfast.report.examples import Examples, stored_examples
from roarfast.report.figures import rates
from roarfast.report.figures.plotting import Figure
from roarfast.report.grid import Panel, panels
from roarfast.study.records import StudyResults
from roarfast.study.runfolder import RunFolder

ORDERS = [("roar", "morf"), ("kar", "morf"), ("road", "morf"), ("no-retrain", "morf"), ("roar", "lerf")]


@pytest.fixture
def found(tmp_path: Path) -> list[Examples]:
    synthetic.write_examples(tmp_path, ("grad", "vg"))
    return stored_examples(RunFolder(tmp_path), ["grad", "vg"])


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is drawn, by the name of its file, instead of drawing it."""
    seen: dict[str, Any] = {}

    def picture(rows, headings, folder, name, title, words, labels):  # type: ignore[no-untyped-def]
        seen[name] = (rows, headings, labels)
        return Figure(name, title, words, png=b"")

    monkeypatch.setattr(rates, "picture", picture)
    return seen


def study() -> list[Panel]:
    return panels(synthetic.study(trials=2, estimators=("grad", "vg"), protocols=ORDERS, drops=(0.3, 0.5)))


def test_a_row_per_map_and_a_column_per_rate_with_accuracies(
    found: list[Examples], drawn: dict[str, Any], tmp_path: Path
) -> None:
    figures = rates.rate_strips(study(), found, tmp_path)
    assert [f.name for f in figures] == [f"examples-rates-cifar10-{p}-morf" for p in ("roar", "kar", "no-retrain")]
    rows, headings, labels = drawn["examples-rates-cifar10-roar-morf"]
    assert headings == ["input", "t = 0.3", "t = 0.5"], "those of the examples that were measured"
    roar = study()[0]
    cell = roar.get("vg", "plain", 0.5)
    assert cell is not None
    assert labels[1][::2] == ["vg", f"{100 * cell.accuracy().mean:.1f} %"]
    one = found[1]
    np.testing.assert_array_equal(rows[1][2], one.modified[0, 2, 0])


def test_kar_shows_what_is_kept(found: list[Examples], drawn: dict[str, Any], tmp_path: Path) -> None:
    rates.rate_strips(study(), found, tmp_path)
    rows, _, labels = drawn["examples-rates-cifar10-kar-morf"]
    one = found[0]
    expected = np.where(one.masks[0, 1, 0][..., None], one.images[0], 120)
    np.testing.assert_array_equal(rows[0][1], expected)
    assert labels[0][1].endswith(" %")


def test_a_fill_that_depends_on_the_pixel_is_not_made_up(
    found: list[Examples], drawn: dict[str, Any], tmp_path: Path
) -> None:
    blurred = found[0].modified.copy()
    blurred[:, :, :, ::2] += 1
    examples = [Examples(**(vars(found[0]) | {"modified": blurred}))]
    (kar,) = [p for p in study() if p.protocol == "kar"]
    assert rates.rate_strip(kar, examples, tmp_path) is None and drawn == {}


def test_without_examples_or_with_many_rates(found: list[Examples], drawn: dict[str, Any], tmp_path: Path) -> None:
    assert rates.rate_strips(study(), [], tmp_path) == []
    many = [round(0.04 * i, 2) for i in range(1, 24)]
    records = [synthetic.record("roar", "grad", "plain", t, 0, accuracy=0.5) for t in many]
    masks, modified = (np.repeat(a[:, :1], 23, axis=1) for a in (found[0].masks, found[0].modified))
    one = Examples(**(vars(found[0]) | {"drops": many, "masks": masks, "modified": modified}))
    rates.rate_strip(panels(StudyResults(records, {}))[0], [one], tmp_path)
    headings = drawn["examples-rates-cifar10-roar-morf"][1]
    assert len(headings) == 1 + rates.MOST_RATES and headings[1] == "t = 0.04" and headings[-1] == "t = 0.92"


def test_the_picture_is_written(found: list[Examples], tmp_path: Path) -> None:
    figure = rates.rate_strip(study()[0], found, tmp_path)
    assert figure is not None and (tmp_path / "examples-rates-cifar10-roar-morf.png").read_bytes() == figure.png


def test_a_map_that_was_not_run_at_a_rate_leaves_its_place_empty(
    found: list[Examples], drawn: dict[str, Any], tmp_path: Path
) -> None:
    records = [synthetic.record("roar", e, "plain", t, 0, accuracy=0.5) for e, t in (("grad", 0.1), ("vg", 0.5))]
    (panel,) = panels(StudyResults(records, {}))
    rates.rate_strip(panel, found, tmp_path)
    rows, _, labels = drawn["examples-rates-cifar10-roar-morf"]
    assert labels == [["grad", "50.0 %", ""], ["vg", "", "50.0 %"]]
    assert (rows[0][2] == 255).all() and (rows[1][1] == 255).all() and not (rows[1][2] == 255).all()
