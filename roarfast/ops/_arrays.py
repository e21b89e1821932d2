"""NumPy arrays and torch tensors behind one small interface, so that each op is written once.

An op's `run(xp, ...)` gets one of the two adapters below as `xp`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

import numpy as np

from roarfast import _backend
from roarfast._types import Array, Numpy
from roarfast._types import ArrayT as ArrayT

if TYPE_CHECKING:
    import torch

# One of the two and not "either": below `Op` the library is known, and mypy looks at each function once for each.
A = TypeVar("A", Numpy, "torch.Tensor")

SampleIds: TypeAlias = "Array | Sequence[int] | Sequence[Sequence[int]]"
"""Integers that name samples."""

# The values of rf_dtype in csrc/include/roarfast.h.
LAYOUT_CODES = {"NCHW": 0, "NHWC": 1}  # the values of rf_layout
DTYPE_CODES = {"float16": 0, "bfloat16": 1, "float32": 2, "float64": 3, "uint8": 4, "bool": 5}
FLOATS = ("float16", "bfloat16", "float32", "float64")
# `dtype.name` builds its string anew each time, which takes microseconds; np.dtype(name) parses it.
NUMPY_DTYPES = {name: np.dtype(name) for name in (*DTYPE_CODES, "int64", "int32") if name != "bfloat16"}
NUMPY_NAMES = {dtype: name for name, dtype in NUMPY_DTYPES.items()}

HUGE_BYTES = 4 << 20  # from here on new memory is asked for in large pages; where NumPy does so too


class Arrays(Protocol[A]):
    """What `run` needs of an array library."""

    def dtype(self, a: A) -> str:
        """The dtype's name, such as "float32"."""

    def contiguous(self, a: A, dtype: str | None = None) -> A:
        """`a` dense and row-major, in native byte order, converted to `dtype` if given."""

    def empty(self, shape: Sequence[int], dtype: str, like: A) -> A:
        """A new array on the device of `like`."""

    def maps(self, a: A) -> A:
        """`contiguous(a)`, with 0 and 1 as the only bytes of bool arrays: a view of other bytes may hold more."""

    def output(self, out: A | None, shape: Sequence[int], dtype: str, like: A, *others: A | None) -> A:
        """An array to write to: `out` itself where a kernel can write there (checked), else a new one.

        A kernel cannot write where it reads: `like` and `others` are all of its inputs (None is left out).
        """

    def finish(self, result: A, out: A | None) -> A:
        """What the op returns: `result`, copied to `out` if `output` could not hand that to the kernel."""

    def from_numpy(self, values: Numpy, like: A) -> A:
        """A small NumPy array as an array on the device of `like`."""

    def call(self, like: A, name: str, *args: A | float | None) -> object:
        """Calls a kernel of the backend that serves `like`.

        Arrays become pointers, None becomes null, and the stream is appended.
        """

    def query(self, like: A, name: str, *args: float) -> int:
        """Calls a function that computes a number, such as the size of a workspace."""


class UnusableTensor(ValueError):
    """A tensor that no kernel can read, found where its argument's name is not known; `Op.run` finds that."""


def check_out(out: Array, shape: Sequence[int], dtype: str, got_dtype: str) -> None:
    """`out` has the shape and dtype of the result."""
    if tuple(out.shape) != tuple(shape):
        raise ValueError(f"out must have shape {tuple(shape)}, got {tuple(out.shape)}")
    if got_dtype != dtype:
        raise TypeError(f"out must have dtype {dtype}, got {got_dtype}")


