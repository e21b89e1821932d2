"""The backends an op is tested on: `cpu`, `simt` and `ptx` run arrays in host memory, `cuda` on a GPU where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np

from helpers.ptx import ptx_backend
from roarfast import _backend

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

BACKENDS = ("cpu", "simt", "ptx", "cuda")


class Backend:
    """Runs an op on one backend; arrays go in and come out as NumPy (or torch for bfloat16)."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, op: Any, *args: Any, **kwargs: Any) -> Any:
        if self.name == "cuda":
            return self._to_host(op(*map(self._to_device, args), **{k: self._to_device(v) for k, v in kwargs.items()}))
        if self.name == "ptx":
            with ptx_backend():
                return op(*args, **kwargs)
        with _backend.use_host_backend(self.name):
            return op(*args, **kwargs)

    @property
    def emulated(self) -> bool:
        """Thousands of times slower than the others: tests use few and small cases."""
        return self.name in ("simt", "ptx")

    @staticmethod
    def _to_device(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return torch.from_numpy(np.ascontiguousarray(x)).cuda() if x.flags.c_contiguous else _strided_to_cuda(x)
        return x.cuda() if torch is not None and isinstance(x, torch.Tensor) else x

    @classmethod
    def _to_host(cls, x: Any) -> Any:
        if isinstance(x, tuple):
            return type(x)(*map(cls._to_host, x)) if hasattr(x, "_fields") else tuple(map(cls._to_host, x))
        if not isinstance(x, torch.Tensor):
            return x
        return x.cpu() if x.dtype == torch.bfloat16 else x.cpu().numpy()


def _strided_to_cuda(x: np.ndarray) -> Any:
    """A CUDA tensor with the dimension order of a non-contiguous array."""
    order = np.argsort([-s for s in x.strides], kind="stable")
    dense = torch.from_numpy(np.ascontiguousarray(x.transpose(order))).cuda()
    return dense.permute(*np.argsort(order).tolist())
