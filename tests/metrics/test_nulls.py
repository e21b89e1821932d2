"""Null maps: no image keeps its map, nothing but the place changes, and no batch matters."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from roarfast.metrics.nulls import NULLS, Null, null_maps, swap_partners


def maps_of(n, h=6, w=6, seed=0):
    return np.random.default_rng(seed).random((n, h, w)).astype(np.float32)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=60, unique=True), st.integers(0, 2**63 - 1))
def test_swap_is_a_permutation_without_fixed_points(ids, seed):
    partners = swap_partners(ids, seed)
    assert sorted(partners) == list(range(len(ids)))
    assert (partners != np.arange(len(ids))).all()


@settings(max_examples=100, deadline=None)
@given(st.data(), st.integers(0, 2**32))
def test_swap_class_stays_in_the_class(data, seed):
    sizes = data.draw(st.lists(st.integers(2, 9), min_size=1, max_size=5))
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))
    partners = swap_partners(np.arange(len(labels)), seed, labels)
    assert sorted(partners) == list(range(len(labels)))
    assert (partners != np.arange(len(labels))).all()
    np.testing.assert_array_equal(labels[partners], labels)


def test_swap_does_not_depend_on_the_order_of_the_images():
    ids = np.array([5, 900, 17, 3, 44, 8])
    by_id = dict(zip(ids, ids[swap_partners(ids, 7)]))
    shuffled = ids[[3, 1, 5, 0, 4, 2]]
    assert dict(zip(shuffled, shuffled[swap_partners(shuffled, 7)])) == by_id


@pytest.mark.parametrize("name", ["roll", "turn"])
@pytest.mark.parametrize("shape", [(6, 6), (5, 7), (1, 9)])
def test_moved_maps_keep_their_values_and_lose_their_place(name, shape):
    a = maps_of(200, *shape)
    moved = null_maps(a, name, seed=3)
    np.testing.assert_array_equal(np.sort(moved.reshape(200, -1), 1), np.sort(a.reshape(200, -1), 1))
    assert (moved != a).reshape(200, -1).any(1).all()
    # A sample is moved the same way alone, and in any order.
    np.testing.assert_array_equal(null_maps(a[17:18], name, seed=3, index=[17])[0], moved[17])


def test_every_roll_is_a_cyclic_shift_and_all_occur():
    a = maps_of(3000, 4, 5)
    moved = null_maps(a, "roll")
    seen = set()
    for before, after in zip(a, moved):
        shifts = [(y, x) for y in range(4) for x in range(5) if np.array_equal(np.roll(before, (y, x), (0, 1)), after)]
        assert len(shifts) == 1 and shifts[0] != (0, 0)
        seen.add(shifts[0])
    assert len(seen) == 19


def test_every_turn_is_of_the_square_and_all_occur():
    a = maps_of(500)
    moved = null_maps(a, "turn")
    ways = {f"{k}{f}": (lambda m, k=k, f=f: np.rot90(np.fliplr(m) if f else m, k)) for k in range(4) for f in (0, 1)}
    seen = set()
    for before, after in zip(a, moved):
        seen.add(*[name for name, way in ways.items() if np.array_equal(way(before), after)])
    assert seen == set(ways) - {"00"}


@pytest.mark.parametrize("name", NULLS)
def test_torch_is_numpy(name):
    a, labels = maps_of(40), np.arange(40) % 3
    expected = null_maps(a, name, seed=2, labels=labels)
    got = null_maps(torch.from_numpy(a), name, seed=2, labels=torch.from_numpy(labels))
    np.testing.assert_array_equal(got.numpy(), expected)
    assert null_maps(a, name, seed=2, labels=labels) is not a


@pytest.mark.parametrize("name", NULLS)
def test_another_seed_is_another_draw(name):
    a, labels = maps_of(40), np.zeros(40, int)
    assert (null_maps(a, name, seed=1, labels=labels) != null_maps(a, name, seed=2, labels=labels)).any()


@pytest.mark.parametrize("name", ["swap", "roll", "turn"])
def test_features(name):
    a = np.random.default_rng(0).random((30, 11))
    moved = null_maps(a, name)
    assert moved.shape == a.shape and (moved != a).any(1).all()


def test_a_null_of_ones_own():
    double = Null("double", "nothing", "everything", False, lambda maps, ids, labels, seed: maps * 2)
    np.testing.assert_array_equal(null_maps(maps_of(3), double), maps_of(3) * 2)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"null": "swop"}, ValueError, "null must be one of swap, swap-class, roll, turn, got 'swop'"),
        ({"null": "swap-class"}, ValueError, "labels must be given for null 'swap-class'"),
        ({"null": "swap-class", "labels": [0, 0, 1]}, ValueError, "two images of each class, class 1 has one"),
        ({"index": [1, 1, 2]}, ValueError, "index must hold different sample ids"),
        ({"index": [1.0, 2.0, 3.0]}, TypeError, "index must be integers, got float64"),
        (
            {"labels": [0, 1], "null": "swap-class"},
            ValueError,
            r"labels must be one integer per map, \[3\], got shape \(2,\)",
        ),
        ({"seed": -1}, ValueError, r"seed must be an integer in \[0, 2\^63\), got -1"),
    ],
)
def test_bad_inputs(arguments, error, message):
    with pytest.raises(error, match=message):
        null_maps(maps_of(3), **arguments)


def test_too_small():
    with pytest.raises(ValueError, match="swap needs at least two images, got one"):
        null_maps(maps_of(1), "swap")
    with pytest.raises(ValueError, match="at least two pixels"):
        null_maps(np.zeros((3, 1, 1)), "roll")
    assert null_maps(np.zeros((0, 4, 4)), "swap").shape == (0, 4, 4)
