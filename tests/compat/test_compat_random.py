"""The normals of NumPy's and torch's global generators: numbers to rounding, states to the bit, or the library draws."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roarfast import _backend
from roarfast.compat import _random

torch = pytest.importorskip("torch")

# ruff: noqa: NPY002 - the legacy generator is what is compared with


def states_equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a.get_state(), b.get_state()))


def test_both_are_known_here():
    assert _random._numpy_is_known()
    assert _random._torch_is_known()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 3000), min_size=1, max_size=5), st.integers(0, 3))
def test_numpy_normals(seed, counts, before):
    ours, theirs = np.random.RandomState(seed), np.random.RandomState(seed)
    for state in (ours, theirs):
        state.randn(before)  # an odd number leaves one normal kept
    for count in counts:
        np.testing.assert_allclose(_random._numpy_draw(ours, 1, count)[0], theirs.randn(count), rtol=1e-13)
        assert states_equal(ours, theirs)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**63 - 1),
    st.lists(st.one_of(st.just(0), st.integers(16, 3000)), min_size=1, max_size=5).filter(any),
    st.integers(0, 700),
)
def test_torch_normals(seed, sizes, before):
    ours, theirs = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(seed)
    for generator in (ours, theirs):
        torch.rand(before, generator=generator)
    drawn = _random._torch_draw(ours, sizes)
    expected = torch.cat([torch.randn(n, generator=theirs) for n in sizes]).numpy()
    np.testing.assert_allclose(drawn, expected, rtol=2e-6, atol=4e-6)
    assert torch.equal(ours.get_state(), theirs.get_state())


def test_global_generators():
    np.random.seed(3)
    torch.manual_seed(3)
    ours = _random.numpy_normals(3, 5001), _random.torch_normals([40, 5001])
    states = np.random.get_state(), torch.random.get_rng_state()
    np.random.seed(3)
    torch.manual_seed(3)
    np.testing.assert_allclose(ours[0], np.random.randn(3, 5001), rtol=1e-13)
    np.testing.assert_allclose(ours[1], torch.cat([torch.randn(40), torch.randn(5001)]), rtol=2e-6, atol=4e-6)
    assert all(np.array_equal(a, b) for a, b in zip(states[0], np.random.get_state()))
    assert torch.equal(states[1], torch.random.get_rng_state())


def test_the_library_draws_where_ours_differ(monkeypatch):
    class Wrong:
        def numpy_normals(self, key, place, kept, out, n):
            out[...] = 0

        def torch_normals(self, key, place, sizes, n, out):
            out[...] = 0

    monkeypatch.setattr(_backend, "cpu", Wrong)
    for check in (_random._numpy_is_known, _random._torch_is_known):
        check.cache_clear()
        assert not check()
    np.random.seed(1)
    drawn = _random.numpy_normals(2, 5000)
    np.random.seed(1)
    np.testing.assert_array_equal(drawn, np.random.randn(2, 5000))
    assert _random.torch_normals([5000]) is None
    monkeypatch.undo()
    for check in (_random._numpy_is_known, _random._torch_is_known):
        check.cache_clear()
        assert check()


def test_what_torch_must_be_asked_for():
    assert _random.torch_normals([5, 4000]) is None  # fewer than 16 are drawn in another way
    assert _random.torch_normals([4000], torch.float64) is None
    assert _random.torch_normals([0]) is None


def test_another_bit_generator_of_numpy():
    before = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(np.random.PCG64(4))
        drawn = _random.numpy_normals(2, 5000)
        np.random.set_bit_generator(np.random.PCG64(4))
        np.testing.assert_array_equal(drawn, np.random.randn(2, 5000))
    finally:
        np.random.set_bit_generator(before)


def test_threads_never_share_numbers():
    np.random.seed(0)
    drawn = []
    threads = [
        threading.Thread(target=lambda: drawn.extend(_random.numpy_normals(1, 7000) for _ in range(8)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(np.unique(np.concatenate(drawn, axis=None))) == 3 * 8 * 7000


def test_kernels_of_masks_and_noise():
    kernels = _backend.cpu()
    rng = np.random.default_rng(0)
    for pixels in (1, 7, 8, 9, 64, 333):
        removed = rng.random((2, pixels)) < rng.choice([0.1, 0.9])
        values = rng.standard_normal(3 * int(removed.sum())).astype(np.float32)
        for dtype in (np.float32, np.float64):
            x = rng.random((2, 3, pixels)).astype(dtype)
            expected = x.copy()
            expected[np.broadcast_to(removed[:, None], x.shape)] += dtype(0.5) * values.astype(dtype)
            getattr(kernels, f"add_in_order_{np.dtype(dtype)}")(x, removed, values, 0.5, 2, 3, pixels)
            np.testing.assert_allclose(x, expected, rtol=1e-6)
            kept = (~removed).astype(dtype)
            out = np.empty(removed.shape, bool)
            read = getattr(kernels, f"removed_pixels_{np.dtype(dtype)}")
            assert read(kept, out, kept.size) == removed.sum()
            np.testing.assert_array_equal(out, removed)
            for odd in (0.3, 0.5, -1.0, np.nan):
                kept.flat[-1] = odd
                assert read(kept, out, kept.size) == -1
    mask = np.zeros(10, bool)
    assert kernels.mark_pixels(np.array([3, 9, 3]), 3, mask, 10) == 2
    np.testing.assert_array_equal(np.flatnonzero(mask), [3, 9])
    for bad in (-1, 10):
        assert kernels.mark_pixels(np.array([bad]), 1, mask, 10) == -1
