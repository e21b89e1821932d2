"""Worlds with a known answer: their closed forms against drawn samples and against counting."""

import numpy as np
import pytest
import torch

from roarfast.metrics.worlds import GaussianVotes, sum_of_gaussians, voting_maps


def test_accuracy_is_that_of_drawn_samples():
    world = GaussianVotes(np.array([0.5, 0.0, 0.3, 1.0]))
    x, y = world.draw(40_000, seed=3)
    for left in ([1, 1, 1, 1], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 1]):
        exact = float(world.accuracy(np.array(left, bool)))
        got = float(((x * left @ world.strength > 0) == y).mean())
        assert abs(got - exact) < 4 * max(np.sqrt(exact * (1 - exact) / len(y)), 1e-9)


def test_the_model_is_the_rule():
    world = GaussianVotes.uniform(20, 10, 0.4)
    x, _ = world.draw(50)
    predicted = world.model()(torch.from_numpy(x)).argmax(1).numpy()
    np.testing.assert_array_equal(predicted, x @ world.strength > 0)


def test_soundness_by_counting():
    """30 false features first, two at a time: the level 0.6 is reached with two true ones."""
    world = GaussianVotes.uniform()
    a = voting_maps(world, "first")
    true = a[:2].sum()
    assert world.soundness(a, 0.6) == pytest.approx(true / (true + a[100:130].sum()), abs=1e-12)
    assert np.isnan(world.soundness(a, 0.99))  # never reached: no number is made up


def test_mixed_maps_differ_between_samples():
    a = voting_maps(GaussianVotes.uniform(), "mixed", samples=3)
    assert a.shape == (3, 200) and (a[0] != a[1]).any()
    assert ((a[:, 100:] > 0).sum(1) == 50).all()


def test_bad_inputs():
    with pytest.raises(ValueError, match=r"kind must be .* got 'best'"):
        voting_maps(GaussianVotes.uniform(), "best")
    with pytest.raises(ValueError, match="world must be"):
        voting_maps(GaussianVotes.uniform(10, 5), "truth")


def test_sum_of_gaussians_attributes_only_what_speaks_for_the_class():
    x, y, a = sum_of_gaussians(50, 7, seed=1)
    np.testing.assert_array_equal(a > 0, (x > 0) == (y == 1)[:, None])
