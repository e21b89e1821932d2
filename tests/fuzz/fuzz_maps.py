"""Valid calls of the ops on maps (filters, selection, counts) and what they must return."""

from __future__ import annotations

from typing import Any

import numpy as np
from fuzz_case import EPS, FLOATS, Case, Rng, extent, ids_of, largest, leading, pick, seed_of, values, with_ids
from scipy import ndimage

from roarfast.reference import code_sums as ref_sums
from roarfast.reference import gaussian_filter as ref_gaussian
from roarfast.reference import maximum_filter as ref_maximum
from roarfast.reference import percentile as ref_percentile
from roarfast.reference import rank_codes as ref_codes
from roarfast.reference import removal_mask as ref_mask
from roarfast.reference import removed_fraction as ref_fraction
from roarfast.reference import sobel as ref_sobel
from roarfast.reference import total_variation as ref_variation

MODES = ("reflect", "mirror", "nearest", "wrap", "constant")


def _maps(rng: Rng, dtypes: Any) -> tuple[Any, str]:
    image, dtype = extent(rng), str(pick(rng, dtypes))
    return values(rng, (*leading(rng, image), *image), dtype), dtype


def _mode(rng: Rng) -> Any:
    return pick(rng, MODES) if rng.random() < 0.8 else [pick(rng, MODES), pick(rng, MODES)]


def gaussian_filter(rng: Rng) -> Case:
    a, dtype = _maps(rng, FLOATS)
    options: dict[str, Any] = {"mode": _mode(rng), "cval": float(rng.normal())}
    options["sigma"] = float(rng.uniform(0, 4)) if rng.random() < 0.7 else [float(v) for v in rng.uniform(0, 3, 2)]
    if rng.random() < 0.3:
        options["radius"] = int(rng.integers(0, 30))
    elif rng.random() < 0.2:
        options["truncate"] = float(rng.uniform(0, 6))
    want = ref_gaussian.gaussian_filter(a, **options)
    eps = 6 * EPS["float32"] if dtype != "float64" else 40 * EPS[dtype]
    atol = (largest(a) + abs(options["cval"])) * (eps + (EPS["float16"] if dtype == "float16" else 0)) + 1e-7
    return Case("gaussian_filter", {"a": a}, options, want.astype(dtype), atol)


