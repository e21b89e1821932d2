"""distance_transform: SciPy's squared integers exactly, near and far, any shape, every backend."""

from __future__ import annotations

import numpy as np
import pytest

import roarfast as rf
from roarfast.reference.distance_transform import distance_transform as reference


def scipy_squares(mask: np.ndarray) -> np.ndarray:
    ndimage = pytest.importorskip("scipy.ndimage")
    return np.stack([np.rint(ndimage.distance_transform_edt(m) ** 2).astype(np.int32) for m in mask])


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (7, 8), (16, 16), (3, 70)])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.98])
def test_equals_brute_force(backend, shape, share, rng) -> None:
    mask = rng.random((4, *shape)) < share
    expected = np.stack([reference(m) for m in mask])
    got = backend(rf.distance_transform, mask, squared=True)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, expected)
    roots = backend(rf.distance_transform, mask)
    finite = expected != np.iinfo(np.int32).max
    assert roots.dtype == np.float32
    np.testing.assert_array_equal(roots[finite], np.sqrt(expected[finite].astype(np.float32)))
    assert np.isinf(roots[~finite]).all()


def blobs(rng: np.random.Generator, n: int, h: int, w: int) -> np.ndarray:
    y, x = np.mgrid[:h, :w]
    mask = np.zeros((n, h, w), bool)
    for m in mask:
        for _ in range(4):
            cy, cx, r = rng.integers(0, h), rng.integers(0, w), rng.integers(2, max(h, w) // 2)
            m |= (y - cy) ** 2 + (x - cx) ** 2 < r * r
    return mask


@pytest.mark.parametrize("shape", [(61, 67), (224, 224), (40, 300), (300, 40), (129, 513)])
def test_equals_scipy(shape, rng) -> None:
    """Sparse, dense, thick regions, single False pixels far away, and columns without any."""
    h, w = shape
    masks = np.concatenate(
        [rng.random((3, h, w)) < 0.9, rng.random((2, h, w)) < 0.999, blobs(rng, 3, h, w), np.ones((4, h, w), bool)]
    )
    masks[-4, h - 1, 0] = masks[-3, h // 2, w // 3] = masks[-2, 0, w - 1] = False
    masks[-1, :, w // 2] = False
    kept = masks.reshape(len(masks), -1).all(1)
    got = rf.distance_transform(masks, squared=True)
    np.testing.assert_array_equal(got[~kept], scipy_squares(masks[~kept]))


def test_far_pixels_on_simt(backend, rng) -> None:
    mask = np.ones((1, 5, 130), bool)
    mask[0, 2, 3] = mask[0, 4, 129] = False
    np.testing.assert_array_equal(backend(rf.distance_transform, mask, squared=True), scipy_squares(mask))


def test_threads_dtypes_layouts(rng) -> None:
    mask = rng.random((20, 33, 35)) < 0.8
    rf.set_num_threads(1)
    one = rf.distance_transform(mask)
    rf.set_num_threads(4)
    np.testing.assert_array_equal(rf.distance_transform(mask), one)
    np.testing.assert_array_equal(rf.distance_transform(mask.astype(np.uint8) * 7), one)
    turned = np.ascontiguousarray(mask.transpose(1, 2, 0)).transpose(2, 0, 1)
    np.testing.assert_array_equal(rf.distance_transform(turned), one)
    np.testing.assert_array_equal(rf.distance_transform(mask.reshape(4, 5, 33, 35)), one.reshape(4, 5, 33, 35))


def test_empty_and_bad(backend) -> None:
    for shape in ((0, 4, 4), (2, 0, 4), (2, 4, 0)):
        assert backend(rf.distance_transform, np.zeros(shape, bool)).shape == shape
    with pytest.raises(TypeError, match="mask must have dtype bool or uint8, got float64"):
        rf.distance_transform(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="mask must be at most 32767 x 32767"):
        rf.distance_transform(np.zeros((1, 40000), bool))


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    mask = torch.rand(2, 9, 9) < 0.8
    np.testing.assert_array_equal(rf.distance_transform(mask).numpy(), rf.distance_transform(mask.numpy()))
    torch.library.opcheck(torch.ops.roarfast.distance_transform.default, (mask, True))
    torch.library.opcheck(torch.ops.roarfast.mask_geometry.default, (mask,))
    torch.library.opcheck(torch.ops.roarfast.code_sums.default, (mask.float(), mask.to(torch.uint8), 3, 2, True))
