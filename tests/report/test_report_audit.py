"""The audit and the arrangement of records: directions, pairing, counts, rankings, missing trials."""

from __future__ import annotations

import math

import pytest
from helpers import synthetic_study as synthetic

from roarfast.report.audit import audit
from roarfast.report.grid import Panel, mask_only, panels, slug
from roarfast.report.regression import fit_at, points_at
from roarfast.report.words import audit_sentences, direction, flat_note, standings, trials_note
from roarfast.study.results import Record, StudyResults

ORDERS = [("roar", "morf"), ("kar", "morf"), ("road", "morf"), ("road", "lerf"), ("no-retrain", "morf")]


def tiny(values: dict[tuple[str, str], list[float | None]], protocol: str = "roar", order: str = "morf") -> Panel:
    """A panel at t = 0.5 from {(estimator, k): accuracy of trial 0, 1, …}; None leaves a trial out."""
    records: list[Record] = []
    for (e, k), accuracies in values.items():
        for trial, a in enumerate(accuracies):
            if a is not None:
                records.append(synthetic.record(protocol, e, k, 0.5, trial, order=order, accuracy=a, tv_mask=0.1))
    return panels(StudyResults(records, {}))[0]


@pytest.mark.parametrize(
    ("protocol", "order", "better"),
    [
        ("roar", "morf", "lower"),
        ("kar", "morf", "higher"),
        ("road", "morf", "lower"),
        ("road", "lerf", "higher"),
        ("road-retrain", "morf", "lower"),
        ("no-retrain", "morf", "lower"),
        ("kar", "lerf", "lower"),
    ],
)
def test_which_way_is_better(protocol: str, order: str, better: str) -> None:
    panel = tiny({("grad", "plain"): [0.5]}, protocol, order)
    assert panel.better == better
    assert direction(panel).startswith(f"{better} accuracy is better")


def test_lower_is_an_improvement_only_where_lower_is_better() -> None:
    values = {("grad", "plain"): [0.5, 0.52, 0.51], ("grad", "max(3)"): [0.4, 0.43, 0.41]}
    for protocol, order, improved in [("roar", "morf", 1), ("road", "lerf", 0), ("kar", "morf", 0)]:
        (count,) = audit(tiny(values, protocol, order)).counts
        assert (count.cells, count.lower, count.higher, count.improved) == (1, 1, 0, improved)


def test_panels_are_in_a_fixed_order_and_split_by_order_of_removal() -> None:
    found = panels(synthetic.study(protocols=reversed(ORDERS), trials=1, estimators=("grad",)))
    assert [p.title for p in found] == [
        "ROAR, cifar10",
        "KAR, cifar10",
        "ROAD (most relevant first), cifar10",
        "ROAD (least relevant first), cifar10",
        "No retraining, constant fill (comparison only), cifar10",
    ]
    assert found[0].postprocesses == ["plain", "max(3)", "gaussian(1)"]
    assert found[0].estimators == ["grad", "rand", "block"]
    assert found[0].main_drops == [0.3, 0.5] and found[0].drops == list(synthetic.ONE_RATE)


def test_rates_that_differ_by_rounding_are_one_rate() -> None:
    records = [synthetic.record("roar", "grad", "plain", t, i, accuracy=0.5) for i, t in enumerate((0.3, 0.1 + 0.2))]
    (panel,) = panels(StudyResults(records, {}))
    assert panel.drops == [0.3] and panel.n_trials == 2


def test_kar_counts_what_is_kept() -> None:
    assert tiny({("grad", "plain"): [0.5]}, "kar").nominal_removed(0.3) == pytest.approx(0.7)
    assert tiny({("grad", "plain"): [0.5]}).nominal_removed(0.3) == 0.3


def test_differences_use_only_trials_that_both_have() -> None:
    panel = tiny({("grad", "plain"): [0.5, 0.9, None], ("grad", "max(3)"): [0.4, None, 0.1]})
    (change,) = audit(panel).changes
    assert change.test.n == 1 and change.difference == pytest.approx(-0.1) and math.isnan(change.p_holm)


def test_no_common_trial_is_no_change() -> None:
    assert audit(tiny({("grad", "plain"): [0.5], ("grad", "max(3)"): [None, 0.4]})).changes == []


def test_correction_is_over_the_estimators_of_the_panel() -> None:
    values: dict[tuple[str, str], list[float | None]] = {}
    for i, e in enumerate(("grad", "vg", "rand")):
        values[e, "plain"] = [0.50, 0.52, 0.51]
        values[e, "max(3)"] = [0.47 - i / 100, 0.493 - i / 100, 0.481 - i / 100]
    found = {c.estimator: c for c in audit(tiny(values)).changes}
    smallest = min(("grad", "vg"), key=lambda e: found[e].test.p)
    assert found[smallest].p_holm == pytest.approx(2 * found[smallest].test.p)
    assert found["rand"].p_holm == pytest.approx(found["rand"].test.p)


def test_overall_change_averages_inside_trials_first() -> None:
    values: dict[tuple[str, str], list[float | None]] = {
        ("grad", "plain"): [0.5, 0.6],
        ("grad", "max(3)"): [0.4, 0.4],
        ("vg", "plain"): [0.5, 0.6],
        ("vg", "max(3)"): [0.5, 0.6],
    }
    (count,) = audit(tiny(values)).counts
    assert count.overall.difference.mean == pytest.approx(-0.075) and count.overall.n == 2 and count.overall_cells == 2
    assert count.overall.difference.sd == pytest.approx(0.05 / math.sqrt(2))


