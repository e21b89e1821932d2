"""gather_batch: bit-identical to the reference on every backend, and equal to what torchvision would do."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.backends import Backend
from helpers.shared_data import shared_data
from hypothesis import given, settings
from hypothesis import strategies as st

import roarfast as rf
from roarfast.reference import gather_batch as reference

torch = pytest.importorskip("torch")

MEAN, STD = (0.49, 0.48, 0.45), (0.25, 0.24, 0.26)
AUGMENT = {"pad": 2, "random_crop": True, "flip": True}


def dataset(rng, n=7, c=3, h=9, w=11, layout="NCHW"):
    shape = (n, c, h, w) if layout == "NCHW" else (n, h, w, c)
    return rng.integers(0, 256, shape, dtype=np.uint8), rng.integers(0, 6, (n, h, w), dtype=np.uint8)


def same_bits(got, expected):
    """Equal as float32, float16 or bfloat16 bits, in value order."""
    if isinstance(got, torch.Tensor):
        expected = torch.from_numpy(expected).to(got.dtype)
        assert torch.equal(got.contiguous().view(torch.int16), expected.contiguous().view(torch.int16))
    else:
        np.testing.assert_array_equal(got, expected.astype(got.dtype))


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("memory", ["NCHW", "NHWC"])
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("augment", [{}, AUGMENT], ids=["plain", "augmented"])
def test_equals_reference(backend: Backend, rng, layout, memory, channels, augment):
    images, codes = dataset(rng, c=channels, layout=layout)
    mean, std = [0.4, 0.5, 0.3, 0.6][:channels], [0.2, 0.3, 0.25, 0.5][:channels]
    index = np.array([3, 0, 3, 6, 1])
    kwargs = {"layout": layout, "mean": mean, "std": std, "seed": 5, "epoch": 2, **augment}
    for options in (
        {},
        {"codes": codes, "rate_index": 2},
        {"codes": codes, "rate_index": 2, "keep": True, "fill": 100.25},
    ):
        got = backend(rf.gather_batch, images, index, out_layout=memory, **options, **kwargs)
        same_bits(got, reference.gather_batch(images, index, **options, **kwargs))
        # The memory order asked for; NumPy arrays show it in their strides.
        if isinstance(got, np.ndarray) and backend.name != "cuda":
            dense = got if memory == "NCHW" else got.transpose(0, 2, 3, 1)
            assert dense.flags.c_contiguous


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("channels", [2, 3, 4, 5])
def test_channels_side_by_side_in_whole_fours(backend: Backend, rng, dtype, channels):
    images, codes = dataset(rng, h=8, w=12, c=channels, layout="NHWC")
    index = np.array([3, 0, 6])
    kwargs = {
        "mean": [0.4, 0.5, 0.3, 0.6, 0.2][:channels],
        "std": [0.2, 0.3, 0.25, 0.5, 0.1][:channels],
        "layout": "NHWC",
    }
    kwargs |= {"rate_index": 2, "seed": 5, **AUGMENT}
    tensors = [torch.from_numpy(a) for a in (images, index, codes)]
    got = backend(rf.gather_batch, *tensors, dtype=dtype, out_layout="NHWC", **kwargs)
    same_bits(got, reference.gather_batch(images, index, codes, **kwargs))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("memory", ["NCHW", "NHWC"])
def test_dtypes(backend: Backend, rng, dtype, memory):
    images, codes = dataset(rng, w=300, h=3)  # wider than a CPU segment
    index = np.arange(7)
    kwargs = {"codes": codes, "rate_index": 1, "mean": MEAN, "std": STD, **AUGMENT}
    tensors = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
    got = backend(
        rf.gather_batch, torch.from_numpy(images), torch.from_numpy(index), dtype=dtype, out_layout=memory, **tensors
    )
    expected = reference.gather_batch(images, index, **kwargs)
    if isinstance(got, torch.Tensor):
        assert str(got.dtype) == f"torch.{dtype}"
        assert got.is_contiguous(memory_format=torch.channels_last if memory == "NHWC" else torch.contiguous_format)
        assert torch.equal(got.float(), torch.from_numpy(expected).to(got.dtype).float())
    else:
        same_bits(got, expected)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("kind", [np.uint8, np.float16])
def test_imputed_dataset_replaces_the_fill(backend: Backend, rng, layout, kind):
    images, codes = dataset(rng, layout=layout)
    imputed = (rng.random(images.shape) * 255).astype(kind)
    kwargs = {
        "codes": codes,
        "rate_index": 3,
        "imputed": imputed,
        "layout": layout,
        "mean": MEAN,
        "std": STD,
        **AUGMENT,
    }
    same_bits(
        backend(rf.gather_batch, images, np.arange(7), **kwargs), reference.gather_batch(images, range(7), **kwargs)
    )


@pytest.mark.parametrize("width", [1, 5, 7, 8, 9, 15, 16, 17, 23, 24, 32, 41])
@pytest.mark.parametrize("removal", ["none", "fill", "keep", "uint8", "float16"])
def test_rgb_rows_stay_rgb(backend: Backend, rng, width, removal):
    """Pixels in, pixels out has its own CPU kernel, eight pixels at a time: all remainders, crops and mirrored rows."""
    images, codes = dataset(rng, n=9, h=5, w=width, layout="NHWC")
    options = (
        {}
        if removal == "none"
        else {"codes": codes, "rate_index": 2, "keep": removal == "keep", "fill": (9.5, 120, 255)}
    )
    if removal in ("uint8", "float16"):
        low, high = (0, 256) if removal == "uint8" else (-20, 300)
        options["imputed"] = rng.uniform(low, high, images.shape).astype(removal)
    kwargs = {"layout": "NHWC", "mean": MEAN, "std": STD, "pad": 3, "pad_value": (1, 2, 3), "flip": True, "seed": 1}
    for crop in (None, (8, width + 6), (2, max(1, width - 4))):
        options |= {"crop": crop, "random_crop": True}
        got = backend(rf.gather_batch, images, np.arange(9), out_layout="NHWC", **options, **kwargs)
        same_bits(got, reference.gather_batch(images, range(9), **options, **kwargs))


def test_tables_are_cached_only_for_plain_numbers(rng):
    """A changed array must not give the batch of the old one, and True is not 1."""
    images, _ = dataset(rng)
    mean = np.array(MEAN)
    before = rf.gather_batch(images, [0], mean=mean)
    mean += 0.25
    np.testing.assert_allclose(rf.gather_batch(images, [0], mean=mean), before - 0.25, atol=1e-6)
    rf.gather_batch(images, [0], std=1.0)
    with pytest.raises(TypeError, match="std must be a number, got True"):
        rf.gather_batch(images, [0], std=True)


def test_channel_codes(backend: Backend, rng):
    images, _ = dataset(rng)
    codes = rng.integers(0, 4, images.shape, dtype=np.uint8)
    got = backend(rf.gather_batch, images, np.arange(7), codes, 1, 0.0)
    same_bits(got, reference.gather_batch(images, range(7), codes, 1, 0.0))
    assert (got[codes <= 1] == 0).all()


@pytest.mark.parametrize("size", [(1, 1), (1, 13), (32, 32), (33, 47)])
@pytest.mark.parametrize("crop", [None, (1, 1)])
def test_sizes(backend: Backend, rng, size, crop):
    images, codes = dataset(rng, n=3, h=size[0], w=size[1])
    kwargs = {"codes": codes, "rate_index": 2, "crop": crop, **AUGMENT}
    same_bits(
        backend(rf.gather_batch, images, np.arange(3), **kwargs), reference.gather_batch(images, range(3), **kwargs)
    )


def test_centre_crop_without_augmentation(backend: Backend, rng):
    images, _ = dataset(rng, h=10, w=12)
    got = backend(rf.gather_batch, images, np.arange(7), crop=(6, 8))
    np.testing.assert_array_equal(np.rint(np.asarray(got) * 255), images[:, :, 2:8, 2:10])


def test_empty_batch(backend: Backend, rng):
    images, _ = dataset(rng)
    assert backend(rf.gather_batch, images, np.zeros(0, np.int64)).shape == (0, 3, 9, 11)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 19), min_size=1, max_size=30),
    st.integers(0, 2**63 - 1),
    st.integers(0, 2**48 - 1),
    st.integers(1, 3),
)
def test_a_sample_looks_the_same_in_any_batch(index, seed, epoch, threads):
    rng = np.random.default_rng(1)
    images, codes = dataset(rng, n=20)
    kwargs = {"codes": codes, "rate_index": 2, "seed": seed, "epoch": epoch, "mean": MEAN, "std": STD, **AUGMENT}
    rf.set_num_threads(threads)
    batch = rf.gather_batch(images, np.array(index), **kwargs)
    for position, sample in enumerate(index):
        np.testing.assert_array_equal(batch[position], rf.gather_batch(images, [sample], **kwargs)[0])


def test_ids_key_the_randomness(rng):
    images, codes = dataset(rng, n=20)
    part = slice(10, 20)
    kwargs = {"rate_index": 1, "seed": 3, **AUGMENT}
    whole = rf.gather_batch(images, np.arange(10, 20), codes, **kwargs)
    streamed = rf.gather_batch(images[part], np.arange(10), codes[part], ids=np.arange(10, 20), **kwargs)
    np.testing.assert_array_equal(streamed, whole)


def test_augmentation_is_uniform():
    """Every crop position and both flips come up, about equally often, and change with epoch and seed."""
    ramp = np.arange(25, dtype=np.uint8).reshape(1, 1, 5, 5)
    images = np.repeat(ramp, 4000, 0)
    x = rf.gather_batch(images, np.arange(4000), crop=3, random_crop=True, flip=True, std=1 / 255.0)
    corner = np.rint(x[:, 0, 0, 0]).astype(int)
    flipped = x[:, 0, 0, 0] > x[:, 0, 0, 2]
    assert abs(flipped.mean() - 0.5) < 0.04
    first = np.where(flipped, corner - 2, corner)
    values, counts = np.unique(first, return_counts=True)
    assert values.tolist() == [0, 1, 2, 5, 6, 7, 10, 11, 12]
    assert counts.min() > 4000 / 9 * 0.8
    for change in ({"epoch": 1}, {"seed": 1}):
        other = rf.gather_batch(images, np.arange(4000), crop=3, random_crop=True, flip=True, std=1 / 255.0, **change)
        assert (other != x).any(axis=(1, 2, 3)).mean() > 0.8


def test_removal_is_in_original_coordinates(rng):
    """Augmenting after removal = removing, storing, then augmenting."""
    images, codes = dataset(rng)
    fill = (10, 20, 30)
    stored = np.where((codes <= 2)[:, None], np.array(fill, np.uint8)[:, None, None], images)
    np.testing.assert_array_equal(
        rf.gather_batch(images, np.arange(7), codes, 2, fill, **AUGMENT),
        rf.gather_batch(stored, np.arange(7), **AUGMENT),
    )


@pytest.mark.parametrize("j", [-1, 0, 3, 255])
def test_keep_is_the_complement(rng, j):
    images, codes = dataset(rng)
    images = np.maximum(images, 1)
    removed = rf.gather_batch(images, np.arange(7), codes, j, 0) == 0
    kept = rf.gather_batch(images, np.arange(7), codes, j, 0, keep=True) == 0
    assert (removed ^ kept).all()
    assert (removed == (codes.astype(int) <= j)[:, None]).all()


def test_equals_torchvision_on_real_images():
    """The same crops and flips through torchvision v2 functions and Normalize, on CIFAR-10."""
    from roarfast._torchvision import import_torchvision

    F = import_torchvision("transforms.v2.functional")
    data = np.load(shared_data("cifar10_test_2k.npz"))["images"][:64]
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 5, data.shape[:3], dtype=np.uint8)
    fill = np.array([125, 123, 114], np.uint8)
    got = rf.gather_batch(
        torch.from_numpy(data),
        torch.arange(64),
        torch.from_numpy(codes),
        2,
        fill.tolist(),
        layout="NHWC",
        pad=4,
        random_crop=True,
        flip=True,
        mean=MEAN,
        std=STD,
        seed=9,
        epoch=4,
    )
    for i in range(64):
        removed = np.where((codes[i] <= 2)[..., None], fill, data[i])
        x = F.pad(torch.from_numpy(removed).permute(2, 0, 1), [4, 4, 4, 4])
        row, column, flipped = reference.placement(9, 4, i, 8, 8)
        x = F.crop(x, row, column, 32, 32)
        x = F.horizontal_flip(x) if flipped else x
        x = F.normalize(F.to_dtype(x, torch.float32, scale=True), list(MEAN), list(STD))
        torch.testing.assert_close(got[i], x, atol=2e-6, rtol=2e-6)


def test_out_and_non_contiguous_inputs(rng):
    images, codes = dataset(rng)
    expected = rf.gather_batch(images, np.arange(7), codes, 2)
    strided = np.ascontiguousarray(images.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
    np.testing.assert_array_equal(rf.gather_batch(strided, np.arange(7), codes, 2), expected)
    out = np.empty_like(expected)
    assert rf.gather_batch(images, np.arange(7), codes, 2, out=out) is out
    np.testing.assert_array_equal(out, expected)
    tensors = [torch.from_numpy(a) for a in (images, np.arange(7), codes)]
    for memory, fmt in (("NCHW", torch.contiguous_format), ("NHWC", torch.channels_last)):
        target = torch.empty(expected.shape).to(memory_format=fmt)
        assert rf.gather_batch(*tensors, 2, out_layout=memory, out=target) is target
        np.testing.assert_array_equal(target.numpy(), expected)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "options", [{}, {"keep": True, "fill": 9.0}, {"imputed": "uint8"}, {"imputed": "float16"}, AUGMENT], ids=str
)
@pytest.mark.parametrize("w", [11, 12])  # of 9 rows: CUDA has kernels of its own for whole fours
def test_a_rate_for_each_row(backend: Backend, rng, w, layout, channels, options):
    """Bit for bit the rows of one call per rate."""
    images, codes = dataset(rng, c=channels, w=w, layout=layout)
    if "imputed" in options:
        options = {"imputed": rng.uniform(0, 256, images.shape).astype(options["imputed"])}
    index, rates = np.array([3, 3, 0, 6, 3, 1]), np.array([-1, 2, 5, 0, 4, 255])
    kwargs = {"layout": layout, "out_layout": layout, "mean": 0.4, "std": 0.2, "seed": 3, **options}
    together = backend(rf.gather_batch, images, index, codes, rates, **kwargs)
    for row, rate in enumerate(rates):
        alone = backend(rf.gather_batch, images, index, codes, int(rate), **kwargs)
        np.testing.assert_array_equal(together[row], alone[row])


def test_bad_rates_of_rows():
    codes = np.zeros((4, 8, 8), np.uint8)
    with pytest.raises(
        ValueError, match=r"rate_index must be one integer, or one per sample of the batch \(2\), got 3"
    ):
        rf.gather_batch(IMAGES, [0, 1], codes, [1, 2, 3])
    with pytest.raises(ValueError, match=r"rate_index must be in \[-1, 255\], got values from 1 to 256"):
        rf.gather_batch(IMAGES, [0, 1], codes, [1, 256])


def test_torch_op_is_well_behaved(rng):
    from torch.library import opcheck

    images, codes = (torch.from_numpy(a) for a in dataset(rng, n=3))
    numbers = [1.0] * 12  # mean, std, fill, padding of three channels
    for memory in ("NCHW", "NHWC"):
        args = (
            images,
            torch.tensor([0, 2]),
            numbers,
            None,
            codes,
            None,
            None,
            "NCHW",
            1,
            False,
            1,
            8,
            8,
            True,
            True,
            1,
            2,
            "float32",
            memory,
        )
        opcheck(torch.ops.roarfast.gather_batch.default, args)


IMAGES = np.zeros((4, 3, 8, 8), np.uint8)


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"index": [0, 4]}, ValueError, r"index\[1\] must be in \[0, 4\), got 4"),
        ({"index": [0, 4], "check_index": True}, ValueError, r"index must be in \[0, 4\), got values from 0 to 4"),
        ({"index": [-1]}, ValueError, r"index\[0\] must be in \[0, 4\), got -1"),
        ({"index": np.zeros((2, 2), np.int64)}, ValueError, r"index must be \[B\]"),
        ({"images": IMAGES.astype(np.float32)}, TypeError, "images must have dtype uint8"),
        ({"images": IMAGES[0]}, ValueError, "images must be"),
        ({"rate_index": 1}, ValueError, "rate_index needs codes"),
        ({"codes": IMAGES[:, 0]}, ValueError, "codes needs rate_index"),
        ({"codes": IMAGES[:3, 0], "rate_index": 1}, ValueError, "codes must be"),
        ({"codes": IMAGES[:, 0], "rate_index": 256}, ValueError, r"rate_index must be .*\[-1, 255\], got 256"),
        ({"imputed": IMAGES}, ValueError, "imputed needs codes"),
        (
            {"codes": IMAGES[:, 0], "rate_index": 1, "imputed": IMAGES[:1]},
            ValueError,
            "imputed must be shaped like images",
        ),
        ({"crop": 9}, ValueError, "crop must fit the padded image 8x8, got 9x9"),
        ({"pad": -1}, ValueError, "pad must be"),
        ({"std": 0.0}, ValueError, "std must be > 0"),
        ({"mean": [0.1, 0.2]}, ValueError, r"mean must be one number or one per channel \(3\), got 2"),
        ({"dtype": "float64"}, ValueError, "dtype must be one of"),
        ({"dtype": "bfloat16"}, TypeError, "NumPy has no bfloat16"),
        ({"layout": "CHW"}, ValueError, "layout must be one of"),
        ({"ids": np.zeros(3, np.int64)}, ValueError, r"ids must have as many entries as index \(1\), got 3"),
        ({"seed": -1}, ValueError, "seed must be"),
    ],
)
def test_bad_arguments(kwargs, error, message):
    arguments = {"images": IMAGES, "index": [0], **kwargs}
    with pytest.raises(error, match=message):
        rf.gather_batch(**arguments)


def test_cuda_kernel_marks_unknown_samples(rng):
    """The device cannot raise: the sample is NaN, its neighbours are right, nothing is read out of bounds."""
    from roarfast import _backend

    try:
        _backend.simt()
    except _backend.BackendError as error:
        pytest.skip(str(error))
    images, _ = dataset(rng)
    got = Backend("simt")(rf.gather_batch, images, np.array([0, 7, -1, 2]))
    assert np.isnan(got[1:3]).all()
    np.testing.assert_array_equal(got[[0, 3]], rf.gather_batch(images, np.array([0, 2])))
