"""Drop-ins whose peers install nowhere, or only as SciPy: rows of bench/peers.py.

The code of road_evaluation, soco and SIAnalytics' roar comes from no registry: their rivals are restated here, step by step, with the
imputation of `impute_rivals.road_way`, which has the data structures and calls of the published one, so its cost. captum has no
counterpart of `RandomRemoval`: its rival removes the same pixels and imputes that way. Noise is left out on both sides.

Floors are low for the quick rows: until their ratios are saved, `make bench-peers-check` holds them to these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.ndimage
import torch
from impute_rivals import road_way

import roarfast as rf
from roarfast.compat import _impute, captum, ndimage, road, roar
from roarfast.compat._options import Options

Fields = tuple[str, str, str, Callable[[], Any], Callable[[], Any], float, float | None]
SHARE = 0.5  # of the pixels is removed


def rows(quick: bool) -> Iterator[Fields]:
    """(op, case, rival, ours, theirs, floor, tolerance) for each comparison."""
    side, imputed = (64, 5.0) if quick else (224, 40.0)
    rng = np.random.default_rng(3)
    yield from filters(224, rng)  # smaller ones would measure the call itself
    images = rng.random((4, 3, side, side)).astype(np.float32)
    yield from road_rows(images, rng, imputed)
    yield from soco_rows(images, rng, imputed)
    yield from roar_rows(images[0], rng, imputed)
    yield from captum_rows(images, imputed)


def filters(side: int, rng: np.random.Generator) -> Iterator[Fields]:
    """`scipy.ndimage`, a stack of maps; Sobel of one, as SciPy's smooths along every other axis."""
    maps = rng.random((8, side, side)).astype(np.float32)
    calls: dict[str, tuple[np.ndarray, dict[str, Any], float]] = {
        "gaussian_filter": (maps, {"sigma": (0, 1, 1)}, 4),
        "maximum_filter": (maps, {"size": (1, 3, 3)}, 8),
        "sobel": (maps[0], {"axis": -1}, 1.5),
    }
    for name, (a, arguments, floor) in calls.items():
        mine, theirs = getattr(ndimage, name), getattr(scipy.ndimage, name)
        case = f"{name}, {'x'.join(map(str, a.shape))}, {', '.join(f'{k} {v}' for k, v in arguments.items())}"
        yield (
            "compat ndimage",
            case,
            "SciPy",
            lambda a=a, call=mine, arguments=arguments: call(a, **arguments),
            lambda a=a, call=theirs, arguments=arguments: call(a, **arguments),
            floor,
            1e-5,
        )


def road_rows(images: np.ndarray, rng: np.random.Generator, floor: float) -> Iterator[Fields]:
    """road_evaluation's data set: rank the jittered map, impute, image by image."""
    n, _, side, _ = images.shape
    explanations = rng.random((n, side, side, 3)).astype(np.float32)
    items = [(torch.from_numpy(image), 0) for image in images]

    def ours() -> Any:
        data = road.ImputedDataset(items, explanations, SHARE, imputation=road.NoisyLinearImputer(noise=0.0))
        return np.stack([data[i][0].numpy() for i in range(n)])

    def theirs() -> Any:
        jitter = 1e-4 * np.random.randn(side, side)  # noqa: NPY002 - the original's generator
        done = []
        for image, explanation in zip(images, explanations):
            summed = explanation.sum(-1)
            values = (summed - summed.min()) / (summed.max() - summed.min() + 1e-5)
            values += jitter
            order = torch.argsort(torch.tensor(values.reshape(-1, 1)), dim=0, descending=True).flatten()
            removed = np.zeros(side * side, bool)
            removed[order[: int(side * side * SHARE)].numpy()] = True
            done.append(road_way(image, removed.reshape(side, side)))
        return np.stack(done)

    yield (
        "compat road",
        f"ImputedDataset, {n}x3x{side}x{side}, 50% removed",
        "ROAD (restated)",
        ours,
        theirs,
        floor,
        5e-5,
    )


def soco_rows(images: np.ndarray, rng: np.random.Generator, floor: float) -> Iterator[Fields]:
    """soco's imputation of a batch; its masks are its own on both sides."""
    n, _, side, _ = images.shape
    maps = rf.gaussian_filter(rng.random((n, side, side)).astype(np.float32), 3.0)
    removed, batch = rf.removal_mask(maps, SHARE), torch.from_numpy(images)

    def ours() -> Any:
        return _impute.impute_torch(batch, torch.from_numpy(removed), 0.0, Options(), noise_dtype=batch.dtype)

    def theirs() -> Any:
        return np.stack([road_way(image, mask) for image, mask in zip(images, removed)])

    yield "compat soco", f"ROAD, {n}x3x{side}x{side}, smooth, 50% removed", "soco (restated)", ours, theirs, floor, 5e-5


def roar_rows(image: np.ndarray, rng: np.random.Generator, floor: float) -> Iterator[Fields]:
    """SIAnalytics' roar: a mask of a filtered map, and its imputation."""
    side = image.shape[-1]
    attribution = rng.random((3, side, side)).astype(np.float32)
    pixels = np.ascontiguousarray(image.transpose(1, 2, 0))

    def restated() -> Any:
        values = scipy.ndimage.gaussian_filter(attribution.mean(axis=0)[..., None], sigma=1.0)
        return values >= np.percentile(values, 50)

    mask = restated()
    yield (
        "compat roar",
        f"RemOve, 3x{side}x{side}, gaussian",
        "roar (restated)",
        lambda: roar.removal_mask(attribution, 50, "gaussian"),
        restated,
        1.5,
        None,  # the last bit of a sum may move a pixel over the threshold
    )
    yield (
        "compat roar",
        f"LinearImputation, {side}x{side}x3, smooth, 50% removed",
        "roar (restated)",
        lambda: roar.linear_imputation(pixels, mask, noise=0.0),
        lambda: road_way(image, mask[..., 0]).transpose(1, 2, 0),
        floor,
        5e-5,
    )


def captum_rows(images: np.ndarray, floor: float) -> Iterator[Fields]:
    """The perturbation for captum's infidelity."""
    n, _, side, _ = images.shape
    batch = torch.from_numpy(images)
    removed = rf.removal_mask(rf.pixel_random((n, side, side), seed=0), SHARE)  # those of a new RandomRemoval

    def ours() -> Any:
        return captum.RandomRemoval(drop=SHARE, noise=0.0)(batch)[1]

    def theirs() -> Any:
        return np.stack([road_way(image, mask) for image, mask in zip(images, removed)])

    case = f"RandomRemoval, {n}x3x{side}x{side}, 50% removed"
    yield "compat captum", case, "ROAD's way", ours, theirs, floor, 5e-5
