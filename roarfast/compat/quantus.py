"""Quantus' `noisy_linear_imputation`, `ROAD`, the check of attributions that every metric makes, and the area under curves.

`quantus.ROAD(perturb_func=roarfast.compat.quantus.noisy_linear_imputation)` needs no patch; `patch("quantus")` also solves
whole batches. What is equal and what theirs gets wrong: docs/compat/quantus.md. Versions 0.6.0 and 0.5.3.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from roarfast import _backend
from roarfast._types import Numpy
from roarfast.compat import _impute, _quantus_road, _slots, _status
from roarfast.compat._options import Options
from roarfast.compat._peers import Peer, Replaced
from roarfast.compat._quantus_road import add_noise


def noisy_linear_imputation(arr: Numpy, indices: Numpy, noise: float = 0.01, **kwargs: object) -> Numpy:
    """`quantus.functions.perturb_func.noisy_linear_imputation`: same noise from NumPy's global generator.

    Args:
        arr: Image `[C, H, W]`: float16, float32 or float64.
        indices: Flat pixel numbers, `row * W + column`.
        noise: Standard deviation of the noise on imputed pixels.
        **kwargs: Ignored, as in the original. Quantus passes some.

    Returns:
        The imputed image, of the dtype of `arr`.

    Example:
        >>> import numpy as np
        >>> from roarfast.compat.quantus import noisy_linear_imputation
        >>> noisy_linear_imputation(np.ones((3, 8, 8), np.float32), np.array([9, 10, 17]), noise=0).std() < 1e-6
        np.True_
    """
    with _status.refusal("arr must be a finite float image [C, H, W] and indices 1-D integers of its pixels"):
        result = impute(arr, indices, noise, Options())
    _status.fast("quantus", "noisy_linear_imputation")
    return result


def impute(arr: Numpy, indices: Numpy, noise: float, options: Options) -> Numpy:
    """One image; `Outside` where Quantus must be asked."""
    check_image(arr, options)
    removed, count = removed_pixels(indices, arr.shape)
    if options.noise == "philox":
        ids = np.asarray(_impute.sample_ids(1), np.int64)
        return as_dtype(_impute.solve(arr[None], removed[None], options, None, float(noise), ids)[0], arr.dtype)
    solved = _impute.solve(arr, removed, options)
    return as_dtype(add_noise(solved[None], indices[None], noise, count < len(indices))[0], arr.dtype)


def check_image(arr: Numpy, options: Options) -> None:
    """`Outside` unless this is an image in our domain."""
    _status.require(type(arr) is np.ndarray and arr.ndim == 3 and arr.size > 0, "an image that is not [C, H, W]")
    if arr.dtype == np.uint8:
        # Quantus truncates the solution: 4.9999 and 5.0 differ by a whole level, so only its own solver will do.
        _status.require(options.fixed, "an image of integers")
    else:
        _status.require(arr.dtype in (np.float16, np.float32, np.float64), f"an image of dtype {arr.dtype}")


def removed_pixels(indices: Numpy, shape: tuple[int, ...]) -> tuple[npt.NDArray[np.bool_], int]:
    """Bool `[H, W]`, True at the flat pixel numbers, and how many are."""
    _status.require(isinstance(indices, np.ndarray) and indices.ndim == 1, "indices that are no 1-D array")
    _status.require(indices.dtype.kind in "iu", f"indices of dtype {indices.dtype}")
    removed = np.zeros(shape[-2:], np.bool_)
    listed = np.ascontiguousarray(indices, np.int64)
    count = _backend.cpu().mark_pixels(listed, listed.size, removed, removed.size)
    _status.require(count >= 0, "indices out of range")
    return removed, count


def as_dtype(image: Numpy, dtype: np.dtype[np.generic]) -> Numpy:
    """Of the dtype of the original; integers are rounded."""
    return np.rint(image).clip(0, 255).astype(dtype) if dtype.kind == "u" else image.astype(dtype, copy=False)


def attributions_are_fine(x_batch: Numpy, a_batch: Numpy) -> bool:
    """Whether every assertion of Quantus on attributions holds for certain; False: ask Quantus.

    Quantus makes a Python set of all values to see whether two differ. Two that do settle it.
    """
    if type(a_batch) is not np.ndarray or type(x_batch) is not np.ndarray or a_batch.dtype.kind != "f":
        return False
    if x_batch.ndim != 4 or a_batch.ndim != 4 or len(x_batch) != len(a_batch):
        return False
    channels, h, w = x_batch.shape[1:]
    if a_batch.shape[1:] not in ((1, h, w), (channels, h, w)) or 1 in (h, w) or channels in (h, w):
        return False  # its comparison of dimensions goes by their lengths
    flat = a_batch.reshape(-1)
    step = 1 << 12
    for first in (flat[start : start + step] for start in range(0, flat.size, step)):
        low, high = first.min(), first.max()
        if low < high and high >= 0:
            return True
    return False


# ---- the patch


def _load() -> Replaced:
    try:
        importlib.import_module("quantus")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"quantus cannot be imported ({error}); pip install quantus") from None
    functions = importlib.import_module("quantus.functions.perturb_func")
    return {
        "noisy_linear_imputation": _slots.original(functions, "noisy_linear_imputation"),
        "assert_attributions": _slots.original(
            importlib.import_module("quantus.helpers.asserts"), "assert_attributions"
        ),
        "calculate_auc": _slots.original(importlib.import_module("quantus.helpers.utils"), "calculate_auc"),
        "ROAD": importlib.import_module("quantus.metrics.faithfulness.road").ROAD,
        "IROF": importlib.import_module("quantus.metrics.faithfulness.irof").IROF,
    }


def _rebound(original: object, replacement: object) -> Iterator[_slots.Target]:
    """Every name in every module of Quantus, and every entry of a dict there, that holds this function."""
    for name, module in list(sys.modules.items()):
        if name != "quantus" and not name.startswith("quantus."):
            continue
        for attribute in list(vars(module)):
            value = _slots.original(module, attribute)
            if value is original:
                yield _slots.Target(module, attribute, replacement)
            elif isinstance(value, dict):
                for key in list(value):
                    if isinstance(key, str) and _slots.original(value, key) is original:
                        yield _slots.Target(value, key, replacement)


def _targets(replaced: Replaced, options: Options) -> list[_slots.Target]:
    original = replaced["noisy_linear_imputation"]

    @functools.wraps(original)
    def fast_imputation(arr: Numpy, indices: Numpy, noise: float = 0.01, **kwargs: object) -> Numpy:
        try:
            result = impute(arr, indices, noise, options)
        except _status.Outside as outside:
            _status.passed_on("quantus", "noisy_linear_imputation", str(outside))
            return original(arr, indices, noise, **kwargs)
        _status.fast("quantus", "noisy_linear_imputation")
        return result

    original_check = replaced["assert_attributions"]

    @functools.wraps(original_check)
    def fast_check(x_batch: Numpy, a_batch: Numpy) -> None:
        if attributions_are_fine(x_batch, a_batch):
            _status.fast("quantus", "assert_attributions")
            return
        _status.passed_on("quantus", "assert_attributions", "attributions of another shape, or constant")
        original_check(x_batch, a_batch)

    targets = [*_rebound(original, fast_imputation), *_rebound(original_check, fast_check)]
    if not hasattr(np, "trapz"):
        targets += _rebound(replaced["calculate_auc"], _auc(replaced["calculate_auc"]))
    known = (original, noisy_linear_imputation, fast_imputation)
    targets += _quantus_road.irof_targets(replaced["IROF"], options)
    return targets + _quantus_road.targets(replaced["ROAD"], options, known)


def _auc(original: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(original)
    def calculate_auc(values: npt.ArrayLike, dx: int = 1, batched: bool = False) -> Numpy | np.floating:
        # np.trapz, which the original calls, left NumPy in 2.4.
        _status.fast("quantus", "calculate_auc")
        return np.trapezoid(np.array(values), dx=dx, axis=1 if batched else 0)

    return calculate_auc


PEER = Peer(
    "quantus",
    "quantus",
    ("0.6.0", "0.5.3"),
    _load,
    _targets,
    {
        "noisy_linear_imputation": ("d9dff846a6e7bb8d", "6a5285ca34573013"),
        "ROAD": ("fe2ba300817ab125", "7e0ef9992c73011a"),
        "assert_attributions": ("f6ee6be96782b15d",),
        "calculate_auc": ("fea4de480a0e7a97", "8c38ca5197a99067"),
        "IROF": ("ea5f55938655805d", "1e9f3274bb4932ea"),
    },
)
