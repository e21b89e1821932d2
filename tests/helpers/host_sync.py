"""Counts what makes the host wait for a device: reading values, and copies from host memory that are not pinned."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from roarfast.ops import _op

READS = ("cpu", "item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__", "nonzero")
UPLOADS = ("tensor", "as_tensor")  # and from_numpy, which modes do not see


class HostSyncs(TorchFunctionMode):
    """Names of the calls that would wait on CUDA, counted on any device."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        is_upload = name in UPLOADS and not isinstance(args[0] if args else None, torch.Tensor)
        if name in READS or is_upload:
            self.calls[name] += 1
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Calls of ops inside run under the counter, which does not see through torch's dispatcher."""
    xp = _op._torch_arrays()
    with monkeypatch.context() as patch, HostSyncs() as mode:
        from_numpy = torch.from_numpy
        patch.setattr(torch, "from_numpy", lambda a: mode.calls.update(["from_numpy"]) or from_numpy(a))
        patch.setattr(_op.Op, "__call__", lambda self, *args, out=None: self.run(xp, *args, out=out))
        yield mode.calls
