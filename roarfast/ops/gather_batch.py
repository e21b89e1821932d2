"""The fused data pipeline: uint8 gather, removal, crop, flip and normalisation in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from roarfast._types import Array, Numpy
from roarfast.ops import _check as check
from roarfast.ops import _selection as selection
from roarfast.ops._arrays import DTYPE_CODES, LAYOUT_CODES, A, Arrays, ArrayT, SampleIds
from roarfast.ops._gather_resized import MAX_SIDE, box_range, gather_resized
from roarfast.ops._images import chw, permute
from roarfast.ops._op import define_op, is_tensor
from roarfast.ops._renamed import renamed

if TYPE_CHECKING:
    import torch

_OUT_DTYPES = ("float32", "float16", "bfloat16")
_NUMBERS = (int, float)
MAX_PAD = 2**30  # kMaxPad in csrc/common/gather_batch_check.h
PerChannel: TypeAlias = "float | Sequence[float] | Array"
"""One number, or one for each channel."""

Dtype: TypeAlias = "str | type[np.generic] | np.dtype[np.generic] | torch.dtype"
"""What names a dtype."""


@renamed(j="rate_index=...", drop="rate_index=...", memory="out_layout=...")
def gather_batch(
    images: ArrayT,
    index: ArrayT | Sequence[int],
    codes: ArrayT | None = None,
    rate_index: int | ArrayT | Sequence[int] | None = None,
    fill: PerChannel | None = None,
    *,
    keep: bool = False,
    imputed: ArrayT | None = None,
    layout: str = "NCHW",
    pad: int = 0,
    pad_value: PerChannel = 0.0,
    crop: int | tuple[int, int] | None = None,
    random_crop: bool = False,
    scale: tuple[float, float] | None = None,
    ratio: tuple[float, float] | None = None,
    flip: bool = False,
    mean: PerChannel = 0.0,
    std: PerChannel = 1.0,
    seed: int = 0,
    epoch: int = 0,
    ids: ArrayT | None = None,
    dtype: Dtype = "float32",
    out_layout: str = "NCHW",
    check_index: bool = False,
    out: ArrayT | None = None,
) -> ArrayT:
    """Make a training or evaluation batch from a uint8 dataset, with pixels removed on the fly.

    For each sample: replace its removed pixels, pad, crop, flip, normalise. Removal is in the coordinates of the stored
    image, before any augmentation. Crop and flip of a sample depend only on (`seed`, `epoch`, its id): not on the batch,
    its order, the number of threads or the device.

    Args:
        images: uint8 `[N, C, H, W]`, or `[N, H, W, C]` with `layout="NHWC"`.
        index: integers `[B]` in [0, N): the samples of the batch; repeats are fine. On CUDA the values are not looked at
            (that would wait for the device): a sample out of range becomes NaN, unless `check_index`.
        codes: rank codes, uint8 `[N, H, W]`, or `[N, C, H, W]` to remove channels separately (planes, whatever the
            layout). A pixel is removed where `codes <= rate_index`.
        rate_index: position of the drop rate in the list the codes were made for; -1 removes nothing. Integers `[B]`:
            one for each sample of the batch, so that one batch holds an image at several rates.
        fill: what replaces removed pixels, per channel, in units of 0..255. Default: `255 * mean`.
        keep: KAR: remove where `codes > rate_index` instead.
        imputed: uint8 or float16 in units of 0..255, shaped like `images`: replaces removed pixels in place of `fill`.
        layout: memory order of `images` and `imputed`.
        pad: pixels added on each side before the crop.
        pad_value: their value per channel, in units of 0..255: 0 is black, as in torchvision's `RandomCrop`, and is
            normalised like any other pixel.
        crop: output size, one or (rows, columns); default (H, W).
        random_crop: crop at a random place rather than in the middle.
        scale: (low, high) in (0, 1]: crop a part of random size and shape, its share of the area uniform in this range,
            and resample it to `crop`, bilinear and antialiased: torchvision's `RandomResizedCrop`. Without `pad`;
            `crop` may then be larger than the image. Removed pixels are resampled with the others.
        ratio: (low, high) of width / height of that part, uniform in the logarithm. Default (3/4, 4/3).
        flip: mirror left-right half of the samples.
        mean: per channel, in units of 0..1, as in torchvision's `Normalize`.
        std: per channel, likewise. The result is `pixel * float32(1 / (255 std)) + float32(-mean / std)`, rounded to
            float32 after the product and after the sum.
        seed: in [0, 2^63).
        epoch: in [0, 2^48).
        ids: int64 `[B]`: what randomness is keyed by when `index` points into a part of the dataset. Default `index`.
        dtype: `"float32"`, `"float16"` or `"bfloat16"` (torch only).
        out_layout: memory order of the result; `"NHWC"` is torch's `channels_last`.
        check_index: also check `index` on CUDA, at the price of a synchronisation.
        out: where to write the result.

    Returns:
        `[B, C, crop rows, crop columns]`, in the memory order asked for.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> images = np.zeros((4, 3, 32, 32), np.uint8)
        >>> rf.gather_batch(images, [2, 0], pad=4, random_crop=True, flip=True, mean=0.5, std=0.25).shape
        (2, 3, 32, 32)
    """
    check.array("images", images, ("uint8",))
    check.one_of("layout", layout, LAYOUT_CODES)
    check.one_of("out_layout", out_layout, LAYOUT_CODES)
    if len(images.shape) != 4:
        raise ValueError(f"images must be {list(layout)}, got shape {tuple(images.shape)}")
    n = int(images.shape[0])
    channels, h, w = chw(images.shape, layout)
    where = _index("index", index, images)
    keys = None if ids is None else _index("ids", ids, images)
    if keys is not None and len(keys) != len(where):
        raise ValueError(f"ids must have as many entries as index ({len(where)}), got {len(keys)}")
    rate, rates = _check_codes(codes, rate_index, (n, channels, h, w), images, len(where))
    if imputed is not None:
        check.array("imputed", imputed, ("uint8", "float16"))
        if codes is None:
            raise ValueError("imputed needs codes: without them no pixel is removed")
        if tuple(imputed.shape) != tuple(images.shape):
            raise ValueError(f"imputed must be shaped like images {tuple(images.shape)}, got {tuple(imputed.shape)}")
    check.same_kind(images=images, index=where, codes=codes, imputed=imputed, ids=keys, rate_index=rates)
    out_h, out_w = (h, w) if crop is None else (check.integer("crop", s, low=1) for s in check.per_axis("crop", crop))
    pad = check.integer("pad", pad, 0, MAX_PAD)
    box = box_range(scale, ratio, pad)
    if box is None and (out_h > h + 2 * pad or out_w > w + 2 * pad):
        raise ValueError(f"crop must fit the padded image {h + 2 * pad}x{w + 2 * pad}, got {out_h}x{out_w}")
    name = check.one_of("dtype", _dtype_name(dtype), _OUT_DTYPES)
    if name == "bfloat16" and not is_tensor(images):
        raise TypeError("dtype 'bfloat16' needs torch tensors: NumPy has no bfloat16")
    plain = all(value is None or _is_plain(value) for value in (mean, std, fill, pad_value))
    make: Callable[..., list[float]] = _numbers if plain else _numbers.__wrapped__
    numbers = make(channels, mean, std, fill, pad_value)
    if check.flag("check_index", check_index):
        _check_range(where, n)
    if out is not None:
        check.array("out", out, (name,))
        if len(out.shape) != 4:
            raise ValueError(f"out must have shape {(len(where), channels, out_h, out_w)}, got {tuple(out.shape)}")
    random_crop, flip, keep = (
        check.flag(key, value) for key, value in (("random_crop", random_crop), ("flip", flip), ("keep", keep))
    )
    seed, epoch = (
        check.integer("seed", seed, 0, 2**63 - 1),
        check.integer("epoch", epoch, 0, 2 ** (44 if box else 48) - 1),
    )
    if box is not None:
        if max(h, w, out_h, out_w) > MAX_SIDE:
            raise ValueError(
                f"images and crop must have sides of at most {MAX_SIDE} with scale, got {h}x{w} to {out_h}x{out_w}"
            )
        return gather_resized(
            images,
            where,
            numbers,
            keys,
            codes,
            imputed,
            rates,
            layout,
            rate,
            keep,
            out_h,
            out_w,
            box,
            flip,
            seed,
            epoch,
            name,
            out_layout,
            out=out,
        )
    return _op(
        images,
        where,
        numbers,
        keys,
        codes,
        imputed,
        rates,
        layout,
        rate,
        keep,
        pad,
        out_h,
        out_w,
        random_crop,
        flip,
        seed,
        epoch,
        name,
        out_layout,
        out=out,
    )


def _dtype_name(dtype: Dtype) -> object:
    if isinstance(dtype, str):
        return dtype
    try:
        return np.dtype(dtype).name if isinstance(dtype, (type, np.dtype)) else str(dtype).removeprefix("torch.")
    except TypeError:
        return dtype  # refused by its name


def _index(name: str, index: SampleIds, images: Array) -> Array:
    if not is_tensor(index) and not isinstance(index, np.ndarray):
        listed = selection.integers(name, index)
        if listed.ndim == 1 and listed.size == 0:
            listed = listed.astype(np.int64)
        index = listed.astype(np.int64) if listed.dtype.kind in "iu" else listed
        if is_tensor(images):
            import torch

            index = torch.from_numpy(index).to(images.device)
    check.array(name, index, ("int64", "int32"))
    if len(index.shape) != 1:
        raise ValueError(f"{name} must be [B], got shape {tuple(index.shape)}")
    return index


def _check_range(index: Array, n: int) -> None:
    """The check CPU kernels do anyway; on CUDA it waits for the device."""
    low, high = (int(index.min()), int(index.max())) if len(index) else (0, 0)
    if len(index) and (low < 0 or high >= n):
        raise ValueError(f"index must be in [0, {n}), got values from {low} to {high}")


def _check_codes(
    codes: Array | None, rate_index: int | SampleIds | None, nchw: tuple[int, int, int, int], images: Array, batch: int
) -> tuple[int, Array | None]:
    """The rate index of all samples, and those of each if they differ."""
    n, c, h, w = nchw
    if codes is None:
        if rate_index is not None:
            raise ValueError("rate_index needs codes: without them no pixel is removed")
        return -1, None
    check.array("codes", codes, ("uint8",))
    if tuple(codes.shape) not in ((n, h, w), (n, c, h, w)):
        raise ValueError(f"codes must be {(n, h, w)} or {(n, c, h, w)} like images, got shape {tuple(codes.shape)}")
    if rate_index is None:
        raise ValueError("codes needs rate_index, the position of the drop rate in the list the codes were made for")
    if isinstance(rate_index, (Sequence, np.ndarray)) or (is_tensor(rate_index) and len(rate_index.shape)):
        rates = _index("rate_index", rate_index, images)
        if len(rates) != batch:
            raise ValueError(
                f"rate_index must be one integer, or one per sample of the batch ({batch}), got {len(rates)}"
            )
        check.readable("rate_index", rates, images)
        on_host = not is_tensor(rates) or rates.device.type == "cpu"
        if on_host and batch and not (int(rates.min()) >= -1 and int(rates.max()) <= 255):
            raise ValueError(
                f"rate_index must be in [-1, 255], got values from {int(rates.min())} to {int(rates.max())}"
            )
        return -1, rates
    return check.integer("rate_index", rate_index, -1, 255), None


def _per_channel(name: str, value: PerChannel, channels: int) -> tuple[float, ...]:
    if is_tensor(value) and value.ndim:
        values: list[object] = value.detach().cpu().reshape(-1).tolist()
    elif type(value) in (tuple, list) or (isinstance(value, np.ndarray) and value.ndim):
        values = list(check.entries(name, value, "one number or one per channel"))
    else:
        values = [value] * channels
    if len(values) != channels:
        raise ValueError(f"{name} must be one number or one per channel ({channels}), got {len(values)}")
    return tuple(check.number(name, v) for v in values)


def _is_plain(value: object) -> bool:
    """Whether equal values mean the same: not arrays or tensors, which may change, nor True, which equals 1."""
    return type(value) in _NUMBERS or (type(value) is tuple and all(type(v) in _NUMBERS for v in value))


@lru_cache(maxsize=256)
def _numbers(
    channels: int, mean: PerChannel, std: PerChannel, fill: PerChannel | None, pad_value: PerChannel
) -> list[float]:
    """Mean, standard deviation, fill and padding, one after the other, each per channel."""
    means, stds = _per_channel("mean", mean, channels), _per_channel("std", std, channels)
    if min(stds) <= 0:
        raise ValueError(f"std must be > 0, got {min(stds):g}")
    fills = tuple(255.0 * m for m in means) if fill is None else _per_channel("fill", fill, channels)
    return [*means, *stds, *fills, *_per_channel("pad_value", pad_value, channels)]


@lru_cache(maxsize=256)
def _table(numbers: tuple[float, ...]) -> Numpy:
    """Rows scale, bias, normalised fill, normalised pad: what rf_gather_batch takes. Cached, so also on its device."""
    means, stds, fills, pads = np.array(numbers).reshape(4, -1)
    table = np.empty((4, len(means)), np.float32)
    table[0] = 1.0 / (255.0 * stds)
    table[1] = -means / stds
    for row, level in ((2, fills), (3, pads)):
        table[row] = level.astype(np.float32) * table[0]
        table[row] += table[1]
    return table


@lru_cache(maxsize=256)
def _table_on(numbers: tuple[float, ...], device: torch.device) -> torch.Tensor:
    import torch

    return torch.from_numpy(_table.__wrapped__(numbers)).to(device)


def _run(
    xp: Arrays[A],
    images: A,
    index: A,
    numbers: Sequence[float],
    ids: A | None,
    codes: A | None,
    imputed: A | None,
    rates: A | None,
    layout: str,
    rate_index: int,
    keep: bool,
    pad: int,
    out_h: int,
    out_w: int,
    random_crop: bool,
    flip: bool,
    seed: int,
    epoch: int,
    dtype: str,
    out_layout: str,
    out: A | None = None,
) -> A:
    if pad < 0 or out_h < 1 or out_w < 1:  # the public function has other names for them
        raise ValueError(f"pad must be >= 0 and out_h and out_w >= 1, got {pad}, {out_h} and {out_w}")
    for name, a in (("index", index), ("ids", ids), ("rate_index", rates)):
        check.operand(xp, name, a, ("int64", "int32"), tuple(index.shape))
    if len(numbers) % 4 or not numbers:
        raise ValueError(f"numbers must be 4 per channel, got {len(numbers)}")
    table = _table_on(tuple(numbers), images.device) if is_tensor(images) else _table(tuple(numbers))
    images, index = xp.contiguous(images), xp.contiguous(index, "int64")
    ids = None if ids is None else xp.contiguous(ids, "int64")
    rates = None if rates is None else xp.contiguous(rates, "int64")
    codes = None if codes is None else xp.contiguous(codes)
    imputed = None if imputed is None else xp.contiguous(imputed)
    if len(images.shape) != 4 or len(index.shape) != 1:
        raise ValueError(
            f"images and index must be [N, C, H, W] and [B], got {tuple(images.shape)} and {tuple(index.shape)}"
        )
    n, b, (c, h, w) = images.shape[0], index.shape[0], chw(images.shape, layout)
    if out_h > h + 2 * pad or out_w > w + 2 * pad:
        raise ValueError(f"out_h and out_w must fit the padded image {h + 2 * pad}x{w + 2 * pad}, got {out_h}x{out_w}")
    if b and not n:
        raise ValueError(f"index must be empty if images hold none, got {b} entries")
    check.operand(xp, "images", images, ("uint8",), tuple(images.shape))
    check.operand(xp, "numbers", table, ("float32",), (4, c))
    check.operand(xp, "codes", codes, ("uint8",), (n, h, w), (n, c, h, w))
    check.operand(xp, "imputed", imputed, ("uint8", "float16"), tuple(images.shape))
    table = xp.contiguous(table)
    code_channels = 1 if codes is None or len(codes.shape) == 3 else c
    imputed_dtype = DTYPE_CODES["uint8" if imputed is None else xp.dtype(imputed)]
    # The kernel sees dense memory: for NHWC that is the permuted view of what the caller gets.
    dense = out if out is None or out_layout == "NCHW" else permute(out, 0, 2, 3, 1)
    shape = [b, c, out_h, out_w] if out_layout == "NCHW" else [b, out_h, out_w, c]
    result = xp.output(dense, shape, dtype, images, index, table, ids, codes, imputed, rates)
    xp.call(
        images,
        "gather_batch",
        images,
        LAYOUT_CODES[layout],
        n,
        c,
        h,
        w,
        index,
        ids,
        b,
        codes,
        code_channels,
        rate_index,
        rates,
        keep,
        imputed,
        imputed_dtype,
        table,
        pad,
        out_h,
        out_w,
        random_crop,
        flip,
        seed,
        epoch,
        result,
        DTYPE_CODES[dtype],
        LAYOUT_CODES[out_layout],
    )
    xp.finish(result, dense)
    if out is not None:
        return out
    return result if out_layout == "NCHW" else permute(result, 0, 3, 1, 2)


def _fake(
    images: torch.Tensor,
    index: torch.Tensor,
    numbers: Sequence[float],
    ids: torch.Tensor | None,
    codes: torch.Tensor | None,
    imputed: torch.Tensor | None,
    rates: torch.Tensor | None,
    layout: str,
    rate_index: int,
    keep: bool,
    pad: int,
    out_h: int,
    out_w: int,
    random_crop: bool,
    flip: bool,
    seed: int,
    epoch: int,
    dtype: str,
    out_layout: str,
) -> torch.Tensor:
    import torch

    b, c = index.shape[0], images.shape[1 if layout == "NCHW" else 3]
    if out_layout == "NCHW":
        return images.new_empty((b, c, out_h, out_w), dtype=getattr(torch, dtype))
    return images.new_empty((b, out_h, out_w, c), dtype=getattr(torch, dtype)).permute(0, 3, 1, 2)


_op = define_op(
    "gather_batch",
    "(Tensor images, Tensor index, float[] numbers, Tensor? ids, Tensor? codes, Tensor? imputed, Tensor? rates, str layout, int rate_index, "
    "bool keep, int pad, int out_h, int out_w, bool random_crop, bool flip, int seed, int epoch, str dtype, str out_layout) "
    "-> Tensor",
    _run,
    _fake,
)
