"""Valid calls of the ops on images (fills, imputation, batches, random maps) and what they must return."""

from __future__ import annotations

from typing import Any

import numpy as np
from fuzz_case import EPS, FLOATS, Case, Rng, extent, ids_of, largest, pick, seed_of, values, with_ids
from fuzz_maps import ranking

from roarfast.reference import block_random as ref_block
from roarfast.reference import fill as ref_fill
from roarfast.reference import gather_batch as ref_gather
from roarfast.reference import impute_linear as ref_impute
from roarfast.reference import philox_normal as ref_normal
from roarfast.reference import pixel_random as ref_pixel
from roarfast.reference import remove as ref_remove

LAYOUTS = ("NCHW", "NCHW", "NCHW", "NHWC", "NHW", "NF")
WEIGHTS = ([[0, 1, 0], [1, 0, 1], [0, 1, 0]], [[1, 1, 1], [1, 5, 1], [1, 1, 1]], [[1, 2, 3], [4, 0, 4], [3, 2, 1]])


def _images(rng: Rng, layout: str = "NCHW") -> tuple[Any, str]:
    """Images [N, C, H, W], with one channel and one row where the layout has no others."""
    dtype, image = str(pick(rng, (*FLOATS, "uint8"))), extent(rng)
    channels = int(rng.integers(1, 5)) if layout in ("NCHW", "NHWC") else 1
    batch = int(rng.integers(1, 4 if image[0] < 65 else 3))
    return values(rng, (batch, channels, *image), dtype), dtype


def _arranged(a: Any, layout: str) -> Any:
    """[N, C, H, W] in another layout; masks and maps per pixel, [N, H, W], alike."""
    if layout == "NHWC" and a.ndim == 4:
        return np.ascontiguousarray(np.moveaxis(a, 1, -1))
    if layout == "NHW" and a.ndim == 4:
        return a[:, 0]
    return a.reshape(len(a), -1) if layout == "NF" else a


def _fill_value(rng: Rng, n: int, c: int) -> Any:
    kind = int(rng.integers(0, 7))
    if kind < 4:
        return ("zero", "kept_mean", "image_mean", "noise")[kind]
    if kind == 4:
        return float(rng.integers(0, 200))
    return rng.integers(0, 200, (n, c) if kind == 5 else c).astype(np.float64)


def _fill_atol(x: Any, dtype: str, value: Any) -> float:
    if dtype == "uint8":
        return 1.0 if isinstance(value, str) and value == "noise" else 0.0
    reach = 8 + (60 if isinstance(value, str) and value == "noise" else 0)
    return (largest(x) + reach) * (2 * EPS["float16"] if dtype == "float16" else 4 * EPS["float32"])


def _noise(dtype: str) -> dict[str, float]:
    return {"noise_mean": 100.0, "noise_std": 30.0} if dtype == "uint8" else {"noise_mean": 0.25, "noise_std": 0.5}


def _mask(rng: Rng, shape: tuple[int, ...]) -> Any:
    mask = rng.random(shape) < rng.random()
    return mask.astype(np.uint8) * np.uint8(rng.integers(1, 256)) if rng.random() < 0.3 else mask


def _masked(rng: Rng) -> tuple[Any, str, Any, str]:
    """Images, their dtype, masks per pixel or feature, and a layout."""
    layout = pick(rng, LAYOUTS)
    x, dtype = _images(rng, layout)
    per_feature = layout in ("NCHW", "NHWC") and rng.random() < 0.2
    return x, dtype, _mask(rng, x.shape if per_feature else (len(x), *x.shape[2:])), layout


def fill(rng: Rng) -> Case:
    x, dtype, mask, layout = _masked(rng)
    ids, value = ids_of(rng, len(x)), _fill_value(rng, len(x), x.shape[1])
    options = {"value": value, "seed": seed_of(rng)} | _noise(dtype)
    want = _arranged(ref_fill.fill(x, mask, index=ids, **options), layout)
    arrays = {"x": _arranged(x, layout), "mask": _arranged(mask, layout)}
    return Case("fill", with_ids(arrays, ids), options | {"layout": layout}, want, _fill_atol(x, dtype, value))


def blur_fill(rng: Rng) -> Case:
    layout = pick(rng, ("NCHW", "NHWC", "NHW"))
    x, dtype = _images(rng, layout)
    mask, sigma = _mask(rng, (len(x), *x.shape[2:])), float(rng.uniform(0.1, 4))
    want = _arranged(ref_fill.fill(x, mask, "blur", sigma), layout)
    atol = 1.0 if dtype == "uint8" else largest(x) * (EPS["float16"] if dtype == "float16" else 0) + 6e-7 * largest(x)
    arrays = {"x": _arranged(x, layout), "mask": _arranged(mask, layout)}
    return Case("blur_fill", arrays, {"sigma": sigma, "layout": layout}, want, atol)


