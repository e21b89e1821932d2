"""fill: every replacement, dtype and layout."""

from __future__ import annotations

import numpy as np
import pytest

import roarfast as rf
from roarfast.reference.fill import fill as reference

VALUES = [0.0, 7, [1, 2, 3], "zero", "kept_mean", "image_mean", "blur", "noise"]


def images(rng, dtype, shape=(2, 3, 9, 11)):
    if dtype == "uint8":
        return rng.integers(0, 256, shape, dtype=np.uint8)
    return rng.standard_normal(shape).astype(dtype)


def tolerance(dtype, value):
    """Everything is bit-identical but the blur, whose float sums differ from SciPy's."""
    if value != "blur":
        return {"rtol": 0, "atol": 0}
    return {"rtol": 0, "atol": {"uint8": 1, "float16": 4e-3, "float32": 1e-5, "float64": 1e-12}[dtype]}


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("value", VALUES, ids=str)
def test_equals_reference(backend, rng, value, dtype, layout) -> None:
    x = images(rng, dtype)
    options = {"sigma": 2.0, "noise_mean": 0.5, "noise_std": 0.25, "seed": 5, "index": [8, 3]}
    if dtype == "uint8":
        options |= {"noise_mean": 128, "noise_std": 60}
    for mask in (rng.random((2, 9, 11)) < 0.4, rng.random(x.shape) < 0.4):
        expected = reference(x, mask, value, **options)
        turn = (lambda v: np.moveaxis(v, 1, -1)) if layout == "NHWC" else (lambda v: v)
        turned_mask = turn(mask) if mask.ndim == 4 else mask
        got = backend(rf.fill, turn(x), turned_mask, value, layout=layout, **options)
        assert got.dtype == x.dtype
        np.testing.assert_allclose(got.astype(float), turn(expected).astype(float), **tolerance(dtype, value))


@pytest.mark.parametrize("removed", [0.0, 1.0])
def test_nothing_and_everything_removed(backend, rng, removed) -> None:
    x = images(rng, "float32", (2, 3, 4, 5))
    mask = np.full((2, 4, 5), removed > 0)
    for value in ("kept_mean", "image_mean", 0.5):
        np.testing.assert_array_equal(backend(rf.fill, x, mask, value), reference(x, mask, value))


def test_values_per_image(backend, rng) -> None:
    x = images(rng, "float32")
    mask = rng.random((2, 9, 11)) < 0.5
    values = rng.random((2, 3))
    np.testing.assert_array_equal(backend(rf.fill, x, mask, values), reference(x, mask, values))


def test_gray_images_and_features(backend, rng) -> None:
    x = rng.random((4, 6, 5)).astype(np.float32)
    mask = rng.random((4, 6, 5)) < 0.5
    expected = reference(x[:, None], mask, "kept_mean")[:, 0]
    np.testing.assert_array_equal(backend(rf.fill, x, mask, "kept_mean", layout="NHW"), expected)
    flat = backend(rf.fill, x.reshape(4, 30), mask.reshape(4, 30), "kept_mean", layout="NF")
    np.testing.assert_array_equal(flat.reshape(x.shape), expected)


@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (1, 3, 70, 71), (1, 5, 3, 2100), (3, 2, 1, 4099)])
def test_sizes(rng, shape) -> None:
    """Around the CPU kernel's chunks."""
    x = images(rng, "float32", shape)
    mask = rng.random((shape[0], *shape[2:])) < 0.5
    for value in ("kept_mean", "noise", 2.0):
        expected = reference(x, mask, value)
        np.testing.assert_array_equal(rf.fill(x, mask, value), expected)
        last = rf.fill(np.moveaxis(x, 1, -1), mask, value, layout="NHWC")
        np.testing.assert_array_equal(np.moveaxis(last, -1, 1), expected)


def test_thousands_of_channels_last(rng) -> None:
    x = images(rng, "float32", (1, 3000, 2, 2))
    mask = rng.random((1, 2, 2)) < 0.5
    for value in ("image_mean", "noise", 1.0):
        got = rf.fill(np.moveaxis(x, 1, -1), mask, value, layout="NHWC")
        np.testing.assert_array_equal(np.moveaxis(got, -1, 1), reference(x, mask, value))


def test_blur_and_noise_are_fills(rng) -> None:
    x, mask = images(rng, "float32"), rng.random((2, 9, 11)) < 0.5
    np.testing.assert_array_equal(rf.blur_fill(x, mask, 3), rf.fill(x, mask, "blur", sigma=3))
    expected = rf.fill(x, mask, "noise", noise_mean=1, noise_std=2, seed=4)
    np.testing.assert_array_equal(rf.noise_fill(x, mask, 1, 2, seed=4), expected)


