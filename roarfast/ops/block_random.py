"""Random rectangles: the block-random baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from roarfast._types import Array, Numpy
from roarfast.ops import _check as check
from roarfast.ops import _random
from roarfast.ops import _selection as selection
from roarfast.ops._arrays import A, Arrays, SampleIds, images
from roarfast.ops._op import define_op
from roarfast.ops._random import Device

if TYPE_CHECKING:
    import torch


@overload
def block_random(
    shape: Sequence[int],
    drop: float,
    seed: int = ...,
    index: SampleIds | None = ...,
    *,
    device: None = ...,
    out: Numpy | None = ...,
) -> Numpy: ...


@overload
def block_random(
    shape: Sequence[int],
    drop: float,
    seed: int = ...,
    index: SampleIds | None = ...,
    *,
    device: Device,
    out: torch.Tensor | None = ...,
) -> torch.Tensor: ...


def block_random(
    shape: Sequence[int],
    drop: float,
    seed: int = 0,
    index: SampleIds | None = None,
    *,
    device: Device | None = None,
    out: Array | None = None,
) -> Array:
    """Masks of one random rectangle: its area is `drop` of the image, to the nearest that its shape allows.

    The rectangle is the image scaled to the area, its aspect ratio changed by a factor 1 + u or 1 / (1 + u), each half of
    the time, u uniform in [0, 1), so between half and twice that of the image; a side that would leave the image is cut
    and the other grows. Sides are rounded to the whole pixels whose area comes closest. The position is uniform among
    those inside the image.

    Args:
        shape: The shape of the masks, `[..., H, W]`.
        drop: Drop rate, a fraction in [0, 1].
        seed: The seed, >= 0.
        index: The sample ids, one integer per mask; by default 0, 1, 2, …
        device: None for a NumPy array; a torch device for a tensor there.
        out: Where to write the result, bool of that shape.

    Returns:
        bool of that shape, True = removed.

    Example:
        >>> import roarfast as rf
        >>> int(rf.block_random((1, 10, 10), drop=0.25).sum())
        25
    """
    sizes = _random.shape_of(shape, 2, "[..., H, W]")
    drop = selection.rate("drop", drop)
    n, _ = selection.samples(sizes, 2)
    return _op(_random.sample_ids(index, n, device), list(sizes), drop, selection.seed_value(seed), out=out)


def _run(xp: Arrays[A], index: A, shape: Sequence[int], drop: float, seed: int, out: A | None = None) -> A:
    n, h, w = images(shape, "shape")
    check.operand(xp, "index", index, ("int64",), (n,))
    index = xp.contiguous(index)
    result = xp.output(out, shape, "bool", index)
    xp.call(index, "block_random", result, n, h, w, drop, seed, index)
    return xp.finish(result, out)


def _fake(index: torch.Tensor, shape: Sequence[int], drop: float, seed: int) -> torch.Tensor:
    import torch

    return index.new_empty(tuple(shape), dtype=torch.bool)


_op = define_op("block_random", "(Tensor index, SymInt[] shape, float drop, int seed) -> Tensor", _run, _fake)
