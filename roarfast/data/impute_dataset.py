"""Linear imputation of a whole uint8 dataset at one or several drop rates: what ROAD with retraining needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from roarfast._progress import progress as show_progress
from roarfast._types import Array, Numpy
from roarfast.ops import _check as check
from roarfast.ops import _selection as selection
from roarfast.ops._arrays import LAYOUT_CODES, ArrayT, SampleIds, check_out, shares_memory
from roarfast.ops._images import channels_hint
from roarfast.ops._op import is_tensor
from roarfast.ops._renamed import renamed
from roarfast.ops.impute_linear import Weights, solve

_CHUNK_BYTES = 64 << 20  # of images at a time: enough to keep every thread busy, little beside a dataset


@renamed(j="rate_index=...")
def impute_dataset(
    images: ArrayT,
    codes: Array,
    drops: Sequence[float],
    rate_index: int | Sequence[int] | None = None,
    *,
    noise: float = 0.01,
    noise_kind: str = "gaussian",
    seed: int = 0,
    index: SampleIds | None = None,
    tol: float = 1e-5,
    max_iter: int | None = None,
    weights: Weights | None = None,
    empty_value: float = 0.0,
    keep: bool = False,
    layout: str = "NCHW",
    dtype: str = "uint8",
    chunk: int | None = None,
    progress: bool = True,
    out: ArrayT | None = None,
) -> ArrayT:
    """Impute every image of a dataset at one or several drop rates.

    Works in chunks, so `images` and `out` may be memory maps larger than memory. The result goes to
    `gather_batch(…, imputed=…)`.

    Args:
        images: uint8 `[N, C, H, W]`, or `[N, H, W, C]` with `layout="NHWC"`.
        codes: Rank codes, uint8 `[N, H, W]`: a pixel is removed at `drops[rate_index]` where `codes <= rate_index`.
        drops: The drop rates that the codes were made for, ascending.
        rate_index: Which of them: a position, or several; default all.
        noise: As in `impute_linear`, but in units of 0..1: 0.01 is 2.55 grey levels.
        noise_kind: As in `impute_linear`.
        seed: As in `impute_linear`. The same noise is used at every drop rate.
        index: Sample ids `[N]` that key the noise; default 0, 1, 2, …
        tol: As in `impute_linear`.
        max_iter: As in `impute_linear`.
        weights: As in `impute_linear`.
        empty_value: As in `impute_linear`, in units of 0..255.
        keep: Remove where `codes > rate_index` instead (KAR).
        layout: Memory order of `images` and of the result.
        dtype: `"uint8"` (rounded), or `"float16"` in units of 0..255.
        chunk: Images per step; default about 64 MB of them.
        progress: Whether to show a progress bar on stderr (lines now and then where it is no terminal).
        out: Where to write the result, for instance a memory map.

    Returns:
        Images of `dtype`, shaped like `images`; with an axis of drop rates in front unless `rate_index` is a single
        position.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> images = np.full((2, 3, 8, 8), 7, np.uint8)
        >>> codes = np.arange(64, dtype=np.uint8).reshape(8, 8).repeat(2).reshape(2, 8, 8) // 22
        >>> rf.impute_dataset(images, codes, [0.3, 0.6], noise=0, progress=False).shape
        (2, 2, 3, 8, 8)
    """
    check.array("images", images, ("uint8",))
    check.one_of("layout", layout, LAYOUT_CODES)
    check.one_of("dtype", dtype, ("uint8", "float16"))
    check.array("codes", codes, ("uint8",))
    check.same_kind(images=images, codes=codes)
    for name, a in (("images", images), ("codes", codes)):
        check.readable(name, a)
    if len(images.shape) != 4:
        raise ValueError(f"images must be {list(layout)}, got shape {tuple(images.shape)}")
    n = int(images.shape[0])
    h, w = images.shape[2:] if layout == "NCHW" else images.shape[1:3]
    if tuple(codes.shape) != (n, h, w):
        raise ValueError(
            f"codes must be {(n, h, w)} like images, got shape {tuple(codes.shape)}{channels_hint(codes.shape, images.shape)}"
        )
    rates = selection.rates("drops", drops)
    single = rate_index is not None and (isinstance(rate_index, (str, bytes)) or np.ndim(rate_index) == 0)  # type: ignore[arg-type]
    listed: Sequence[object] | Numpy = [rate_index] if single else range(len(rates))
    if rate_index is not None and not single:
        listed = check.entries("rate_index", rate_index, "a position or several")
    positions = [check.integer("rate_index", p, 0, len(rates) - 1) for p in listed]
    if not positions:
        raise ValueError("rate_index must have at least one position, got none")
    noise = 255 * check.number("noise", noise, 0)
    keep, show = check.flag("keep", keep), check.flag("progress", progress)
    ids = _ids(index, images)
    shape = tuple(images.shape) if single else (len(positions), *images.shape)
    result = _output(out, shape, dtype, images, codes)
    per_image = max(1, int(np.prod(images.shape[1:], dtype=np.int64)))
    step = check.integer("chunk", chunk, low=1) if chunk is not None else max(1, _CHUNK_BYTES // (12 * per_image))

    if not n:  # nothing to do, but as for any other number of images the rest must be right
        empty = images[:0].reshape(0, *images.shape[1:])
        options = seed, ids, tol, max_iter, weights, noise_kind, empty_value, layout, dtype, None
        solve(empty, codes > 0, noise, *options)
    with show_progress("imputing", n * len(positions), show=show) as job:
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            x, codes_here = images[rows], codes[rows]
            for k, position in enumerate(positions):
                mask = codes_here > position if keep else codes_here <= position
                target = result[rows] if single else result[k, rows]
                solve(
                    x,
                    mask,
                    noise,
                    seed,
                    ids[rows],
                    tol,
                    max_iter,
                    weights,
                    noise_kind,
                    empty_value,
                    layout,
                    dtype,
                    target,
                )
                job.advance(int(x.shape[0]), f"drop rate {rates[position]:g}")
    return result


def _ids(index: SampleIds | None, images: Array) -> Array:
    n = int(images.shape[0])
    if index is None:
        index = np.arange(n, dtype=np.int64)
    if not is_tensor(index):
        index = selection.integers("index", index).astype(np.int64)
        if is_tensor(images):
            import torch

            index = torch.from_numpy(index).to(images.device)
    else:
        check.array("index", index, selection.INTEGERS)
        check.readable("index", index)
        # A copy: `out` may lie on it, and later chunks read it after earlier ones were written.
        index = index.clone() if is_tensor(images) else index.detach().cpu().numpy()
    if tuple(index.shape) != (n,):
        raise ValueError(f"index must be [{n}], got shape {tuple(index.shape)}")
    return index


def _output(out: ArrayT | None, shape: tuple[int, ...], dtype: str, images: ArrayT, codes: Array) -> Any:
    # Really -> ArrayT, of the library of `images`, which mypy cannot follow through `is_tensor`.
    if out is None:
        if is_tensor(images):
            import torch

            return torch.empty(shape, dtype=getattr(torch, dtype), device=images.device)
        return np.empty(shape, dtype)
    check.array("out", out, (dtype,))
    check.same_kind(images=images, out=out)
    check_out(out, shape, dtype, check.dtype_name(out))
    if not is_tensor(out) and not out.flags.writeable:
        raise ValueError("out must be writable, got a read-only array")
    # Chunks are read after others were written.
    if any(shares_memory(out, a) for a in (images, codes)):
        raise ValueError("out must not share memory with images or codes")
    return out
