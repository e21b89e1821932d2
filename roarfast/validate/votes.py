"""Soundness and completeness (Li et al.) in worlds where both are known exactly."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import roarfast as rf
from roarfast.metrics.worlds import Floats, GaussianVotes, sum_of_gaussians, voting_maps
from roarfast.validate.check import Outcome, check, exactly, show

LEVELS = (0.6, 0.7, 0.8, 0.9)
_RATES = np.arange(1, 10) / 10


@check(
    "soundness-definition",
    claim="Definition 4.8 in the Gaussian votes: truth and Remove 1, 30 false first 0.037 to 0.431, mixed 0.88 to 0.80",
    source="002, Definition 4.8",
)
def definition() -> Outcome:
    """What a soundness algorithm must find."""
    world = GaussianVotes.uniform()
    expected = {
        "truth": (1, 1, 1, 1),
        "removed": (1, 1, 1, 1),
        "first": (0.037, 0.131, 0.251, 0.431),
        "middle": (1, 1, 1, 0.589),
        "mixed": (0.884, 0.818, 0.809, 0.800),
    }
    values: dict[str, float] = {}
    wanted: dict[str, float] = {}
    for kind, numbers in expected.items():
        a = voting_maps(world, kind)
        for level, number in zip(LEVELS, numbers):
            values[f"{kind} {level}"] = world.soundness(a, level)
            wanted[f"{kind} {level}"] = number
    close = all(abs(values[k] - wanted[k]) <= (0.02 if k.startswith("mixed") else 0.001) for k in values)
    here = "; ".join(f"{kind} " + " ".join(f"{values[f'{kind} {v}']:.3f}" for v in LEVELS) for kind in expected)
    return Outcome(here, "holds" if close else "fails", values)


@check(
    "votes-sampled",
    claim="20,000 drawn samples through rank_codes, fill and the linear model have the closed-form accuracies",
    source="the world itself",
)
def sampled() -> Outcome:
    """Kernels and closed form agree, so scores measured through kernels can be judged by the closed form."""
    world = GaussianVotes.uniform()
    x, y = world.draw(20_000, seed=1)
    a = voting_maps(world, "first").astype(np.float32)
    codes = rf.rank_codes(a[None], tuple(_RATES), order="lerf", ndim=1)[0]
    worst = 0.0
    for j in range(len(_RATES)):
        mask = np.broadcast_to(codes <= j, x.shape)
        predicted = rf.fill(x, np.ascontiguousarray(mask), 0.0, layout="NF") @ world.strength > 0
        exact = float(world.accuracy(codes > j))
        worst = max(worst, abs(float((predicted == y).mean()) - exact) / np.sqrt(exact * (1 - exact) / len(y)))
    return Outcome(
        f"largest deviation {worst:.2f} standard errors over nine rates",
        "holds" if worst < 4 else "fails",
        {"z": worst},
    )


def completeness(world: GaussianVotes, a: Floats) -> Floats:
    """Δs at the thresholds 0.9 … 0.1 of each map's maximum, exactly: `[9]`."""
    removed = a > (1 - _RATES)[:, None] * a.max()
    return np.asarray(world.accuracy(np.ones_like(a, bool)) - world.accuracy(~removed), np.float64)


@check(
    "completeness-order",
    claim="a map that covers more of what is predictive has the larger accuracy drop at the same threshold, 1,000 pairs",
    source="002, Theorem 4.12",
    paper="never violated",
)
def completeness_order() -> Outcome:
    """The order of the definition is the order of the measurement, for both directions of the theorem."""
    world = GaussianVotes(np.abs(np.random.default_rng(2).standard_normal(60)) * 0.3)
    rng = np.random.default_rng(3)
    wrong = 0
    for _ in range(1000):
        removed = rng.random((2, 60)) < rng.random((2, 1))
        covered = world.information(removed)
        drop = world.accuracy(np.ones(60, bool)) - world.accuracy(~removed)
        wrong += bool((covered[0] < covered[1]) != (drop[0] < drop[1]))
    return exactly({"violations": wrong}, {"violations": 0})


@check(
    "completeness-is-not-about-information",
    claim="known defect: powers of a map, which lose no information, move completeness; an outlier erases it; a constant map "
    "beats all",
    source="002, Algorithm 2; 000's argument turned on it",
)
def completeness_defects() -> Outcome:
    """Order-based scores of the same maps do not move by one bit."""
    world = GaussianVotes.uniform()
    rng = np.random.default_rng(4)
    a = np.where(world.predictive, rng.uniform(0.3, 1, 200), 0) ** 2 + rng.uniform(0, 0.2, 200)
    a = np.round(a / a.max() * 4095) / 4095 + 2.0**-12  # 12 bits: powers keep the order in float64
    values: dict[str, float] = {}
    codes = []
    for p in (0.5, 1, 2, 4):
        values[f"power {p}"] = float(completeness(world, a**p).mean())
        codes.append(rf.rank_codes((a**p)[None], tuple(_RATES), ndim=1))
    outlier = a.copy()
    outlier[-1] = 10 * a.max()
    values["one outlier"] = float(completeness(world, outlier).mean())
    values["constant"] = float(completeness(world, np.ones(200)).mean())
    values["codes that differ"] = float(sum((codes[0] != c).sum() for c in codes))
    powers = [values[f"power {p}"] for p in (0.5, 1, 2, 4)]
    falls = all(a > 1.5 * b for a, b in pairwise(powers))
    good = (
        falls and values["one outlier"] < 0.01 and values["constant"] > max(powers) and values["codes that differ"] == 0
    )
    return Outcome(show({k: round(v, 4) for k, v in values.items()}), "differs" if good else "fails", values)


@check(
    "synthetic-world-of-002",
    claim="the paper's synthetic test cannot tell Introduce from the truth: by area, 2 % of the features decide every sample",
    source="002, 5.1 and G.1",
    paper="soundness of Introduce below 1 over levels 0.2 to 0.8",
)
def paper_world() -> Outcome:
    """Removed features at 0, and as fresh draws."""
    x, y, a = sum_of_gaussians()
    kept = rf.removal_mask(a, 0.02, ndim=1)
    zero = float(((np.where(kept, x, 0).sum(1) > 0) == y).mean())
    fresh = np.random.default_rng(5).standard_normal(x.shape)
    drawn = float(((np.where(kept, x, fresh).sum(1) > 0) == y).mean())
    return exactly(
        {"zeros": zero, "fresh draws": drawn}, {"zeros": 1.0, "fresh draws": 0.77}, 0.03, otherwise="differs"
    )
