from __future__ import annotations

import numpy as np
import pytest

import roarfast as rf
from roarfast.reference.philox_normal import philox_normal as expected

IDS = np.array([0, 1, 7, 2**40 + 3, -5])


@pytest.mark.parametrize("shape", [(1,), (3,), (4,), (63,), (64,), (65,), (3, 5, 7), (1, 1, 4099)])
@pytest.mark.parametrize("draw", [0, 1, 5])
def test_equals_the_definition_bit_for_bit(backend, shape, draw):
    got = backend(rf.philox_normal, IDS, shape, seed=3, draw=draw)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, expected(IDS, shape, seed=3, draw=draw))


@pytest.mark.parametrize("shape", [(70, 71), (130, 127), (128, 132)])
def test_rows_of_several_launches(backend, shape):
    """The emulator cuts what is made into slices, as a GPU does for gigabytes: of rows, and within a row."""
    ids = np.array([5, 0, 2**40, 7])
    got = backend(rf.philox_normal, ids, shape, seed=3, draw=1)
    np.testing.assert_array_equal(got, expected(ids, shape, seed=3, draw=1))


def test_shape_of_ids_is_kept_and_out_is_written(backend):
    ids = np.arange(6).reshape(2, 3)
    got = backend(rf.philox_normal, ids, (2, 2), seed=1)
    assert got.shape == (2, 3, 2, 2)
    np.testing.assert_array_equal(got.reshape(6, 4), expected(ids.ravel(), (4,), seed=1))
    out = np.empty((2, 3, 2, 2), np.float32)
    assert rf.philox_normal(ids, (2, 2), seed=1, out=out) is out
    np.testing.assert_array_equal(out, got)


def test_a_sample_does_not_depend_on_batch_or_threads():
    together = rf.philox_normal(np.arange(50), (3, 32, 32), seed=9, draw=2)
    rf.set_num_threads(1)
    alone = rf.philox_normal(np.array([31]), (3, 32, 32), seed=9, draw=2)
    np.testing.assert_array_equal(alone[0], together[31])


@pytest.mark.parametrize("change", [{"seed": 1}, {"draw": 1}, {"domain": "noise_fill"}])
def test_seeds_draws_and_domains_give_unrelated_numbers(change):
    ids = np.arange(100)
    a, b = rf.philox_normal(ids, (1000,)).ravel(), rf.philox_normal(ids, (1000,), **change).ravel()
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(a.size)


def test_numbers_are_standard_normal():
    scipy_stats = pytest.importorskip("scipy.stats")
    z = rf.philox_normal(np.arange(64), (3, 32, 32), seed=4).ravel()
    assert scipy_stats.kstest(z, "norm").pvalue > 1e-4
    assert abs(z.mean()) < 5 / np.sqrt(z.size)
    assert abs(z.var() - 1) < 5 * np.sqrt(2 / z.size)


@pytest.mark.parametrize("ids, shape", [(np.empty(0, np.int64), (3, 4)), (np.arange(3), (0, 4))])
def test_empty(backend, ids, shape):
    assert backend(rf.philox_normal, ids, shape).shape == ids.shape + shape


def test_torch_gives_the_same_and_is_compilable():
    torch = pytest.importorskip("torch")
    ids = torch.arange(5)
    got = rf.philox_normal(ids, (3, 4, 4), seed=2, draw=1)
    np.testing.assert_array_equal(got.numpy(), expected(ids.numpy(), (3, 4, 4), seed=2, draw=1))
    torch.library.opcheck(torch.ops.roarfast.philox_normal.default, (ids, [3, 4], 1, 0, 8))


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"index": np.arange(3.0)}, TypeError, "index must have dtype int64"),
        ({"index": [1, 2]}, TypeError, "index must be a NumPy array"),
        ({"shape": (-1,)}, ValueError, "shape must be an integer >= 0"),
        ({"seed": -1}, ValueError, "seed must be an integer in"),
        ({"draw": -1}, ValueError, "draw must be an integer >= 0"),
        ({"draw": 2**50}, ValueError, "draw must be in"),
        ({"domain": "dice"}, ValueError, "domain must be one of"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        rf.philox_normal(**{"index": np.arange(2), "shape": (4,), **arguments})
