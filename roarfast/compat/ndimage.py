"""`scipy.ndimage`'s gaussian_filter, maximum_filter and sobel with their full signatures.

Change the import (`from roarfast.compat import ndimage`), or use `patch("scipy")`. Outside the domain below the call
goes to SciPy, and `status()` counts it with the reason. Nothing is approximated: maxima are equal, sums agree to 1e-6
(float32) and 1e-12 (float64) of the largest value.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from roarfast._types import Numpy
from roarfast.compat import _ndimage_domain as domain
from roarfast.compat import _passes, _slots, _status
from roarfast.compat._options import Options
from roarfast.compat._peers import Peer, Replaced
from roarfast.ops import gaussian_filter as _gaussian
from roarfast.ops import maximum_filter as _maximum
from roarfast.ops import sobel as _sobel

Output: TypeAlias = Numpy | npt.DTypeLike | None
"""Where to write the result, or its dtype."""

_Gaussian: TypeAlias = tuple[float, int, int, str]  # of an axis: sigma, radius, order, mode
_Window: TypeAlias = tuple[int, int, str]  # size, origin, mode

MAX_ORDER = 16  # of a derivative: beyond, weights of both signs cancel and the order of a sum shows


def gaussian_filter(
    input: npt.ArrayLike,
    sigma: float | Sequence[float],
    order: int | Sequence[int] = 0,
    output: Output = None,
    mode: str | Sequence[str] = "reflect",
    cval: complex = 0.0,
    truncate: float = 4.0,
    *,
    radius: int | Sequence[int] | None = None,
    axes: int | Sequence[int] | None = None,
) -> Numpy:
    """`scipy.ndimage.gaussian_filter`, along any axes, with derivatives, `output=` and a mode per axis.

    Fast for float32, float64, complex64 and complex128 results of any such or integer input. Integer results (SciPy
    rounds towards zero after every axis), NaN and infinity go to SciPy.

    Example:
        >>> import numpy as np
        >>> from roarfast.compat import ndimage
        >>> ndimage.gaussian_filter(np.eye(5), sigma=1, mode=("wrap", "nearest")).shape
        (5, 5)
    """
    arguments = (input, sigma, order, output, mode, cval, truncate)

    def attempt() -> Numpy:
        a, out, dtype = domain.arrays(input, output)
        _status.require(dtype in domain.FLOATS or dtype in domain.COMPLEX, f"output of dtype {dtype}")
        chosen = domain.axes(axes, a.ndim)
        n = len(chosen)
        sigmas = domain.numbers(domain.sequence(sigma, n), "sigma")
        orders = domain.integers(domain.sequence(order, n), "order", 0, MAX_ORDER)
        modes = domain.modes(domain.sequence(mode, n))
        reach = [domain.radius(s, truncate, r) for s, r in zip(sigmas, domain.sequence(radius, n))]
        live = [
            _passes.Axis(axis, (s, r, o, m))
            for axis, s, r, o, m in zip(chosen, sigmas, reach, orders, modes)
            # An axis of length 1 that reflects, repeats or wraps is a constant: its filter is the identity.
            if s > 1e-15 and not (a.shape[axis] == 1 and o == 0 and m != "constant")
        ]
        # Sums of both signs lose digits in float32; SciPy sums in float64 and rounds after every axis, as is done here.
        single, derives = domain.is_single(a.dtype, dtype), any(x.arguments[2] for x in live)
        work = np.dtype(np.float32) if single and not derives else np.dtype(np.float64)
        rounded = np.dtype(np.float32) if single and derives else None
        _status.require(a.dtype.kind != "c" or "constant" not in modes, "complex numbers and mode constant")

        def kernel(images: Numpy, rows: _Gaussian | None, columns: _Gaussian | None, result: Numpy) -> None:
            (sy, ry, oy, my), (sx, rx, ox, mx) = rows or (0.0, 0, 0, "nearest"), columns or (0.0, 0, 0, "nearest")
            _gaussian(images, (sy, sx), (my, mx), constant, radius=(ry, rx), order=(oy, ox), out=result)

        constant = domain.constant(cval, any(x.arguments[3] == "constant" for x in live))
        return _filtered(a, work, dtype, kernel, live, out, rounded=rounded)

    return _dispatch("gaussian_filter", attempt, arguments, {"radius": radius, "axes": axes})


def maximum_filter(
    input: npt.ArrayLike,
    size: int | Sequence[int] | None = None,
    footprint: npt.ArrayLike | None = None,
    output: Output = None,
    mode: str | Sequence[str] = "reflect",
    cval: complex = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: int | Sequence[int] | None = None,
) -> Numpy:
    """`scipy.ndimage.maximum_filter`, exactly: any axes, `origin=`, solid footprints, `output=`, a mode per axis.

    Fast for booleans, integers (64-bit ones below 2^53) and floats whose output holds every value of the input. NaN and
    footprints with holes go to SciPy.

    Example:
        >>> import numpy as np
        >>> from roarfast.compat import ndimage
        >>> ndimage.maximum_filter(np.array([0, 3, 1, 0]), size=2, origin=-1).tolist()
        [3, 3, 1, 0]
    """
    arguments = (input, size, footprint, output, mode, cval, origin)

    def attempt() -> Numpy:
        a, out, dtype = domain.arrays(input, output)
        chosen = domain.axes(axes, a.ndim)
        n = len(chosen)
        if footprint is None:
            _status.require(size is not None, "neither size nor footprint")
            wanted = domain.sequence(size, n)
        else:
            _status.require(size is None, "both size and footprint")
            solid = np.asarray(footprint, bool)
            _status.require(bool(solid.all()) and solid.size > 0, "a footprint with holes")
            wanted = domain.sequence(solid.shape, n)
        sizes = domain.integers(wanted, "size", 1)
        origins = domain.integers(domain.sequence(origin, n), "origin")
        _status.require(all(0 <= s // 2 + o < s for s, o in zip(sizes, origins) if s > 1), "an invalid origin")
        modes = domain.modes(domain.sequence(mode, n))
        live = [_passes.Axis(axis, (s, o, m)) for axis, s, o, m in zip(chosen, sizes, origins, modes) if s > 1]
        constant = domain.constant(cval, any(x.arguments[2] == "constant" for x in live))
        work = domain.maximum_dtype(a, dtype, constant)

        def kernel(images: Numpy, rows: _Window | None, columns: _Window | None, result: Numpy) -> None:
            (sy, oy, my), (sx, ox, mx) = rows or (1, 0, "nearest"), columns or (1, 0, "nearest")
            _maximum(images, (sy, sx), (my, mx), constant, origin=(oy, ox), out=result)

        return _filtered(a, work, dtype, kernel, live, out, finite=False)

    return _dispatch("maximum_filter", attempt, arguments, {"axes": axes})


def sobel(
    input: npt.ArrayLike,
    axis: int = -1,
    output: Output = None,
    mode: str | Sequence[str] = "reflect",
    cval: complex = 0.0,
) -> Numpy:
    """`scipy.ndimage.sobel`, with `output=` and a mode per axis.

    Fast for images (two axes that are longer than 1) of floats, complex numbers and integers (64-bit ones below 2^49);
    integers wrap around as SciPy's do.

    Example:
        >>> import numpy as np
        >>> from roarfast.compat import ndimage
        >>> ndimage.sobel(np.array([[0, 1, 2]] * 3, np.uint8), axis=1)[1].tolist()
        [4, 8, 4]
    """
    arguments = (input, axis, output, mode, cval)

    def attempt() -> Numpy:
        a, out, dtype = domain.arrays(input, output)
        _status.require(a.ndim == 2, f"{a.ndim} dimensions")
        along = domain.axes(axis, 2)[0]
        modes = domain.modes(domain.sequence(mode, 2))
        constant = domain.constant(cval, "constant" in modes)
        if dtype.kind in "iu":
            _status.require(a.dtype == dtype, f"output of dtype {dtype} for {a.dtype}")
            _status.require(constant == 0, "a cval for integers")
            largest = max(abs(int(a.max())), abs(int(a.min())))
            inside = dtype.kind == "i" and 8 * largest <= np.iinfo(dtype).max
            _status.require(inside or _wraps(dtype), f"{dtype} out of range")
            work = domain.exact_dtype(a, 8)
        else:
            _status.require(dtype in domain.FLOATS or dtype in domain.COMPLEX, f"output of dtype {dtype}")
            _status.require(a.dtype.kind != "c" or "constant" not in modes, "complex numbers and mode constant")
            work = np.dtype(np.float32) if domain.is_single(a.dtype, dtype) else np.dtype(np.float64)

        def kernel(images: Numpy, rows: tuple[()] | None, columns: tuple[()] | None, result: Numpy) -> None:
            _sobel(images, along - 2, modes, constant, out=result)

        return _filtered(a, work, dtype, kernel, [_passes.Axis(0, ()), _passes.Axis(1, ())], out)

    return _dispatch("sobel", attempt, arguments, {})


# ---- what the three share


def _dispatch(
    name: str, attempt: Callable[[], Numpy], arguments: tuple[object, ...], keywords: Mapping[str, object]
) -> Numpy:
    try:
        result = attempt()
    except _status.Outside as outside:
        _status.passed_on("scipy", name, str(outside))
        return _original(name)(*arguments, **{k: v for k, v in keywords.items() if v is not None})
    _status.fast("scipy", name)
    return result


def _original(name: str) -> Callable[..., Numpy]:
    import scipy.ndimage

    return _slots.original(scipy.ndimage, name)


@functools.cache
def _wraps(dtype: np.dtype[np.integer]) -> bool:
    """Whether SciPy's conversion of sums to this integer wraps around: up to the compiler, so it is tried."""
    top = int(np.iinfo(dtype).max)
    probe = np.array([[0, top, 0, 3, 1], [top, 0, 1, 2, 0], [5, top, top, 0, 0]], dtype)
    wide = _original("sobel")(probe.astype(np.float64), 1)
    return bool(np.array_equal(_original("sobel")(probe, 1), wide.astype(np.int64).astype(dtype)))


