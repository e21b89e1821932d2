"""Datasets, packs and batches. `load` and packs need NumPy only; `DeviceDataset` needs torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast.data.dataset import DataError, Dataset
from roarfast.data.load import default_root, load
from roarfast.data.order import epoch_batches, epoch_order
from roarfast.data.pack import open_pack, write_pack
from roarfast.data.torch_dataset import from_torch

if TYPE_CHECKING:
    from roarfast.data.device import DeviceDataset, Transform

__all__ = [
    "DataError",
    "Dataset",
    "DeviceDataset",
    "Transform",
    "default_root",
    "epoch_batches",
    "epoch_order",
    "from_torch",
    "load",
    "open_pack",
    "write_pack",
]


def __getattr__(name: str) -> object:
    if name in ("DeviceDataset", "Transform"):
        from roarfast.data import device  # torch, which loading does not need

        return getattr(device, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
