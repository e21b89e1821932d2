"""One valid call of an op at random, and what it must return according to `roarfast.reference`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import roarfast as rf
from roarfast.reference import block_random as ref_block
from roarfast.reference import fill as ref_fill
from roarfast.reference import gather_batch as ref_gather
from roarfast.reference import gaussian_filter as ref_gaussian
from roarfast.reference import impute_linear as ref_impute
from roarfast.reference import maximum_filter as ref_maximum
from roarfast.reference import percentile as ref_percentile
from roarfast.reference import philox_normal as ref_normal
from roarfast.reference import pixel_random as ref_pixel
from roarfast.reference import rank_codes as ref_codes
from roarfast.reference import removal_mask as ref_mask
from roarfast.reference import remove as ref_remove
from roarfast.reference import removed_fraction as ref_fraction
from roarfast.reference import sobel as ref_sobel
from roarfast.reference import total_variation as ref_variation

Rng = np.random.Generator
FLOATS = ("float16", "float32", "float64")
MODES = ("reflect", "mirror", "nearest", "wrap", "constant")
EPS = {"float16": 1e-3, "float32": 1.2e-7, "float64": 2.3e-16}


@dataclass
class Case:
    """`op(**arrays, **options)` must be `want` within `atol` of each value (0: the same bits, but for the sign of zero)."""

    op: str
    arrays: dict[str, Any]
    options: dict[str, Any]
    want: Any
    atol: float = 0.0
    takes_out: bool = True
    makes: bool = False
    """Makes arrays from nothing: `device=` instead of arrays."""
    function: Callable[..., Any] | None = field(default=None, repr=False)

    def call(self, **given: Any) -> Any:
        """Calls the op, with some of the arguments replaced."""
        function = self.function or getattr(rf, self.op)
        return function(**(self.arrays | self.options | given))


def extent(rng: Rng) -> tuple[int, int]:
    """Rows and columns: mostly a few, a tenth beyond 64, now and then 1."""
    if rng.random() < 0.1:
        return int(rng.integers(65, 90)), int(rng.integers(65, 90))
    return int(rng.integers(1, 24)), int(rng.integers(1, 24))


def leading(rng: Rng) -> tuple[int, ...]:
    """Axes before those of one map."""
    return tuple(int(v) for v in rng.integers(1, 4, rng.integers(0, 3)))


def values(rng: Rng, shape: tuple[int, ...], dtype: str) -> Any:
    """Numbers of a dtype: smooth, or of few levels, so that there are ties."""
    if dtype == "bool":
        return rng.random(shape) < rng.random()
    if dtype == "uint8":
        return rng.integers(0, int(rng.choice([2, 256])), shape, dtype=np.uint8)
    if rng.random() < 0.3:
        return rng.integers(-2, 3, shape).astype(dtype)
    scale = 10.0 ** rng.integers(-2, 3)
    return (rng.standard_normal(shape) * scale).astype(dtype)


def _seed(rng: Rng) -> int:
    return int(rng.choice([0, 1, 2**32 + 5, 2**63 - 1]))


def _ids(rng: Rng, n: int) -> Any:
    return None if rng.random() < 0.5 else rng.integers(0, 2**40, n)


def _with_ids(arrays: dict[str, Any], ids: Any) -> dict[str, Any]:
    return arrays if ids is None else arrays | {"index": ids}


def _largest(a: Any) -> float:
    return float(np.abs(a.astype(np.float64)).max(initial=0))


def gaussian_filter(rng: Rng) -> Case:
    dtype = str(rng.choice(FLOATS))
    a = values(rng, (*leading(rng), *extent(rng)), dtype)
    options: dict[str, Any] = {"mode": str(rng.choice(MODES)), "cval": float(rng.normal())}
    options["sigma"] = float(rng.uniform(0, 4)) if rng.random() < 0.7 else [float(v) for v in rng.uniform(0, 3, 2)]
    if rng.random() < 0.3:
        options["radius"] = int(rng.integers(0, 30))
    want = ref_gaussian.gaussian_filter(a, **options)
    eps = 6 * EPS["float32"] if dtype != "float64" else 40 * EPS[dtype]
    atol = (_largest(a) + abs(options["cval"])) * (eps + (EPS["float16"] if dtype == "float16" else 0)) + 1e-7
    return Case("gaussian_filter", {"a": a}, options, want.astype(dtype), atol)


def maximum_filter(rng: Rng) -> Case:
    dtype = str(rng.choice([*FLOATS, "uint8", "bool"]))
    a = values(rng, (*leading(rng), *extent(rng)), dtype)
    size: Any = int(rng.integers(1, 40)) if rng.random() < 0.6 else [int(v) for v in rng.integers(1, 12, 2)]
    options = {"size": size, "mode": str(rng.choice(MODES)), "cval": float(rng.integers(0, 2))}
    return Case("maximum_filter", {"a": a}, options, ref_maximum.maximum_filter(a, **options))


def sobel(rng: Rng) -> Case:
    dtype = str(rng.choice(FLOATS))
    a = values(rng, (*leading(rng), *extent(rng)), dtype)
    options = {"axis": int(rng.choice([-1, -2])), "mode": str(rng.choice(MODES)), "cval": float(rng.normal())}
    atol = 8 * (_largest(a) + abs(options["cval"])) * 4 * EPS[dtype] + 1e-9
    return Case("sobel", {"a": a}, options, ref_sobel.sobel(a, **options).astype(dtype), atol)


def total_variation(rng: Rng) -> Case:
    dtype = str(rng.choice([*FLOATS, "uint8", "bool"]))
    a = values(rng, (*leading(rng), *extent(rng)), dtype)
    options = {
        "kind": str(rng.choice(["anisotropic", "isotropic"])),
        "normalize": str(rng.choice(["none", "minmax", "mean"])),
    }
    want = np.asarray(ref_variation.total_variation(a, **options))
    return Case("total_variation", {"a": a}, options, want, 1e-5 * _largest(want) + 1e-12)


def percentile(rng: Rng) -> Case:
    dtype = str(rng.choice([*FLOATS, "uint8"]))
    a = values(rng, (*leading(rng), *extent(rng)), dtype)
    q: Any = float(rng.uniform(0, 100)) if rng.random() < 0.4 else [float(v) for v in rng.uniform(0, 100, 3)]
    return Case("percentile", {"a": a}, {"q": q}, np.asarray(ref_percentile.percentile(a, q)))


def _ranking(rng: Rng) -> dict[str, Any]:
    return {
        "rule": str(rng.choice(["exact", "percentile", "strict"])),
        "order": str(rng.choice(["morf", "lerf"])),
        "seed": _seed(rng),
    }


def removal_mask(rng: Rng) -> Case:
    a = values(rng, (*leading(rng), *extent(rng)), str(rng.choice([*FLOATS, "uint8"])))
    ids = _ids(rng, int(np.prod(a.shape[:-2])))
    options = _ranking(rng) | {"drop": float(rng.random()), "keep": bool(rng.random() < 0.3)}
    return Case("removal_mask", _with_ids({"a": a}, ids), options, ref_mask.removal_mask(a, index=ids, **options))


def rank_codes(rng: Rng) -> Case:
    a = values(rng, (*leading(rng), *extent(rng)), str(rng.choice([*FLOATS, "uint8"])))
    ids = _ids(rng, int(np.prod(a.shape[:-2])))
    drops = [float(v) for v in np.unique(rng.random(rng.integers(1, 6)))]
    options = _ranking(rng)
    want = ref_codes.rank_codes(a, drops, index=ids, **options)
    return Case("rank_codes", _with_ids({"a": a}, ids), options | {"drops": drops}, want)


def removed_fraction(rng: Rng) -> Case:
    codes = rng.integers(0, 6, (*leading(rng), *extent(rng)), dtype=np.uint8)
    j = int(rng.integers(0, 6))
    return Case("removed_fraction", {"codes": codes}, {"rate_index": j}, ref_fraction.removed_fraction(codes, j), 1e-15)


def _fill_value(rng: Rng, n: int, c: int, dtype: str) -> Any:
    kind = rng.integers(0, 6)
    if kind < 4:
        return ("zero", "kept_mean", "image_mean", "noise")[kind]
    if kind == 4:
        return float(rng.integers(0, 200))
    return rng.integers(0, 200, (n, c)).astype(np.float64)


def _images(rng: Rng) -> tuple[Any, str]:
    dtype = str(rng.choice([*FLOATS, "uint8"]))
    return values(rng, (int(rng.integers(1, 4)), int(rng.integers(1, 5)), *extent(rng)), dtype), dtype


def _fill_atol(x: Any, dtype: str, value: Any) -> float:
    if dtype == "uint8":
        return 1.0 if isinstance(value, str) else 0.0
    return (_largest(x) + 8) * (2 * EPS["float16"] if dtype == "float16" else 4 * EPS["float32"])


def fill(rng: Rng) -> Case:
    x, dtype = _images(rng)
    mask = rng.random((len(x), *x.shape[2:])) < rng.random()
    mask = mask.astype(np.uint8) if rng.random() < 0.3 else mask
    ids, value = _ids(rng, len(x)), _fill_value(rng, len(x), x.shape[1], dtype)
    options = {"value": value, "seed": _seed(rng), "noise_std": 0.5}
    want = ref_fill.fill(x, mask, index=ids, **options)
    return Case("fill", _with_ids({"x": x, "mask": mask}, ids), options, want, _fill_atol(x, dtype, value))


def remove(rng: Rng) -> Case:
    x, dtype = _images(rng)
    a = values(rng, (len(x), *x.shape[2:]), str(rng.choice([*FLOATS, "uint8"])))
    ids, value = _ids(rng, len(x)), _fill_value(rng, len(x), x.shape[1], dtype)
    options = _ranking(rng) | {"drop": float(rng.random()), "fill": value, "keep": bool(rng.random() < 0.3)}
    want = ref_remove.remove(x, a, index=ids, **options)
    return Case("remove", _with_ids({"x": x, "a": a}, ids), options, want, _fill_atol(x, dtype, value))


def philox_normal(rng: Rng) -> Case:
    index = rng.integers(0, 2**40, rng.integers(1, 5))
    options = {
        "shape": tuple(int(v) for v in rng.integers(1, 9, 2)),
        "seed": _seed(rng),
        "draw": int(rng.integers(0, 4)),
    }
    return Case("philox_normal", {"index": index}, options, ref_normal.philox_normal(index, **options), 2e-6)


def pixel_random(rng: Rng) -> Case:
    shape, ids = (int(rng.integers(1, 4)), *extent(rng)), None
    options = {"shape": shape, "seed": _seed(rng), "index": ids}
    return Case(
        "pixel_random", {}, options, ref_pixel.pixel_random(shape, options["seed"], ids), takes_out=False, makes=True
    )


def block_random(rng: Rng) -> Case:
    shape = (int(rng.integers(1, 4)), *extent(rng))
    options = {"shape": shape, "drop": float(rng.random()), "seed": _seed(rng)}
    return Case("block_random", {}, options, ref_block.block_random(**options), takes_out=False, makes=True)


def impute_linear(rng: Rng) -> Case:
    dtype = str(rng.choice([*FLOATS, "uint8"]))
    n, c, (h, w) = int(rng.integers(1, 3)), int(rng.integers(1, 4)), extent(rng)
    x = rng.random((n, c, h, w)).astype(dtype) if dtype != "uint8" else values(rng, (n, c, h, w), dtype)
    mask = rng.random((n, h, w)) < rng.random()
    ids, seed = _ids(rng, n), _seed(rng)
    noise = 0.0 if rng.random() < 0.5 else 0.01
    want = np.stack([ref_impute.impute_linear(x[i], mask[i]) for i in range(n)])
    if noise:
        for i in range(n):
            sample = int(ids[i]) if ids is not None else i
            want[i] += np.where(mask[i], noise * ref_impute.noise(seed, sample, (c, h, w)), 0)
    atol = 2.5e-5 * (255 if dtype == "uint8" else 1) + (2e-3 if dtype == "float16" else 1e-6)
    result = "float32" if dtype == "uint8" else dtype
    options = {"noise": noise, "seed": seed}
    return Case("impute_linear", _with_ids({"x": x, "mask": mask}, ids), options, want.astype(result), atol)


def impute_dataset(rng: Rng) -> Case:
    n, c, (h, w) = int(rng.integers(1, 4)), int(rng.integers(1, 4)), extent(rng)
    images, codes = values(rng, (n, c, h, w), "uint8"), rng.integers(0, 4, (n, h, w), dtype=np.uint8)
    drops, j = [0.2, 0.5, 0.8], int(rng.integers(0, 3))
    want = np.stack([ref_impute.impute_linear(images[i], codes[i] <= j) for i in range(n)])
    options = {"drops": drops, "rate_index": j, "noise": 0.0, "progress": False, "chunk": int(rng.integers(1, 4))}
    return Case("impute_dataset", {"images": images, "codes": codes}, options, np.rint(want).astype(np.uint8), 1.0)


def gather_batch(rng: Rng) -> Case:
    n, c, (h, w) = int(rng.integers(1, 6)), int(rng.choice([1, 3, 4])), extent(rng)
    images, pad = values(rng, (n, c, h, w), "uint8"), int(rng.integers(0, 4))
    arrays: dict[str, Any] = {"images": images, "index": rng.integers(0, n, rng.integers(1, 9))}
    options: dict[str, Any] = {
        "pad": pad,
        "crop": (int(rng.integers(1, h + 2 * pad + 1)), int(rng.integers(1, w + 2 * pad + 1))),
        "random_crop": bool(rng.random() < 0.5),
        "flip": bool(rng.random() < 0.5),
        "seed": _seed(rng),
        "epoch": int(rng.integers(0, 5)),
        "mean": 0.4,
        "std": 0.25,
    }
    if rng.random() < 0.6:
        arrays["codes"] = rng.integers(0, 4, (n, h, w) if rng.random() < 0.7 else (n, c, h, w), dtype=np.uint8)
        options |= {"rate_index": int(rng.integers(-1, 4)), "keep": bool(rng.random() < 0.3)}
        if rng.random() < 0.4:
            arrays["imputed"] = values(rng, (n, c, h, w), "uint8")
    if rng.random() < 0.3:
        arrays["ids"] = rng.integers(0, 2**40, len(arrays["index"]))
    want = ref_gather.gather_batch(**arrays, **options)
    if rng.random() < 0.3:
        options["dtype"] = "float16"
        want = want.astype(np.float16)
    return Case("gather_batch", arrays, options, want)


OPS: dict[str, Callable[[Rng], Case]] = {
    f.__name__: f
    for f in (
        gaussian_filter, maximum_filter, sobel, total_variation, percentile, removal_mask, rank_codes, removed_fraction,
        fill, remove, philox_normal, pixel_random, block_random, impute_linear, impute_dataset, gather_batch,
    )
}  # fmt: skip


def difference(case: Case, result: Any) -> str:
    """How a result differs from what it must be; empty if it does not."""
    got, want = np.asarray(result), case.want
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype} {got.shape} instead of {want.dtype} {want.shape}"
    exact = case.atol == 0
    wrong = got != want if exact else ~(np.abs(got.astype(np.float64) - want.astype(np.float64)) <= case.atol)
    if not wrong.any():
        return ""
    where = tuple(int(v) for v in np.argwhere(wrong)[0]) if wrong.ndim else ()
    return f"{int(wrong.sum())} of {wrong.size} values wrong, first at {where}: {got[where]} instead of {want[where]}"
