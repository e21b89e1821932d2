"""Rank codes: at which of several drop rates each pixel goes, in one byte."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roarfast.ops import _selection as selection
from roarfast.ops._arrays import A, Arrays, ArrayT, SampleIds
from roarfast.ops._op import define_op
from roarfast.ops._renamed import renamed

if TYPE_CHECKING:
    import torch


@renamed(per_channel="ndim=3")
def rank_codes(
    a: ArrayT,
    drops: Sequence[float],
    rule: str = "exact",
    order: str = "morf",
    seed: int = 0,
    index: SampleIds | None = None,
    *,
    ndim: int | None = None,
    nan: str = "raise",
    out: ArrayT | None = None,
) -> ArrayT:
    """The index of the first drop rate at which each pixel is removed, `len(drops)` if it never is.

    `codes <= j` is `removal_mask(a, drops[j], ...)`, for all rates from one selection. For KAR use the same codes the
    other way round: `codes > j` is `removal_mask(a, drops[j], ..., keep=True)`.

    Args:
        a: Maps `[..., H, W]`: float16, bfloat16 (torch), float32, float64 or uint8.
        drops: Ascending drop rates, fractions in [0, 1], at most 254.
        rule: As in `removal_mask`, as are `order`, `seed`, `index`, `ndim` and `nan`.
        order: See `removal_mask`.
        seed: See `removal_mask`.
        index: See `removal_mask`.
        ndim: See `removal_mask`.
        nan: See `removal_mask`.
        out: Where to write the codes; uint8, like `a`.

    Returns:
        uint8, of the shape of `a`.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> rf.rank_codes(np.array([[0.1, 0.9], [0.5, 0.3]]), drops=(0.25, 0.5)).tolist()
        [[2, 0], [1, 2]]
    """
    how = selection.check_ranking(a, rule, order, seed, index, ndim, nan)
    drops = selection.rates("drops", drops)
    return _op(a, how.index, drops, how.ndim, rule, order, how.seed, how.raises, out=out)


def _run(
    xp: Arrays[A],
    a: A,
    index: A | None,
    drops: Sequence[float],
    ndim: int,
    rule: str,
    order: str,
    seed: int,
    raises: bool,
    out: A | None = None,
) -> A:
    how = selection.Ranking(index, ndim, rule, order, seed, raises)
    rates, pointer = selection.host_array(tuple(drops))
    return selection.run_ranking(xp, "rank_codes", a, how, (pointer, len(rates)), (len(rates),), (), out, "uint8")


def _fake(a: torch.Tensor, *_: object) -> torch.Tensor:
    import torch

    return a.new_empty(a.shape, dtype=torch.uint8)


_op = define_op(
    "rank_codes",
    "(Tensor a, Tensor? index, float[] drops, int ndim, str rule, str order, int seed, bool raises) -> Tensor",
    _run,
    _fake,
)
