"""Scores of the first screen: areas from nothing removed on, ranks, random pixels, gaps, power, and what is said about them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from helpers import synthetic_study as synthetic

pytest.importorskip("scipy")

from scipy import stats as scipy_stats

from roarfast.report.facts import base_text, data_text, doubts, model_text
from roarfast.report.grid import Panel, panels
from roarfast.report.power import chance_to_find, detectable, forecast, power_sentence, trials_needed
from roarfast.report.scores import areas, random_sentence, scores, spread
from roarfast.report.stats import t_power
from roarfast.report.summary import scored_panels
from roarfast.study.results import StudyResults


def made(
    values: dict[tuple[str, str], dict[float, list[float]]],
    protocol: str = "roar",
    order: str = "morf",
    base: tuple[float, ...] = (0.9, 0.8, 0.85),
) -> Panel:
    """A panel from {(estimator, k): {rate: accuracy of trial 0, 1, …}}."""
    records = [synthetic.record("base", "none", "plain", 0.0, i, accuracy=a) for i, a in enumerate(base)]
    for (e, k), rates in values.items():
        for t, accuracies in rates.items():
            records += [
                synthetic.record(protocol, e, k, t, i, order=order, accuracy=a) for i, a in enumerate(accuracies)
            ]
    return panels(StudyResults(records, {}))[0]


CURVE = {0.2: [0.7, 0.6, 0.65], 0.5: [0.5, 0.3, 0.4]}


def test_area_is_the_trapezoid_from_nothing_removed() -> None:
    panel = made({("grad", "plain"): CURVE})
    for trial, base in enumerate((0.9, 0.8, 0.85)):
        expected = np.trapezoid([base, CURVE[0.2][trial], CURVE[0.5][trial]], [0, 0.2, 0.5]) / 0.5
        assert areas(panel, "grad", "plain")[trial] == pytest.approx(expected)
    (score,) = scores(panel)
    low, high = scipy_stats.t.interval(0.95, 2, *_mean_and_error(list(areas(panel, "grad", "plain").values())))
    assert (score.area.low, score.area.high) == pytest.approx((low, high))


def _mean_and_error(values: list[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(scipy_stats.sem(values))


def test_area_of_kept_pixels_ends_where_everything_is_kept() -> None:
    panel = made({("grad", "plain"): {0.5: [0.6], 0.8: [0.8]}}, "kar", base=(0.9,))
    assert panel.whole == 1
    assert areas(panel, "grad", "plain")[0] == pytest.approx(np.trapezoid([0.6, 0.8, 0.9], [0.5, 0.8, 1.0]) / 0.5)


def test_without_base_models_the_area_starts_at_the_first_rate() -> None:
    panel = made({("grad", "plain"): {0.2: [0.7], 0.5: [0.5]}}, base=())
    assert areas(panel, "grad", "plain")[0] == pytest.approx(0.6)
    assert areas(made({("grad", "plain"): {0.2: [0.7]}}, base=()), "grad", "plain")[0] == pytest.approx(0.7)


def test_nothing_removed_is_a_point_of_every_curve() -> None:
    panel = made({("grad", "plain"): CURVE, ("rand", "plain"): {**CURVE, 0.9: [0.2, 0.2, 0.2]}})
    for name in ("grad", "rand"):
        first = panel.curve(name, "plain")[0]
        assert first[0] == 0 and first[1].mean == pytest.approx(0.85)
    assert [t for t, _ in panel.curve("grad", "plain")] == [0, 0.2, 0.5]
    kept = made({("grad", "plain"): {0.5: [0.6]}}, "kar", base=(0.9,))
    assert kept.curve("grad", "plain")[-1][0] == 1


def test_a_missing_rate_leaves_no_area_and_a_missing_trial_only_that_trial() -> None:
    values = {
        ("grad", "plain"): CURVE,
        ("ig", "plain"): {0.2: [0.7, 0.6, 0.65]},
        ("sg", "plain"): {0.2: [0.7, 0.6], 0.5: [0.4, 0.3]},
    }
    found = {s.estimator: s for s in scores(made(values))}
    assert found["ig"].area.n == 0 and math.isnan(found["ig"].rank)
    assert found["sg"].area.n == 2 and found["grad"].area.n == 3


def _four() -> dict[tuple[str, str], dict[float, list[float]]]:
    rand = {0.2: [0.80, 0.70, 0.75], 0.5: [0.70, 0.60, 0.65]}
    noise = {0.2: [0.001, -0.002, 0.001], 0.5: [0.002, 0.001, -0.001]}

    def shifted(by: float) -> dict[float, list[float]]:
        return {t: [a + by + e for a, e in zip(rand[t], noise[t])] for t in rand}

    return {
        ("good", "plain"): shifted(-0.1),
        ("bad", "plain"): shifted(0.1),
        ("same", "plain"): shifted(-0.0005),
        ("good", "max(3)"): shifted(-0.2),
        ("rand", "plain"): rand,
    }


@pytest.mark.parametrize(("protocol", "winner", "loser"), [("roar", "good", "bad"), ("kar", "bad", "good")])
def test_who_beats_random_pixels(protocol: str, winner: str, loser: str) -> None:
    found = {(s.estimator, s.postprocess): s for s in scores(made(_four(), protocol))}
    assert found[winner, "plain"].verdict == "yes" and found[winner, "plain"].rank == 1
    assert found[loser, "plain"].verdict == "worse" and found[loser, "plain"].rank == 3
    assert found["same", "plain"].verdict in ("not shown", "no")
    assert found["rand", "plain"].verdict == "" and math.isnan(found["rand", "plain"].rank)
    assert found["good", "max(3)"].rank == 1, "ranks are among maps of the same post-processing"


def test_difference_to_random_pixels_is_scipys_paired_test() -> None:
    panel = made(_four())
    mine, random = (list(areas(panel, e, "plain").values()) for e in ("good", "rand"))
    (score,) = (s for s in scores(panel) if (s.estimator, s.postprocess) == ("good", "plain"))
    theirs = scipy_stats.ttest_rel(mine, random)
    assert score.random is not None and score.random.p == pytest.approx(theirs.pvalue)
    assert score.p_holm >= score.random.p


def test_sentences_about_random_pixels() -> None:
    values = _four()
    assert random_sentence(scores(made(values))).startswith("1 of 3 plain estimators beat random pixels")
    only_bad = {key: v for key, v in values.items() if key[0] in ("bad", "rand")}
    assert random_sentence(scores(made(only_bad))).startswith(
        "No estimator beats random pixels: the best, bad, is 8.0 points worse"
    )
    only_same = {key: v for key, v in values.items() if key[0] in ("same", "rand")}
    assert "No estimator is shown to beat random pixels" in random_sentence(scores(made(only_same)))
    one = {key: {t: a[:1] for t, a in v.items()} for key, v in values.items()}
    assert "one trial" in random_sentence(scores(made(one, base=(0.9,))))
    equal = {key: values[("rand", "plain")] for key in (("same", "plain"), ("rand", "plain"))}
    assert random_sentence(scores(made(equal))).endswith("the best, same, does as they do.")
    few = {(f"map{i}", "plain"): {0.5: [0.600, 0.491]} for i in range(3)} | {("rand", "plain"): {0.5: [0.7, 0.6]}}
    said = random_sentence(scores(made(few, base=(0.9, 0.8))))  # p = 0.03 of each, so an interval without 0; Holm: 0.09
    assert said.endswith("; corrected for the number of maps (Holm) it may be chance).")
    alone = random_sentence(scores(made({("good", "plain"): CURVE})))
    assert alone.startswith("Not known: random pixels were not removed here. Add the estimator rand")


def test_gap_between_least_and_most_relevant_first() -> None:
    results = synthetic.study(
        estimators=("grad",), trials=2, protocols=[("road", "morf"), ("road", "lerf")], baselines=()
    )
    (morf, found), (lerf, other) = scored_panels(panels(results))
    expected = [areas(lerf, "grad", "plain")[t] - areas(morf, "grad", "plain")[t] for t in (0, 1)]
    plain = next(s for s in found if s.postprocess == "plain")
    assert plain.gap is not None and plain.gap.mean == pytest.approx(np.mean(expected)) and plain.gap.mean > 0
    assert other[0].gap is not None and other[0].gap.mean > 0, "the gap has one sign whichever panel shows it"


@pytest.mark.parametrize("trials", [2, 3, 6])
def test_power_by_simulation(trials: int, rng: np.random.Generator) -> None:
    difference = detectable(0.01, trials)
    x = rng.normal(difference, 0.01, (20_000, trials))
    found = (scipy_stats.ttest_1samp(x, 0, axis=1).pvalue < 0.05).mean()
    assert found == pytest.approx(0.8, abs=0.015) and chance_to_find(difference, 0.01, trials) == pytest.approx(
        0.8, abs=1e-6
    )


@pytest.mark.parametrize(("df", "shift"), [(2, 0.0), (2, 3.0), (4, 1.0), (10, 3.0), (30, 2.5)])
def test_power_is_that_of_the_noncentral_t(df: int, shift: float) -> None:
    border, law = scipy_stats.t.ppf(0.975, df), scipy_stats.nct(df, shift)
    assert t_power(shift, df) == pytest.approx(law.sf(border) + law.cdf(-border), abs=1e-4)


def test_trials_needed_is_the_smallest_number_that_is_enough() -> None:
    for sd in (0.002, 0.01, 0.03):
        n = trials_needed(sd)
        assert chance_to_find(0.01, sd, n) >= 0.8 and (n == 2 or chance_to_find(0.01, sd, n - 1) < 0.8)
    assert math.isnan(detectable(0.01, 1)) and math.isnan(detectable(math.nan, 5))


def test_power_in_words() -> None:
    panel = made(_four())
    sd = spread(scores(panel))
    differences = [s.random.difference.sd for s in scores(panel) if s.random]
    assert sd == pytest.approx(math.sqrt(np.mean(np.square(differences))))
    assert "3 trials would have shown a true difference of" in power_sentence(sd, 3)
    assert "takes 10 trials" in power_sentence(math.nan, 1)
    assert forecast(1) == power_sentence(math.nan, 1) and "3 trials can show a difference" in forecast(3)


def test_facts_and_doubts() -> None:
    records = [synthetic.record("base", "none", "plain", 0.0, t, accuracy=a) for t, a in enumerate((0.10, 0.11))]
    meta = {
        "config": {"model": {"name": "convnet"}, "train": {"recipe": "quick", "epochs": 6}},
        "classes": 10,
        "data": {"images": [4000, 1000], "shape": [28, 28, 1]},
        "data_warnings": ["3 test images are train images"],
    }
    results = StudyResults(records, meta)
    assert data_text(results) == "cifar10, 4,000 train and 1,000 test images of 28 × 28 × 1, 10 classes"
    assert model_text(results) == "convnet, recipe quick, 6 epochs" and base_text(results).startswith("10.5 ± ")
    own = {"recipe": "quick", "function": "mine:fit"}  # the recipe says nothing of a training of one's own, or of none
    for config, told in (
        ({"train": own}, "trained by mine:fit"),
        ({"train": own, "model": {"trained": True}}, "as given"),
    ):
        config = {**config, "model": {"name": "net:make", **config.get("model", {})}}
        assert model_text(StudyResults(records, meta | {"config": config})) == f"net:make, {told}"
    first, second = doubts(results)
    assert first == "3 test images are train images" and "at chance: 10.5 % of 10 classes" in second
    learned = StudyResults(
        [synthetic.record("base", "none", "plain", 0.0, 0, accuracy=0.5)], meta | {"data_warnings": []}
    )
    assert doubts(learned) == [] and doubts(StudyResults([], {})) == []
