"""How impute_linear grows: time per pixel from 64 x 64 to 1024 x 1024 with the fitted exponent, and two threads over one.

Two threads are compared with one beside the same comparison for a wide Gaussian filter of small maps, which computes
within the first caches: what it gains is what this machine has to give at the moment.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from bench_impute_linear import make_images, make_masks

import roarfast as rf


def grow_with_pixels(rng: np.random.Generator) -> None:
    sizes, per_pixel = (64, 96, 128, 192, 256, 384, 512, 768, 1024), []
    print(f"{rf.get_num_threads()} threads, 3 channels, float32, smooth masks of 50 %")
    for size in sizes:
        n = max(2, 2**21 // size**2)
        images, masks = make_images(rng, n, size), make_masks(rng, "smooth", n, size, 0.5)
        best = np.inf
        for _ in range(7):
            start = time.perf_counter()
            _, info = rf.impute_linear(images, masks, noise=0, return_info=True)
            best = min(best, time.perf_counter() - start)
        per_pixel.append(best / n / size**2)
        print(
            f"{size:5d}²  {1e3 * best / n:9.3f} ms per image  {1e9 * per_pixel[-1]:6.1f} ns per pixel"
            f"  {info.iterations.mean():.1f} cycles"
        )
    pixels = np.square(sizes, dtype=float)
    exponent, _ = np.polyfit(np.log(pixels), np.log(np.array(per_pixel) * pixels), 1)
    print(f"time per image grows as pixels^{exponent:.3f}")


def two_threads_over_one(run: Callable[[], Any]) -> float:
    """The ratio of the best times of 15 turns each."""
    best = {1: np.inf, 2: np.inf}
    for _ in range(15):
        for threads in best:
            rf.set_num_threads(threads)
            start = time.perf_counter()
            run()
            best[threads] = min(best[threads], time.perf_counter() - start)
    return best[1] / best[2]


def main() -> None:
    rng = np.random.default_rng(0)
    grow_with_pixels(rng)
    threads = rf.get_num_threads()
    if threads < 2:
        return
    maps = rng.random((64, 64, 64), dtype=np.float32)
    out = np.empty_like(maps)
    own = two_threads_over_one(lambda: rf.gaussian_filter(maps, 8.0, out=out))
    print("\ntwo threads over one")
    print(f"  gaussian_filter, the machine's own  {own:.2f}x")
    for size, n in ((32, 256), (224, 32), (768, 4)):
        for kind in ("random", "smooth"):
            images, masks = make_images(rng, n, size), make_masks(rng, kind, n, size, 0.5)
            gain = two_threads_over_one(lambda x=images, m=masks: rf.impute_linear(x, m, noise=0))
            print(f"  {n} x {size}², {kind} 50 %".ljust(38) + f"{gain:.2f}x")
    rf.set_num_threads(threads)


if __name__ == "__main__":
    main()
