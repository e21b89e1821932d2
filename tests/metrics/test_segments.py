"""Groups of pixels: what is random is random by segment, however large the segments are."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from roarfast import metrics  # noqa: E402
from roarfast.metrics.baselines import baseline_map  # noqa: E402
from roarfast.metrics.inputs import read_inputs  # noqa: E402
from roarfast.metrics.maps import read_segments  # noqa: E402
from roarfast.metrics.scores.completeness import random_codes_like  # noqa: E402

# One segment of 49 pixels, one of 8, seven of one.
UNEVEN = np.zeros((8, 8), int)
UNEVEN[7] = 5
UNEVEN[:7, 7] = np.arange(10, 17)
SEGMENTS = 9


def make(n: int):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (n, 3, 8, 8), dtype=np.uint8)
    inputs = read_inputs(images)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 3))
    y = rng.integers(0, 3, n)
    parts = read_segments(UNEVEN, inputs)
    problem = metrics.Problem(net, inputs, torch.from_numpy(y), 0, torch.arange(n), parts, {"progress": False})
    return problem, images, y


def by_one(maps: torch.Tensor, parts: torch.Tensor) -> torch.Tensor:
    """`[N, S]`, the number of each segment; it is the same for all its pixels."""
    found = []
    for s in range(SEGMENTS):
        inside = parts == s
        first = maps[inside].reshape(len(maps), -1)
        assert (first == first[:, :1]).all()
        found.append(first[:, 0])
    return torch.stack(found, 1)


def test_every_segment_is_as_often_first() -> None:
    """Means of the numbers of its pixels would keep the largest segment in the middle."""
    n = 3000
    problem, _, _ = make(n)
    parts = problem.segments
    for maps in (problem.random_maps(0), baseline_map("random", problem.inputs, problem.ids, 0, parts)):
        codes = by_one(problem.codes(maps, (1.01 / SEGMENTS,), metrics.Perturbation()), parts)
        first = (codes == 0).double()
        assert (first.sum(1) == 1).all()
        expected = n / SEGMENTS
        assert (first.sum(0) - expected).abs().max() < 4 * (expected * (1 - 1 / SEGMENTS)) ** 0.5
    assert not torch.equal(problem.random_maps(0), problem.random_maps(1))


def test_matched_random_removal_is_by_segment() -> None:
    """As many segments at each rate, whole ones, others in each image."""
    problem, _, _ = make(200)
    a = torch.rand(200, 8, 8, generator=torch.Generator().manual_seed(1))
    rates = (0.2, 0.5, 0.8)
    codes = problem.codes(a, rates, metrics.Perturbation(rule="value"))
    dealt = random_codes_like(codes, problem.random_maps(0), problem.segments)
    own, other = (by_one(c, problem.segments) for c in (codes, dealt))
    assert torch.equal(own.sort(1).values, other.sort(1).values)
    assert (own != other).any(1).double().mean() > 0.9


def test_the_excess_of_a_constant_map_is_none() -> None:
    problem, images, y = make(30)
    for parts in (UNEVEN, None):
        scores = metrics.evaluate(
            problem.model, images, np.ones((30, 8, 8)), labels=y, metrics=["completeness"], segments=parts, resamples=20
        )
        assert scores["completeness"].details["excess"] == 0


def test_random_segments_have_no_advantage_over_random_segments() -> None:
    """The random baseline and matched random removal follow one law: no excess beyond its noise."""
    problem, images, y = make(600)
    scores = metrics.evaluate(
        problem.model,
        images,
        np.zeros((600, 8, 8)) + np.arange(64).reshape(8, 8),
        labels=y,
        metrics=["deletion(indicator=accuracy)"],
        segments=UNEVEN,
        baselines=["random"],
        resamples=20,
    )
    removed = scores["deletion(indicator=accuracy)"]["random"].curve.responses.removed
    rates = np.array(scores["deletion(indicator=accuracy)"]["random"].curve.responses.rates)
    whole = (
        np.floor(rates * SEGMENTS + 1e-9) / SEGMENTS
    )  # the share of segments that goes is the expected share of pixels
    spread = removed.std(1) / 600**0.5
    assert (np.abs(removed.mean(1) - whole) <= 4 * spread + 1e-12).all()
