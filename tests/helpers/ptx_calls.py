"""Calls of every op over dtypes, layouts, ties, infinities and signed zeros, and how PTX and CPU differ on them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import roarfast as rf
from helpers.ptx import ptx_backend

FLOATS = ["float32", "float64", "float16", "bfloat16"]
BORDERS = ["reflect", "mirror", "nearest", "wrap", "constant"]
NINE = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
MANY = list(np.linspace(0, 1, 40))


def values(shape: tuple[int, ...], dtype: str, rng: np.random.Generator, kind: str = "normal") -> Any:
    """`ties`: few distinct values; `special`: zeros of both signs, infinities and subnormals among them."""
    if dtype == "uint8":
        return rng.integers(0, 4 if kind == "ties" else 256, shape, dtype=np.uint8)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    x = rng.standard_normal(shape)
    if kind == "ties":
        x = np.round(x * 2) / 2
    if kind == "special":
        odd = np.array([0.0, -0.0, np.inf, -np.inf, 1e-40, -1e-7, 6e4, 3e38])
        x = np.where(rng.random(shape) < 0.3, odd[rng.integers(0, len(odd), shape)], x)
    if dtype == "bfloat16":
        return torch.from_numpy(x).to(torch.bfloat16)
    with np.errstate(over="ignore"):
        return x.astype(dtype)


def like(a: Any, b: Any) -> Any:
    """`b` as a tensor where `a` is one."""
    return torch.from_numpy(b) if isinstance(a, torch.Tensor) and not isinstance(b, torch.Tensor) else b


def bits(a: Any) -> np.ndarray:
    """An array's bits, all NaN alike."""
    if isinstance(a, torch.Tensor):
        if a.dtype == torch.bfloat16:
            raw = a.contiguous().view(torch.int16).numpy().view(np.uint16)
            return np.where((raw & 0x7FFF) > 0x7F80, 0x7FC0, raw)
        a = a.numpy()
    a = np.ascontiguousarray(a)
    if a.dtype.kind != "f":
        return a
    raw = a.view(f"u{a.dtype.itemsize}")
    return np.where(np.isnan(a), np.iinfo(raw.dtype).max, raw)


Call = tuple[Any, ...]  # op, arguments, keyword arguments, tolerance or None, in words


def filters(size: tuple[int, int], rng: np.random.Generator) -> Iterator[Call]:
    for dtype, kind in itertools.product((*FLOATS, "uint8", "bool"), ("normal", "special")):
        x = values((2, *size), dtype, rng, kind)
        for tv, norm in itertools.product(("anisotropic", "isotropic"), ("none", "minmax", "mean")):
            yield rf.total_variation, (x, tv, norm), {}, None
        for mode in BORDERS:
            for window in (3, 8, (5, 1), (1, 30), 41):
                yield rf.maximum_filter, (x, window, mode, 1), {}, None
            if dtype not in FLOATS:
                continue
            for axis in (-1, -2):
                yield rf.sobel, (x, axis, mode, 0.25), {}, None
            for sigma in (1.0, 2.0, (0, 1.5), (0.7, 0), 12.0):
                yield rf.gaussian_filter, (x, sigma, mode, 0.25), {}, None


def selection(size: tuple[int, int], rng: np.random.Generator) -> Iterator[Call]:
    for dtype, kind in itertools.product((*FLOATS, "uint8"), ("normal", "ties", "special")):
        x = values((2, *size), dtype, rng, kind)
        for q in (30.0, [0.0, 12.5, 50.0, 99.9, 100.0], list(np.linspace(0, 100, 30))):
            yield rf.percentile, (x, q), {}, None
        for rule, order in itertools.product(("exact", "percentile", "strict"), ("morf", "lerf")):
            for keep in (False, True):
                yield rf.removal_mask, (x, 0.3, rule, order, keep, 7), {}, None
            yield rf.rank_codes, (x, NINE, rule, order, 7), {}, None
            yield rf.rank_codes, (x, MANY, rule, order, 7, [5, 2**40]), {}, None
    codes = rng.integers(0, 10, (3, *size), dtype=np.uint8)
    for j in (0, 4, 9):
        yield rf.removed_fraction, (codes, j), {}, None


def fills(size: tuple[int, int], rng: np.random.Generator) -> Iterator[Call]:
    for dtype, layout in itertools.product((*FLOATS, "uint8"), ("NCHW", "NHWC")):
        shape = (2, 3, *size) if layout == "NCHW" else (2, *size, 3)
        x = values(shape, dtype, rng)
        for per_feature in (False, True):
            mask = like(x, rng.random(shape if per_feature else (2, *size)) < 0.4)
            for value in ("zero", "kept_mean", "image_mean", "blur", "noise", [1.0, 2.0, 3.0]):
                if value != "blur" or dtype != "uint8":
                    yield rf.fill, (x, mask, value), {"layout": layout, "seed": 3}, None
        for map_dtype in ("float32", "float64", "float16", "uint8"):
            a = like(x, values((2, *size), map_dtype, rng, "ties"))
            for value in ("kept_mean", "noise", 5.0):
                yield rf.remove, (x, a, 0.37, value), {"layout": layout, "seed": 3}, None


