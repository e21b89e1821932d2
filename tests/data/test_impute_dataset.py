"""impute_dataset: chunks of impute_linear, rounded."""

from __future__ import annotations

import numpy as np
import pytest

import roarfast as rf

DROPS = [0.2, 0.5, 0.9]


def dataset(rng, layout="NCHW"):
    shape = (7, 3, 12, 10) if layout == "NCHW" else (7, 12, 10, 3)
    return rng.integers(0, 256, shape, dtype=np.uint8), rng.integers(0, 4, (7, 12, 10), dtype=np.uint8)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("dtype", ["uint8", "float16"])
@pytest.mark.parametrize("keep", [False, True])
def test_equals_impute_linear_image_by_image(rng, layout, dtype, keep):
    images, codes = dataset(rng, layout)
    out = rf.impute_dataset(
        images, codes, DROPS, layout=layout, dtype=dtype, keep=keep, seed=3, chunk=3, progress=False
    )
    assert out.shape == (3, *images.shape) and out.dtype == dtype
    for j in range(3):
        mask = codes > j if keep else codes <= j
        exact = rf.impute_linear(images, mask, noise=2.55, seed=3, layout=layout)
        expected = np.rint(np.clip(exact, 0, 255)) if dtype == "uint8" else exact
        np.testing.assert_array_equal(out[j], expected.astype(dtype))


def test_one_rate_into_a_memory_map(rng, tmp_path):
    images, codes = dataset(rng)
    target = np.lib.format.open_memmap(tmp_path / "imputed.npy", "w+", np.uint8, images.shape)
    out = rf.impute_dataset(images, codes, DROPS, rate_index=1, out=target, progress=False, chunk=2)
    assert out is target
    np.testing.assert_array_equal(out, rf.impute_dataset(images, codes, DROPS, progress=False)[1])


def test_torch_and_sample_ids(rng):
    torch = pytest.importorskip("torch")
    images, codes = dataset(rng)
    expected = rf.impute_dataset(images, codes, DROPS, rate_index=[0, 2], progress=False)
    out = rf.impute_dataset(torch.from_numpy(images), torch.from_numpy(codes), DROPS, rate_index=[0, 2], progress=False)
    np.testing.assert_array_equal(out.numpy(), expected)
    part = rf.impute_dataset(images[4:], codes[4:], DROPS, rate_index=[0, 2], index=np.arange(4, 7), progress=False)
    np.testing.assert_array_equal(part, expected[:, 4:])


def test_progress_is_shown_on_stderr(rng, capfd):
    images, codes = dataset(rng)
    rf.impute_dataset(images, codes, DROPS)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("kwargs", "error_type", "message"),
    [
        ({"images": np.zeros((2, 3, 4, 4), np.float32)}, TypeError, "images must have dtype uint8"),
        ({"codes": np.zeros((2, 4, 5), np.uint8)}, ValueError, "codes must be"),
        ({"drops": []}, ValueError, "drops must have at least one"),
        ({"drops": [20.0]}, ValueError, r"must be in \[0, 1\]"),
        ({"rate_index": 3}, ValueError, "rate_index must be"),
        ({"dtype": "float32"}, ValueError, "dtype must be one of"),
        ({"out": np.zeros((2, 3, 4, 4), np.uint8)}, ValueError, "out must have shape"),
        ({"index": np.arange(3)}, ValueError, "index must be"),
    ],
)
def test_bad_arguments(kwargs, error_type, message):
    images, codes = np.zeros((2, 3, 4, 4), np.uint8), np.zeros((2, 4, 4), np.uint8)
    with pytest.raises(error_type, match=message):
        rf.impute_dataset(**({"images": images, "codes": codes, "drops": DROPS, "progress": False} | kwargs))