def noise_fill(rng: Rng) -> Case:
    x, dtype, mask, layout = _masked(rng)
    ids, noise, seed = ids_of(rng, len(x)), _noise(dtype), seed_of(rng)
    want = _arranged(ref_fill.fill(x, mask, "noise", seed=seed, index=ids, **noise), layout)
    arrays = {"x": _arranged(x, layout), "mask": _arranged(mask, layout)}
    options = {"mean": noise["noise_mean"], "std": noise["noise_std"], "seed": seed, "layout": layout}
    return Case("noise_fill", with_ids(arrays, ids), options, want, _fill_atol(x, dtype, "noise"))


def remove(rng: Rng) -> Case:
    layout = pick(rng, LAYOUTS)
    x, dtype = _images(rng, layout)
    per_feature = layout == "NCHW" and rng.random() < 0.2
    a = values(rng, x.shape if per_feature else (len(x), *x.shape[2:]), str(pick(rng, (*FLOATS, "uint8"))))
    ids, value = ids_of(rng, len(x)), _fill_value(rng, len(x), x.shape[1])
    options = ranking(rng) | {"drop": float(rng.random()), "fill": value, "keep": bool(rng.random() < 0.3)}
    options |= _noise(dtype)
    if rng.random() < 0.15:
        a, options["rule"] = np.abs(a), "value"
    want = _arranged(ref_remove.remove(x, a, index=ids, **options), layout)
    arrays = {"x": _arranged(x, layout), "a": _arranged(a, layout)}
    return Case("remove", with_ids(arrays, ids), options | {"layout": layout}, want, _fill_atol(x, dtype, value))


def philox_normal(rng: Rng) -> Case:
    large = rng.random() < 0.12
    index = rng.integers(0, 2**40, rng.integers(1, 3 if large else 5))
    shape = (int(rng.integers(65, 80)),) * 2 if large else tuple(int(v) for v in rng.integers(1, 9, 2))
    options = {"shape": shape, "seed": seed_of(rng), "draw": int(rng.integers(0, 2 if large else 4))}
    return Case("philox_normal", {"index": index}, options, ref_normal.philox_normal(index, **options), 2e-6)


def pixel_random(rng: Rng) -> Case:
    shape = (int(rng.integers(1, 4)), *extent(rng))
    options = {"shape": shape, "seed": seed_of(rng), "index": ids_of(rng, shape[0])}
    return Case("pixel_random", {}, options, ref_pixel.pixel_random(**options), makes=True)


def block_random(rng: Rng) -> Case:
    shape = (int(rng.integers(1, 4)), *extent(rng))
    options = {"shape": shape, "drop": float(rng.random()), "seed": seed_of(rng), "index": ids_of(rng, shape[0])}
    return Case("block_random", {}, options, ref_block.block_random(**options), makes=True)


def impute_linear(rng: Rng) -> Case:
    dtype, layout = str(pick(rng, (*FLOATS, "uint8"))), pick(rng, ("NCHW", "NCHW", "NHWC"))
    h, w = extent(rng)
    n, c = int(rng.integers(1, 3 if h < 65 else 2)), int(rng.integers(1, 4))
    x = rng.random((n, c, h, w)).astype(dtype) if dtype != "uint8" else values(rng, (n, c, h, w), dtype)
    mask = rng.random((n, h, w)) < rng.random()
    ids, seed = ids_of(rng, n), seed_of(rng)
    options: dict[str, Any] = {"noise": 0.0 if rng.random() < 0.5 else 0.01, "seed": seed, "layout": layout}
    extra: dict[str, Any] = {}
    if rng.random() < 0.2:
        extra = {"weights": pick(rng, WEIGHTS), "empty_value": 0.5}
    want = np.stack([ref_impute.impute_linear(x[i], mask[i], **extra) for i in range(n)])
    if options["noise"]:
        for i in range(n):
            sample = int(ids[i]) if ids is not None else i
            want[i] += np.where(mask[i], options["noise"] * ref_impute.noise(seed, sample, (c, h, w)), 0)
    atol = 2.5e-5 * (255 if dtype == "uint8" else 1) + (2e-3 if dtype == "float16" else 1e-6)
    want = _arranged(want.astype("float32" if dtype == "uint8" else dtype), layout)
    arrays = with_ids({"x": _arranged(x, layout), "mask": mask}, ids)
    return Case("impute_linear", arrays, options | extra, want, atol)


