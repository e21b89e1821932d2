"""ROAD's noisy linear imputation, exact and batched."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from roarfast._types import Array, Numpy
from roarfast.ops import _check as check
from roarfast.ops import _selection as selection
from roarfast.ops._arrays import DTYPE_CODES, FLOATS, LAYOUT_CODES, NUMPY, A, Arrays, ArrayT, SampleIds
from roarfast.ops._images import channels_hint
from roarfast.ops._op import _torch_arrays, define_op, is_tensor
from roarfast.ops._renamed import renamed

if TYPE_CHECKING:
    import torch

Weights: TypeAlias = "npt.ArrayLike | torch.Tensor"
"""3×3 numbers."""

NOISE_KINDS = {"gaussian": 0, "uniform": 1}  # the values of rf_impute_noise
ROAD_WEIGHTS = ((1 / 12, 1 / 6, 1 / 12), (1 / 6, 0.0, 1 / 6), (1 / 12, 1 / 6, 1 / 12))
_CONVERGED, _NOT_CONVERGED, _NON_FINITE = range(3)  # rf_impute_status


class ImputeInfo(NamedTuple):
    """What `impute_linear` did, per image: NumPy arrays shaped like the leading dimensions of `x`.

    Attributes:
        iterations: int32, cycles of the solver, the most over channels; 0 where there was nothing to solve.
        residual: float64, the last correction relative to the range of the known pixels, the largest over channels.
            The correction is added before the solver stops, so the error is smaller still.
        converged: bool, whether `tol` was reached in every channel.
        empty: int64, removed pixels that no known pixel determines; they got `empty_value`.
    """

    iterations: npt.NDArray[np.int32]
    residual: npt.NDArray[np.float64]
    converged: npt.NDArray[np.bool_]
    empty: npt.NDArray[np.int64]


@overload
def impute_linear(
    x: ArrayT,
    mask: Array,
    noise: float = ...,
    seed: int = ...,
    index: SampleIds | None = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    weights: Weights | None = ...,
    return_info: Literal[False] = ...,
    *,
    noise_kind: str = ...,
    empty_value: float = ...,
    layout: str = ...,
    check_result: bool = ...,
    out: ArrayT | None = ...,
) -> ArrayT: ...


@overload
def impute_linear(
    x: ArrayT,
    mask: Array,
    noise: float = ...,
    seed: int = ...,
    index: SampleIds | None = ...,
    tol: float = ...,
    max_iter: int | None = ...,
    weights: Weights | None = ...,
    *,
    return_info: Literal[True],
    noise_kind: str = ...,
    empty_value: float = ...,
    layout: str = ...,
    check_result: bool = ...,
    out: ArrayT | None = ...,
) -> tuple[ArrayT, ImputeInfo]: ...


@renamed(channels_last='layout="NHWC"')
def impute_linear(
    x: ArrayT,
    mask: Array,
    noise: float = 0.01,
    seed: int = 0,
    index: SampleIds | None = None,
    tol: float = 1e-5,
    max_iter: int | None = None,
    weights: Weights | None = None,
    return_info: bool = False,
    *,
    noise_kind: str = "gaussian",
    empty_value: float = 0.0,
    layout: str = "NCHW",
    check_result: bool = True,
    out: ArrayT | None = None,
) -> ArrayT | tuple[ArrayT, ImputeInfo | None]:
    """Replace removed pixels by the weighted mean of their neighbours, all of them at once, plus noise (ROAD).

    Every removed pixel equals the weighted mean of its neighbours inside the image, known and removed alike: one sparse
    linear system per image and channel. It is solved to `tol`, whatever the mask. How, and how fast: docs/imputation.md.

    Known pixels come out bit for bit as they were. Filled values stay within the range of the known pixels of their
    channel (before noise); a constant channel stays constant. The result of an image does not depend on the batch it is
    in or on the number of threads.

    Args:
        x: Images `[..., C, H, W]`, or `[..., H, W, C]` with `layout="NHWC"`: float16, bfloat16 (torch), float32, float64
            or uint8. Known pixels must be finite; removed ones may hold anything.
        mask: bool or uint8 `[..., H, W]`, True or nonzero = removed; broadcast over the leading dimensions of `x`.
        noise: Standard deviation of the noise on removed pixels, or its upper end for `noise_kind="uniform"`; in the
            units of `x`. ROAD uses 0.01 on images in [0, 1].
        seed: In [0, 2^63). Noise is keyed by (seed, sample id, channel, pixel).
        index: Sample ids, integers shaped like the leading dimensions of `x`; default 0, 1, 2, … in order.
        tol: Largest error against the exact solution, as a fraction of the range of the known pixels of the channel;
            in [1e-10, 0.1]. Rounding to the dtype of the result comes on top. float64 images, and any others for `tol`
            below 5e-6, are solved in float64.
        max_iter: Most cycles of the solver, which usually needs 4 to 9; default 200, and more for custom weights.
        weights: 3×3 neighbour weights, point-symmetric (`w[-dy, -dx] == w[dy, dx]`) and >= 0; the centre is ignored,
            the scale does not matter. Default: ROAD's 1/6 for the four edge neighbours, 1/12 for the diagonal ones.
        return_info: Also return an `ImputeInfo`.
        noise_kind: `"gaussian"`, or `"uniform"` in [0, noise).
        empty_value: The value of removed pixels that no known pixel determines: all of them if every pixel of an image
            is removed; with weights that leave the image disconnected, parts without a known pixel.
        layout: Memory order of `x` and of the result, `"NCHW"` or `"NHWC"`.
        check_result: Whether to raise or warn by what happened (see below), which on CUDA waits for the device once.
            False in CUDA-graph capture.
        out: Where to write the result.

    Returns:
        Images shaped like `x`, of its dtype, float32 for uint8; with `return_info` a pair of them and an `ImputeInfo`.

    Raises:
        ValueError: If a known pixel is NaN or infinite.

    Warns:
        RuntimeWarning: If an image did not reach `tol` within `max_iter`.

    Example:
        >>> import numpy as np, roarfast as rf
        >>> x = np.zeros((1, 1, 3), np.float32)
        >>> x[..., 2] = 1
        >>> rf.impute_linear(x, np.array([[False, True, False]]), noise=0)[0, 0].tolist()
        [0.0, 0.5, 1.0]
    """
    check.one_of("layout", layout, LAYOUT_CODES)
    wants_info = check.flag("return_info", return_info)
    check.array("x", x, (*FLOATS, "uint8"), 3, f"[..., {', '.join(layout[1:])}]")
    result, info = solve(
        x,
        mask,
        noise,
        seed,
        index,
        tol,
        max_iter,
        weights,
        noise_kind,
        empty_value,
        layout,
        "float32" if check.dtype_name(x) == "uint8" else check.dtype_name(x),
        out,
        check_result,
        return_info,
    )
    return (result, info) if wants_info else result


def solve(
    x: ArrayT,
    mask: Array,
    noise: float,
    seed: int,
    index: SampleIds | None,
    tol: float,
    max_iter: int | None,
    weights: Weights | None,
    noise_kind: str,
    empty_value: float,
    layout: str,
    dtype: str,
    out: ArrayT | None,
    checked: bool = True,
    with_info: bool = False,
) -> tuple[ArrayT, ImputeInfo | None]:
    """`impute_linear` with the dtype of the result chosen: uint8 images may also become uint8 or float16."""
    check.array("mask", mask, ("bool", "uint8"), 2, "[..., H, W]")
    check.same_kind(x=x, mask=mask)
    leading = tuple(x.shape[:-3])
    h, w = (x.shape[-3], x.shape[-2]) if layout == "NHWC" else (x.shape[-2], x.shape[-1])
    if tuple(mask.shape[-2:]) != (h, w):
        raise ValueError(
            f"mask must be [..., {h}, {w}] like x, got shape {tuple(mask.shape)}{channels_hint(mask.shape, x.shape)}"
        )
    own = tuple(mask.shape[:-2])
    aligned = leading[len(leading) - len(own) :] if len(own) <= len(leading) else None
    if aligned is None or any(a not in (1, b) for a, b in zip(own, aligned)):
        raise ValueError(
            f"mask must broadcast to the leading dimensions {leading} of x plus ({h}, {w}), got shape {tuple(mask.shape)}"
            f"{channels_hint(mask.shape, x.shape)}"
        )
    check.one_of("noise_kind", noise_kind, NOISE_KINDS)
    halves = _half_weights(weights)
    if max_iter is None:
        max_iter = 200 if weights is None and min(h, w) > 1 else 500 + 20 * (h + w)
    args = (
        x,
        mask,
        _sample_ids(index, x, leading),
        check.number("noise", noise, low=0),
        noise_kind,
        check.integer("seed", seed, 0, 2**63 - 1),
        check.number("tol", tol, 1e-10, 0.1),
        check.integer("max_iter", max_iter, 1, 2**30),
        halves,
        check.number("empty_value", empty_value),
        layout,
        dtype,
        check.flag("check_result", checked),
    )
    if out is None:
        result, *parts = _op(*args)
    elif is_tensor(out) and out.requires_grad:
        raise ValueError("out must not require a gradient: what is written there has none")
    else:
        # Not `_op(..., out=out)`: torch has no variant of it that writes one of five results.
        result, *parts = _op.run(_torch_arrays() if is_tensor(x) else NUMPY, *args, out=out)
    return result, (_summary(parts, leading) if with_info else None)


def _half_weights(weights: Weights | None) -> list[float]:
    """The four weights (upper left, above, upper right, left) that determine the neighbourhood."""
    if weights is None:
        return [1.0, 2.0, 1.0, 2.0]
    try:
        given = weights.detach().cpu().numpy() if is_tensor(weights) else np.asarray(weights)
        if given.dtype.kind not in "iuf":
            raise TypeError
        w = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise TypeError(f"weights must be 3x3 numbers, got {weights!r}") from None
    if w.shape != (3, 3):
        raise ValueError(f"weights must be 3x3, got shape {w.shape}")
    w[1, 1] = 0
    if not np.isfinite(w).all() or (w < 0).any():
        raise ValueError(f"weights must be finite and >= 0, got {w.tolist()}")
    if not np.allclose(w, w[::-1, ::-1], rtol=1e-12, atol=0):
        raise ValueError(f"weights must be point-symmetric, w[-dy, -dx] == w[dy, dx], got {w.tolist()}")
    if not w.any():
        raise ValueError("weights must have a neighbour with a weight > 0")
    if np.allclose(w / w.sum(), np.array(ROAD_WEIGHTS), rtol=1e-12):
        return [1.0, 2.0, 1.0, 2.0]  # exactly, so that the kernel sees the default
    return [float(v) for v in (w[0, 0], w[0, 1], w[0, 2], w[1, 0])]


def _sample_ids(index: SampleIds | None, x: Array, leading: tuple[int, ...]) -> Array | None:
    if index is None:
        return None
    if not is_tensor(index):
        index = selection.integers("index", index).astype(np.int64)
        if is_tensor(x):
            import torch

            index = torch.from_numpy(index).to(x.device)
    else:
        check.readable("index", index, x)
        index = index if is_tensor(x) else index.detach().cpu().numpy()
    check.array("index", index, selection.INTEGERS)
    if tuple(index.shape) != leading and tuple(index.shape) != (math.prod(leading),):
        raise ValueError(f"index must be shaped like the leading dimensions {leading} of x, got {tuple(index.shape)}")
    return index


def _on_host(a: Array) -> Numpy:
    return a.detach().cpu().numpy() if is_tensor(a) else a


def _summary(parts: Sequence[Array], leading: tuple[int, ...]) -> ImputeInfo:
    iterations, residual, status, empty = map(_on_host, parts)
    return ImputeInfo(
        iterations.max(1, initial=0).reshape(leading),
        residual.max(1, initial=0.0).reshape(leading),
        (status == _CONVERGED).all(1).reshape(leading),
        empty.reshape(leading),
    )


def _report(all_status: Array, residual: Array, ids: Array | None, tol: float, max_iter: int) -> None:
    """Raises for non-finite known pixels and warns of images that did not converge. Waits for the device, once."""
    status = _on_host(all_status)
    if not status.any():
        return

    def name(image: int) -> str:
        if ids is None:
            return f"image {image}"
        return f"image {image} (sample {int(ids.reshape(-1)[image])})"

    bad = np.flatnonzero((status == _NON_FINITE).any(1))
    if bad.size:
        more = f" and {bad.size - 1} more" if bad.size > 1 else ""
        raise ValueError(f"x must be finite at known pixels: {name(int(bad[0]))}{more} has NaN or infinity there")
    late = np.flatnonzero((status == _NOT_CONVERGED).any(1))
    if late.size:
        more = f" and {late.size - 1} more" if late.size > 1 else ""
        warnings.warn(
            f"impute_linear: {name(int(late[0]))}{more} did not reach tol={tol:g} within max_iter={max_iter}: the last "
            f"correction was {_on_host(residual)[late[0]].max():.2g} of the range of the known pixels",
            RuntimeWarning,
            stacklevel=6,
        )


def _run(
    xp: Arrays[A],
    x: A,
    mask: A,
    index: A,
    noise: float,
    noise_kind: str,
    seed: int,
    tol: float,
    max_iter: int,
    weights: Sequence[float],
    empty_value: float,
    layout: str,
    dtype: str,
    checked: bool,
    out: A | None = None,
) -> tuple[A, ...]:
    if len(x.shape) < 3 or len(mask.shape) < 2:
        raise ValueError(
            f"x and mask must be [..., C, H, W] and [..., H, W], got {tuple(x.shape)} and {tuple(mask.shape)}"
        )
    x = xp.contiguous(x)
    leading: tuple[int, ...] = tuple(x.shape[:-3])
    c, h, w = (x.shape[-1], *x.shape[-3:-1]) if layout == "NHWC" else tuple(x.shape[-3:])
    n = math.prod(leading)
    shared = math.prod(mask.shape[:-2]) == 1
    if not shared and tuple(mask.shape[:-2]) != leading:
        shape = (*leading, h, w)
        mask = mask.expand(shape) if is_tensor(mask) else np.broadcast_to(mask, shape)
    mask = xp.contiguous(mask)
    check.operand(xp, "mask", mask, ("bool", "uint8"), (*mask.shape[:-2], h, w))
    check.operand(xp, "index", index, selection.INTEGERS, leading, (n,))
    index = None if index is None else xp.contiguous(index, "int64")
    code = DTYPE_CODES[xp.dtype(x)]
    result = xp.output(out, x.shape, dtype, x, mask, index)
    cycles, residual, status = (_zeros(xp, (n, c), name, x) for name in ("int32", "float64", "int32"))
    empty = _zeros(xp, (n,), "int64", x)
    bytes_needed = xp.query(x, "impute_linear_workspace_bytes", code, n, c, h, w, *weights, tol)
    workspace = xp.empty([bytes_needed], "uint8", x)
    xp.call(
        x, "impute_linear", x, mask, result, code, DTYPE_CODES[dtype], n, c, h, w, LAYOUT_CODES[layout],
        1 if shared else n, *weights, tol, max_iter, empty_value, noise, NOISE_KINDS[noise_kind], seed, index,
        cycles, residual, status, empty, workspace,
    )  # fmt: skip
    if checked:
        _report(status, residual, index, tol, max_iter)
    return xp.finish(result, out), cycles, residual, status, empty


def _zeros(xp: Arrays[A], shape: Sequence[int], dtype: str, like: A) -> A:
    a = xp.empty(shape, dtype, like)
    if is_tensor(a):
        a.zero_()
    else:
        a.fill(0)
    return a


def _fake(
    x: torch.Tensor,
    mask: torch.Tensor,
    index: torch.Tensor | None,
    noise: float,
    noise_kind: str,
    seed: int,
    tol: float,
    max_iter: int,
    weights: Sequence[float],
    empty_value: float,
    layout: str,
    dtype: str,
    checked: bool,
) -> tuple[torch.Tensor, ...]:
    import torch

    n = math.prod(x.shape[:-3])
    c = x.shape[-1] if layout == "NHWC" else x.shape[-3]
    return (
        x.new_empty(x.shape, dtype=getattr(torch, dtype)),
        x.new_empty((n, c), dtype=torch.int32),
        x.new_empty((n, c), dtype=torch.float64),
        x.new_empty((n, c), dtype=torch.int32),
        x.new_empty((n,), dtype=torch.int64),
    )


_op = define_op(
    "impute_linear",
    "(Tensor x, Tensor mask, Tensor? index, float noise, str noise_kind, int seed, float tol, int max_iter, "
    "float[] weights, float empty_value, str layout, str dtype, bool checked) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    _run,
    _fake,
)
