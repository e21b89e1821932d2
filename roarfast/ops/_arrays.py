"""NumPy arrays and torch tensors behind one small interface, so that each op is written once.

An op's `run(xp, ...)` gets one of the two adapters below as `xp`.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from roarfast import _backend

if TYPE_CHECKING:
    import torch

    Array = np.ndarray[Any, Any] | torch.Tensor

# NumPy in, NumPy out; torch in, torch out.
ArrayT = TypeVar("ArrayT", bound="np.ndarray[Any, Any] | torch.Tensor")

# The values of rf_dtype in csrc/include/roarfast.h.
LAYOUT_CODES = {"NCHW": 0, "NHWC": 1}  # the values of rf_layout
DTYPE_CODES = {"float16": 0, "bfloat16": 1, "float32": 2, "float64": 3, "uint8": 4, "bool": 5}
FLOATS = ("float16", "bfloat16", "float32", "float64")
# `dtype.name` builds its string anew each time, which takes microseconds; np.dtype(name) parses it.
NUMPY_DTYPES = {name: np.dtype(name) for name in (*DTYPE_CODES, "int64", "int32") if name != "bfloat16"}
NUMPY_NAMES = {dtype: name for name, dtype in NUMPY_DTYPES.items()}

HUGE_BYTES = 4 << 20  # from here on new memory is asked for in large pages; where NumPy does so too


class Arrays(Protocol):
    """What `run` needs of an array library."""

    def dtype(self, a: Any) -> str:
        """The dtype's name, such as "float32"."""

    def contiguous(self, a: Any, dtype: str | None = None) -> Any:
        """`a` dense and row-major, in native byte order, converted to `dtype` if given."""

    def empty(self, shape: Sequence[int], dtype: str, like: Any) -> Any:
        """A new array on the device of `like`."""

    def output(self, out: Any, shape: Sequence[int], dtype: str, like: Any) -> Any:
        """An array to write to: `out` itself where a kernel can write there (checked), else a new one."""

    def finish(self, result: Any, out: Any) -> Any:
        """What the op returns: `result`, copied to `out` if `output` could not hand that to the kernel."""

    def from_numpy(self, values: np.ndarray[Any, Any], like: Any) -> Any:
        """A small NumPy array as an array on the device of `like`."""

    def call(self, like: Any, name: str, *args: Any) -> Any:
        """Calls a kernel of the backend that serves `like`.

        Arrays become pointers, None becomes null, and the stream is appended.
        """

    def query(self, like: Any, name: str, *args: Any) -> int:
        """Calls a function that computes a number, such as the size of a workspace."""


def _check_out(out: Any, shape: Sequence[int], dtype: str, got_dtype: str) -> None:
    if tuple(out.shape) != tuple(shape):
        raise ValueError(f"out must have shape {tuple(shape)}, got {tuple(out.shape)}")
    if got_dtype != dtype:
        raise TypeError(f"out must have dtype {dtype}, got {got_dtype}")


class NumpyArrays:
    """The adapter for NumPy arrays: host memory, no stream."""

    def dtype(self, a: np.ndarray[Any, Any]) -> str:
        return NUMPY_NAMES.get(a.dtype) or str(a.dtype.name)

    def contiguous(self, a: np.ndarray[Any, Any], dtype: str | None = None) -> np.ndarray[Any, Any]:
        if a.flags.c_contiguous and (a.dtype == NUMPY_DTYPES[dtype] if dtype else a.dtype.isnative):
            return a
        native = NUMPY_DTYPES[dtype] if dtype else a.dtype.newbyteorder("=")
        return np.ascontiguousarray(a, native).reshape(a.shape)  # ascontiguousarray makes 0-d arrays 1-d

    def empty(self, shape: Sequence[int], dtype: str, like: Any) -> np.ndarray[Any, Any]:
        return np.empty(shape, NUMPY_DTYPES[dtype])

    def output(self, out: Any, shape: Sequence[int], dtype: str, like: Any) -> np.ndarray[Any, Any]:
        if out is None:
            return self.empty(shape, dtype, like)
        if not isinstance(out, np.ndarray):
            raise TypeError(f"out must be a NumPy array like the input, got {type(out).__name__}")
        _check_out(out, shape, dtype, self.dtype(out))
        if not out.flags.writeable:
            raise ValueError("out is read-only")
        writable_in_place = out.flags.c_contiguous and out.dtype.isnative and not np.may_share_memory(out, like)
        return out if writable_in_place else self.empty(shape, dtype, like)

    def finish(self, result: np.ndarray[Any, Any], out: Any) -> np.ndarray[Any, Any]:
        if out is None or out is result:
            return result
        out[...] = result
        return out  # type: ignore[no-any-return]

    def from_numpy(self, values: np.ndarray[Any, Any], like: Any) -> np.ndarray[Any, Any]:
        return np.ascontiguousarray(values)

    def call(self, like: Any, name: str, *args: Any) -> Any:
        return getattr(_backend.host(), name)(*args, 0)

    def query(self, like: Any, name: str, *args: Any) -> int:
        return int(getattr(_backend.host(), name)(*args))


