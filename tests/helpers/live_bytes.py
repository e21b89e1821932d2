"""Peak memory of the tensors that live at the same time, counted at every operation (forward and backward)."""

from __future__ import annotations

import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class LiveBytes(TorchDispatchMode):
    """Counts what operations allocate inside the block; `peak` is in bytes."""

    def __init__(self):
        super().__init__()
        self.live = self.peak = 0
        self._known = set()

    def _forget(self, key, size):
        self._known.discard(key)
        self.live -= size

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        given = {a.untyped_storage()._cdata for a in tree_leaves((args, kwargs)) if isinstance(a, torch.Tensor)}
        result = func(*args, **(kwargs or {}))
        for a in tree_leaves(result):
            if not isinstance(a, torch.Tensor):
                continue
            storage = a.untyped_storage()
            key = storage._cdata
            if key not in self._known and key not in given:
                self._known.add(key)
                self.live += storage.nbytes()
                weakref.finalize(storage, self._forget, key, storage.nbytes())
        self.peak = max(self.peak, self.live)
        return result
