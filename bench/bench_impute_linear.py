"""impute_linear against ROAD's way, the best library route, and ourselves on one thread.

Rivals work image by image on one thread, as they do at home; they are timed on a few images and scaled to the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from _common import Case
from impute_rivals import pyamg_way, road_way, superlu
from scipy.ndimage import gaussian_filter

import roarfast as rf

RATES = (0.1, 0.5, 0.9)
ROAD_FLOORS = {224: (20.0, 120.0, 300.0), 32: (60.0, 120.0, 200.0)}


def make_masks(rng: np.random.Generator, kind: str, n: int, size: int, rate: float) -> np.ndarray:
    """Masks that remove the top of a random map: white noise, or noise smoothed over 1/16 of the image."""
    maps = rng.standard_normal((n, size, size))
    if kind == "smooth":
        maps = gaussian_filter(maps, (0, size / 16, size / 16))
    count = int(rate * size * size)
    order = np.argsort(-maps.reshape(n, -1), axis=1)[:, :count]
    masks = np.zeros((n, size * size), bool)
    np.put_along_axis(masks, order, True, axis=1)
    return masks.reshape(n, size, size)


def make_images(rng: np.random.Generator, n: int, size: int) -> np.ndarray:
    return gaussian_filter(rng.random((n, 3, size, size)), (0, 0, 1.5, 1.5)).astype(np.float32)


def one_thread(run: Callable[[], Any]) -> Callable[[], Any]:
    def wrapped() -> Any:
        threads = rf.get_num_threads()
        rf.set_num_threads(1)
        try:
            return run()
        finally:
            rf.set_num_threads(threads)

    return wrapped


def cases(quick: bool) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    for size, batch, few in ((32, 64, 4),) if quick else ((224, 16, 1), (32, 256, 8)):
        images = make_images(rng, batch, size)
        for kind in ("random", "smooth"):
            for rate, floor in zip(RATES, ROAD_FLOORS[size]):
                masks = make_masks(rng, kind, batch, size, rate)

                def ours(x: np.ndarray = images, m: np.ndarray = masks) -> np.ndarray:
                    return rf.impute_linear(x, m, noise=0)

                def on_few(
                    way: Callable[..., np.ndarray], x: np.ndarray = images[:few], m: np.ndarray = masks[:few]
                ) -> Callable[[], np.ndarray]:
                    return lambda: np.stack([way(x[i], m[i]) for i in range(len(x))])

                rivals = {"ROAD's way": on_few(road_way), "SuperLU": on_few(superlu)}
                amg = pyamg_way()
                if amg is not None:
                    rivals["PyAMG"] = on_few(amg)
                scaled = dict.fromkeys(rivals, batch / few)
                floors = {} if quick else {"ROAD's way": floor}
                if not quick and kind == "smooth" and rate == 0.9:
                    rivals["ours, 1 thread"] = one_thread(ours)
                    floors["ours, 1 thread"] = 1.8
                yield Case(
                    "impute_linear",
                    f"{batch}x3x{size}x{size} float32, {kind} {rate:.0%}",
                    ours,
                    rivals,
                    floors,
                    rtol=1e-4,
                    scaled=scaled,
                )
