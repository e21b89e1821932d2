"""Random maps: the pixel-random baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roarfast.ops import _check as check
from roarfast.ops import _random
from roarfast.ops import _selection as selection


def pixel_random(shape: Sequence[int], seed: int = 0, index: Any = None, *, ndim: int = 2, device: Any = None) -> Any:
    """Maps of independent uniform numbers: removing their top t removes t of the pixels at random.

    Args:
        shape: The shape of the maps, `[..., H, W]`.
        seed: The seed, >= 0.
        index: The sample ids, one integer per map; by default 0, 1, 2, … A sample's map depends on (seed, id) only, not
            on the batch, the device or the threads.
        ndim: How many trailing axes make up one sample, as in `removal_mask`.
        device: None for a NumPy array; a torch device for a tensor there.

    Returns:
        float32 of that shape, in [0, 1).

    Example:
        >>> import numpy as np, roarfast as rf
        >>> together = rf.pixel_random((2, 4, 4), seed=1, index=[5, 7])
        >>> bool((rf.pixel_random((1, 4, 4), seed=1, index=[7])[0] == together[1]).all())
        True
    """
    ndim = check.integer("ndim", ndim, 1, 3)
    sizes = _random.shape_of(shape, ndim, "[..., F]" if ndim == 1 else "[..., H, W]" if ndim == 2 else "[..., C, H, W]")
    xp, result = _random.empty(sizes, "float32", device)
    n, f = selection.samples(sizes, ndim)
    ids = selection.sample_index(index, n, result)
    xp.call(result, "pixel_random", result, n, f, selection.seed_value(seed), ids)
    return result