def _filtered(
    a: Numpy,
    work: domain.DType,
    dtype: domain.DType,
    kernel: _passes.Kernel[_passes.ArgumentsT],
    live: list[_passes.Axis[_passes.ArgumentsT]],
    out: Numpy | None,
    finite: bool = True,
    rounded: domain.DType | None = None,
) -> Numpy:
    """Filters in `work`, converts to `dtype` and writes to `out`, which may be the input itself."""
    if a.dtype.kind == "c":
        part = domain.COMPLEX.get(a.dtype.newbyteorder("="))
        _status.require(part is not None, f"input of dtype {a.dtype}")
        result = np.empty(a.shape, dtype)
        # Each part is rounded as SciPy's parts are.
        real_dtype = domain.COMPLEX[dtype]
        result.real = _filtered(a.real, work, real_dtype, kernel, live, None, rounded=rounded)
        result.imag = _filtered(a.imag, work, real_dtype, kernel, live, None, rounded=rounded)
    else:
        dense = np.ascontiguousarray(a, work).reshape(a.shape)
        if rounded is not None:
            result = _passes.run_rounded(kernel, dense, live, rounded)
        else:
            result = _passes.run(kernel, dense, live) if live else dense
        if finite and live:
            # NaN and infinity spread over windows whose weights may underflow in one precision only.
            _status.require(bool(np.isfinite(result.sum(dtype=np.float64))), "NaN or infinity")
        if dtype.kind in "iu" and result.dtype.kind == "f":
            result = result.astype(np.int64).astype(dtype)
        elif dtype != result.dtype:
            with np.errstate(over="ignore"):
                result = result.astype(dtype)
        elif result is a or (not live and np.may_share_memory(result, a)):
            result = result.copy()
    if out is None:
        return result
    out[...] = result
    return out


# ---- the patch


def _load() -> Replaced:
    try:
        importlib.import_module("scipy.ndimage")
    except ModuleNotFoundError:
        raise ModuleNotFoundError("scipy is not installed; get it with: pip install scipy") from None
    return {name: _original(name) for name in ("gaussian_filter", "maximum_filter", "sobel")}


def _targets(replaced: Replaced, options: Options) -> list[_slots.Target]:
    ours = {"gaussian_filter": gaussian_filter, "maximum_filter": maximum_filter, "sobel": sobel}
    return [_slots.Target(sys.modules["scipy.ndimage"], name, ours[name]) for name in replaced]


PEER = Peer("scipy", "scipy", ("1.17.1",), _load, _targets)