@pytest.mark.parametrize("channels", [1, 2, 3, 5])
def test_noise_is_that_of_the_feature_in_any_layout(backend, channels) -> None:
    """Drawn 32 features at a time, from any first one, and only where something is removed."""
    rng = np.random.default_rng(channels)
    x = rng.random((2, channels, 11, 67), dtype=np.float32)
    mask = rng.random((2, 11, 67)) < np.array([0.02, 0.7])[:, None, None]
    z = rf.philox_normal(np.array([9, 4]), x.shape[1:], 6, domain="noise_fill")
    expected = np.where(mask[:, None], z, x)
    np.testing.assert_array_equal(backend(rf.noise_fill, x, mask, seed=6, index=[9, 4]), expected)
    turned = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    found = backend(rf.noise_fill, turned, mask, seed=6, index=[9, 4], layout="NHWC")
    np.testing.assert_array_equal(found.transpose(0, 3, 1, 2), expected)


def test_noise_is_standard_normal_and_follows_the_sample(backend) -> None:
    x = np.zeros((3, 1, 32, 32), np.float32)
    mask = np.ones((3, 32, 32), bool)
    z = backend(rf.noise_fill, x, mask, index=[4, 5, 6])
    assert abs(z.mean()) < 0.08 and abs(z.std() - 1) < 0.06
    np.testing.assert_array_equal(backend(rf.noise_fill, x[:1], mask[:1], index=[5]), z[1:2])


def test_torch_and_out(rng) -> None:
    torch = pytest.importorskip("torch")
    x, mask = images(rng, "float32"), rng.random((2, 9, 11)) < 0.5
    out = torch.empty(2, 3, 9, 11)
    got = rf.fill(torch.from_numpy(x), torch.from_numpy(mask), torch.tensor([1.0, 2.0, 3.0]), out=out)
    assert got is out
    np.testing.assert_array_equal(out.numpy(), reference(x, mask, [1, 2, 3]))
    half = torch.from_numpy(x).to(torch.bfloat16)
    filled = rf.fill(half, torch.from_numpy(mask), 2.0)
    assert filled.dtype == torch.bfloat16
    assert torch.equal(filled, torch.where(torch.from_numpy(mask)[:, None], torch.tensor(2.0).bfloat16(), half))


def test_input_is_not_modified(rng) -> None:
    x, mask = images(rng, "float32"), rng.random((2, 9, 11)) < 0.5
    before = x.copy()
    rf.fill(x, mask, 0)
    np.testing.assert_array_equal(x, before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"mask": np.zeros((2, 4, 4), bool)},
            r"mask must have shape \(2, 4, 5\) \(per pixel\) or \(2, 3, 4, 5\) \(per feat",
        ),
        (
            {"value": "median"},
            "value must be one of 'zero', 'kept_mean', 'image_mean', 'blur', 'noise' or 'linear', got 'median'",
        ),
        ({"value": [1, 2]}, r"value must be one number, 3 \(one per channel\) or 2 x 3 .* got shape \(2,\)"),
        ({"value": float("inf")}, "value must be finite"),
        ({"layout": "CHW"}, "layout must be one of 'NCHW', 'NHWC', 'NHW' or 'NF', got 'CHW'"),
        ({"noise_std": -1}, "noise_std must be >= 0, got -1"),
        ({"index": [1]}, "index must have one id per sample, 2, got 1"),
    ],
)
def test_bad_arguments(change, message) -> None:
    arguments = {"x": np.zeros((2, 3, 4, 5), np.float32), "mask": np.zeros((2, 4, 5), bool), "value": 0.0} | change
    with pytest.raises(ValueError, match=message):
        rf.fill(**arguments)


def test_more_bad_arguments() -> None:
    with pytest.raises(ValueError, match=r"value must be in \[0, 255\] for uint8 images, got 300"):
        rf.fill(np.zeros((1, 3, 2, 2), np.uint8), np.zeros((1, 2, 2), bool), 300)
    with pytest.raises(ValueError, match=r"x must be .* layouts that fit: 'NHW', 'NF'"):
        rf.fill(np.zeros((4, 4)), np.zeros((4, 4), bool), 0)
    with pytest.raises(TypeError, match="mask must have dtype bool or uint8, got float64"):
        rf.fill(np.zeros((1, 3, 2, 2)), np.zeros((1, 2, 2)), 0)
    with pytest.raises(ValueError, match="blur needs images"):
        rf.fill(np.zeros((4, 4)), np.zeros((4, 4), bool), "blur", layout="NF")


@pytest.mark.parametrize("size", [(9, 40), (70, 75)])
def test_linear_fill_of_bytes(backend, rng, size) -> None:
    """Bytes in, bytes out: the imputed levels, rounded; on every path of the solver's result."""
    x = rng.integers(0, 256, (2, 3, *size), dtype=np.uint8)
    mask = rng.random((2, *size)) < 0.5
    got = backend(rf.fill, x, mask, "linear")
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(
        got[~np.broadcast_to(mask[:, None], x.shape)], x[~np.broadcast_to(mask[:, None], x.shape)]
    )
    exact = rf.impute_linear(x.astype(np.float64), mask, 0.0, tol=1e-10)
    assert np.abs(got - exact).max() <= 0.5 + 255e-5
