"""Types that several layers share, so that `Any` is written where nothing else is true."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    import torch

Numpy: TypeAlias = np.ndarray[Any, np.dtype[Any]]
"""An array of NumPy, whatever its shape and dtype."""

Array: TypeAlias = "Numpy | torch.Tensor"
"""An array of either library."""

ArrayT = TypeVar("ArrayT", bound="Numpy | torch.Tensor")
"""NumPy in, NumPy out; torch in, torch out."""

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"
"""What a JSON or TOML file can hold."""
