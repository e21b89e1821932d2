"""The ops as torch operators: opcheck, torch.compile, strides, empty tensors, `out=`, mixed libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import roarfast as rf

torch = pytest.importorskip("torch")

# One call of every filter: (name, call, arguments of the torch operator).
CASES: list[tuple[str, Callable[[Any], Any], tuple[Any, ...]]] = [
    (
        "gaussian_filter",
        lambda a: rf.gaussian_filter(a, (1, 0.5)),
        ([1.0, 0.5], [4, 2], [0, 0], ["reflect", "reflect"], 0.0),
    ),
    ("maximum_filter", lambda a: rf.maximum_filter(a, (3, 4), mode="wrap"), ([3, 4], [0, 0], ["wrap", "wrap"], 0.0)),
    ("sobel", lambda a: rf.sobel(a, axis=-2), (0, ["reflect", "reflect"], 0.0)),
    ("total_variation", lambda a: rf.total_variation(a, "isotropic", "minmax"), ("isotropic", "minmax")),
]
IDS = [name for name, *_ in CASES]


@pytest.fixture
def maps() -> torch.Tensor:
    return torch.randn(2, 3, 9, 11, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("name", "call", "args"), CASES, ids=IDS)
def test_opcheck(name: str, call: Callable[[Any], Any], args: tuple[Any, ...], maps: torch.Tensor) -> None:
    call(maps)
    for a in (maps, maps.double(), maps.transpose(-1, -2), maps[:0]):
        torch.library.opcheck(getattr(torch.ops.roarfast, name).default, (a, *args))
        out = torch.empty_like(call(a))
        torch.library.opcheck(getattr(torch.ops.roarfast, f"{name}_out").default, (a, *args, out))


@pytest.mark.parametrize(("name", "call", "args"), CASES, ids=IDS)
def test_torch_equals_numpy(name: str, call: Callable[[Any], Any], args: tuple[Any, ...], maps: torch.Tensor) -> None:
    for a in (maps, maps.half(), maps.permute(3, 2, 1, 0), maps[..., ::2, 1:]):
        result = call(a)
        assert isinstance(result, torch.Tensor) and result.device == a.device
        np.testing.assert_array_equal(result.numpy(), call(a.numpy()))


@pytest.mark.parametrize(("name", "call", "args"), CASES, ids=IDS)
def test_compile_fullgraph(name: str, call: Callable[[Any], Any], args: tuple[Any, ...], maps: torch.Tensor) -> None:
    call(maps)
    compiled = torch.compile(lambda a: call(a * 2) + 1, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(maps), call(maps * 2) + 1)


def test_compile_with_the_default_backend(maps: torch.Tensor) -> None:
    rf.gaussian_filter(maps, 1)
    compiled = torch.compile(lambda a: rf.gaussian_filter(a.relu(), 1).sum(), fullgraph=True)
    torch.testing.assert_close(compiled(maps), rf.gaussian_filter(maps.relu(), 1).sum())


@pytest.mark.parametrize("shape", [(0, 4, 4), (2, 0, 4), (2, 4, 0), (0, 0)])
@pytest.mark.parametrize(("name", "call", "args"), CASES, ids=IDS)
def test_zero_size(name: str, call: Callable[[Any], Any], args: tuple[Any, ...], shape: tuple[int, ...]) -> None:
    result = call(torch.zeros(shape))
    assert result.shape == (shape if name != "total_variation" else shape[:-2])
    assert call(np.zeros(shape)).shape == tuple(result.shape)
    assert not torch.isnan(result).any()


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.numpy()], ids=["torch", "numpy"])
def test_out_is_written_and_returned(make: Callable[[Any], Any], maps: torch.Tensor) -> None:
    a = make(maps.clone())
    expected = rf.gaussian_filter(a, 1)
    out = make(torch.empty_like(maps))
    assert rf.gaussian_filter(a, 1, out=out) is out
    np.testing.assert_array_equal(out, expected)
    strided = make(torch.empty(3, 2, 9, 11).transpose(0, 1))
    assert rf.gaussian_filter(a, 1, out=strided) is strided
    np.testing.assert_array_equal(strided, expected)
    assert rf.gaussian_filter(a, 1, out=a) is a  # in place: the input is read before it is overwritten
    np.testing.assert_array_equal(a, expected)


def test_out_of_another_shape_dtype_or_library(maps: torch.Tensor) -> None:
    with pytest.raises(ValueError, match=r"out must have shape \(2, 3, 9, 11\), got \(2, 3, 9, 10\)"):
        rf.gaussian_filter(maps, 1, out=torch.empty(2, 3, 9, 10))
    with pytest.raises(TypeError, match="out must have dtype float32, got float64"):
        rf.gaussian_filter(maps, 1, out=torch.empty(2, 3, 9, 11, dtype=torch.float64))
    with pytest.raises(TypeError, match="out must be a torch tensor like the input, got ndarray"):
        rf.gaussian_filter(maps, 1, out=np.empty((2, 3, 9, 11), np.float32))
    with pytest.raises(TypeError, match="out must be a NumPy array like the input, got Tensor"):
        rf.gaussian_filter(maps.numpy(), 1, out=torch.empty(2, 3, 9, 11))
    read_only = np.empty((2, 3, 9, 11), np.float32)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="out must be writable, got a read-only array"):
        rf.gaussian_filter(maps.numpy(), 1, out=read_only)


def test_neither_numpy_nor_torch() -> None:
    with pytest.raises(TypeError, match="a must be a NumPy array or a torch tensor, got list"):
        rf.gaussian_filter([[1.0]], 1)  # type: ignore[type-var]


def test_inputs_are_not_modified(maps: torch.Tensor) -> None:
    before = maps.clone()
    for _, call, _ in CASES:
        call(maps)
    torch.testing.assert_close(maps, before, rtol=0, atol=0)


def test_backward_is_not_silently_wrong(maps: torch.Tensor) -> None:
    """The ops are not differentiable; torch says so when a gradient is asked for."""
    result = rf.gaussian_filter(maps.requires_grad_(), 1)
    with pytest.warns(UserWarning, match="autograd kernel was not registered"):
        result.sum().backward()


def test_big_endian_numpy(maps: torch.Tensor) -> None:
    a = maps.numpy()
    np.testing.assert_array_equal(rf.gaussian_filter(a.astype(">f4"), 1), rf.gaussian_filter(a, 1))