def impute_dataset(rng: Rng) -> Case:
    h, w = extent(rng)
    n, c, layout = int(rng.integers(1, 4 if h < 65 else 2)), int(rng.integers(1, 4)), pick(rng, ("NCHW", "NHWC"))
    images, codes = values(rng, (n, c, h, w), "uint8"), rng.integers(0, 4, (n, h, w), dtype=np.uint8)
    several = h < 65 and rng.random() < 0.3
    chosen: Any = [0, 2] if several else int(rng.integers(0, 3))
    keep, noise, seed, ids = bool(rng.random() < 0.3), pick(rng, (0.0, 0.01)), seed_of(rng), ids_of(rng, n)

    def at(j: int) -> Any:
        masks = codes > j if keep else codes <= j
        filled = np.stack([ref_impute.impute_linear(images[i], masks[i]) for i in range(n)])
        for i in range(n if noise else 0):
            sample = int(ids[i]) if ids is not None else i
            filled[i] += np.where(masks[i], 255 * noise * ref_impute.noise(seed, sample, (c, h, w)), 0)
        return _arranged(np.rint(np.clip(filled, 0, 255)).astype(np.uint8), layout)

    want = np.stack([at(j) for j in chosen]) if several else at(chosen)
    options = {
        "drops": [0.2, 0.5, 0.8],
        "rate_index": chosen,
        "noise": noise,
        "seed": seed,
        "progress": False,
        "keep": keep,
        "layout": layout,
        "chunk": int(rng.integers(1, 4)),
    }
    arrays = {"images": _arranged(images, layout), "codes": codes}
    return Case("impute_dataset", with_ids(arrays, ids), options, want, 1.0)


def gather_batch(rng: Rng) -> Case:
    n, c, (h, w) = int(rng.integers(1, 6)), int(pick(rng, (1, 3, 4))), extent(rng)
    images, pad, layout = values(rng, (n, c, h, w), "uint8"), int(rng.integers(0, 4)), pick(rng, ("NCHW", "NHWC"))
    batch = int(rng.integers(1, 9 if h < 65 else 4))
    arrays: dict[str, Any] = {"images": images, "index": rng.integers(0, n, batch)}
    options: dict[str, Any] = {
        "pad": pad,
        "crop": (int(rng.integers(1, h + 2 * pad + 1)), int(rng.integers(1, w + 2 * pad + 1))),
        "random_crop": bool(rng.random() < 0.5),
        "flip": bool(rng.random() < 0.5),
        "seed": seed_of(rng),
        "epoch": int(rng.integers(0, 5)),
        "mean": 0.4 if rng.random() < 0.5 else [0.1 * k for k in range(c)],
        "std": 0.25,
    }
    if rng.random() < 0.5:  # whole images: crops of large ones are small
        options["crop"] = (h + 2 * pad, w + 2 * pad)
    if rng.random() < 0.25:
        low = float(rng.uniform(0.01, 1))
        options |= {
            "pad": 0,
            "scale": (low, float(rng.uniform(low, 1))),
            "crop": (int(rng.integers(1, 40)), int(rng.integers(1, 40))),
        }
    rates = None
    if rng.random() < 0.6:
        arrays["codes"] = rng.integers(0, 4, (n, h, w) if rng.random() < 0.7 else (n, c, h, w), dtype=np.uint8)
        options |= {"rate_index": int(rng.integers(-1, 4)), "keep": bool(rng.random() < 0.3)}
        if rng.random() < 0.4:
            arrays["imputed"] = values(rng, (n, c, h, w), "uint8")
        elif rng.random() < 0.5:
            options |= {"fill": [float(7 * k) for k in range(c)], "pad_value": 3.0}
        if rng.random() < 0.3:
            rates = rng.integers(-1, 4, batch)
    if rng.random() < 0.3:
        arrays["ids"] = rng.integers(0, 2**40, batch)
    want = ref_gather.gather_batch(**arrays, **options)
    if rates is not None:
        each = [ref_gather.gather_batch(**arrays, **(options | {"rate_index": int(r)})) for r in rates]
        want = np.stack([each[i][i] for i in range(batch)])
        del options["rate_index"]
        arrays["rate_index"] = rates
    if layout == "NHWC":
        arrays |= {name: _arranged(arrays[name], layout) for name in ("images", "imputed") if name in arrays}
    options |= {"layout": layout, "out_layout": pick(rng, ("NCHW", "NCHW", "NHWC"))}
    if rng.random() < 0.3:
        options["dtype"] = "float16"
        want = want.astype(np.float16)
    return Case("gather_batch", arrays, options, want)


IMAGE_OPS = (
    fill,
    blur_fill,
    noise_fill,
    remove,
    philox_normal,
    pixel_random,
    block_random,
    impute_linear,
    impute_dataset,
    gather_batch,
)