def random(size: tuple[int, int], rng: np.random.Generator) -> Iterator[Call]:
    index = np.array([0, 3, 2**40], np.int64)
    for seed in (0, 2**63 - 1):
        yield rf.pixel_random, ((3, *size), seed, index), {}, None
        yield rf.philox_normal, (index, size, seed, 2), {}, None
        for drop in (0.05, 0.5, 1.0):
            yield rf.block_random, ((3, *size), drop, seed, index), {}, None


def batches(size: tuple[int, int], rng: np.random.Generator) -> Iterator[Call]:
    h, w = size
    for layout in ("NCHW", "NHWC"):
        images = rng.integers(0, 256, (5, 3, h, w) if layout == "NCHW" else (5, h, w, 3), dtype=np.uint8)
        codes = (
            None,
            rng.integers(0, 10, (5, h, w), dtype=np.uint8),
            rng.integers(0, 10, (5, 3, h, w), dtype=np.uint8),
        )
        for dtype, out_layout, code, imputed, augment in itertools.product(
            ("float32", "float16", "bfloat16"), ("NCHW", "NHWC"), codes, (None, "uint8", "float16"), (False, True)
        ):
            if code is None and imputed is not None:
                continue
            other = None if imputed is None else (255 * rng.random(images.shape)).astype(imputed)
            arrays = [images, np.array([4, 0, 0, 3], np.int64), code, other]
            if dtype == "bfloat16":
                arrays = [a if a is None else torch.from_numpy(a) for a in arrays]
            yield (
                rf.gather_batch,
                (*arrays[:3], None if code is None else 4),
                {
                    "imputed": arrays[3],
                    "layout": layout,
                    "pad": 4 if augment else 0,
                    "random_crop": augment,
                    "flip": augment,
                    "crop": (h, w) if augment else (max(h - 1, 1), w),
                    "mean": [0.4, 0.5, 0.6],
                    "std": [0.2, 0.25, 0.3],
                    "dtype": dtype,
                    "out_layout": out_layout,
                    "seed": 9,
                    "epoch": 3,
                },
                None,
            )
            if augment:
                yield (
                    rf.gather_batch,
                    (*arrays[:3], None if code is None else 4),
                    {
                        "imputed": arrays[3],
                        "layout": layout,
                        "scale": (0.1, 1.0),
                        "flip": True,
                        "crop": (max(h - 2, 1), w + 3),
                        "mean": [0.4, 0.5, 0.6],
                        "std": [0.2, 0.25, 0.3],
                        "dtype": dtype,
                        "out_layout": out_layout,
                        "seed": 9,
                    },
                    None,
                )


def imputation(size: tuple[int, int], rng: np.random.Generator) -> Iterator[Call]:
    # What rounding to the dtype of the image adds to the solver's tolerance, in spreads of the image.
    rounding = {"float32": 1e-6, "float64": 0.0, "float16": 2e-3, "bfloat16": 1.6e-2, "uint8": 1 / 255}
    for dtype, layout in itertools.product((*FLOATS, "uint8"), ("NCHW", "NHWC")):
        x = values((2, 3, *size) if layout == "NCHW" else (2, *size, 3), dtype, rng)
        spread = 255.0 if dtype == "uint8" else float(x.max() - x.min())
        for share, noise in itertools.product((0.1, 0.5, 0.9), (0.0, 0.01)):
            mask = like(x, rng.random((2, *size)) < share)
            yield rf.impute_linear, (x, mask, noise, 1), {"layout": layout}, (2e-5 + rounding[dtype]) * spread


def scores(size: tuple[int, int], rng: np.random.Generator) -> Iterator[Call]:
    codes = rng.integers(0, 10, (2, *size), dtype=np.uint8)
    for dtype in (*FLOATS, "uint8"):
        x = values((2, *size), dtype, rng)
        yield rf.code_sums, (x, like(x, codes), 10), {}, None
    for mask in (codes > 3, codes > 9, codes >= 0):
        yield rf.distance_transform, (mask,), {}, None
        yield rf.distance_transform, (mask,), {"squared": True}, None
        yield rf.mask_geometry, (mask,), {}, None


PARTS: dict[str, Callable[..., Iterator[Call]]] = {
    f.__name__: f for f in (filters, selection, fills, random, batches, imputation, scores)
}


def excused(call: Call, a: np.ndarray, b: np.ndarray) -> bool:
    """Where bits are not promised: `percentile` and `maximum_filter` may give zero another sign (docs/selection.md)."""
    return call[0] in (rf.percentile, rf.maximum_filter) and np.array_equal(a, b, equal_nan=True)


def plain(a: Any) -> np.ndarray:
    """As NumPy can compare it."""
    return np.asarray(a.float() if isinstance(a, torch.Tensor) and a.dtype == torch.bfloat16 else a)


def difference(call: Call) -> str:
    """What differs between PTX and CPU: an empty text, "excused", or a sentence."""
    op, args, kwargs, tolerance = call
    expected = op(*args, **kwargs)
    with ptx_backend():
        got = op(*args, **kwargs)
    if tolerance is None:
        a, b = bits(expected), bits(got)
        if np.array_equal(a, b):
            return ""
        return (
            "excused" if excused(call, plain(expected), plain(got)) else f"{int((a != b).sum())} of {a.size} elements"
        )
    worst = float(np.max(np.abs(plain(expected).astype(float) - plain(got).astype(float)), initial=0))
    return "" if worst <= tolerance else f"{worst:.3g}"
