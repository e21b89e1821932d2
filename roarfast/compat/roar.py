"""The transforms of SIAnalytics' roar, `LinearImputation` and `RemOve`.

`patch("roar")` beside a clone, or `linear_imputation` and `removal_mask` in a pipeline of one's own. What is equal:
docs/compat/roar.md.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypedDict

import numpy as np
import numpy.typing as npt

from roarfast._types import Numpy
from roarfast.compat import _impute, _slots, _status, ndimage
from roarfast.compat._options import Options
from roarfast.compat._peers import Peer, Replaced
from roarfast.ops import percentile


def linear_imputation(img: Numpy, mask: Numpy, noise: float = 0.01, options: Options | None = None) -> Numpy:
    """An image `[H, W, C]` with the pixels where `mask` `[H, W]` or `[H, W, 1]` is 1 imputed.

    The noise is uniform in [0, noise), from NumPy's global generator in the original's order.

    Raises:
        ValueError: If the arrays have other shapes or dtypes, or a known pixel is not finite.

    Example:
        >>> import numpy as np
        >>> from roarfast.compat.roar import linear_imputation
        >>> image, mask = np.full((5, 5, 3), 7, np.float32), np.zeros((5, 5, 1))
        >>> mask[2, 2] = 1
        >>> linear_imputation(image, mask, noise=0)[2, 2].tolist()
        [7.0, 7.0, 7.0]
    """
    with _status.refusal("img must be a finite float32 or float64 image [H, W, C] and mask [H, W] of 0 and 1"):
        return _imputed(img, mask, noise, options or Options())


def _imputed(img: Numpy, mask: Numpy, noise: float, options: Options) -> Numpy:
    _status.require(type(img) is np.ndarray and img.ndim == 3 and img.size > 0, "an image that is not [H, W, C]")
    _status.require(img.dtype in (np.float32, np.float64), f"an image of dtype {img.dtype}")
    flat = np.asarray(mask).reshape(-1)
    _status.require(flat.size == img.shape[0] * img.shape[1], "a mask of another size than the image")
    removed = flat == 1
    _status.require(bool((removed | (flat == 0)).all()), "a mask with values between 0 and 1")
    removed = removed.reshape(img.shape[:2])
    image = np.ascontiguousarray(img.transpose(2, 0, 1))
    if options.noise == "philox":
        ids = np.asarray(_impute.sample_ids(1), np.int64)
        solved = _impute.solve(image[None], removed[None], options, None, float(noise), ids)[0]
    else:
        solved = _impute.solve(image, removed, options)
        values = np.random.random((len(image), int(removed.sum())))  # noqa: NPY002 - the original's generator
        if noise:
            spread = np.zeros(image.shape, image.dtype)
            spread[:, removed] = noise * values
            solved += spread
    return solved.transpose(1, 2, 0)


def removal_mask(
    attribution: Numpy,
    ratio: float,
    kind: str = "none",
    maximum: Mapping[str, Any] | None = None,
    gaussian: Mapping[str, Any] | None = None,
) -> npt.NDArray[np.bool_]:
    """Bool `[H, W, 1]`: the `ratio` percent of pixels with the largest mean over channels of `[C, H, W]`, filtered first.

    Args:
        attribution: `[C, H, W]`.
        ratio: In percent.
        kind: `"none"`, `"maximum"` or `"gaussian"`.
        maximum: Arguments of `scipy.ndimage.maximum_filter`; default size 3.
        gaussian: Arguments of `scipy.ndimage.gaussian_filter`; default sigma 1.
    """
    if kind not in ("none", "maximum", "gaussian"):
        raise ValueError(f"kind must be one of 'none', 'maximum' or 'gaussian', got {kind!r}")
    values = attribution.mean(axis=0)[..., None]
    if kind == "maximum":
        values = ndimage.maximum_filter(values, **({"size": 3} if maximum is None else maximum))
    elif kind == "gaussian":
        values = ndimage.gaussian_filter(values, **({"sigma": 1.0} if gaussian is None else gaussian))
    return np.asarray(values >= percentile(values[..., 0], 100 - ratio))


# ---- the patch


class _Results(TypedDict, total=False):
    """What is read and written of what mmcv's transforms hand on."""

    img: Numpy
    img_path: str
    mask: Numpy
    mask_path: str


class _LinearImputation(Protocol):
    """What is read of the peer's `LinearImputation`."""

    noise: float


class _RemOve(Protocol):
    """What is read of the peer's `RemOve`."""

    mask_dir: str
    attr: str
    ratio: float
    filter: str
    maximum_kwargs: Mapping[str, Any]
    gaussian_kwargs: Mapping[str, Any]
    apply_mask: bool
    mean: Numpy


def _load() -> Replaced:
    try:
        infilling = importlib.import_module("roar.datasets.transforms.infilling")
        masking = importlib.import_module("roar.datasets.transforms.masking")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"roar cannot be imported ({error}): its folder must be on the path, and mmpretrain installed"
        ) from None
    return {"LinearImputation": infilling.LinearImputation, "RemOve": masking.RemOve}


def _targets(replaced: Replaced, options: Options) -> list[_slots.Target]:
    imputation, remove = replaced["LinearImputation"], replaced["RemOve"]
    original_imputation = _slots.original(imputation, "transform")
    original_remove = _slots.original(remove, "transform")

    def impute(self: _LinearImputation, results: _Results) -> _Results:
        try:
            image = _imputed(results["img"], results["mask"], float(self.noise), options)
        except _status.Outside as outside:
            _status.passed_on("roar", "LinearImputation", str(outside))
            return original_imputation(self, results)
        _status.fast("roar", "LinearImputation")
        results["img"] = image
        return results

    def mask(self: _RemOve, results: _Results) -> _Results:
        path = Path(self.mask_dir, self.attr, Path(results["img_path"]).stem + ".npy")
        attribution = np.load(path, allow_pickle=False)
        fine = (
            attribution.ndim == 3 and attribution.dtype in (np.float32, np.float64) and np.isfinite(attribution).all()
        )
        if not fine or self.filter not in ("none", "maximum", "gaussian"):
            _status.passed_on("roar", "RemOve", "maps that are not finite [C, H, W] floats, or an unknown filter")
            return original_remove(self, results)
        gone = removal_mask(attribution, self.ratio, self.filter, self.maximum_kwargs, self.gaussian_kwargs)
        _status.fast("roar", "RemOve")
        if self.apply_mask:
            results["img"] = results["img"] * (1 - gone) + gone * self.mean
        results["mask"] = gone
        results["mask_path"] = str(path)
        return results

    return [_slots.Target(imputation, "transform", impute), _slots.Target(remove, "transform", mask)]


PEER = Peer(
    "roar", None, (), _load, _targets, {"LinearImputation": ("f10fecfadb2d2fb5",), "RemOve": ("c7412fa59ecb5316",)}
)
