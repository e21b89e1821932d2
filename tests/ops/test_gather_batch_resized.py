"""gather_batch(scale=, ratio=): the bits of the reference on every backend, and torchvision's RandomResizedCrop."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.backends import Backend
from helpers.shared_data import shared_data

import roarfast as rf
from roarfast.reference import gather_batch as reference

torch = pytest.importorskip("torch")

MEAN, STD = (0.49, 0.48, 0.45), (0.25, 0.24, 0.26)
SCALE, RATIO = (0.08, 1.0), (3 / 4, 4 / 3)
INDEX = np.array([3, 0, 3, 6, 1])


def dataset(rng, n=7, c=3, h=9, w=11, layout="NCHW"):
    shape = (n, c, h, w) if layout == "NCHW" else (n, h, w, c)
    return rng.integers(0, 256, shape, dtype=np.uint8), rng.integers(0, 6, (n, h, w), dtype=np.uint8)


def functional():
    from roarfast._torchvision import import_torchvision

    return import_torchvision("transforms.v2.functional")


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("memory", ["NCHW", "NHWC"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_equals_reference(backend: Backend, rng, layout, memory, channels):
    images, codes = dataset(rng, c=channels, layout=layout)
    mean, std = [0.4, 0.5, 0.3, 0.6][:channels], [0.2, 0.3, 0.25, 0.5][:channels]
    kwargs = {"layout": layout, "mean": mean, "std": std, "seed": 5, "epoch": 2, "scale": SCALE, "flip": True}
    for options in (
        {},
        {"codes": codes, "rate_index": 2, "crop": (6, 8)},
        {"codes": codes, "rate_index": 2, "keep": True, "fill": 100.25, "crop": (20, 17), "ratio": (0.2, 5.0)},
    ):
        got = backend(rf.gather_batch, images, INDEX, out_layout=memory, **options, **kwargs)
        np.testing.assert_array_equal(got, reference.gather_batch(images, INDEX, **options, **kwargs))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", [None, np.uint8, np.float16])
def test_dtypes_and_imputed_images(backend: Backend, rng, dtype, kind):
    images, codes = dataset(rng, layout="NHWC")
    kwargs = {"codes": codes, "rate_index": 2, "layout": "NHWC", "mean": MEAN, "std": STD, "scale": (0.3, 0.9)}
    if kind is not None:
        kwargs["imputed"] = (rng.random(images.shape) * 255).astype(kind)
    tensors = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in kwargs.items()}
    got = backend(rf.gather_batch, torch.from_numpy(images), torch.from_numpy(INDEX), dtype=dtype, crop=5, **tensors)
    expected = torch.from_numpy(reference.gather_batch(images, INDEX, crop=(5, 5), **kwargs))
    assert torch.equal(torch.as_tensor(got).float(), expected.to(getattr(torch, dtype)).float())


def test_channel_codes_and_rates_of_rows(backend: Backend, rng):
    images, _ = dataset(rng)
    codes = rng.integers(0, 4, images.shape, dtype=np.uint8)
    got = backend(rf.gather_batch, images, INDEX, codes, 1, 7.0, scale=SCALE)
    np.testing.assert_array_equal(got, reference.gather_batch(images, INDEX, codes, 1, 7.0, scale=SCALE))
    rates = np.array([-1, 2, 255, 0, 1])
    together = backend(rf.gather_batch, images, INDEX, codes, rates, 7.0, scale=SCALE)
    for row, rate in enumerate(rates):
        alone = reference.gather_batch(images, INDEX[row : row + 1], codes, int(rate), 7.0, scale=SCALE)
        np.testing.assert_array_equal(together[row], alone[0])


@pytest.mark.parametrize("size", [(1, 1), (1, 13), (61, 2), (33, 47)])
@pytest.mark.parametrize("crop", [(1, 1), (7, 5), (16, 31)])
def test_sizes(backend: Backend, rng, size, crop):
    """Crops that shrink by a lot, that grow, and images too narrow for the ratios asked for."""
    images, codes = dataset(rng, n=3, h=size[0], w=size[1])
    kwargs = {"codes": codes, "rate_index": 2, "crop": crop, "scale": (0.5, 1.0), "seed": 3}
    got = backend(rf.gather_batch, images, np.arange(3), **kwargs)
    np.testing.assert_array_equal(got, reference.gather_batch(images, range(3), **kwargs))


def test_an_unknown_sample_is_nan_on_cuda(rng):
    from roarfast import _backend

    try:
        _backend.simt()
    except _backend.BackendError as error:
        pytest.skip(str(error))
    images, _ = dataset(rng)
    got = Backend("simt")(rf.gather_batch, images, np.array([0, 7, -1, 2]), scale=SCALE)
    assert np.isnan(got[1:3]).all()
    np.testing.assert_array_equal(got[[0, 3]], rf.gather_batch(images, np.array([0, 2]), scale=SCALE))


@pytest.mark.parametrize("out", [16, 32, 50])
def test_at_most_one_level_from_torchvision(out):
    """`resized_crop` of the same boxes: on bytes, which it rounds twice, and on floats."""
    F = functional()
    data = np.load(shared_data("cifar10_test_2k.npz"))["images"][:200]
    codes = np.random.default_rng(0).integers(0, 5, data.shape[:3], dtype=np.uint8)
    fill = np.array([125, 123, 114], np.uint8)
    got = rf.gather_batch(
        data,
        np.arange(200),
        codes,
        2,
        fill.tolist(),
        layout="NHWC",
        crop=out,
        scale=SCALE,
        flip=True,
        std=1 / 255,
        seed=9,
        epoch=4,
    )
    worst = 0.0
    for i in range(200):
        removed = np.where((codes[i] <= 2)[..., None], fill, data[i])
        x = torch.from_numpy(removed).permute(2, 0, 1)
        box = reference.resized_box(9, 4, i, (32, 32), SCALE, RATIO)
        whole = F.resized_crop(x, *box, [out, out])
        exact = F.resized_crop(x.float(), *box, [out, out])
        if reference.placement(9, 4, i, 0, 0)[2]:
            whole, exact = F.horizontal_flip(whole), F.horizontal_flip(exact)
        worst = max(worst, float(np.abs(np.rint(got[i]) - whole.numpy()).max()))  # theirs are whole levels
        np.testing.assert_allclose(got[i], exact.numpy(), atol=2e-3)
    assert worst <= 1.0


def test_boxes_are_distributed_as_torchvisions():
    """Areas, ratios and middles of 4000 boxes each: the same quantiles within sampling error."""
    from roarfast._torchvision import import_torchvision

    transforms = import_torchvision("transforms")
    torch.manual_seed(0)
    image = torch.zeros(3, 224, 224)
    theirs = np.array([transforms.RandomResizedCrop.get_params(image, list(SCALE), list(RATIO)) for _ in range(4000)])
    ours = np.array([reference.resized_box(1, 0, i, (224, 224), SCALE, RATIO) for i in range(4000)])

    def quantities(boxes):
        y, x, h, w = boxes.T.astype(float)
        return np.stack([h * w, np.log(w / h), y + h / 2, x + w / 2])

    for a, b in zip(quantities(ours), quantities(theirs)):
        grid = np.sort(np.concatenate([a, b]))
        distance = np.abs(
            np.searchsorted(np.sort(a), grid, "right") - np.searchsorted(np.sort(b), grid, "right")
        ).max() / len(a)
        assert distance < 1.95 * np.sqrt(2 / len(a))  # Kolmogorov and Smirnov, p = 0.001
    narrow = reference.resized_box(1, 0, 0, (100, 10), (0.9, 1.0), (0.5, 2.0))
    torch.manual_seed(0)
    assert narrow == tuple(transforms.RandomResizedCrop.get_params(torch.zeros(1, 100, 10), [0.9, 1.0], [0.5, 2.0]))


def test_a_crop_of_everything_is_the_image(rng):
    images, _ = dataset(rng, h=12, w=12)
    whole = rf.gather_batch(images, INDEX, scale=(1, 1), ratio=(1, 1), mean=MEAN, std=STD)
    np.testing.assert_allclose(whole, rf.gather_batch(images, INDEX, mean=MEAN, std=STD), atol=1e-5)


def test_a_sample_looks_the_same_in_any_batch_and_on_any_number_of_threads(rng):
    images, codes = dataset(rng, n=20, h=70, w=65)
    kwargs = {"codes": codes, "rate_index": 2, "scale": SCALE, "seed": 2**62, "epoch": 2**44 - 1, "flip": True}
    batch = rf.gather_batch(images, np.arange(20), **kwargs)
    for threads in (1, 3):
        rf.set_num_threads(threads)
        np.testing.assert_array_equal(rf.gather_batch(images, [7, 19], **kwargs), batch[[7, 19]])
    part = rf.gather_batch(images[10:], np.arange(10), **kwargs | {"codes": codes[10:], "ids": np.arange(10, 20)})
    np.testing.assert_array_equal(part, batch[10:])
    assert (rf.gather_batch(images, np.arange(20), **kwargs | {"epoch": 1}) != batch).any(axis=(1, 2, 3)).all()


def test_torch_op_is_well_behaved(rng):
    from torch.library import opcheck

    images, codes = (torch.from_numpy(a) for a in dataset(rng, n=3))
    for memory in ("NCHW", "NHWC"):
        args = (
            images,
            torch.tensor([0, 2]),
            [1.0] * 12,
            None,
            codes,
            None,
            None,
            "NCHW",
            1,
            False,
            8,
            6,
            [0.1, 1.0, 0.75, 1.25, 0.5],
            True,
            1,
            2,
            "float32",
            memory,
        )
        opcheck(torch.ops.roarfast.gather_batch_resized.default, args)


IMAGES = np.zeros((4, 3, 8, 8), np.uint8)


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"ratio": (1, 2)}, ValueError, "ratio needs scale"),
        ({"scale": (0.0, 1)}, ValueError, r"scale must be two rising numbers in \(0, 1\]"),
        ({"scale": (0.5, 0.2)}, ValueError, "scale must be two rising numbers"),
        ({"scale": (0.5, 2)}, ValueError, r"scale must be in \[0, 1\], got 2"),
        ({"scale": 0.5}, TypeError, r"scale must be two numbers \(low, high\), got 0.5"),
        ({"scale": SCALE, "ratio": (0.0, 1)}, ValueError, r"ratio must be in \[0.001, 1000\], got 0"),
        ({"scale": SCALE, "ratio": (1, 2, 3)}, ValueError, "ratio must be two rising numbers"),
        ({"scale": SCALE, "pad": 2}, ValueError, "pad must be 0, got 2"),
        ({"scale": SCALE, "crop": 20000}, ValueError, "at most 16384 with scale, got 8x8 to 20000x20000"),
        ({"scale": SCALE, "epoch": 2**44}, ValueError, "epoch must be"),
        ({"scale": SCALE, "index": [4]}, ValueError, r"index\[0\] must be in \[0, 4\), got 4"),
    ],
)
def test_bad_arguments(kwargs, error, message):
    with pytest.raises(error, match=message):
        rf.gather_batch(**{"images": IMAGES, "index": [0], **kwargs})
