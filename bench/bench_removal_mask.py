"""removal_mask: np.percentile and a comparison, torch.quantile, torch.kthvalue; on easy and on awkward maps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from _common import Case, size_name
from scipy import ndimage

import roarfast as rf

DROP = 0.3
LARGE_FLOORS = {"numpy": 15.0, "torch.quantile": 15.0, "torch.kthvalue": 8.0}
SMALL_FLOORS = {"numpy": 20.0, "torch.kthvalue": 5.0}


def maps(name: str, n: int, size: int) -> np.ndarray:
    """Maps as estimators make them; ranks are harder to find where values crowd or tie."""
    rng = np.random.default_rng(0)
    z = rng.standard_normal((n, size, size), dtype=np.float32)
    if name == "uniform":
        return rng.random((n, size, size), dtype=np.float32)
    if name == "signed":
        return z
    if name == "heavy-tailed":  # squared gradients
        return (z * np.exp(rng.standard_normal(z.shape, dtype=np.float32))) ** 2
    if name == "smooth":
        return ndimage.gaussian_filter(z, (0, 3, 3))
    if name == "60 % zeros":  # ReLU-ed class activation maps
        return np.maximum(z - np.float32(0.25), 0)
    raise ValueError(name)


def case(n: int, size: int, name: str, rule: str, floors: dict[str, float]) -> Case:
    a = maps(name, n, size)
    rows = a.reshape(n, -1)
    tensor = torch.from_numpy(rows)
    k = rows.shape[1] - int(DROP * rows.shape[1])
    out = np.empty(a.shape, bool)

    def numpy():
        threshold = np.percentile(rows, 100 * (1 - DROP), axis=1, keepdims=True)
        return (rows >= threshold).view(np.uint8).reshape(a.shape)

    def quantile():
        return (tensor >= torch.quantile(tensor, 1 - DROP, dim=1, keepdim=True)).numpy().view(np.uint8).reshape(a.shape)

    def kthvalue():
        return (tensor >= torch.kthvalue(tensor, k, dim=1, keepdim=True).values).numpy().view(np.uint8).reshape(a.shape)

    rivals = {"numpy": numpy, "torch.kthvalue": kthvalue}
    if rows.shape[1] * n < 2**24 or name in ("uniform", "heavy-tailed"):  # seconds per call
        rivals["torch.quantile"] = quantile
    return Case(
        op="removal_mask",
        case=f"{size_name(a)}, {name}, {rule}",
        ours=lambda: rf.removal_mask(a, DROP, rule, out=out).view(np.uint8),
        rivals=rivals,
        floors={rival: floor for rival, floor in floors.items() if rival in rivals},
        copy_bytes=a.nbytes if size > 100 else 0,
        rtol=0.0,
        # The others round in other ways: one pixel more or less, and all or none of the ties.
        incomparable=("torch.quantile", "torch.kthvalue") if rule == "percentile" else tuple(rivals),
    )


def cases(quick: bool) -> Iterator[Case]:
    names = ("uniform", "signed", "heavy-tailed", "smooth")
    if quick:
        yield case(64, 32, "uniform", "exact", {})
        yield case(8, 224, "heavy-tailed", "percentile", {})
        return
    for name in names:
        yield case(256, 224, name, "exact", LARGE_FLOORS)
    yield case(256, 224, "heavy-tailed", "percentile", LARGE_FLOORS)
    yield case(256, 224, "60 % zeros", "percentile", LARGE_FLOORS)
    # Here exact means hashing every tie, which nobody else does: no floor.
    yield case(256, 224, "60 % zeros", "exact", {})
    for name in names:
        yield case(256, 32, name, "exact", SMALL_FLOORS)
    yield case(256, 32, "60 % zeros", "percentile", SMALL_FLOORS)
    yield case(256, 32, "60 % zeros", "exact", {})