class NumpyArrays:
    """The adapter for NumPy arrays: host memory, no stream."""

    def dtype(self, a: Numpy) -> str:
        return NUMPY_NAMES.get(a.dtype) or str(a.dtype.name)

    def contiguous(self, a: Numpy, dtype: str | None = None) -> Numpy:
        flags = a.flags
        dense = flags.c_contiguous and flags.aligned
        if dense and (a.dtype == NUMPY_DTYPES[dtype] if dtype else a.dtype.isnative):
            return a
        native = NUMPY_DTYPES[dtype] if dtype else a.dtype.newbyteorder("=")
        return np.array(a, native, order="C", subok=False)  # a copy: ascontiguousarray keeps unaligned memory

    def maps(self, a: Numpy) -> Numpy:
        a = self.contiguous(a)
        if a.dtype.kind == "b" and a.size and (stored := a.view(np.uint8)).max() > 1:
            return stored != 0
        return a

    def empty(self, shape: Sequence[int], dtype: str, like: Numpy) -> Numpy:
        return np.empty(shape, NUMPY_DTYPES[dtype])

    def output(self, out: Numpy | None, shape: Sequence[int], dtype: str, like: Numpy, *others: Numpy | None) -> Numpy:
        if out is None:
            return self.empty(shape, dtype, like)
        if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
            raise TypeError(f"out must be a NumPy array like the input, got {type(out).__name__}")
        check_out(out, shape, dtype, self.dtype(out))
        flags = out.flags
        if not flags.writeable:
            raise ValueError("out must be writable, got a read-only array")
        in_place = flags.c_contiguous and flags.aligned and out.dtype.isnative
        if in_place and not any(a is not None and np.may_share_memory(out, a) for a in (like, *others)):
            return out
        return self.empty(shape, dtype, like)

    def finish(self, result: Numpy, out: Numpy | None) -> Numpy:
        if out is None or out is result:
            return result
        out[...] = result
        return out

    def from_numpy(self, values: Numpy, like: Numpy) -> Numpy:
        return np.ascontiguousarray(values)

    def call(self, like: Numpy, name: str, *args: Numpy | float | None) -> object:
        return getattr(_backend.host(), name)(*args, 0)

    def query(self, like: Numpy, name: str, *args: float) -> int:
        return int(getattr(_backend.host(), name)(*args))


