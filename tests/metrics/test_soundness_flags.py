"""Flags of single images: soundness by the probability or the logit of each image, against a loop."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")
from torch import nn  # noqa: E402

import roarfast as rf  # noqa: E402
from roarfast import metrics  # noqa: E402
from roarfast.metrics import Perturbation, soundness_of  # noqa: E402
from roarfast.metrics.scores.soundness import CONVENTIONS  # noqa: E402
from roarfast.metrics.worlds import GaussianVotes, voting_maps  # noqa: E402

RATES = tuple(k / 20 for k in range(2, 19))


def answers(n: int = 12):
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    x, a, y = rng.standard_normal((n, 40)), rng.random((n, 40)), rng.integers(0, 3, n)
    a[3] = 0
    how = Perturbation(order="lerf", fill=0.0)
    net = nn.Linear(40, 3)
    codes = rf.rank_codes(a, RATES, order="lerf", ndim=1)
    found = metrics.respond(net, x, codes=codes, drops=RATES, labels=y, perturbation=how)
    return found, rf.code_sums(a, codes, len(RATES) + 1, ndim=1), (net, x, a, y)


@pytest.mark.parametrize("indicator", ["probability", "logit"])
@pytest.mark.parametrize("convention", ["exact", "paper", "soco"])
def test_flags_of_images_by_a_loop(indicator, convention) -> None:
    found, mass, _ = answers()
    how = CONVENTIONS[convention]
    ours = soundness_of(found, mass, convention, indicator=indicator)
    values = found.values(indicator)
    empty = found.ends(indicator)[1]
    expected = np.full((len(RATES), 12), np.nan)
    for i in range(12):
        before = empty[i] if how.start == "empty" else 0.0
        false = shown = late = 0.0
        for k in range(len(RATES)):
            now = values[-1 - k, i]
            flag = (now - before < how.epsilon if how.strict else now - before <= how.epsilon) and now > how.warmup
            added = mass[i, len(RATES) - k]
            shown += added
            counted = false + late
            false, late = (counted, added * flag) if how.lag else (false + added * flag, 0.0)
            if i != 3:
                expected[k, i] = 1 - (counted if how.lag else false) / (shown + how.offset)
            before = now
    np.testing.assert_allclose(ours.per_image, expected, atol=1e-12)
    assert ours.flagged.shape == (len(RATES), 12) and ours.empty == 1
    np.testing.assert_allclose(ours.value, np.nanmean(expected, 1), atol=1e-12)
    np.testing.assert_array_equal(ours.accuracy, found.correct.mean(1)[::-1])


def test_the_score_is_the_value_at_its_level() -> None:
    found, mass, (net, x, a, y) = answers()
    level = float(np.sort(found.correct.mean(1))[-3])
    for indicator in ("accuracy", "probability", "logit"):
        score = metrics.get_score("soundness", step=0.05, fill=0.0, level=level, indicator=indicator)
        result = metrics.evaluate(net, x, a, labels=y, metrics=[score], resamples=200)[score.name].only
        assert result.value == pytest.approx(soundness_of(found, mass, indicator=indicator).at([level])[0])
        assert result.low <= result.value <= result.high


def test_they_see_false_attribution_at_other_ranks_in_each_image() -> None:
    """What the flag of all images cannot see (1.000 where the definition gives 0.80 to 0.88); the price is noise."""
    world = GaussianVotes.uniform()
    x, y = world.draw(400, seed=3)
    values = {}
    for kind in ("truth", "mixed"):  # one feature at a time: a step with a true and a false one is judged as a whole
        a = np.broadcast_to(voting_maps(world, kind), x.shape)
        for indicator in ("accuracy", "logit"):
            name = f"soundness(fill=0.0, step=0.005, level=0.8, indicator={indicator})"
            values[kind, indicator] = metrics.evaluate(world.model(), x, a, labels=y, metrics=[name], resamples=20)[
                name
            ].value
    assert values["truth", "accuracy"] - values["mixed", "accuracy"] < 0.1
    definition = world.soundness(voting_maps(world, "mixed"), 0.8, step=1)
    assert values["mixed", "logit"] / values["truth", "logit"] == pytest.approx(definition, abs=0.03)
    # Noise: a true feature speaks against the class in Φ(-0.2) = 42 % of the samples.
    assert values["truth", "logit"] == pytest.approx(0.58, abs=0.02)


def test_bad_input() -> None:
    found, mass, (net, x, a, y) = answers()
    with pytest.raises(ValueError, match="indicator must be one of accuracy, probability, logit, got 'margin'"):
        soundness_of(found, mass, indicator="margin")
    for level in (0.0, 1.5, -0.2):
        with pytest.raises(ValueError, match=rf"level must be in \(0, 1\], got {level}"):
            metrics.evaluate(net, x, a, labels=y, metrics=[f"soundness(fill=0.0, step=0.1, level={level})"])
