"""How impute_linear grows with the image: time per pixel from 64 x 64 to 1024 x 1024, and the fitted exponent."""

from __future__ import annotations

import time

import numpy as np
from bench_impute_linear import make_images, make_masks

import roarfast as rf


def main() -> None:
    rng = np.random.default_rng(0)
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


if __name__ == "__main__":
    main()