class TorchArrays:
    """The adapter for torch tensors: on CUDA, torch's allocator and current stream are used."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.dtypes: dict[str, torch.dtype] = {name: getattr(torch, name) for name in (*DTYPE_CODES, "int64", "int32")}
        self.names = {dtype: name for name, dtype in self.dtypes.items()}

    def dtype(self, a: torch.Tensor) -> str:
        return self.names.get(a.dtype) or str(a.dtype).removeprefix("torch.")

    def contiguous(self, a: torch.Tensor, dtype: str | None = None) -> torch.Tensor:
        require_memory(a)
        if dtype and a.dtype is not self.dtypes[dtype]:
            a = a.to(self.dtypes[dtype])
        # Each call of torch takes a microsecond, also where it has nothing to do.
        if a.requires_grad:
            a = a.detach()
        if not a.is_contiguous():
            a = a.contiguous()
        return a.clone() if a.data_ptr() % a.element_size() else a  # kernels need aligned memory

    def maps(self, a: torch.Tensor) -> torch.Tensor:
        a = self.contiguous(a)
        if a.dtype is not self.torch.bool or not a.numel():
            return a
        stored = a.view(self.torch.uint8)
        if a.device.type == "cpu":  # elsewhere a look at the values would wait for the device
            return stored.ne(0) if int(stored.max()) > 1 else a
        return stored.ne(0)

    def empty(self, shape: Sequence[int], dtype: str, like: torch.Tensor) -> torch.Tensor:
        a = self.torch.empty(tuple(shape), dtype=self.dtypes[dtype], device=like.device)
        if a.nbytes >= HUGE_BYTES and like.device.type == "cpu":
            _backend.cpu().advise_huge_pages(a.data_ptr(), a.nbytes)
        return a

    def output(
        self,
        out: torch.Tensor | None,
        shape: Sequence[int],
        dtype: str,
        like: torch.Tensor,
        *others: torch.Tensor | None,
    ) -> torch.Tensor:
        if out is None:
            return self.empty(shape, dtype, like)
        if not isinstance(out, self.torch.Tensor):
            raise TypeError(f"out must be a torch tensor like the input, got {type(out).__name__}")
        check_out(out, shape, dtype, self.dtype(out))
        if out.device != like.device:
            raise ValueError(f"out must be on {like.device} like the input, got {out.device}")
        require_memory(out)
        first = out.data_ptr()
        if not out.is_contiguous():
            if any(stride == 0 and size > 1 for stride, size in zip(out.stride(), out.shape)):
                raise ValueError(
                    f"out must not overlap itself, got strides {out.stride()} for shape {tuple(out.shape)}"
                )
            return self.empty(shape, dtype, like)
        if first % out.element_size() or any(_overlap(first, out.nbytes, a) for a in (like, *others)):
            return self.empty(shape, dtype, like)
        return out

    def finish(self, result: torch.Tensor, out: torch.Tensor | None) -> torch.Tensor:
        return result if out is None or out is result else out.copy_(result)

    def from_numpy(self, values: Numpy, like: torch.Tensor) -> torch.Tensor:
        return self.torch.from_numpy(np.ascontiguousarray(values)).to(like.device)

    def call(self, like: torch.Tensor, name: str, *args: torch.Tensor | float | None) -> object:
        tensor, device = self.torch.Tensor, like.device
        kind = device.type
        if kind not in ("cpu", "cuda"):
            raise UnusableTensor(f"tensors must be on a CPU or CUDA device, got {device}")
        pointers = list(args)
        for i, x in enumerate(args):
            if isinstance(x, tensor):
                if x.device != device:
                    raise UnusableTensor(f"all tensors must be on one device, got {device} and {x.device}")
                pointers[i] = x.data_ptr()
                if not pointers[i] and x.numel():
                    raise UnusableTensor(f"a tensor of shape {tuple(x.shape)} has no memory (is it fake?)")
        if kind == "cuda":
            cuda = self.torch.cuda
            with cuda.device(device):
                return getattr(_backend.cuda(), name)(*pointers, cuda.current_stream().cuda_stream)
        return getattr(_backend.host(), name)(*pointers, 0)

    def query(self, like: torch.Tensor, name: str, *args: float) -> int:
        if like.device.type != "cuda":
            return int(getattr(_backend.host(), name)(*args))
        with self.torch.cuda.device(like.device):
            return int(getattr(_backend.cuda(), name)(*args))


NUMPY = NumpyArrays()


def require_memory(a: torch.Tensor) -> None:
    """A tensor's storage holds all of its elements: `untyped_storage().resize_(0)` frees it under a living tensor."""
    if not (elements := a.numel()):
        return
    if not a.is_contiguous():
        elements = 1 + sum((size - 1) * stride for size, stride in zip(a.shape, a.stride()))
    if a.untyped_storage().nbytes() < (a.storage_offset() + elements) * a.element_size():
        raise UnusableTensor(f"the memory of a tensor of shape {tuple(a.shape)} was freed or shrunk")


def shares_memory(a: Array, b: Array) -> bool:
    """Whether the memory between the first and the last byte of two arrays of one library overlaps."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.may_share_memory(a, b)
    require_memory(a)
    require_memory(b)
    (first, last), (begin, end) = _extent(a), _extent(b)
    return first < end and begin < last


def _extent(a: torch.Tensor) -> tuple[int, int]:
    if not a.numel():
        return 0, 0
    reach = 1 + sum((size - 1) * stride for size, stride in zip(a.shape, a.stride()))
    return a.data_ptr(), a.data_ptr() + reach * a.element_size()


def _overlap(first: int, nbytes: int, a: torch.Tensor | None) -> bool:
    """Whether a dense tensor has bytes in [first, first + nbytes)."""
    return a is not None and a.data_ptr() < first + nbytes and first < a.data_ptr() + a.nbytes


def images(shape: Sequence[int], name: str = "a") -> tuple[int, int, int]:
    """`(n, h, w)` of `[..., H, W]`, leading dimensions flattened."""
    if len(shape) < 2:
        raise ValueError(f"{name} must be [..., H, W], got shape {tuple(shape)}")
    *leading, h, w = shape
    return math.prod(leading), h, w
