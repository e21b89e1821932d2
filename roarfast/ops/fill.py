"""Fills: what replaces removed pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from roarfast._types import Array
from roarfast.ops import _check as check
from roarfast.ops import _fills, _images
from roarfast.ops import _selection as selection
from roarfast.ops._arrays import DTYPE_CODES, FLOATS, LAYOUT_CODES, A, Arrays, ArrayT, SampleIds
from roarfast.ops._fills import FillValue
from roarfast.ops._op import define_op
from roarfast.ops.impute_linear import solve

if TYPE_CHECKING:
    import torch

IMAGE_DTYPES = (*FLOATS, "uint8")
BLUR_SIGMA = 10.0


def fill(
    x: ArrayT,
    mask: ArrayT,
    value: FillValue = "image_mean",
    *,
    layout: str = "NCHW",
    sigma: float = BLUR_SIGMA,
    noise_mean: float = 0.0,
    noise_std: float = 1.0,
    seed: int = 0,
    index: SampleIds | None = None,
    out: ArrayT | None = None,
) -> ArrayT:
    """Replaces the masked pixels of images.

    Args:
        x: Images `[..., C, H, W]`: uint8, float16, bfloat16 (torch), float32 or float64.
        mask: bool or uint8, True = replaced: per pixel `[..., H, W]`, or per feature, of the shape of `x`.
        value: A number; one per channel `[C]`; one per image and channel `[N, C]`; `"zero"`; `"kept_mean"`: the
            image's channel mean over the pixels that stay (over all, if none stays); `"image_mean"`: over all pixels;
            `"blur"`: the image after a Gaussian blur; `"noise"`: Gaussian noise, the same for a sample in any batch;
            `"linear"`: `impute_linear` without noise.
        layout: `"NCHW"`, `"NHWC"`, `"NHW"` (no channels) or `"NF"` (features); leading axes are free.
        sigma: Standard deviation of the blur, in pixels.
        noise_mean: Mean of the noise.
        noise_std: Standard deviation of the noise.
        seed: Seeds the noise, >= 0.
        index: The sample ids for the noise, one integer per image; by default 0, 1, 2, …
        out: Where to write the result; like `x`.

    Returns:
        The filled images, like `x`. For uint8, replacements are rounded and clipped.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> x = np.arange(4.0).reshape(1, 1, 2, 2)
        >>> rf.fill(x, np.array([[[True, False], [False, False]]]), value=9).tolist()
        [[[[9.0, 1.0], [2.0, 3.0]]]]
    """
    check.array("x", x, IMAGE_DTYPES)
    check.array("mask", mask, ("bool", "uint8"))
    check.same_kind(x=x, mask=mask)
    sizes = _images.parse(x.shape, layout, mask.shape)
    if isinstance(value, str) and value == "linear":
        return impute(x, mask, layout, sizes, out)
    ready = _fills.prepare("value", value, x, layout, sizes, sigma, noise_mean, noise_std)
    index = selection.sample_index(index, sizes.n, x)
    return _op(
        x,
        mask,
        ready.constants,
        ready.values,
        ready.other,
        index,
        ready.kind,
        layout,
        ready.noise_mean,
        ready.noise_std,
        selection.seed_value(seed),
        out=out,
    )


def impute(x: ArrayT, mask: Array, layout: str, sizes: _images.Layout, out: ArrayT | None) -> ArrayT:
    """The fill `"linear"`: like `impute_linear` without noise, in the dtype of x also for uint8."""
    if layout not in LAYOUT_CODES or sizes.per_feature:
        raise ValueError(
            "the fill 'linear' needs images and a mask per pixel: layout 'NCHW' or 'NHWC' and mask [..., H, W], "
            f"got layout={layout!r}, x {tuple(x.shape)} and mask {tuple(mask.shape)}{_images.channels_hint(mask.shape, x.shape)}"
        )
    return solve(x, mask, 0.0, 0, None, 1e-5, None, None, "gaussian", 0.0, layout, check.dtype_name(x), out)[0]


def blur_fill(
    x: ArrayT, mask: ArrayT, sigma: float = BLUR_SIGMA, *, layout: str = "NCHW", out: ArrayT | None = None
) -> ArrayT:
    """Replaces the masked pixels by a Gaussian blur of the image: `fill(x, mask, "blur", sigma=sigma)`.

    Args:
        x: Images `[..., C, H, W]`, as in `fill`.
        mask: As in `fill`.
        sigma: Standard deviation of the blur, in pixels.
        layout: As in `fill`.
        out: Where to write the result; like `x`.

    Returns:
        The filled images, like `x`.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> rf.blur_fill(np.ones((1, 3, 8, 8), np.float32), np.ones((1, 8, 8), bool), sigma=2).shape
        (1, 3, 8, 8)
    """
    return fill(x, mask, "blur", layout=layout, sigma=sigma, out=out)


def noise_fill(
    x: ArrayT,
    mask: ArrayT,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    seed: int = 0,
    index: SampleIds | None = None,
    layout: str = "NCHW",
    out: ArrayT | None = None,
) -> ArrayT:
    """Replaces the masked pixels by Gaussian noise: `fill(x, mask, "noise", noise_mean=mean, noise_std=std)`.

    Args:
        x: Images `[..., C, H, W]`, as in `fill`.
        mask: As in `fill`.
        mean: Mean of the noise.
        std: Standard deviation of the noise, >= 0.
        seed: Seeds the noise, >= 0.
        index: The sample ids, one integer per image; by default 0, 1, 2, …
        layout: As in `fill`. A sample has the same noise in every layout.
        out: Where to write the result; like `x`.

    Returns:
        The filled images, like `x`.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> rf.noise_fill(np.ones((1, 3, 8, 8), np.float32), np.zeros((1, 8, 8), bool)).max()
        np.float32(1.0)
    """
    mean, std = check.number("mean", mean), check.number("std", std, 0)
    return fill(x, mask, "noise", layout=layout, noise_mean=mean, noise_std=std, seed=seed, index=index, out=out)


def _run(
    xp: Arrays[A],
    x: A,
    mask: A,
    constants: Sequence[float] | None,
    values: A | None,
    other: A | None,
    index: A | None,
    kind: str,
    layout: str,
    noise_mean: float,
    noise_std: float,
    seed: int,
    out: A | None = None,
) -> A:
    x, mask = xp.contiguous(x), xp.contiguous(mask)
    sizes = n, c, p, layout_code, per_feature = _images.parse(x.shape, layout, mask.shape)
    check.operand(xp, "mask", mask, ("bool", "uint8"), tuple(mask.shape))
    values, per_image, other, index = _fills.operands(xp, x, kind, constants, values, other, index, sizes)
    result = xp.output(out, x.shape, xp.dtype(x), x, mask, values, other, index)
    shape = DTYPE_CODES[xp.dtype(x)], n, c, p, layout_code, int(per_feature)
    xp.call(
        x,
        "fill",
        x,
        mask,
        result,
        *shape,
        _fills.KINDS[kind],
        values,
        per_image,
        other,
        noise_mean,
        noise_std,
        seed,
        index,
    )
    return xp.finish(result, out)


def _fake(x: torch.Tensor, *_: object) -> torch.Tensor:
    return x.new_empty(x.shape)


_op = define_op(
    "fill",
    "(Tensor x, Tensor mask, float[]? constants, Tensor? values, Tensor? other, Tensor? index, str kind, str layout, float noise_mean, "
    "float noise_std, int seed) -> Tensor",
    _run,
    _fake,
)
