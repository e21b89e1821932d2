"""impute_linear: within tol of the float64 direct solve on any mask, and exact where it can be."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.backends import Backend
from helpers.impute_masks import adversarial_masks, random_mask, smooth_mask
from helpers.shared_data import shared_data
from hypothesis import given, settings
from hypothesis import strategies as st

import roarfast as rf
from roarfast.ops.impute_linear import solve
from roarfast.reference.impute_linear import ROAD_WEIGHTS, noise
from roarfast.reference.impute_linear import impute_linear as reference

LAPLACE = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
SIZES = [(1, 2), (2, 2), (1, 9), (9, 1), (3, 5), (7, 130), (16, 16), (31, 33), (32, 32), (64, 64), (65, 70), (130, 3)]


def error(got, x, mask, weights=None, empty_value=0.0):
    """Largest error of one image `[C, H, W]` in units of the range of its known pixels, beyond output rounding."""
    expected = reference(x, mask, weights, empty_value)
    spread = np.ptp(np.asarray(x, np.float64)[:, ~mask], axis=1)
    rounding = np.spacing(np.abs(expected).astype(got.dtype)).astype(np.float64) / 2
    off = np.maximum(np.abs(got.astype(np.float64) - expected) - rounding, 0).reshape(len(x), -1).max(1)
    return float(np.max(np.where(spread > 0, off / np.where(spread > 0, spread, 1), np.where(off > 0, np.inf, 0))))


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_within_tolerance_on_every_kind_of_mask(rng, size):
    h, w = size
    flat = np.add.outer(np.arange(h), np.arange(w)) + 1000.0  # far from 0, small range
    for name, mask in adversarial_masks(rng, h, w):
        x = np.stack([rng.random((h, w)), rng.random((h, w)) < 0.02, flat]).astype(np.float32)
        out, info = rf.impute_linear(x, mask, noise=0, return_info=True)
        assert error(out, x, mask) <= 1e-5, name
        np.testing.assert_array_equal(out[:, ~mask], x[:, ~mask], err_msg=name)
        known = x[:, ~mask]
        assert (out >= known.min(1)[:, None, None]).all() and (out <= known.max(1)[:, None, None]).all(), name
        assert info.converged and info.iterations <= (15 if min(h, w) > 1 else 40), name
        assert info.empty == 0


@pytest.mark.parametrize("size", [(8, 8), (28, 28), (32, 32)], ids=str)
def test_backends(backend: Backend, rng, size):
    for name, mask in adversarial_masks(rng, *size):
        if backend.emulated and name not in ("one known", "checkerboard", "maze", "smooth 0.9 4", "random 0.1"):
            continue
        x = rng.random((2, *size), dtype=np.float32)
        out, info = backend(rf.impute_linear, x, mask, noise=0, return_info=True)
        assert error(out, x, mask) <= 1e-5, name
        assert info.converged
        np.testing.assert_array_equal(out[:, ~mask], x[:, ~mask])


@pytest.mark.parametrize("size", [(97, 131), (224, 224)], ids=str)
def test_backends_beyond_shared_memory(backend: Backend, rng, size):
    mask = smooth_mask(rng, *size, 0.7, 6) | random_mask(rng, *size, 0.3)
    x = rng.random((1, *size), dtype=np.float32)
    assert error(backend(rf.impute_linear, x, mask, noise=0), x, mask) <= 1e-5


@pytest.mark.parametrize("channels", [1, 3, 4, 5, 9])
@pytest.mark.parametrize("size", [(1, 300), (300, 1), (2, 31), (5, 64), (28, 28), (64, 64)], ids=str)
def test_few_unknown_pixels_are_solved_directly(rng, size, channels):
    """Small images on the CPU: exact to float64 whatever tol is, any number of channels, custom weights too."""
    for mask in (random_mask(rng, *size, 0.06), smooth_mask(rng, *size, 0.03, 1.5), random_mask(rng, *size, 0.002)):
        x = rng.random((channels, *size))
        for weights in (None, [[1, 4, 0.5], [2, 0, 2], [0.5, 4, 1]]):
            out, info = rf.impute_linear(x, mask, noise=0, tol=1e-3, weights=weights, return_info=True)
            assert error(out, x, mask, None if weights is None else np.array(weights)) <= 1e-13
            assert info.iterations <= 1 and info.residual <= 1e-14 and info.converged


def test_direct_and_iterated_images_do_not_mix(rng):
    """Which way an image is solved, and to which bits, does not depend on the others in the batch."""
    rates = [0.02, 0.9, 0.05, 0.5, 0.0, 0.1, 0.3, 1.0, 0.08, 0.2] * 4
    masks = np.stack(
        [random_mask(rng, 32, 32, r) if i % 2 else smooth_mask(rng, 32, 32, r, 2) for i, r in enumerate(rates)]
    )
    x = rng.random((len(masks), 3, 32, 32), dtype=np.float32)
    index = np.arange(len(masks))
    out, info = rf.impute_linear(x, masks, index=index, return_info=True)
    assert {0, 1} < set(info.iterations.tolist())
    for i in range(len(masks)):
        alone = rf.impute_linear(x[i : i + 1], masks[i : i + 1], index=index[i : i + 1])
        np.testing.assert_array_equal(alone[0], out[i], err_msg=str(i))
    last = rf.impute_linear(np.moveaxis(x, 1, -1).copy(), masks, index=index, layout="NHWC")
    np.testing.assert_array_equal(np.moveaxis(last, -1, 1), out)


def test_direct_solves_refuse_what_is_not_finite(rng):
    x, mask = rng.random((3, 2, 20, 20)), random_mask(rng, 20, 20, 0.05)
    x[:, :, mask] = np.nan  # removed pixels may hold anything
    assert np.isfinite(rf.impute_linear(x, mask)).all()
    x[1, 1][~mask] = np.inf
    with pytest.raises(ValueError, match="image 1"):
        rf.impute_linear(x, mask)


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
def test_float64_and_tolerances(backend: Backend, rng, tol):
    for h, w in ((20, 23), (90, 70)) if not backend.emulated else ((20, 23),):
        x = rng.random((1, h, w))
        mask = smooth_mask(rng, h, w, 0.8, 3)
        assert error(backend(rf.impute_linear, x, mask, noise=0, tol=tol), x, mask) <= tol
        single = backend(rf.impute_linear, x.astype(np.float32), mask, noise=0, tol=tol)
        assert single.dtype == np.float32
        assert error(single, x.astype(np.float32), mask) <= tol


@pytest.mark.parametrize(
    "weights",
    [
        LAPLACE,
        np.ones((3, 3)),
        [[0, 1, 0], [5, 0, 5], [0, 1, 0]],
        [[1, 0.1, 0], [0.1, 9, 0.1], [0, 0.1, 1]],
        [[0, 0, 0], [1, 0, 1], [0, 0, 0]],
        [[0, 1, 0], [0, 0, 0], [0, 1, 0]],
        [[1, 0, 1], [0, 0, 0], [1, 0, 1]],
        [[0, 0, 3], [0, 0, 0], [3, 0, 0]],
    ],
    ids=["laplace", "ones", "anisotropic", "diagonal", "rows", "columns", "crosses", "one diagonal"],
)
def test_custom_weights(backend: Backend, rng, weights):
    for h, w in [(17, 21), (70, 66), (1, 40), (40, 1)]:
        if backend.emulated and h * w > 400:
            continue
        for mask in (random_mask(rng, h, w, 0.6), smooth_mask(rng, h, w, 0.5, 3), smooth_mask(rng, h, w, 0.95, 3)):
            x = rng.random((1, h, w), dtype=np.float32)
            out, info = backend(
                rf.impute_linear, x, mask, noise=0, weights=np.array(weights), empty_value=-3, return_info=True
            )
            assert error(out, x, mask, np.array(weights), -3.0) <= 1e-5
            assert info.converged
            assert info.empty == ((out == -3) & mask).sum()


def test_custom_weights_only_count_relatively(rng):
    x, mask = rng.random((1, 20, 20), dtype=np.float32), random_mask(rng, 20, 20, 0.5)
    expected = rf.impute_linear(x, mask, noise=0)
    np.testing.assert_array_equal(rf.impute_linear(x, mask, noise=0, weights=ROAD_WEIGHTS * 7), expected)


def test_nothing_removed_is_a_copy(backend: Backend, rng):
    x = rng.random((2, 3, 11, 13), dtype=np.float32)
    out, info = backend(rf.impute_linear, x, np.zeros((2, 11, 13), bool), return_info=True)
    np.testing.assert_array_equal(out, x)
    assert out is not x and (info.iterations == 0).all() and info.converged.all()


def test_everything_removed_is_the_empty_value_plus_noise(backend: Backend, rng):
    x = np.full((2, 3, 6, 7), np.nan, np.float32)
    x[1] = 5
    mask = np.ones((2, 6, 7), bool)
    mask[1, 2, 3] = False
    out, info = backend(rf.impute_linear, x, mask, noise=0, return_info=True)
    np.testing.assert_array_equal(out[0], 0)
    np.testing.assert_array_equal(out[1], 5)
    assert info.empty.tolist() == [42, 0]
    out = backend(rf.impute_linear, x, mask, noise=0.5, empty_value=2, seed=3)
    np.testing.assert_array_equal(out[0], np.float32(2) + np.float32(0.5) * noise(3, 0, (3, 6, 7)))


@pytest.mark.parametrize("value", [0.1, -3.7e-12, 12345.678, 3e30])
def test_constant_images_stay_constant(backend: Backend, rng, value):
    for h, w in ((13, 9), (1, 5), (90, 80)) if not backend.emulated else ((13, 9),):
        x = np.full((1, h, w), value, np.float32)
        np.testing.assert_array_equal(backend(rf.impute_linear, x, random_mask(rng, h, w, 0.8), noise=0), x)


@pytest.mark.parametrize("kind", ["gaussian", "uniform"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_noise_is_the_reference_noise_on_removed_pixels_only(backend: Backend, rng, kind, dtype):
    x = np.zeros((3, 2, 7, 9), dtype)
    mask = rng.random((3, 7, 9)) < 0.5
    index = np.array([7, 0, 2**40])
    out = backend(rf.impute_linear, x, mask, noise=0.25, seed=2**62 + 5, index=index, noise_kind=kind)
    for i in range(3):
        z = noise(2**62 + 5, int(index[i]), (2, 7, 9), kind).astype(dtype)
        np.testing.assert_array_equal(out[i], np.where(mask[i], dtype(0.25) * z, 0))


def test_images_of_all_rates_together_are_as_alone(rng):
    """Small images are grouped by how much of them is removed; bytes of interleaved channels to halves, with noise."""
    x = rng.integers(0, 256, (40, 19, 33, 3), dtype=np.uint8)
    mask = rng.random((40, 19, 33)) < rng.permutation(np.linspace(0, 1, 40))[:, None, None]

    def run(rows):
        ids = np.arange(40)[rows]
        return solve(x[rows], mask[rows], 2.5, 3, ids, 1e-5, None, None, "gaussian", 0.0, "NHWC", "float16", None)[0]

    together = run(slice(None))
    for i in range(40):
        np.testing.assert_array_equal(together[i : i + 1], run(slice(i, i + 1)))
    kept = ~np.broadcast_to(mask[..., None], x.shape)
    np.testing.assert_array_equal(together[kept], x.astype(np.float16)[kept])


def test_results_do_not_depend_on_batch_or_threads(rng):
    for h, w in ((24, 31), (80, 75)):
        x = rng.random((13, 3, h, w), dtype=np.float32)
        mask = np.stack([smooth_mask(rng, h, w, rate, 2) for rate in np.linspace(0, 1, 13)])
        rf.set_num_threads(2)
        whole = rf.impute_linear(x, mask, seed=4)
        rf.set_num_threads(1)
        for part in (slice(3, 4), slice(0, 7), slice(5, 13)):
            ids = np.arange(13)[part]
            np.testing.assert_array_equal(rf.impute_linear(x[part], mask[part], seed=4, index=ids), whole[part])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "h", "w"), [(5, 600, 577), (4, 2001, 167), (4, 7, 50000), (1, 259, 300)], ids=str)
def test_threads_that_share_an_image_change_nothing(rng, dtype, n, h, w):
    x = rng.random((n, 1, h, w)).astype(dtype)
    rates = np.linspace(0.3, 0.95, n)
    mask = np.stack(
        [(smooth_mask(rng, h, w, t, 5) if i % 3 < 2 else random_mask(rng, h, w, t)) for i, t in enumerate(rates)]
    )
    mask[-1, : h // 2] = True  # bands that are unknown as a whole
    rf.set_num_threads(1)
    alone, info = rf.impute_linear(x, mask, seed=4, return_info=True)
    for threads in (2, 3, 5):
        rf.set_num_threads(threads)
        shared, shared_info = rf.impute_linear(x, mask, seed=4, return_info=True)
        np.testing.assert_array_equal(shared, alone)
        np.testing.assert_array_equal(shared_info.iterations, info.iterations)
        np.testing.assert_array_equal(shared_info.residual, info.residual)


def test_a_shared_image_is_within_tolerance(rng):
    rf.set_num_threads(2)
    for sizes, weights in (((260, 290), None), ((257, 301), LAPLACE)):
        x, mask = rng.random((1, *sizes), dtype=np.float32), smooth_mask(rng, *sizes, 0.8, 6)
        assert error(rf.impute_linear(x, mask, noise=0, weights=weights), x, mask, weights) <= 1e-5


@pytest.mark.parametrize("w", [63, 64, 65, 96, 127, 128, 129, 200])
def test_lists_of_few_removed_pixels(rng, w):
    """Widths around the 64 pixels that are looked at together; removed pixels in corners and along all borders."""
    for h in (65, 70):
        x = rng.random((2, 3, h, w), dtype=np.float32)
        mask = np.stack([random_mask(rng, h, w, rate) for rate in (0.02, 0.11)])
        mask[1, [0, 0, -1, -1, 0, 5, 6, -1, 8], [0, -1, 0, -1, w // 2, 0, -1, w // 2, 62]] = True
        got, info = rf.impute_linear(x, mask, noise=0, return_info=True)
        assert info.converged.all()
        for i in range(2):
            assert error(got[i], x[i], mask[i]) <= 1e-5


def test_the_last_images_are_handed_out_by_channel(rng):
    for n, size in ((7, (70, 80)), (33, (20, 24))):
        x = rng.random((n, 3, *size), dtype=np.float32)
        mask = np.stack([smooth_mask(rng, *size, rate, 3) for rate in np.linspace(0.2, 0.95, n)])
        rf.set_num_threads(1)
        alone, info = rf.impute_linear(x, mask, seed=4, return_info=True)
        for threads in (2, 3, 4):
            rf.set_num_threads(threads)
            together, together_info = rf.impute_linear(x, mask, seed=4, return_info=True)
            np.testing.assert_array_equal(together, alone)
            np.testing.assert_array_equal(together_info.residual, info.residual)


def test_images_solved_in_different_ways_do_not_mix(rng):
    x = rng.random((40, 2, 20, 24), dtype=np.float32)
    mask = np.stack([(random_mask if i % 3 else smooth_mask)(rng, 20, 24, 0.5, *[3] * (i % 3 == 0)) for i in range(40)])
    whole, info = rf.impute_linear(x, mask, noise=0, return_info=True)
    for i in range(40):
        alone, alone_info = rf.impute_linear(x[i], mask[i], noise=0, return_info=True)
        np.testing.assert_array_equal(alone, whole[i])
        assert alone_info.iterations == info.iterations[i]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "uint8"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_dtypes_and_layouts(backend: Backend, rng, dtype, layout):
    torch = pytest.importorskip("torch")
    mask = random_mask(rng, 12, 10, 0.6)
    values = rng.random((2, 3, 12, 10)) if dtype != "uint8" else rng.integers(0, 256, (2, 3, 12, 10))
    x = torch.from_numpy(values).to(getattr(torch, dtype))
    given_x = x.permute(0, 2, 3, 1).contiguous() if layout == "NHWC" else x
    out = backend(rf.impute_linear, given_x, torch.from_numpy(mask), noise=0, layout=layout)
    out = torch.as_tensor(out).cpu()
    if layout == "NHWC":
        out = out.permute(0, 3, 1, 2)
    assert out.dtype == (torch.float32 if dtype == "uint8" else x.dtype)
    step = {"float16": 2**-11, "bfloat16": 2**-8}.get(dtype, 0)
    for i in range(2):
        exact = reference(x[i].double().numpy(), mask)
        spread = np.ptp(exact)
        np.testing.assert_allclose(out[i].double().numpy(), exact, rtol=step, atol=1e-5 * spread)
        assert torch.equal(out[i][:, ~mask], x[i][:, ~mask].to(out.dtype))


def test_leading_dimensions_and_broadcast_masks(backend: Backend, rng):
    x = rng.random((2, 3, 2, 9, 8), dtype=np.float32)
    mask = rng.random((3, 9, 8)) < 0.5
    out, info = backend(rf.impute_linear, x, mask, noise=0, return_info=True)
    assert info.iterations.shape == (2, 3)
    for i in range(2):
        for j in range(3):
            assert error(out[i, j], x[i, j], mask[j]) <= 1e-5
    one = backend(rf.impute_linear, x, mask[0].astype(np.uint8) * 7, noise=0)
    np.testing.assert_array_equal(one[1, 0], out[1, 0])


def test_not_contiguous_and_out(backend: Backend, rng):
    x = rng.random((9, 4, 8, 2), dtype=np.float32).transpose(1, 3, 0, 2)
    mask = (rng.random((8, 9)) < 0.5).T
    expected = backend(rf.impute_linear, np.ascontiguousarray(x), mask, noise=0)
    np.testing.assert_array_equal(backend(rf.impute_linear, x, mask, noise=0), expected)
    if backend.name != "cuda":
        buffer = np.empty_like(expected)
        assert backend(rf.impute_linear, x, mask, noise=0, out=buffer) is buffer
        np.testing.assert_array_equal(buffer, expected)
        backend(rf.impute_linear, expected, mask, noise=0, out=expected)  # in place is fine
        np.testing.assert_array_equal(buffer, expected)


def test_flips_and_transposition(rng):
    for h, w in ((23, 40), (75, 90)):
        x, mask = rng.random((1, h, w), dtype=np.float32), smooth_mask(rng, h, w, 0.7, 2)
        out = rf.impute_linear(x, mask, noise=0)
        for turn in (lambda a: a[..., ::-1], lambda a: a[..., ::-1, :], lambda a: a.swapaxes(-1, -2)):
            np.testing.assert_allclose(rf.impute_linear(turn(x), turn(mask), noise=0), turn(out), atol=1e-5)


@settings(max_examples=150, deadline=None)
@given(h=st.integers(1, 40), w=st.integers(1, 40), rate=st.floats(0, 1), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_any_mask(h, w, rate, seed, data):
    rng = np.random.default_rng(seed)
    mask = rng.random((h, w)) < rate
    scale = data.draw(st.sampled_from([1e-20, 1e-3, 1.0, 255.0, 1e12]))
    offset = data.draw(st.sampled_from([0.0, 1.0, -100.0]))
    x = ((rng.random((1, h, w)) + offset) * scale).astype(np.float32)
    out = rf.impute_linear(x, mask, noise=0)
    if mask.all():
        np.testing.assert_array_equal(out, 0)
    else:
        assert error(out, x, mask) <= 1e-5
        known = x[:, ~mask]
        assert out.min() >= known.min() and out.max() <= known.max()
    np.testing.assert_array_equal(out[:, ~mask], x[:, ~mask])


def test_real_photos(rng):
    with np.load(shared_data("cifar10_test_2k.npz"), allow_pickle=False) as data:
        images = data["images"][:40]
    mask = np.stack([smooth_mask(rng, 32, 32, rate, 2) for rate in np.linspace(0.05, 0.95, 40)])
    out, info = rf.impute_linear(images, mask, noise=0, layout="NHWC", return_info=True)
    assert info.converged.all() and info.iterations.max() <= 12
    for i in range(40):
        assert error(out[i].transpose(2, 0, 1), images[i].transpose(2, 0, 1), mask[i]) <= 1e-5


def test_real_large_photos(rng):
    cv2 = pytest.importorskip("cv2")
    with np.load(shared_data("cub20_224_jpeg.npz"), allow_pickle=False) as data:
        jpeg, offsets = data["jpeg"], data["offsets"]
    for i, mask in enumerate((smooth_mask(rng, 224, 224, 0.6, 8), random_mask(rng, 224, 224, 0.6))):
        photo = cv2.imdecode(jpeg[offsets[i] : offsets[i + 1]], cv2.IMREAD_COLOR)
        out = rf.impute_linear(photo, mask, noise=0, layout="NHWC")
        assert error(out.transpose(2, 0, 1), photo.transpose(2, 0, 1), mask) <= 1e-5


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_non_finite_known_pixels_name_the_sample(backend: Backend, rng, bad):
    x = rng.random((4, 2, 6, 6), dtype=np.float32)
    mask = np.zeros((4, 6, 6), bool)
    mask[:, 1] = True
    x[:, :, 1] = bad  # removed: may hold anything
    assert np.isfinite(backend(rf.impute_linear, x, mask)).all()
    x[2, 1, 4, 5] = bad
    with pytest.raises(ValueError, match=r"image 2 \(sample 9\) has NaN"):
        backend(rf.impute_linear, x, mask, index=np.array([5, 3, 9, 4]))


def test_a_spent_budget_warns_with_the_sample(backend: Backend, rng):
    x = rng.random((3, 1, 30, 30), dtype=np.float32)
    mask = np.zeros((3, 30, 30), bool)
    mask[1] = smooth_mask(rng, 30, 30, 0.9, 2)
    with pytest.warns(RuntimeWarning, match=r"image 1 did not reach tol=1e-05 within max_iter=2: the last correction"):
        _, info = backend(rf.impute_linear, x, mask, max_iter=2, return_info=True)
    assert info.converged.tolist() == [True, False, True]
    assert info.residual[1] > 1e-5


@pytest.mark.parametrize(
    ("kwargs", "error_type", "message"),
    [
        ({"x": np.zeros((4, 4), np.float32)}, ValueError, r"x must be \[..., C, H, W\]"),
        ({"x": np.zeros((1, 4, 4), np.int32)}, TypeError, "x must have dtype"),
        ({"mask": np.zeros((4, 5), bool)}, ValueError, r"mask must be \[..., 4, 4\]"),
        ({"mask": np.zeros((3, 4, 4), bool)}, ValueError, "mask must broadcast"),
        ({"mask": np.zeros((4, 4), np.float32)}, TypeError, "mask must have dtype bool or uint8"),
        ({"noise": -1}, ValueError, "noise must be >= 0"),
        ({"noise_kind": "pink"}, ValueError, "noise_kind must be one of 'gaussian' or 'uniform'"),
        ({"tol": 1e-12}, ValueError, "tol must be in"),
        ({"max_iter": 0}, ValueError, "max_iter must be"),
        ({"weights": np.ones((3, 5))}, ValueError, "weights must be 3x3"),
        ({"weights": [[0, 1, 0], [0, 0, 0], [0, 0, 0]]}, ValueError, "weights must be point-symmetric"),
        ({"weights": -np.ones((3, 3))}, ValueError, "weights must be finite and >= 0"),
        ({"weights": [[0, 0, 0], [0, 1, 0], [0, 0, 0]]}, ValueError, "weights must have a neighbour"),
        ({"index": np.arange(3)}, ValueError, "index must be shaped like"),
        ({"seed": -1}, ValueError, "seed must be"),
    ],
)
def test_bad_arguments(kwargs, error_type, message):
    arguments = {"x": np.zeros((2, 1, 4, 4), np.float32), "mask": np.zeros((4, 4), bool)} | kwargs
    with pytest.raises(error_type, match=message):
        rf.impute_linear(**arguments)


def test_empty_batches(backend: Backend):
    for shape in [(0, 3, 5, 5), (2, 0, 5, 5), (2, 3, 0, 5)]:
        out, info = backend(rf.impute_linear, np.zeros(shape, np.float32), np.zeros(shape[-2:], bool), return_info=True)
        assert out.shape == shape and info.converged.shape == shape[:1]


def test_torch_op(rng):
    torch = pytest.importorskip("torch")
    rf.register_torch()
    x, mask = torch.rand(2, 3, 8, 8), torch.rand(2, 8, 8) < 0.5
    args = (x, mask, None, 0.01, "gaussian", 0, 1e-5, 100, [1.0, 2.0, 1.0, 2.0], 0.0, "NCHW", "float32", True)
    torch.library.opcheck(torch.ops.roarfast.impute_linear.default, args)
    out = rf.impute_linear(x, mask)
    np.testing.assert_array_equal(out.numpy(), rf.impute_linear(x.numpy(), mask.numpy()))
