"""Hashes that say which model and which data a map belongs to. Importing them does not import torch: reports need none."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Protocol

import numpy as np

from roarfast._files import file_checksum

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor, nn

    from roarfast._types import Numpy


class Rows(Protocol):
    """Has a length and can be sliced: an array, a memory map, a tensor, maps of a store, a list."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> npt.ArrayLike | Tensor: ...


def checksum(*arrays: Numpy) -> str:
    """Hash of the bytes of arrays, in order."""
    digest = hashlib.blake2b(digest_size=16)
    for a in arrays:
        digest.update(np.ascontiguousarray(a).data.cast("B") if a.size else b"")
    return digest.hexdigest()


def model_hash(model: nn.Module) -> str:
    """Hash of a model: the classes of its modules and every parameter and buffer, wherever it lives.

    Example:
        >>> from torch import nn
        >>> model_hash(nn.ReLU()) == model_hash(nn.ReLU()), model_hash(nn.ReLU()) == model_hash(nn.Tanh())
        (True, False)
    """
    import torch

    digest = hashlib.blake2b(digest_size=16)
    for name, module in model.named_modules():
        digest.update(f"{name}:{type(module).__qualname__};".encode())
    for name, value in model.state_dict().items():
        if isinstance(value, torch.Tensor):
            digest.update(f"{name}:{value.dtype}:{tuple(value.shape)};".encode())
            raw = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            digest.update(raw.numpy().data)
    return digest.hexdigest()


def data_hash(*arrays: Rows) -> str:
    """Hash of images, labels, …: NumPy arrays or tensors `[N, ...]`, or anything with a length that can be sliced.

    Example:
        >>> import torch
        >>> data_hash(np.zeros(3)) == data_hash(torch.zeros(3, dtype=torch.float64))
        True
    """
    digest = hashlib.blake2b(digest_size=16)
    for a in arrays:
        step = 1024
        for start in range(0, max(len(a), 1), step):  # in pieces: the array may be a memory map larger than memory
            piece = a[start : start + step]
            part: Numpy = piece.detach().cpu().numpy() if hasattr(piece, "detach") else np.asarray(piece)
            if start == 0:
                digest.update(f"{part.dtype.str}:{(len(a), *part.shape[1:])};".encode())
            if part.size:
                digest.update(np.ascontiguousarray(part).data.cast("B"))
    return digest.hexdigest()


__all__ = ["checksum", "data_hash", "file_checksum", "model_hash"]