class TorchArrays:
    """The adapter for torch tensors: on CUDA, torch's allocator and current stream are used."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.dtypes = {name: getattr(torch, name) for name in (*DTYPE_CODES, "int64", "int32")}
        self.names = {dtype: name for name, dtype in self.dtypes.items()}

    def dtype(self, a: torch.Tensor) -> str:
        return self.names.get(a.dtype) or str(a.dtype).removeprefix("torch.")

    def contiguous(self, a: torch.Tensor, dtype: str | None = None) -> torch.Tensor:
        return (a.to(self.dtypes[dtype]) if dtype else a).detach().contiguous()

    def empty(self, shape: Sequence[int], dtype: str, like: torch.Tensor) -> torch.Tensor:
        a = self.torch.empty(tuple(shape), dtype=self.dtypes[dtype], device=like.device)
        if a.nbytes >= HUGE_BYTES and like.device.type == "cpu":
            _backend.cpu().advise_huge_pages(a.data_ptr(), a.nbytes)
        return a

    def output(self, out: Any, shape: Sequence[int], dtype: str, like: torch.Tensor) -> torch.Tensor:
        if out is None:
            return self.empty(shape, dtype, like)
        _check_out(out, shape, dtype, self.dtype(out))
        if out.device != like.device:
            raise ValueError(f"out must be on {like.device} like the input, got {out.device}")
        shares_storage = out.untyped_storage().data_ptr() == like.untyped_storage().data_ptr()
        return out if out.is_contiguous() and not shares_storage else self.empty(shape, dtype, like)

    def finish(self, result: torch.Tensor, out: torch.Tensor | None) -> torch.Tensor:
        return result if out is None or out is result else out.copy_(result)

    def from_numpy(self, values: np.ndarray[Any, Any], like: torch.Tensor) -> torch.Tensor:
        return self.torch.from_numpy(np.ascontiguousarray(values)).to(like.device)

    def call(self, like: torch.Tensor, name: str, *args: Any) -> Any:
        tensor = self.torch.Tensor
        for x in args:
            if isinstance(x, tensor) and x.device != like.device:
                raise ValueError(f"all tensors must be on one device, got {like.device} and {x.device}")
        pointers = [x.data_ptr() if isinstance(x, tensor) else x for x in args]
        if like.device.type == "cuda":
            cuda = self.torch.cuda
            with cuda.device(like.device):
                return getattr(_backend.cuda(), name)(*pointers, cuda.current_stream().cuda_stream)
        return getattr(_backend.host(), name)(*pointers, 0)

    def query(self, like: torch.Tensor, name: str, *args: Any) -> int:
        guard = self.torch.cuda.device(like.device) if like.device.type == "cuda" else contextlib.nullcontext()
        with guard:
            module = _backend.cuda() if like.device.type == "cuda" else _backend.host()
            return int(getattr(module, name)(*args))


NUMPY = NumpyArrays()


def images(shape: Sequence[int]) -> tuple[int, int, int]:
    """`(n, h, w)` of `[..., H, W]`, leading dimensions flattened."""
    *leading, h, w = shape
    return math.prod(leading), h, w
