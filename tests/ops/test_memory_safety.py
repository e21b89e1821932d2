"""No call from Python may crash the interpreter, read beyond an array or write where it reads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import roarfast as rf
from roarfast import _backend

RNG = np.random.default_rng(7)


def maps(*shape: int) -> Any:
    return RNG.standard_normal(shape or (3, 9, 11)).astype(np.float32)


IMAGES = RNG.integers(0, 256, (4, 3, 8, 9), dtype=np.uint8)
CODES = RNG.integers(0, 4, (4, 8, 9), dtype=np.uint8)
MASK = RNG.random((4, 8, 9)) < 0.4
X = RNG.standard_normal((4, 3, 8, 9)).astype(np.float32)
INDEX = np.array([3, 0, 2, 2, 1])

# Every op that takes out=: its inputs by name, and the call.
Call = Callable[..., Any]
WITH_OUT: dict[str, tuple[dict[str, Any], Call]] = {
    "gaussian_filter": ({"a": maps()}, lambda a, out=None: rf.gaussian_filter(a, 1.3, out=out)),
    "maximum_filter": ({"a": maps()}, lambda a, out=None: rf.maximum_filter(a, 3, out=out)),
    "sobel": ({"a": maps()}, lambda a, out=None: rf.sobel(a, out=out)),
    "total_variation": ({"a": maps()}, lambda a, out=None: rf.total_variation(a, out=out)),
    "percentile": ({"a": maps()}, lambda a, out=None: rf.percentile(a, [10, 50], out=out)),
    "removal_mask": (
        {"a": maps(), "index": np.array([5, 9, 2])},
        lambda a, index, out=None: rf.removal_mask(a, 0.4, index=index, out=out),
    ),
    "rank_codes": (
        {"a": maps(), "index": np.array([5, 9, 2])},
        lambda a, index, out=None: rf.rank_codes(a, (0.2, 0.6), index=index, out=out),
    ),
    "removed_fraction": ({"codes": CODES}, lambda codes, out=None: rf.removed_fraction(codes, 1, out=out)),
    "fill": (
        {"x": X, "mask": MASK, "index": INDEX[:4]},
        lambda x, mask, index, out=None: rf.fill(x, mask, "noise", index=index, out=out),
    ),
    "fill uint8": (
        {"x": IMAGES, "mask": MASK.view(np.uint8)},
        lambda x, mask, out=None: rf.fill(x, mask, 99, out=out),
    ),
    "remove": ({"x": X, "a": maps(4, 8, 9)}, lambda x, a, out=None: rf.remove(x, a, 0.4, out=out)),
    "philox_normal": ({"index": INDEX}, lambda index, out=None: rf.philox_normal(index, (3, 4), out=out)),
    "impute_linear": (
        {"x": X, "mask": MASK, "index": INDEX[:4]},
        lambda x, mask, index, out=None: rf.impute_linear(x, mask, index=index, out=out),
    ),
    "gather_batch": (
        {"images": IMAGES, "index": INDEX, "codes": CODES, "imputed": IMAGES[::-1].copy(), "ids": INDEX + 9},
        lambda images, index, codes, imputed, ids, out=None: rf.gather_batch(
            images, index, codes, 1, imputed=imputed, ids=ids, out=out
        ),
    ),
}


def in_one_buffer(array: Any, want: Any, offset: int) -> tuple[Any, Any]:
    """A copy of `array` and room for `want` in one piece of memory, `offset` bytes apart."""
    buffer = np.zeros(array.nbytes + want.nbytes + 64, np.uint8)
    copy = buffer[: array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    step = offset * want.dtype.itemsize
    return copy, buffer[step : step + want.nbytes].view(want.dtype).reshape(want.shape)


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("op", WITH_OUT)
def test_out_may_overlap_any_input(op: str, library: str) -> None:
    inputs, call = WITH_OUT[op]
    want = call(**inputs)
    for name, array in inputs.items():
        for offset in (0, 1, 3):
            copy, out = in_one_buffer(array, want, offset)
            given: dict[str, Any] = inputs | {name: copy}
            if library == "torch":
                torch = pytest.importorskip("torch")
                # Two tensors with a storage each, of one memory: from_numpy knows nothing of the other.
                given = {key: torch.from_numpy(value) for key, value in given.items()}
                result = call(**given, out=torch.from_numpy(out)).numpy()
            else:
                result = call(**given, out=out)
            np.testing.assert_array_equal(result, want, err_msg=f"out over {name}, {offset} elements on")
            np.testing.assert_array_equal(out, want)


def test_impute_dataset_refuses_to_write_over_what_it_reads() -> None:
    buffer = np.zeros(3 * IMAGES.nbytes, np.uint8)
    images = buffer[: IMAGES.nbytes].reshape(IMAGES.shape)
    images[...] = IMAGES
    for start in (0, 5, IMAGES.nbytes - 1):
        out = buffer[start : start + IMAGES.nbytes].reshape(IMAGES.shape)
        with pytest.raises(ValueError, match="out must not share memory with images or codes"):
            rf.impute_dataset(images, CODES, [0.3, 0.6], 0, progress=False, out=out)
    codes = buffer[: CODES.nbytes].reshape(CODES.shape)
    with pytest.raises(ValueError, match="out must not share memory"):
        rf.impute_dataset(IMAGES, codes, [0.3], 0, progress=False, out=buffer[: IMAGES.nbytes].reshape(IMAGES.shape))
    want = rf.impute_dataset(IMAGES, CODES, [0.3], 0, progress=False)
    out = buffer[-IMAGES.nbytes :].reshape(IMAGES.shape)
    np.testing.assert_array_equal(rf.impute_dataset(IMAGES, CODES, [0.3], 0, progress=False, out=out), want)


def test_an_index_that_changes_meanwhile_is_read_once() -> None:
    """Another thread writes nonsense to the index: batches are right or refused, and never read beyond the images."""
    images = RNG.integers(0, 256, (8, 3, 32, 32), dtype=np.uint8)
    index = np.arange(256) % 8
    good = index.copy()
    stop = threading.Event()

    def spoil() -> None:
        while not stop.is_set():
            index[:] = 2**40
            index[:] = good

    thread = threading.Thread(target=spoil)
    thread.start()
    try:
        for _ in range(300):
            try:
                rf.gather_batch(images, index)
            except ValueError as error:
                assert "index" in str(error)
    finally:
        stop.set()
        thread.join()


def test_index_beside_out() -> None:
    buffer = np.zeros(800_000, np.uint8)
    index = buffer[:512].view(np.int64)
    index[:] = np.arange(64) % 4
    images = RNG.integers(0, 256, (4, 3, 32, 32), dtype=np.uint8)
    want = rf.gather_batch(images, index.copy())
    out = buffer[: want.nbytes].view(np.float32).reshape(want.shape)
    np.testing.assert_array_equal(rf.gather_batch(images, index, out=out), want)


@pytest.mark.parametrize("op", WITH_OUT)
def test_unaligned_memory_is_copied(op: str) -> None:
    """Kernels load whole numbers: under the sanitizer an address between two of them is an error."""
    inputs, call = WITH_OUT[op]
    want = call(**inputs)

    def unaligned(array: Any) -> Any:
        bytes_ = np.zeros(array.nbytes + 1, np.uint8)
        moved = bytes_[1:].view(array.dtype).reshape(array.shape)
        moved[...] = array
        return moved

    moved = {name: unaligned(array) for name, array in inputs.items()}
    np.testing.assert_array_equal(call(**moved), want)
    out = unaligned(np.zeros_like(want))
    assert call(**inputs, out=out) is out
    np.testing.assert_array_equal(out, want)


def test_radii_beyond_any_image_are_refused() -> None:
    a = np.ones((5, 5), np.float32)
    for arguments in ({"sigma": 1, "radius": 2**61}, {"sigma": 1, "radius": 2**20 + 1}, {"sigma": 1, "radius": 2**70}):
        with pytest.raises(ValueError, match=r"radius must be an integer in \[0, 1048576\]"):
            rf.gaussian_filter(a, **arguments)
    for sigma in (2.0**60, 1e300, 2.0**19):
        with pytest.raises(ValueError, match=r"sigma \* truncate must be at most 1048576 pixels"):
            rf.gaussian_filter(a, sigma)
    with pytest.raises(ValueError, match="size must be an integer in"):
        rf.maximum_filter(a, 2**40)
    with pytest.raises(ValueError, match=r"pad must be an integer in \[0, 1073741824\]"):
        rf.gather_batch(IMAGES, [0], pad=2**61)
    np.testing.assert_allclose(rf.gaussian_filter(a, 1, radius=50_000), 1, rtol=1e-5)


def test_bools_of_other_bytes_count_as_true() -> None:
    odd = np.array([[0, 255, 1, 255], [7, 0, 0, 2]], np.uint8).view(bool)
    clean = odd.view(np.uint8) != 0
    torch = pytest.importorskip("torch")
    for call in (
        rf.total_variation,
        lambda a: rf.maximum_filter(a, 3),
        lambda a: rf.percentile(a, [20, 70]),
        lambda a: rf.removal_mask(a, 0.4),
        lambda a: rf.rank_codes(a, (0.3, 0.6)),
        lambda a: (
            rf.remove(X[:1, :, :2, :4], a[None], 0.4)
            if isinstance(a, np.ndarray)
            else rf.remove(torch.from_numpy(X[:1, :, :2, :4].copy()), a[None], 0.4)
        ),
    ):
        np.testing.assert_array_equal(call(odd), call(clean))
        np.testing.assert_array_equal(np.asarray(call(torch.from_numpy(odd))), call(clean))


def test_null_pointers_are_refused_by_the_kernels() -> None:
    """As a caller of the C API would: nothing between it and the kernel."""
    kernels = _backend.cpu()
    full = np.zeros(64, np.float64)
    with pytest.raises(ValueError, match="pixel_random: an array is null"):
        kernels.pixel_random(None, 2, 3, 0, None, 0)
    with pytest.raises(ValueError, match="block_random: an array is null"):
        kernels.block_random(None, 2, 3, 3, 0.5, 0, None, 0)
    with pytest.raises(ValueError, match="rank_codes: an array is null"):
        kernels.rank_codes(None, full, 2, 1, 4, np.array([0.5]), 1, 0, 0, 0, None, None, full, 0)
    with pytest.raises(ValueError, match="removed_fraction: an array is null"):
        kernels.removed_fraction(None, full, 2, 4, 1, 0)
    kernels.pixel_random(None, 0, 3, 0, None, 0)
    kernels.removed_fraction(None, None, 0, 4, 1, 0)


def test_flags_indices_and_numbers_that_only_look_right_are_refused() -> None:
    a = maps()
    for call, message in (
        (lambda: rf.gather_batch(IMAGES, [1.9, 2.7]), "index must hold integers"),
        (lambda: rf.gather_batch(IMAGES, ["3"]), "index must hold integers"),
        (lambda: rf.gather_batch(IMAGES, [True, False]), "index must hold integers"),
        (lambda: rf.gather_batch(IMAGES, [0], flip="no"), "flip must be True or False, got 'no'"),
        (lambda: rf.removal_mask(a, 0.5, keep="no"), "keep must be True or False"),
        (lambda: rf.removal_mask(a, np.complex64(0.5 + 9j)), "drop must be a number"),
        (lambda: rf.removal_mask(a, np.True_), "drop must be a number"),
        (lambda: rf.removal_mask(a, np.array([0.1, 0.2])), "drop must be a number"),
        (lambda: rf.removal_mask(a, 0.5, seed=np.array([1, 2])), "seed must be an integer"),
        (lambda: rf.removal_mask(np.ma.masked_array(a), 0.5), "a must not be a masked array"),
        (lambda: rf.fill(X, MASK, np.datetime64("2020-01-01")), "value must be a number"),
        (lambda: rf.philox_normal(INDEX, b"\x02\x02"), "shape must be a sequence of sizes"),
        (lambda: rf.philox_normal(INDEX, 5), "shape must be a sequence of sizes"),
        (lambda: rf.rank_codes(a, np.array(0.3)), "drops must be a sequence of rates"),
        (lambda: rf.impute_dataset(IMAGES, CODES, 0.5), "drops must be a sequence of rates"),
        (lambda: rf.impute_dataset(IMAGES, CODES, [0.5], noise=None), "noise must be a number"),
        (lambda: rf.impute_dataset(IMAGES, CODES, [0.5], out=0.3), "out must be a NumPy array"),
        (lambda: rf.impute_dataset(IMAGES[:0], CODES[:0], [0.5], tol=7.0), "tol must be in"),
        (lambda: rf.sobel(a, mode=["reflect"]), "mode must be one border mode"),
        (lambda: rf.sobel(a, mode=[["reflect"], 3]), "mode must be one of"),
        (lambda: rf.sobel(a, mode={}), "mode must be one border mode"),
        (lambda: rf.total_variation(a, kind={}), "kind must be one of"),
        (lambda: rf.fill(X, MASK, layout=[]), "layout must be one of"),
        (lambda: rf.gaussian_filter(a, 1, radius=2**64), "radius must be an integer"),
        (lambda: rf.philox_normal(INDEX, (2,), draw=2**64), "draw must be an integer"),
        (
            lambda: rf.gather_batch(IMAGES, [0], layout="NCHW", out_layout="NHWC", out=np.zeros((1, 1, 3, 8, 9), "f4")),
            "out",
        ),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()
    ids = np.array([2**63], np.uint64)
    with pytest.raises(ValueError, match=r"index must be below 2\^63"):
        rf.removal_mask(a[:1], 0.5, index=ids)


def test_rates_and_codes_beside_out() -> None:
    """Inputs that came after F6 was fixed: rates per sample of a batch, codes of sums."""
    buffer = np.zeros(800_000, np.uint8)
    rates = buffer[:32].view(np.int64)
    rates[:] = [0, 1, 2, -1]
    images = RNG.integers(0, 256, (4, 3, 8, 9), dtype=np.uint8)
    want = rf.gather_batch(images, [0, 1, 2, 3], CODES, rates.copy())
    out = buffer[: want.nbytes].view(np.float32).reshape(want.shape)
    np.testing.assert_array_equal(rf.gather_batch(images, [0, 1, 2, 3], CODES, rates, out=out), want)
    codes, a = buffer[: CODES.size].reshape(CODES.shape), maps(*CODES.shape)
    codes[...] = CODES
    sums = rf.code_sums(a, CODES, 5)
    out = buffer[: sums.nbytes].view(np.float64).reshape(sums.shape)
    np.testing.assert_array_equal(rf.code_sums(a, codes, 5, out=out), sums)


def test_values_that_were_accepted_or_refused_without_a_name() -> None:
    a = maps()
    for call, message in (
        (lambda: rf.distance_transform(MASK, squared="no"), "squared must be True or False"),
        (lambda: rf.impute_linear(X, MASK, check_result=[1]), "check_result must be True or False"),
        (lambda: rf.fill(X, MASK, "zero", sigma=b""), "sigma must be a number"),
        (lambda: rf.noise_fill(X, MASK, mean="x"), "^mean must be a number"),
        (lambda: rf.noise_fill(X, MASK, std=-1.0), "^std must be >= 0"),
        (lambda: rf.pixel_random((1, 2, 2), index=bytearray(b"x")), "index must hold integers, got bytearray"),
        (lambda: rf.aggregate_channels(X, 3), "aggregate must look like"),
        (lambda: rf.aggregate_channels(X, axis=0.5), "axis must be an integer"),
        (lambda: rf.gather_batch(IMAGES[:0], [0]), "index must be empty if images hold none"),
        (
            lambda: rf.impute_dataset(IMAGES, CODES, [0.3], [], progress=False),
            "rate_index must have at least one position",
        ),
        (lambda: rf.percentile(a[:, :0], 50), "a must have at least one feature"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()
    swapped = rf.aggregate_channels(X.astype(X.dtype.newbyteorder()), "none(raw)")
    assert swapped.dtype == X.dtype and swapped.dtype.isnative


# torch


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


def test_meta_and_fake_tensors(torch: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    for make in (lambda **how: rf.pixel_random((1, 2, 2), **how), lambda **how: rf.block_random((1, 2, 2), 0.5, **how)):
        assert make(device="meta").is_meta
        with pytest.raises(ValueError, match="device must be one that torch has here, got 'nowhere'"):
            make(device="nowhere")
        with FakeTensorMode():
            assert make(device="cpu").shape == (1, 2, 2)
    x, mask = torch.empty(2, 3, 8, 9, device="meta"), torch.empty(2, 8, 9, dtype=torch.bool, device="meta")
    with pytest.raises((ValueError, RuntimeError, NotImplementedError)):
        rf.impute_linear(x, mask, out=torch.empty_like(x))
    images = torch.empty(2, 3, 8, 9, dtype=torch.uint8, device="meta")
    codes = torch.empty(2, 8, 9, dtype=torch.uint8, device="meta")
    with pytest.raises((ValueError, RuntimeError, NotImplementedError)):
        rf.impute_dataset(images, codes, [0.5], progress=False)
    assert rf.sobel(x).device.type == "meta" and rf.fill(x, mask, 1.0).shape == x.shape
    with pytest.raises((ValueError, RuntimeError), match="out must be on cpu like the input, got meta"):
        rf.sobel(torch.zeros(3, 3), out=torch.empty(3, 3, device="meta"))


def test_sparse_and_nested_tensors_are_refused_by_name(torch: Any) -> None:
    sparse = torch.eye(4).to_sparse()
    with pytest.raises(TypeError, match="a must be a dense tensor, got a sparse_coo one"):
        rf.sobel(sparse)
    nested = torch.nested.nested_tensor([torch.zeros(2, 3), torch.zeros(3, 3)])
    with pytest.raises(TypeError, match="a must be a dense tensor, got a nested one"):
        rf.total_variation(nested)
    with pytest.raises(TypeError, match="mask must be a dense tensor"):
        rf.fill(torch.zeros(1, 1, 4, 4), torch.eye(4).to_sparse()[None].bool())


def test_freed_memory_is_noticed(torch: Any) -> None:
    def freed(tensor: Any) -> Any:
        tensor.untyped_storage().resize_(0)
        return tensor

    for a in (freed(torch.zeros(5, 5)), freed(torch.zeros(9, 5)[4:]), freed(torch.zeros(5, 6).T)):
        with pytest.raises(ValueError, match=r"a must have memory, but .* was freed or shrunk"):
            rf.aggregate_channels(a)
        with pytest.raises(ValueError, match=r"a must have memory, but .* was freed or shrunk"):
            rf.sobel(a)
    with pytest.raises(ValueError, match="was freed or shrunk"):
        rf.sobel(torch.zeros(5, 5), out=freed(torch.zeros(5, 5)))
    images = torch.zeros(4, 3, 8, 8, dtype=torch.uint8)
    with pytest.raises(ValueError, match="images must have memory"):
        rf.impute_dataset(freed(images.clone()), torch.zeros(4, 8, 8, dtype=torch.uint8), [0.3], progress=False)
    with pytest.raises(ValueError, match="index must hold values, got a tensor on meta"):
        rf.rank_codes(torch.zeros(2, 5, 5), (0.3,), index=torch.zeros(2, dtype=torch.int64, device="meta"))
    with pytest.raises(ValueError, match=r"index must have memory, but .* was freed or shrunk"):
        rf.gather_batch(images, freed(torch.zeros(3, dtype=torch.int64)))
    shrunk = torch.zeros(5, 5)
    shrunk.untyped_storage().resize_(40)
    with pytest.raises(ValueError, match="was freed or shrunk"):
        rf.total_variation(shrunk)


def test_out_of_torch_must_be_writable_memory_without_gradient(torch: Any) -> None:
    with pytest.raises(ValueError, match="out must not require a gradient"):
        rf.sobel(torch.zeros(3, 3), out=torch.zeros(3, 3, requires_grad=True))
    with pytest.raises(ValueError, match="out must not overlap itself"):
        rf.sobel(torch.zeros(3, 3), out=torch.zeros(1, 3).expand(3, 3))
    with pytest.raises(TypeError, match="out must be a torch tensor"):
        rf.impute_linear(torch.zeros(1, 3, 3), torch.ones(3, 3, dtype=torch.bool), out=np.zeros((1, 3, 3), "f4"))


def test_inputs_that_require_a_gradient_work(torch: Any) -> None:
    for op, (inputs, call) in WITH_OUT.items():
        given = {name: torch.from_numpy(np.ascontiguousarray(a)) for name, a in inputs.items()}
        for tensor in given.values():
            if tensor.is_floating_point():
                tensor.requires_grad_()
        np.testing.assert_array_equal(call(**given).detach().numpy(), call(**inputs), err_msg=op)


def test_empty_torch_batches(torch: Any) -> None:
    x, mask = torch.zeros(0, 3, 4, 4), torch.zeros(0, 4, 4, dtype=torch.bool)
    for value in ("blur", "zero", "kept_mean", "image_mean", "noise", 3.0, np.zeros((0, 3))):
        assert rf.fill(x, mask, value).shape == (0, 3, 4, 4)
        assert rf.remove(x, torch.zeros(0, 4, 4), 0.5, fill=value).shape == (0, 3, 4, 4)
    assert rf.impute_linear(x, mask).shape == (0, 3, 4, 4)
    assert rf.gather_batch(torch.zeros(2, 3, 4, 4, dtype=torch.uint8), []).shape == (0, 3, 4, 4)
    for shape in ((0, 4, 4), (2, 0, 4), (2, 4, 0)):
        a = torch.zeros(shape)
        for call in (
            rf.sobel,
            rf.total_variation,
            lambda a: rf.removal_mask(a, 0.3),
            lambda a: rf.rank_codes(a, (0.3,)),
        ):
            call(a)


MAKERS = ("philox_normal", "pixel_random", "block_random")


def direct(torch: Any) -> dict[str, tuple[Any, list[Any]]]:
    """Direct calls of `torch.ops.roarfast`, which no public function has checked: right ones."""
    ops = torch.ops.roarfast
    x, a = torch.from_numpy(X), torch.from_numpy(maps(4, 8, 9))
    mask, values = torch.from_numpy(MASK), torch.zeros(3, dtype=torch.float64)
    images, codes, ids = torch.from_numpy(IMAGES), torch.from_numpy(CODES), torch.arange(4)
    batch = ["NCHW", 1, False, 0, 8, 9, False, False, 0, 0, "float32", "NCHW"]
    return {
        "fill": (ops.fill, [x, mask, None, values, None, ids, "values", "NCHW", 0.0, 1.0, 0]),
        "fill image": (ops.fill, [x, mask, None, None, x.clone(), ids, "image", "NCHW", 0.0, 1.0, 0]),
        "remove": (
            ops.remove,
            [x, a, None, values, None, ids, 0.3, "exact", "morf", False, 0, True, "values", "NCHW", 0.0, 1.0],
        ),
        "gather_batch": (
            ops.gather_batch,
            [images, ids, [0.5] * 12, ids.clone(), codes, images.clone(), ids.clone(), *batch],
        ),
        "impute_linear": (
            ops.impute_linear,
            [x, mask, ids, 0.01, "gaussian", 0, 1e-5, 100, [1.0, 2.0, 1.0, 2.0], 0.0, "NCHW", "float32", True],
        ),
        "removal_mask": (ops.removal_mask, [a, ids, 0.4, 2, "exact", "morf", False, 0, True]),
        "rank_codes": (ops.rank_codes, [a, ids, [0.2, 0.4], 2, "exact", "morf", 0, True]),
        "percentile": (ops.percentile, [a, [20.0, 50.0], False, 2, True]),
        "removed_fraction": (ops.removed_fraction, [codes, 1, 2]),
        "code_sums": (ops.code_sums, [a, codes, 3, 2, True]),
        "distance_transform": (ops.distance_transform, [mask, True]),
        "mask_geometry": (ops.mask_geometry, [mask]),
        "pixel_random": (ops.pixel_random, [ids, [4, 3, 3], 0, 2]),
        "block_random": (ops.block_random, [ids, [4, 3, 3], 0.5, 0]),
        "philox_normal": (ops.philox_normal, [ids, [3, 4], 0, 0, 8]),
        "gaussian_filter": (ops.gaussian_filter, [a, [1.0, 1.0], [4, 4], [0, 0], ["reflect", "reflect"], 0.0]),
        "maximum_filter": (ops.maximum_filter, [a, [3, 3], [0, 0], ["reflect", "reflect"], 0.0]),
        "sobel": (ops.sobel, [a, 0, ["reflect", "reflect"], 0.0]),
        "total_variation": (ops.total_variation, [a, "anisotropic", "none"]),
    }


def test_direct_calls_of_torch_ops_check_their_tensors(torch: Any) -> None:
    """Each tensor too small, of another dtype, on another device or without memory: an error, never a wrong read."""
    rf.register_torch()
    refused = (ValueError, TypeError, RuntimeError, NotImplementedError, IndexError)
    for name, (op, right) in direct(torch).items():
        op(*right)
        for position, tensor in enumerate(right):
            if not isinstance(tensor, torch.Tensor):
                continue
            other = torch.float32 if tensor.dtype == torch.float64 else torch.float64
            small = tensor.flatten()[:1].clone()
            wrong = {"too small": small, "meta": tensor.to("meta"), "sparse": None, "freed": tensor.clone()}
            wrong["freed"].untyped_storage().resize_(0)
            if (position and (name, position) != ("remove", 1)) or name in (
                "gather_batch",
                "removed_fraction",
                "philox_normal",
                "distance_transform",
                "mask_geometry",
            ):
                wrong["of another dtype"] = tensor.to(other)
            if tensor.dim() == 2:
                wrong["sparse"] = tensor.to_sparse()
            if name == "philox_normal":
                del wrong["too small"]  # any number of samples is right
            for kind, bad in wrong.items():
                if bad is None:
                    continue
                given = [*right[:position], bad, *right[position + 1 :]]
                with pytest.raises(refused):
                    result = op(*given)
                    if kind == "meta" and (result[0] if isinstance(result, (tuple, list)) else result).is_meta:
                        raise RuntimeError("meta in, meta out")
                    pytest.fail(f"{name}: argument {position} {kind} was accepted")


def test_direct_calls_of_torch_ops_check_numbers(torch: Any) -> None:
    refused = (ValueError, TypeError, RuntimeError, IndexError)
    for name, (op, right) in direct(torch).items():
        for position, value in enumerate(right):
            if isinstance(value, bool) or not isinstance(value, (int, float, str, list)):
                continue
            if isinstance(value, str):
                tries: list[Any] = ["", "nonsense"]
            elif isinstance(value, list):
                tries = [value[:-1], [*value, value[-1]]]
                tries += (
                    [["nonsense"] * 2] if isinstance(value[0], str) else [[v] * len(value) for v in (-(2**40), 2**62)]
                )
                tries += [[float("nan")] * len(value)] if isinstance(value[0], float) else []
            else:
                tries = [-1, -(2**62), 2**62] if isinstance(value, int) else [-1.0, float("nan"), 1e300]
            for bad in tries:
                given = [*right[:position], bad, *right[position + 1 :]]
                try:
                    op(*given)  # some are right, such as another seed; none may crash
                except refused:
                    pass
                except Exception as error:
                    pytest.fail(f"{name}, argument {position} = {bad!r}: {error!r}")


def test_unaligned_sample_ids_are_copied() -> None:
    """This processor reads them all the same; others, and UBSan, do not."""
    from roarfast.ops._selection import sample_index

    ids = np.zeros(4 * 8 + 1, np.uint8)[1:].view(np.int64)
    ids[:] = [3, 1, 4, 1]
    kept = sample_index(ids, 4, np.zeros((4, 2, 2)))
    assert not ids.flags.aligned and kept.flags.aligned and kept.tolist() == [3, 1, 4, 1]


@pytest.mark.parametrize(("size", "origin"), [((2**62, 3), (0, 0)), ((3, 3), (2**63 - 1, 0)), ((3, 3), (0, -(2**61)))])
def test_windows_beyond_any_image_are_refused(size: tuple[int, int], origin: tuple[int, int]) -> None:
    torch = pytest.importorskip("torch")
    rf.ops.register_torch()
    with pytest.raises(ValueError, match=r"size must be|origin must"):
        torch.ops.roarfast.maximum_filter(torch.zeros(1, 5, 7), size, origin, ["reflect", "reflect"], 0.0)


def test_radii_of_direct_calls_are_refused() -> None:
    torch = pytest.importorskip("torch")
    rf.ops.register_torch()
    schema = torch.ops.roarfast.gaussian_filter.default._schema
    given = {"a": torch.zeros(1, 5, 7), "sigma": [1.0, 1.0], "radius": [2**62, 3], "order": [0, 0]}
    given |= {"border": ["reflect", "reflect"], "cval": 0.0}
    with pytest.raises(ValueError, match="radius must be"):
        torch.ops.roarfast.gaussian_filter(*(given[argument.name] for argument in schema.arguments))
