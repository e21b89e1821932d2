"""Bits left: the entropy of the classes less the cross entropy, also after temperature scaling, in figures, tables and audit."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
from helpers import synthetic_study as synthetic
from helpers.result_files import rows

from roarfast.report.audit import audit
from roarfast.report.bits import bits_sentence, bits_table, class_entropy
from roarfast.report.build import build
from roarfast.report.grid import Panel, field_of, panels
from roarfast.report.words import audit_sentences
from roarfast.study.records import Record, StudyResults

LN2 = math.log(2)


def study(scaled: bool = True, known: bool = True, **options: object) -> StudyResults:
    """Made-up results; blur lowers the accuracy everywhere, but the bits of `sg-sq` rise with it."""
    found = synthetic.study(**options)  # type: ignore[arg-type]
    records = []
    for r in found.records:
        if r.accuracy is None or not known:
            records.append(r)
            continue
        better = 0.4 if r.estimator == "sg-sq" and r.postprocess != "plain" else 0.0
        nats = 2.4 - 2 * r.accuracy - better
        extra = {"scaled_cross_entropy": nats - 0.1, "temperature": 1.5} if scaled else {}
        records.append(dataclasses.replace(r, cross_entropy=nats, extra=extra))
    return StudyResults(records, found.meta | {"classes": 10, "label_entropy": 3.3})


def panel_of(results: StudyResults) -> Panel:
    return panels(results)[0]


def test_a_record_has_its_bits_up_to_the_entropy_of_the_classes() -> None:
    record = synthetic.record(
        "roar", "grad", "plain", 0.5, 0, cross_entropy=LN2, extra={"scaled_cross_entropy": LN2 / 2}
    )
    assert field_of(record, "bits") == -1.0 and field_of(record, "scaled_bits") == -0.5
    assert field_of(record, "temperature") is None and field_of(record, "accuracy") is None
    assert field_of(synthetic.record("roar", "grad", "plain", 0.5, 0), "bits") is None


def test_the_entropy_is_that_of_the_labels_or_as_if_classes_were_equally_frequent() -> None:
    assert class_entropy({"classes": 8, "label_entropy": 2.5}) == (2.5, True)
    assert class_entropy({"classes": 8}) == (3.0, False) and class_entropy({}) is None


def test_the_audit_counts_bits_beside_accuracy() -> None:
    one = audit(panel_of(study(trials=3, estimators=("grad", "vg", "sg-sq"))))
    accuracy = {c.postprocess: (c.lower, c.cells) for c in one.counts}
    assert accuracy == {"max(3)": (6, 6), "gaussian(1)": (6, 6)}
    for name in ("bits", "scaled_bits"):
        assert {c.postprocess: (c.lower, c.higher, c.cells) for c in one.bits[name]} == {
            "max(3)": (4, 2, 6),
            "gaussian(1)": (4, 2, 6),
        }
    # Without the estimator that was made to rise, bits follow the accuracy by 2 nats per unit.
    plain = audit(panel_of(study(trials=3, estimators=("grad", "vg"))))
    for mine, theirs in zip(plain.bits["bits"], plain.counts):
        expected = theirs.overall.difference.mean * 2 / LN2
        assert mine.overall.difference.mean == pytest.approx(expected) and mine.tested == theirs.tested
    said = bits_sentence(one)
    assert "k left fewer in 8 of 12 (" in said and "8 of 12 (" in said.split(";")[2]
    assert "after temperature scaling" in said and said.endswith("In accuracy: lower in 12 of 12.")
    sentences = audit_sentences(one)
    assert said in sentences[1:-1], "neither the first nor the last, which the summary shows"


def test_without_cross_entropy_or_scaling_less_is_said() -> None:
    one = audit(panel_of(study(trials=2, known=False)))
    assert one.bits == {} and bits_sentence(one) == ""
    older = audit(panel_of(study(trials=2, scaled=False)))
    assert list(older.bits) == ["bits"] and "temperature" not in bits_sentence(older)


def test_trials_that_lack_a_value_are_left_out_of_pairs() -> None:
    def record(k: str, trial: int, nats: float | None) -> Record:
        return synthetic.record("roar", "grad", k, 0.5, trial, accuracy=0.5, cross_entropy=nats)

    values = {("plain", 0): 1.0, ("plain", 1): 1.0, ("max(3)", 0): 1.5, ("max(3)", 1): None}
    (count,) = audit(panel_of(StudyResults([record(*key, v) for key, v in values.items()], {}))).bits["bits"]
    assert (count.cells, count.lower, count.overall_cells) == (1, 1, 0)


def test_the_table_has_the_bits_of_every_cell() -> None:
    panel = panel_of(study(trials=2, estimators=("grad",), postprocesses=("plain",), baselines=()))
    found = bits_table(panel, 3.3)
    assert [row[2].text for row in found.rows] == ["as the model is", "temperature scaled"]
    cell = panel.get("grad", "plain", 0.3)
    assert cell is not None
    expected = 3.3 - (2.4 - 2 * cell.accuracy().mean) / LN2
    assert found.rows[0][3].sort == pytest.approx(expected)
    assert found.rows[1][3].sort == pytest.approx(expected + 0.1 / LN2)


@pytest.mark.parametrize("scaled", [True, False])
def test_the_page_shows_figures_tables_and_files(tmp_path: Path, scaled: bool) -> None:
    results = study(scaled, trials=2, estimators=("grad", "vg"))
    page = build(tmp_path, tmp_path / "report", results).read_text(encoding="utf-8")
    assert "Bits left" in page and "3.300 bits" in page and "equally frequent" not in page
    figures = {path.name for path in (tmp_path / "report" / "figures").iterdir()}
    assert "overview-bits.png" in figures and ("overview-scaled-bits.png" in figures) == scaled
    assert ("Temperatures from 1.5 to 1.5" in page) == scaled
    assert ("computed before it was stored" in page) != scaled
    assert "Conjecture 3.3" in page
    found = rows(tmp_path / "report" / "tables" / "bits.csv")
    assert len(found) == len(panel_of(results).cells)
    for row in found:
        assert float(row["class_entropy"]) == 3.3 and bool(row["scaled_bits"]) == scaled
    assert len(rows(tmp_path / "report" / "tables" / "bits_counts.csv")) == (4 if scaled else 2)


def test_results_without_a_cross_entropy_get_the_page_they_had(tmp_path: Path) -> None:
    page = build(tmp_path, tmp_path / "report", study(known=False, trials=2, estimators=("grad",)))
    assert "Bits left" not in page.read_text(encoding="utf-8")
    assert not (tmp_path / "report" / "tables" / "bits.csv").exists()