def test_ranks_before_after_and_alone() -> None:
    values: dict[tuple[str, str], list[float | None]] = {
        ("grad", "plain"): [0.60],
        ("grad", "max(3)"): [0.30],
        ("vg", "plain"): [0.50],
        ("vg", "max(3)"): [0.45],
        ("ig", "plain"): [0.40],
        ("ig", "max(3)"): [0.35],
        ("rand", "plain"): [0.10],
        ("rand", "max(3)"): [0.05],
    }
    found = audit(tiny(values))
    rows = {r.estimator: (r.plain, r.after, r.alone) for r in found.rank_rows}
    assert rows == {"grad": (3, 1, 1), "vg": (2, 3, 2), "ig": (1, 2, 1)}
    (agreement,) = found.agreements
    assert agreement.tau == pytest.approx(-1 / 3)
    assert (agreement.best_plain, agreement.best_after) == (("ig",), ("grad",)) and agreement.best_changed
    assert "rank 3 to 1" in audit_sentences(found)[-1]
    flipped = {r.estimator: r.plain for r in audit(tiny(values, "kar")).rank_rows}
    assert flipped == {"grad": 1, "vg": 2, "ig": 3}


def test_rankings_compare_the_same_trials() -> None:
    """Trial 1 is easy; the estimator that lacks it must not look better for that."""
    values: dict[tuple[str, str], list[float | None]] = {
        ("grad", "plain"): [0.50, 0.90],
        ("grad", "max(3)"): [0.40, 0.80],
        ("vg", "plain"): [0.55, None],
        ("vg", "max(3)"): [0.45, None],
    }
    assert {r.estimator: r.plain for r in audit(tiny(values)).rank_rows} == {"grad": 1, "vg": 2}


def test_agreement_between_trials_is_the_yardstick() -> None:
    values: dict[tuple[str, str], list[float | None]] = {}
    for e, a in (("grad", [0.5, 0.6]), ("vg", [0.4, 0.5]), ("ig", [0.3, 0.55])):
        values[e, "plain"] = values[e, "max(3)"] = list(a)
    (agreement,) = audit(tiny(values)).agreements
    assert agreement.tau == 1 and agreement.tau_between_trials == pytest.approx(1 / 3)


def test_what_few_trials_allow_is_said() -> None:
    for n, words in ((1, "no interval and no test"), (2, "12.7 standard errors"), (3, "4.3 standard errors"), (5, "")):
        note = trials_note(tiny({("grad", "plain"): [0.5] * n}))
        assert words in note and bool(note) == bool(words)
    one = audit(tiny({("grad", "plain"): [0.5], ("grad", "max(3)"): [0.4]}))
    assert "none can be tested" in audit_sentences(one)[0]


def test_nothing_to_audit_is_said() -> None:
    assert "no post-processing to audit" in audit_sentences(audit(tiny({("grad", "plain"): [0.5]})))[0]
    assert "nothing can be compared" in audit_sentences(audit(tiny({("grad", "max(3)"): [0.5]})))[0]


def test_failed_and_unfinished_cells_are_left_out() -> None:
    records = [
        synthetic.record("roar", "grad", "plain", 0.5, 0, accuracy=0.5),
        synthetic.record("roar", "grad", "plain", 0.5, 1, status="failed", error="x"),
        synthetic.record("roar", "grad", "plain", 0.5, 2, status="running"),
        synthetic.record("roar", "grad", "plain", 0.5, 3, accuracy=math.nan),
    ]
    (panel,) = panels(StudyResults(records, {}))
    assert panel.n_trials == 1
    assert panels(StudyResults(records[1:], {})) == []


def test_mask_only_cells_are_leakage_and_no_panel() -> None:
    results = synthetic.study(protocols=[("roar", "morf"), ("mask-only", "morf")], trials=2, estimators=("grad",))
    assert [p.protocol for p in panels(results)] == ["roar"]
    assert len(mask_only(results, "cifar10", "morf")) == 6 + 18 and not mask_only(results, "cifar10", "lerf")


def test_fit_leaves_out_the_block_and_can_leave_out_random_pixels() -> None:
    (panel,) = panels(synthetic.study(trials=2))
    assert fit_at(panel, "tv_mask", 0.5).n == 10 and fit_at(panel, "tv_mask", 0.5, "estimators").n == 9
    assert set(points_at(panel, "tv_mask", 0.5)) >= {"rand", "block"}


def test_standings_name_the_best_and_the_baselines() -> None:
    panel = tiny({("grad", "plain"): [0.5], ("vg", "plain"): [0.4], ("rand", "plain"): [0.7]})
    assert "best plain estimator vg 40.0 %, random pixels 70.0 %" in standings(panel)


def test_slugs_are_safe() -> None:
    assert slug("CIFAR 10-road/morf") == "cifar-10-road-morf"


def test_a_study_in_which_removal_changes_nothing_is_called_noise() -> None:
    base = synthetic.record("base", "none", "plain", 0, 0, accuracy=0.12)
    for accuracy, flat in ((0.10, True), (0.05, False)):
        removed = synthetic.record("roar", "grad", "plain", 0.5, 0, accuracy=accuracy)
        (panel,) = panels(StudyResults([base, removed], {}))
        assert ("mostly noise" in flat_note(panel)) == flat


def test_a_tie_for_the_first_place_is_no_change() -> None:
    values: dict[tuple[str, str], list[float | None]] = {
        ("grad", "plain"): [0.5],
        ("grad", "max(3)"): [0.5],
        ("vg", "plain"): [0.5],
        ("vg", "max(3)"): [0.4],
    }
    (agreement,) = audit(tiny(values)).agreements
    assert agreement.best_plain == ("grad", "vg") and agreement.best_after == ("vg",) and not agreement.best_changed
    assert "best plain estimator grad, vg 50.0 %" in standings(tiny(values))
