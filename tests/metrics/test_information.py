"""Bits of finite models against SciPy, closed forms and enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import entropy as scipy_entropy

from roarfast.metrics import information as info


def random_joint(seed, *shape):
    return np.random.default_rng(seed).dirichlet(np.full(int(np.prod(shape)), 0.4)).reshape(shape)


def test_entropy_is_scipys():
    p = random_joint(0, 3, 5)
    assert info.entropy(p, 2) == pytest.approx(scipy_entropy(p.ravel(), base=2), abs=1e-12)
    assert info.entropy(p / p.sum(1, keepdims=True)) == pytest.approx(scipy_entropy(p, base=2, axis=1), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_mutual_information_is_the_divergence_from_independence(seed):
    p = random_joint(seed, 4, 3)
    product = p.sum(1, keepdims=True) * p.sum(0, keepdims=True)
    assert info.mutual_information(p) == pytest.approx(scipy_entropy(p.ravel(), product.ravel(), base=2), abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_conditional_information_is_the_mean_over_x(seed):
    p = random_joint(seed, 3, 2, 4)
    by_hand = sum(float(px.sum()) * float(info.mutual_information(px / px.sum())) for px in p)
    assert info.conditional_mutual_information(p) == pytest.approx(by_hand, abs=1e-12)


def test_batches_are_models_one_by_one():
    p = np.stack([random_joint(s, 3, 2, 4) for s in range(6)]).reshape(2, 3, 3, 2, 4)
    together = info.conditional_mutual_information(p)
    assert together.shape == (2, 3)
    assert together[1, 2] == pytest.approx(float(info.conditional_mutual_information(p[1, 2])), abs=1e-14)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(2, 4), st.integers(2, 5), st.integers(1, 5))
def test_theorem_31(seed, xs, zs, maps, outputs):
    """No k(A, U), and then no psi(X, .), adds information about Z for a given X."""
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(xs * zs, 0.5)).reshape(xs, zs, 1) * rng.dirichlet(np.full(maps, 0.2), (xs, zs))
    after = info.through(joint, rng.dirichlet(np.full(outputs, 0.2), maps))
    last = info.through(after, rng.dirichlet(np.full(3, 0.2), (xs, outputs)))
    before, between, final = map(info.conditional_mutual_information, (joint, after, last))
    assert between <= before + 1e-12
    assert final <= between + 1e-12


def test_a_channel_may_see_x():
    joint = random_joint(1, 2, 3, 4)
    channel = np.random.default_rng(2).dirichlet(np.ones(5), (2, 4))
    by_hand = np.einsum("xza,xab->xzb", joint, channel)
    np.testing.assert_allclose(info.through(joint, channel), by_hand, atol=1e-15)


def test_bayes_accuracy_by_all_classifiers():
    p = random_joint(3, 4, 3)
    best = max(sum(p[x, rule[x]] for x in range(4)) for rule in np.ndindex(3, 3, 3, 3))
    assert info.bayes_accuracy(p) == pytest.approx(best, abs=1e-15)


@pytest.mark.parametrize("left", [1e-6, 0.1, 0.655639, 0.9, 1.0])
def test_fano_for_two_classes_inverts_the_binary_entropy(left):
    low, high = info.error_bounds(1 - left, 1.0, 2)
    expected = 0.5 if left == 1 else brentq(lambda e: scipy_entropy([e, 1 - e], base=2) - left, 1e-12, 0.5, xtol=1e-15)
    assert low == pytest.approx(expected, abs=1e-7)
    assert high == pytest.approx(left / 2, abs=1e-15)


def test_bounds_at_the_ends():
    assert info.error_bounds(np.log2(10), np.log2(10), 10) == (0.0, 0.0)
    assert info.error_bounds(0.0, np.log2(10), 10)[0] == pytest.approx(0.9, abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 6))
def test_bounds_hold(seed, classes, inputs):
    p = np.random.default_rng(seed).dirichlet(np.full(classes * inputs, 0.3)).reshape(inputs, classes)
    low, high = info.error_bounds(
        min(float(info.mutual_information(p)), float(info.entropy(p.sum(0)))), float(info.entropy(p.sum(0))), classes
    )
    error = 1 - float(info.bayes_accuracy(p))
    assert low - 1e-7 <= error <= high + 1e-9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: info.entropy([0.5, 0.6]), r"p must sum to 1 over its last 1 axes, got 1\.1"),
        (lambda: info.mutual_information([[1.5, -0.5]]), r"joint must hold probabilities >= 0, got -0\.5"),
        (lambda: info.mutual_information([[np.nan, 1]]), "joint must hold probabilities >= 0, got nan"),
        (lambda: info.conditional_mutual_information(np.eye(2) / 2), r"at least 3 axes, got shape \(2, 2\)"),
        (lambda: info.through(np.eye(2) / 2, np.eye(3)), r"channel must be \[..., 2, B\], got shape \(3, 3\)"),
        (lambda: info.function_channel([0, -1]), "integers >= 0"),
        (lambda: info.function_channel([0, 3], size=2), "size must be larger than every value, got 2 for 3"),
        (lambda: info.error_bounds(0.5, 1.0, 1), "classes must be at least 2, got 1"),
        (lambda: info.error_bounds(2.0, 1.0, 2), r"information must be in \[0, 1\.0\]"),
    ],
)
def test_bad_inputs(call, message):
    with pytest.raises(ValueError, match=message):
        call()
