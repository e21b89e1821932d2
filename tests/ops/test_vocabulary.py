"""One word per thing: names that ops had before get an error with the new one; every op sets its thread count."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import roarfast as rf
from roarfast import _backend

X = np.random.default_rng(0).random((2, 3, 6, 7), np.float32)
MAPS = np.random.default_rng(1).random((2, 6, 7), np.float32)
MASK = MAPS > 0.6
IMAGES = (255 * X).astype(np.uint8)
CODES = rf.rank_codes(MAPS, (0.3, 0.5))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rf.removal_mask(X, 0.3, per_channel=True), r"no argument 'per_channel': write ndim=3"),
        (lambda: rf.rank_codes(X, (0.3,), per_channel=True), r"no argument 'per_channel': write ndim=3"),
        (lambda: rf.impute_linear(X, MASK, channels_last=True), r"no argument 'channels_last': write layout=\"NHWC\""),
        (lambda: rf.gather_batch(IMAGES, [0], CODES, j=1), r"no argument 'j': write rate_index="),
        (lambda: rf.gather_batch(IMAGES, [0], memory="NHWC"), r"no argument 'memory': write out_layout="),
        (lambda: rf.removed_fraction(CODES, j=1), r"no argument 'j': write rate_index="),
        (lambda: rf.impute_dataset(IMAGES, CODES, (0.3, 0.5), j=1), r"no argument 'j': write rate_index="),
    ],
)
def test_old_arguments_name_the_new_one(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


@pytest.mark.parametrize(
    ("old", "new"), [("mean", "'kept_mean'"), ("mean_all", "'image_mean'"), ("dataset_mean", "one number per channel")]
)
def test_old_fills_name_the_new_one(old: str, new: str) -> None:
    with pytest.raises(ValueError, match=f"value '{old}': .*{new}"):
        rf.fill(X, MASK, old)
    with pytest.raises(ValueError, match=f"fill '{old}': .*{new}"):
        rf.remove(X, MAPS, 0.3, old)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_the_fill_linear_is_the_imputation_without_noise(layout: str, dtype: type) -> None:
    x = X if dtype is np.float32 else IMAGES
    x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if layout == "NHWC" else x
    expected = rf.impute_linear(x, MASK, noise=0, layout=layout)
    expected = expected if dtype is np.float32 else np.rint(expected).astype(np.uint8)
    filled = rf.fill(x, MASK, "linear", layout=layout)
    assert filled.dtype == dtype
    np.testing.assert_array_equal(filled, expected)
    mask = rf.removal_mask(MAPS, 0.4, seed=3)
    np.testing.assert_array_equal(
        rf.remove(x, MAPS, 0.4, "linear", seed=3, layout=layout), rf.fill(x, mask, "linear", layout=layout)
    )


def test_the_fill_linear_needs_neighbours() -> None:
    with pytest.raises(ValueError, match=r"'linear' needs images and a mask per pixel.*got layout='NF'"):
        rf.fill(X.reshape(2, -1), X.reshape(2, -1) > 0.5, "linear", layout="NF")
    with pytest.raises(ValueError, match="'linear' needs images and a mask per pixel"):
        rf.fill(X, X > 0.5, "linear")


@pytest.mark.parametrize(
    "call",
    [
        lambda: rf.pixel_random((2, 6, 7)),
        lambda: rf.block_random((2, 6, 7), 0.3),
        lambda: rf.impute_linear(X, MASK, out=np.empty_like(X)),
        lambda: rf.fill(X, MASK, "linear"),
        lambda: rf.impute_dataset(IMAGES, CODES, (0.3, 0.5), progress=False),
    ],
    ids=["pixel_random", "block_random", "impute_linear", "fill", "impute_dataset"],
)
def test_the_first_op_of_a_thread_has_its_thread_count(call: Callable[[], Any]) -> None:
    seen: list[int] = []

    def work() -> None:
        call()
        seen.append(_backend.cpu().get_num_threads())

    rf.set_num_threads(3)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [3]


@pytest.mark.parametrize(
    "call",
    [
        lambda: rf.impute_linear(X, rf.removal_mask(X, 0.3, ndim=2)),
        lambda: rf.impute_linear(X, rf.removal_mask(X[:, :1], 0.3)),
        lambda: rf.impute_linear(X.transpose(0, 2, 3, 1), rf.removal_mask(X, 0.3, ndim=2), layout="NHWC"),
        lambda: rf.fill(X, rf.removal_mask(X, 0.3, ndim=2), "linear"),
        lambda: rf.fill(X, rf.removal_mask(X[:, :1], 0.3)),
        lambda: rf.remove(X, X[:, :1], 0.3),
        lambda: rf.remove(X, X, 0.3, "linear"),
        lambda: rf.impute_dataset(IMAGES, rf.rank_codes(X, (0.3, 0.5), ndim=2), (0.3, 0.5), progress=False),
    ],
)
def test_masks_of_channels_where_pixels_are_meant(call: Callable[[], Any]) -> None:
    with pytest.raises(
        ValueError, match=r"aggregate channels first: rf\.removal_mask\(rf\.aggregate_channels\(a\), drop\)"
    ):
        call()
    rf.impute_linear(X, rf.removal_mask(rf.aggregate_channels(X), 0.3))


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize(
    "rank", [lambda a, **how: rf.removal_mask(a, 0.3, **how), lambda a, **how: rf.rank_codes(a, (0.3, 0.5), **how)]
)
def test_maps_with_channels_are_ranked_apart_with_a_warning(library: str, rank: Callable[..., Any]) -> None:
    a: Any = np.random.default_rng(0).random((5, 3, 6, 7))
    if library == "torch":
        a = pytest.importorskip("torch").from_numpy(a)
    with pytest.warns(UserWarning) as caught:
        apart = rank(a)
    assert "aggregate channels first: rf.aggregate_channels(a)" in str(caught[0].message)
    assert caught[0].filename == __file__, "the warning names the caller's line"
    # pyproject.toml makes it an error: none of these may warn, since they say what they mean or cannot be channels.
    assert (rank(a, ndim=2) == apart).all()
    rank(a, ndim=3), rank(a[0]), rank(a[:, :1]), rank(a[None]), rank(a.reshape(3, 5, 6, 7))
    rank(rf.aggregate_channels(a))


def test_borders_per_axis_and_scipys_third_argument() -> None:
    ndimage = pytest.importorskip("scipy.ndimage")
    for ours, theirs in ((rf.gaussian_filter, ndimage.gaussian_filter), (rf.maximum_filter, ndimage.maximum_filter)):
        expected = theirs(MAPS[0], 3, mode=["reflect", "wrap"])
        np.testing.assert_allclose(ours(MAPS[0], 3, mode=["reflect", "wrap"]), expected, rtol=1e-5)
        for wrong in (["reflect", "nonsense"], ["reflect"], [["reflect"], "wrap"], 0):
            with pytest.raises(ValueError, match="mode must be"):
                ours(MAPS[0], 3, mode=wrong)
        with pytest.raises(ValueError, match=r"got 0; for SciPy's order of arguments: roarfast\.compat\.ndimage"):
            ours(MAPS[0], 3, 0)


@pytest.mark.parametrize(
    ("name", "argument"),
    [("gaussian_filter", "axes"), ("gaussian_filter", "output"), ("maximum_filter", "footprint"), ("sobel", "output")],
)
def test_scipys_other_arguments_say_where_they_work(name: str, argument: str) -> None:
    from roarfast.compat import ndimage

    pytest.importorskip("scipy")
    given = {"axes": (0, 1), "output": np.float64, "footprint": np.ones((3, 3))}[argument]
    arguments = {"gaussian_filter": {"sigma": 1}, "maximum_filter": {}, "sobel": {}}[name]
    with pytest.raises(TypeError, match=rf"no argument '{argument}'; roarfast\.compat\.ndimage\.{name} takes SciPy's"):
        getattr(rf, name)(MAPS[0], **arguments, **{argument: given})
    assert getattr(ndimage, name)(MAPS[0], **arguments, **{argument: given}).shape == MAPS[0].shape