def maximum_filter(rng: Rng) -> Case:
    a, _ = _maps(rng, (*FLOATS, "uint8", "bool"))
    size: Any = int(rng.integers(1, 40)) if rng.random() < 0.6 else [int(v) for v in rng.integers(1, 12, 2)]
    options = {"size": size, "mode": _mode(rng), "cval": float(rng.integers(0, 2))}
    if rng.random() < 0.2:
        least = size if isinstance(size, int) else min(size)
        options["origin"] = int(rng.integers(-(least // 2), (least - 1) // 2 + 1))
    return Case("maximum_filter", {"a": a}, options, ref_maximum.maximum_filter(a, **options))


def sobel(rng: Rng) -> Case:
    a, dtype = _maps(rng, FLOATS)
    options = {"axis": int(pick(rng, (-1, -2))), "mode": _mode(rng), "cval": float(rng.normal())}
    atol = 8 * (largest(a) + abs(options["cval"])) * 4 * EPS[dtype] + 1e-9
    return Case("sobel", {"a": a}, options, ref_sobel.sobel(a, **options).astype(dtype), atol)


def total_variation(rng: Rng) -> Case:
    a, _ = _maps(rng, (*FLOATS, "uint8", "bool"))
    options = {
        "kind": pick(rng, ("anisotropic", "isotropic")),
        "normalize": pick(rng, ("none", "minmax", "mean")),
    }
    want = np.asarray(ref_variation.total_variation(a, **options))
    return Case("total_variation", {"a": a}, options, want, 1e-5 * largest(want) + 1e-12)


def _split(rng: Rng, a: Any) -> tuple[Any, dict[str, Any], int]:
    """Maps, or the same values as features or as images with channels: `(a, {"ndim": ...}, samples)`."""
    if rng.random() < 0.7:
        return a, {}, int(np.prod(a.shape[:-2]))
    if rng.random() < 0.5:
        a = a.reshape(*a.shape[:-2], -1)
        return a, {"ndim": 1}, int(np.prod(a.shape[:-1]))
    a = a if a.ndim > 2 else a[None]
    return a, {"ndim": 3}, int(np.prod(a.shape[:-3]))


def percentile(rng: Rng) -> Case:
    a, options, _ = _split(rng, _maps(rng, (*FLOATS, "uint8"))[0])
    q: Any = float(rng.uniform(0, 100)) if rng.random() < 0.4 else [float(v) for v in rng.uniform(0, 100, 3)]
    want = np.asarray(ref_percentile.percentile(a, q, **options))
    return Case("percentile", {"a": a}, options | {"q": q}, want)


def ranking(rng: Rng) -> dict[str, Any]:
    """How to rank; rule `value` is chosen elsewhere, as it needs maps without negative values."""
    return {
        "rule": pick(rng, ("exact", "percentile", "strict")),
        "order": pick(rng, ("morf", "lerf")),
        "seed": seed_of(rng),
    }


def _ranked(rng: Rng) -> tuple[Any, dict[str, Any], Any]:
    a, options, n = _split(rng, _maps(rng, (*FLOATS, "uint8"))[0])
    options |= ranking(rng)
    if rng.random() < 0.2:
        a, options["rule"] = np.abs(a), "value"
    return a, options, ids_of(rng, n)


def removal_mask(rng: Rng) -> Case:
    a, options, ids = _ranked(rng)
    options |= {"drop": float(rng.random()), "keep": bool(rng.random() < 0.3)}
    return Case("removal_mask", with_ids({"a": a}, ids), options, ref_mask.removal_mask(a, index=ids, **options))


def rank_codes(rng: Rng) -> Case:
    a, options, ids = _ranked(rng)
    drops = [float(v) for v in np.unique(rng.random(rng.integers(1, 6)))]
    want = ref_codes.rank_codes(a, drops, index=ids, **options)
    return Case("rank_codes", with_ids({"a": a}, ids), options | {"drops": drops}, want)


def removed_fraction(rng: Rng) -> Case:
    image = extent(rng)
    codes, options, _ = _split(rng, rng.integers(0, 6, (*leading(rng, image), *image), dtype=np.uint8))
    j = int(rng.integers(0, 6))
    want = ref_fraction.removed_fraction(codes, j, **options)
    return Case("removed_fraction", {"codes": codes}, options | {"rate_index": j}, want, 1e-15)


def code_sums(rng: Rng) -> Case:
    a, options, _ = _split(rng, _maps(rng, (*FLOATS, "uint8"))[0])
    codes, count = rng.integers(0, 6, a.shape, dtype=np.uint8), int(rng.integers(1, 8))
    want = ref_sums.code_sums(a, codes, count, **options)
    mass = np.abs(a.astype(np.float64)).sum(axis=tuple(range(-options.get("ndim", 2), 0))).max(initial=0)
    return Case("code_sums", {"a": a, "codes": codes}, options | {"count": count}, want, 1e-15 * float(mass))


def _masks(rng: Rng) -> Any:
    mask = _maps(rng, ("bool",))[0]
    if rng.random() < 0.05:
        mask[...] = True
    return mask.astype(np.uint8) * np.uint8(rng.integers(1, 256)) if rng.random() < 0.3 else mask


def distance_transform(rng: Rng) -> Case:
    """SciPy instead of the reference, which compares every pixel with every other."""
    mask, squared = _masks(rng), bool(rng.random() < 0.5)
    images = mask.reshape(-1, *mask.shape[-2:]) != 0
    far = np.iinfo(np.int32).max
    squares = [
        np.rint(ndimage.distance_transform_edt(m) ** 2) if not m.all() else np.full(m.shape, far) for m in images
    ]
    want = np.array(squares, np.int32).reshape(mask.shape)
    if squared:
        return Case("distance_transform", {"mask": mask}, {"squared": True}, want)
    roots = np.where(want == far, np.inf, np.sqrt(want.astype(np.float64))).astype(np.float32)
    return Case("distance_transform", {"mask": mask}, {"squared": False}, roots)


def mask_geometry(rng: Rng) -> Case:
    """Neighbours counted on a padded copy: the reference goes from pixel to pixel."""
    mask = _masks(rng)
    m = mask != 0
    h, w = m.shape[-2:]
    wide = np.pad(m, [(0, 0)] * (m.ndim - 2) + [(1, 1), (1, 1)])
    near = {(y, x): wide[..., 1 + y : 1 + y + h, 1 + x : 1 + x + w] for y in (-1, 0, 1) for x in (-1, 0, 1)}
    four = near[-1, 0] | near[1, 0] | near[0, -1] | near[0, 1]
    eight = four | near[-1, -1] | near[-1, 1] | near[1, -1] | near[1, 1]
    inner = m[..., 1:-1, 1:-1].sum((-2, -1))
    total = m.sum((-2, -1))
    pairs = (m[..., 1:, :] != m[..., :-1, :]).sum((-2, -1)) + (m[..., 1:] != m[..., :-1]).sum((-2, -1))
    want = [total, (m & ~four).sum((-2, -1)), (m & ~eight).sum((-2, -1)), pairs, total - inner]
    return Case("mask_geometry", {"mask": mask}, {}, np.stack(want, -1).astype(np.int64))


def aggregate_channels(rng: Rng) -> Case:
    image, dtype = extent(rng), pick(rng, ("float32", "float64"))
    a = values(rng, (int(rng.integers(1, 4)), int(rng.integers(1, 5)), *image), dtype)
    axis = int(pick(rng, (1, 1, -3, 3)))
    kind, of = pick(rng, ("mean", "sum", "max", "l2", "none")), pick(rng, ("abs", "raw", "squared"))
    x = a.astype(np.float64)
    x = np.abs(x) if of == "abs" else x * x if of == "squared" else x
    want = {"mean": x.mean, "sum": x.sum, "max": x.max}.get(kind, lambda axis: np.sqrt((x * x).sum(axis)))(axis=axis)
    want = (x if kind == "none" else want).astype(dtype)
    atol = 4 * a.shape[axis] * EPS[dtype] * (largest(want) + (x.shape[axis] * largest(x) if kind != "max" else 0))
    options = {"aggregate": f"{kind}({of})", "axis": axis}
    return Case("aggregate_channels", {"a": a}, options, want, atol, takes_out=False)


MAP_OPS = (
    gaussian_filter,
    maximum_filter,
    sobel,
    total_variation,
    percentile,
    removal_mask,
    rank_codes,
    removed_fraction,
    code_sums,
    distance_transform,
    mask_geometry,
    aggregate_channels,
)
