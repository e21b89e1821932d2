"""A few calls of every op, for tests of what holds for all of them: `python -m helpers.op_cases` prints their digests.

The inputs reach the branches that differ between SIMD levels: rows of whole vectors and rows with a remainder, every
dtype, ties, constant maps, few and many rates, both layouts, smooth and random masks.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import roarfast as rf
from roarfast.ops import _fills

DROPS = [0.1, 0.3, 0.5, 0.7, 0.9]
MANY_DROPS = [i / 64 for i in range(1, 64)]
FLOATS = ("float16", "float32", "float64")
SIZES = ((5, 7), (32, 32), (61, 67), (64, 128))


def _maps(h: int, w: int, dtype: str = "float32", n: int = 3) -> np.ndarray[Any, Any]:
    values = np.random.default_rng(h * w).standard_normal((n, h, w))
    return (values * 40 + 128).clip(0, 255).astype(dtype) if dtype == "uint8" else values.astype(dtype)


def _tied(h: int, w: int) -> np.ndarray[Any, Any]:
    """Rectified maps: more than half of the values are zero, the others are few; the last map is constant."""
    a = np.round(np.maximum(_maps(h, w), 0) * 4) / 4
    a[-1] = 0.25
    return a


def _images(h: int, w: int, dtype: str = "uint8", n: int = 3, channels: int = 3) -> np.ndarray[Any, Any]:
    x = np.random.default_rng(h + w).integers(0, 256, (n, channels, h, w), dtype=np.uint8)
    return x if dtype == "uint8" else (x / 255).astype(dtype)


def _masks(h: int, w: int, drop: float, n: int = 3) -> Iterator[np.ndarray[Any, Any]]:
    yield rf.removal_mask(_maps(h, w, n=n), drop)
    yield rf.removal_mask(rf.gaussian_filter(_maps(h, w, n=n), 3), drop)


def _filters(call: Callable[[Any], Any], dtypes: tuple[str, ...]) -> Iterator[Any]:
    for size in SIZES:
        for dtype in dtypes:
            yield call(_maps(*size, dtype))


def _selections(call: Callable[[Any], Any]) -> Iterator[Any]:
    for size in (*SIZES, (224, 224)):
        for dtype in (*FLOATS, "uint8"):
            yield call(_maps(*size, dtype))
        yield call(_tied(*size))


def _gaussian_filter() -> Iterator[Any]:
    for sigma in (0.5, 1, (3, 1.5)):
        yield from _filters(lambda a, s=sigma: rf.gaussian_filter(a, s), FLOATS)
    yield rf.gaussian_filter(_maps(61, 67), 2, mode="wrap")


def _maximum_filter() -> Iterator[Any]:
    for size in (2, 3, 9, (1, 30)):
        yield from _filters(lambda a, s=size: rf.maximum_filter(a, s), (*FLOATS, "uint8"))


def _sobel() -> Iterator[Any]:
    for axis in (-1, -2):
        yield from _filters(lambda a, k=axis: rf.sobel(a, k), FLOATS)


def _total_variation() -> Iterator[Any]:
    for kind in ("anisotropic", "isotropic"):
        for normalize in ("none", "minmax", "mean"):
            yield from _filters(lambda a, k=kind, m=normalize: rf.total_variation(a, k, m), (*FLOATS, "uint8"))


def _percentile() -> Iterator[Any]:
    yield from _selections(lambda a: rf.percentile(a, [0, 12.5, 50, 99, 100]))


def _removal_mask() -> Iterator[Any]:
    for rule in ("exact", "percentile", "strict"):
        for order in ("morf", "lerf"):
            yield from _selections(lambda a, r=rule, o=order: rf.removal_mask(a, 0.3, r, o, seed=5))
    yield rf.removal_mask(_tied(64, 64), 0.3, keep=True)


def _rank_codes() -> Iterator[Any]:
    for rule in ("exact", "percentile", "strict"):
        for drops in (DROPS, MANY_DROPS):
            yield from _selections(lambda a, r=rule, d=drops: rf.rank_codes(a, d, r, seed=5))

    for drops in (DROPS, MANY_DROPS):
        yield from _selections(lambda a, d=drops: rf.rank_codes(np.abs(a) if a.dtype.kind == "f" else a, d, "value"))


def _code_sums() -> Iterator[Any]:
    for drops in (DROPS, MANY_DROPS):
        yield from _selections(lambda a, d=drops: rf.code_sums(a, rf.rank_codes(a, d), len(d) + 1))


def _distance_transform() -> Iterator[Any]:
    for size in (*SIZES, (224, 224)):
        for drop in (0.3, 0.9, 0.999):
            for mask in _masks(*size, drop):
                yield rf.distance_transform(mask)
                yield rf.distance_transform(mask, squared=True)


def _mask_geometry() -> Iterator[Any]:
    for size in (*SIZES, (300, 5)):
        for mask in _masks(*size, 0.4):
            yield rf.mask_geometry(mask)


def _removed_fraction() -> Iterator[Any]:
    for size in SIZES:
        yield rf.removed_fraction(rf.rank_codes(_tied(*size), DROPS, "percentile"), 2)


def _fill() -> Iterator[Any]:
    for h, w in SIZES:
        mask = next(_masks(h, w, 0.4))
        for dtype in (*FLOATS, "uint8"):
            x = _images(h, w, dtype)
            for value in (*(name for name in _fills.NAMES if name != "linear"), [0.2, 0.4, 0.6]):
                yield rf.fill(x, mask, value, seed=3)
                yield rf.fill(np.ascontiguousarray(x.transpose(0, 2, 3, 1)), mask, value, layout="NHWC", seed=3)


def _remove() -> Iterator[Any]:
    for h, w in SIZES:
        for dtype in ("float32", "uint8"):
            for value in ("zero", "noise"):
                yield rf.remove(_images(h, w, dtype), _tied(h, w), 0.4, value, seed=3)


def _impute_linear() -> Iterator[Any]:
    for size in ((9, 7), (32, 32), (61, 67), (96, 128)):
        for drop in (0.05, 0.3, 0.6, 0.95):
            for mask in _masks(*size, drop):
                for dtype in ("float32", "uint8"):
                    yield rf.impute_linear(_images(*size, dtype), mask, seed=4)
    x, mask = _images(40, 41, "float64"), next(_masks(40, 41, 0.5))
    yield rf.impute_linear(x, mask, tol=1e-8)
    yield rf.impute_linear(x, mask, noise_kind="uniform", weights=[[0, 1, 0], [2, 0, 2], [0, 1, 0]])
    yield rf.impute_linear(x, mask, out=np.empty_like(x))


def _gather_batch() -> Iterator[Any]:
    index = np.array([2, 0, 5, 5, 3])
    for size in SIZES:
        for channels in (1, 3):
            images = _images(*size, n=6, channels=channels)
            codes = rf.rank_codes(_maps(*size, n=6), DROPS)
            for dtype in ("float16", "float32"):
                settings = {"mean": 0.4, "std": 0.2, "dtype": dtype, "seed": 7, "epoch": 2}
                yield rf.gather_batch(images, index, **settings)
                yield rf.gather_batch(
                    images, index, codes, 2, 0.5, pad=2, crop=4, random_crop=True, flip=True, **settings
                )
                pixels = np.ascontiguousarray(images.transpose(0, 2, 3, 1))
                yield rf.gather_batch(pixels, index, codes, 1, 0.5, layout="NHWC", flip=True, **settings)
                rates = np.array([0, 4, -1, 2, 5])
                yield rf.gather_batch(pixels, index, codes, rates, 0.5, layout="NHWC", out_layout="NHWC", **settings)
                yield rf.gather_batch(images, index, codes, 2, scale=(0.08, 1), crop=40, flip=True, **settings)
                yield rf.gather_batch(
                    pixels, index, codes, rates, 0.5, layout="NHWC", scale=(0.5, 1), crop=7, **settings
                )


def _pixel_random() -> Iterator[Any]:
    for size in SIZES:
        yield rf.pixel_random((3, *size), seed=1)


def _block_random() -> Iterator[Any]:
    for size in SIZES:
        yield rf.block_random((3, *size), 0.3, seed=1)


def _philox_normal() -> Iterator[Any]:
    for shape in ((1,), (3, 5, 7), (3, 32, 32)):
        yield rf.philox_normal(np.arange(4), shape, seed=2, draw=1)


def _blur_fill() -> Iterator[Any]:
    yield rf.blur_fill(_images(61, 67, "float32"), next(_masks(61, 67, 0.4)), 2.0)


def _noise_fill() -> Iterator[Any]:
    yield rf.noise_fill(_images(61, 67, "float32"), next(_masks(61, 67, 0.4)), seed=9)


CASES: dict[str, Callable[[], Iterator[Any]]] = {
    "block_random": _block_random,
    "blur_fill": _blur_fill,
    "code_sums": _code_sums,
    "distance_transform": _distance_transform,
    "fill": _fill,
    "gather_batch": _gather_batch,
    "gaussian_filter": _gaussian_filter,
    "impute_linear": _impute_linear,
    "mask_geometry": _mask_geometry,
    "maximum_filter": _maximum_filter,
    "noise_fill": _noise_fill,
    "percentile": _percentile,
    "philox_normal": _philox_normal,
    "pixel_random": _pixel_random,
    "rank_codes": _rank_codes,
    "removal_mask": _removal_mask,
    "remove": _remove,
    "removed_fraction": _removed_fraction,
    "sobel": _sobel,
    "total_variation": _total_variation,
}


def digests(name: str) -> list[str]:
    """One digest per result of an op's cases, in their order."""
    return [hashlib.sha256(np.ascontiguousarray(result).tobytes()).hexdigest()[:16] for result in CASES[name]()]


if __name__ == "__main__":
    from roarfast import _backend

    json.dump({"backend": _backend.cpu().backend_name(), **{name: digests(name) for name in CASES}}, sys.stdout)
