"""Removal masks: which pixels go at one drop rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast.ops import _check as check
from roarfast.ops import _selection as selection
from roarfast.ops._arrays import A, Arrays, ArrayT, SampleIds
from roarfast.ops._op import define_op
from roarfast.ops._renamed import renamed

if TYPE_CHECKING:
    import torch


@renamed(per_channel="ndim=3")
def removal_mask(
    a: ArrayT,
    drop: float,
    rule: str = "exact",
    order: str = "morf",
    keep: bool = False,
    seed: int = 0,
    index: SampleIds | None = None,
    *,
    ndim: int | None = None,
    nan: str = "raise",
    out: ArrayT | None = None,
) -> ArrayT:
    """Which pixels of each map are removed at one drop rate; True = removed.

    Args:
        a: Maps `[..., H, W]`: float16, bfloat16 (torch), float32, float64 or uint8. Infinities are fine. Channels of
            `[N, C, H, W]` are maps of their own; for masks per pixel, aggregate channels first (`rf.aggregate_channels`).
            Two to four of them get a warning that says so, unless `ndim` is given.
        drop: Drop rate t, a fraction in [0, 1].
        rule: `"exact"`: the floor(t * H * W) top pixels by rank, ties broken by a hash of (seed, sample id, pixel).
            `"percentile"`: `a >= np.percentile(a, 100 * (1 - t))`, `"strict"`: `a > ...`, bit for bit; with ties these
            remove more or less than t. `"value"`: `a > (1 - t) * a.max()`, maps finite and >= 0; t is then a fraction of
            the maximum, not of the pixels.
        order: `"morf"` removes the most relevant first, `"lerf"` the least relevant (`a <= np.percentile(a, 100 * t)`,
            `a < t * a.max()`).
        keep: KAR: keep what would have been removed and remove the rest.
        seed: Seeds the tie-breaking, >= 0.
        index: The sample ids, one integer per map; by default 0, 1, 2, … A sample with the same id and seed has its
            ties broken alike in any batch.
        ndim: How many trailing axes make up one sample: 2 for maps (the default), 1 for features `[..., F]`, 3 to rank all
            values of `[..., C, H, W]` together, so that channels of a pixel may split.
        nan: `"raise"` an error if there is a NaN, or `"ignore"` it: a NaN then ranks as +inf.
        out: Where to write the mask; bool, like `a`.

    Returns:
        bool, of the shape of `a`.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> rf.removal_mask(np.array([[0.1, 0.9], [0.5, 0.3]]), drop=0.5).tolist()
        [[False, True], [True, False]]
    """
    how = selection.check_ranking(a, rule, order, seed, index, ndim, nan)
    drop = selection.rate("drop", drop)
    return _op(a, how.index, drop, how.ndim, rule, order, check.flag("keep", keep), how.seed, how.raises, out=out)


def _run(
    xp: Arrays[A],
    a: A,
    index: A | None,
    drop: float,
    ndim: int,
    rule: str,
    order: str,
    keep: bool,
    seed: int,
    raises: bool,
    out: A | None = None,
) -> A:
    selection.in_range(drop)
    how = selection.Ranking(index, ndim, rule, order, seed, raises)
    return selection.run_ranking(xp, "removal_mask", a, how, (drop,), (), (int(keep),), out, "bool")


def _fake(a: torch.Tensor, *_: object) -> torch.Tensor:
    import torch

    return a.new_empty(a.shape, dtype=torch.bool)


_op = define_op(
    "removal_mask",
    "(Tensor a, Tensor? index, float drop, int ndim, str rule, str order, bool keep, int seed, bool raises) -> Tensor",
    _run,
    _fake,
)
