"""Removal in one go: rank a map, and fill what goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roarfast.ops import _check as check
from roarfast.ops import _fills, _images
from roarfast.ops import _selection as selection
from roarfast.ops._arrays import DTYPE_CODES, A, Arrays, ArrayT, SampleIds
from roarfast.ops._fills import FillValue
from roarfast.ops._op import define_op
from roarfast.ops.fill import BLUR_SIGMA, IMAGE_DTYPES, impute
from roarfast.ops.removal_mask import removal_mask

if TYPE_CHECKING:
    import torch


def remove(
    x: ArrayT,
    a: ArrayT,
    drop: float,
    fill: FillValue = "image_mean",
    rule: str = "exact",
    order: str = "morf",
    keep: bool = False,
    seed: int = 0,
    index: SampleIds | None = None,
    *,
    layout: str = "NCHW",
    sigma: float = BLUR_SIGMA,
    noise_mean: float = 0.0,
    noise_std: float = 1.0,
    nan: str = "raise",
    out: ArrayT | None = None,
) -> ArrayT:
    """Removes the top pixels of images: `fill(x, removal_mask(a, drop, ...), fill, ...)`, without a mask in memory.

    Args:
        x: Images `[..., C, H, W]`: uint8, float16, bfloat16 (torch), float32 or float64.
        a: Maps `[..., H, W]`; or of the shape of `x`, which ranks features, so that channels of a pixel may split.
        drop: Drop rate, a fraction in [0, 1].
        fill: What replaces removed pixels: the `value` of `roarfast.fill`.
        rule: `"exact"`, `"percentile"` or `"strict"`, as in `removal_mask`, as are `order`, `keep`, `index` and `nan`.
        order: See `removal_mask`.
        keep: See `removal_mask`.
        seed: Seeds tie-breaking and noise (which do not share numbers).
        index: See `removal_mask`.
        layout: As in `fill`, as are `sigma`, `noise_mean` and `noise_std`.
        sigma: See `fill`.
        noise_mean: See `fill`.
        noise_std: See `fill`.
        nan: See `removal_mask`.
        out: Where to write the result; like `x`.

    Returns:
        The images, like `x`.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> x, a = np.full((1, 3, 2, 2), 7, np.uint8), np.array([[[0.1, 0.9], [0.5, 0.3]]])
        >>> rf.remove(x, a, drop=0.25, fill="zero")[0, 0].tolist()
        [[7, 0], [7, 7]]
    """
    check.array("x", x, IMAGE_DTYPES)
    check.array("a", a, DTYPE_CODES)
    check.same_kind(x=x, a=a)
    sizes = _images.parse(x.shape, layout, a.shape, "a")
    drop = selection.rate("drop", drop)
    check.one_of("rule", rule, selection.RULES)
    check.one_of("order", order, selection.ORDERS)
    if isinstance(fill, str) and fill == "linear":
        mask = removal_mask(a, drop, rule, order, keep, seed, index, ndim=2, nan=nan)
        return impute(x, mask, layout, sizes, out)
    ready = _fills.prepare("fill", fill, x, layout, sizes, sigma, noise_mean, noise_std)
    index = selection.sample_index(index, sizes.n, x)
    raises = selection.check_nan_policy(nan, rule)
    return _op(
        x,
        a,
        ready.constants,
        ready.values,
        ready.other,
        index,
        drop,
        rule,
        order,
        check.flag("keep", keep),
        selection.seed_value(seed),
        raises,
        ready.kind,
        layout,
        ready.noise_mean,
        ready.noise_std,
        out=out,
    )


def _run(
    xp: Arrays[A],
    x: A,
    a: A,
    constants: Sequence[float] | None,
    values: A | None,
    other: A | None,
    index: A | None,
    drop: float,
    rule: str,
    order: str,
    keep: bool,
    seed: int,
    raises: bool,
    kind: str,
    layout: str,
    noise_mean: float,
    noise_std: float,
    out: A | None = None,
) -> A:
    selection.in_range(drop)
    x, a = xp.contiguous(x), xp.maps(a)
    sizes = n, c, p, layout_code, per_feature = _images.parse(x.shape, layout, a.shape, "a")
    values, per_image, other, index = _fills.operands(xp, x, kind, constants, values, other, index, sizes)
    dtypes = DTYPE_CODES[xp.dtype(x)], DTYPE_CODES[xp.dtype(a)]
    result = xp.output(out, x.shape, xp.dtype(x), x, a, values, other, index)
    flags = selection.nan_flags(xp, n, raises and n * c * p > 0, x)
    workspace = xp.empty([xp.query(x, "remove_workspace_bytes", dtypes[1], n, c, p, int(per_feature))], "uint8", x)
    shape = n, c, p, layout_code, int(per_feature)
    which = drop, selection.RULES[rule], selection.ORDERS[order], int(keep), seed, index, flags
    fills = _fills.KINDS[kind], values, per_image, other, noise_mean, noise_std, seed
    xp.call(x, "remove", x, a, result, *dtypes, *shape, *which, *fills, workspace)
    selection.raise_on_nan(flags)
    return xp.finish(result, out)


def _fake(x: torch.Tensor, *_: object) -> torch.Tensor:
    return x.new_empty(x.shape)


_op = define_op(
    "remove",
    "(Tensor x, Tensor a, float[]? constants, Tensor? values, Tensor? other, Tensor? index, float drop, str rule, str order, bool keep, "
    "int seed, bool raises, str kind, str layout, float noise_mean, float noise_std) -> Tensor",
    _run,
    _fake,
)
