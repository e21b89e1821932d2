"""Random maps: the pixel-random baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from roarfast._types import Array, Numpy
from roarfast.ops import _check as check
from roarfast.ops import _random
from roarfast.ops import _selection as selection
from roarfast.ops._arrays import A, Arrays, SampleIds
from roarfast.ops._op import define_op
from roarfast.ops._random import Device

if TYPE_CHECKING:
    import torch


@overload
def pixel_random(
    shape: Sequence[int],
    seed: int = ...,
    index: SampleIds | None = ...,
    *,
    ndim: int = ...,
    device: None = ...,
    out: Numpy | None = ...,
) -> Numpy: ...


@overload
def pixel_random(
    shape: Sequence[int],
    seed: int = ...,
    index: SampleIds | None = ...,
    *,
    ndim: int = ...,
    device: Device,
    out: torch.Tensor | None = ...,
) -> torch.Tensor: ...


def pixel_random(
    shape: Sequence[int],
    seed: int = 0,
    index: SampleIds | None = None,
    *,
    ndim: int = 2,
    device: Device | None = None,
    out: Array | None = None,
) -> Array:
    """Maps of independent uniform numbers: removing their top t removes t of the pixels at random.

    Args:
        shape: The shape of the maps, `[..., H, W]`.
        seed: The seed, >= 0.
        index: The sample ids, one integer per map; by default 0, 1, 2, … A sample's map depends on (seed, id) only, not
            on the batch, the device or the threads.
        ndim: How many trailing axes make up one sample, as in `removal_mask`.
        device: None for a NumPy array; a torch device for a tensor there.
        out: Where to write the result, float32 of that shape.

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
    n, _ = selection.samples(sizes, ndim)
    return _op(_random.sample_ids(index, n, device), list(sizes), selection.seed_value(seed), ndim, out=out)


def _run(xp: Arrays[A], index: A, shape: Sequence[int], seed: int, ndim: int, out: A | None = None) -> A:
    n, f = selection.samples(shape, ndim)
    check.operand(xp, "index", index, ("int64",), (n,))
    index = xp.contiguous(index)
    result = xp.output(out, shape, "float32", index)
    xp.call(index, "pixel_random", result, n, f, seed, index)
    return xp.finish(result, out)


def _fake(index: torch.Tensor, shape: Sequence[int], seed: int, ndim: int) -> torch.Tensor:
    import torch

    return index.new_empty(tuple(shape), dtype=torch.float32)


_op = define_op("pixel_random", "(Tensor index, SymInt[] shape, int seed, int ndim) -> Tensor", _run, _fake)
