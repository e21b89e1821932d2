"""`roarfast kernels-demo`: a generated image and map through every op, timed against SciPy, and a picture strip."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import roarfast as rf

Floats = npt.NDArray[np.float32]


def generated_image(size: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """A disc on a 1/f-noise background, `[H, W, 3]`."""
    frequency = np.hypot(np.fft.fftfreq(size)[:, None], np.fft.rfftfreq(size)[None, :])
    spectrum = rng.standard_normal((3, *frequency.shape)) + 1j * rng.standard_normal((3, *frequency.shape))
    noise = np.fft.irfft2(spectrum / np.maximum(frequency, 1 / size), s=(size, size))
    noise = (noise - noise.mean()) / noise.std()
    y, x = np.mgrid[:size, :size] / size - 0.5
    disc = (np.hypot(y, x) < 0.25)[None] * np.array([1.6, 0.6, -0.8])[:, None, None]
    return np.clip(118 + 40 * (noise * 0.7 + disc), 0, 255).astype(np.uint8).transpose(1, 2, 0)


def generated_map(size: int, rng: np.random.Generator) -> Floats:
    """What a squared gradient looks like: speckle, strongest around the disc's edge, heavy-tailed."""
    y, x = np.mgrid[:size, :size] / size - 0.5
    edge = np.exp(-(((np.hypot(y, x) - 0.25) / 0.08) ** 2))
    return ((edge + 0.15) * rng.standard_normal((size, size))).astype(np.float32) ** 2


def best_ms(call: Callable[[], Any], repeats: int = 5) -> float:
    """The shortest of several timed calls, in milliseconds; the first call is not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def scipy_rows(maps: Floats) -> list[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """(op, ours, the same by SciPy or NumPy)."""
    from scipy import ndimage

    axes = (-2, -1)
    return [
        (
            "gaussian_filter(1)",
            lambda: rf.gaussian_filter(maps, 1),
            lambda: ndimage.gaussian_filter(maps, 1, axes=axes),
        ),
        ("maximum_filter(3)", lambda: rf.maximum_filter(maps, 3), lambda: ndimage.maximum_filter(maps, 3, axes=axes)),
        ("sobel", lambda: rf.sobel(maps), lambda: [ndimage.sobel(m) for m in maps]),
        (
            "total_variation",
            lambda: rf.total_variation(maps),
            lambda: np.abs(np.diff(maps, axis=-1)).sum((-2, -1)) + np.abs(np.diff(maps, axis=-2)).sum((-2, -1)),
        ),
    ]


def strip(panels: list[npt.NDArray[Any]], gap: int = 6) -> npt.NDArray[np.uint8]:
    """Panels side by side on white; maps are shown up to their 99th percentile."""
    rows = []
    for panel in panels:
        if panel.ndim == 2:
            top = max(float(np.percentile(panel, 99)), 1e-12)
            panel = np.repeat((np.clip(panel / top, 0, 1) * 255)[:, :, None], 3, axis=2)
        rows += [panel.astype(np.uint8), np.full((panel.shape[0], gap, 3), 255, np.uint8)]
    return np.concatenate(rows[:-1], axis=1)


def run(out: str | Path, size: int = 224, batch: int = 64, seed: int = 0) -> Path:
    """Runs the demo and returns the path of the picture."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    image, one_map = generated_image(size, rng), generated_map(size, rng)
    maps = np.stack([one_map] * batch)
    print(f"{batch} maps of {size}x{size}, {rf.get_num_threads()} threads; milliseconds, best of 5")
    print(f"{'op':<22}{'roarfast':>10}{'SciPy':>10}{'ratio':>8}")
    for name, ours, theirs in scipy_rows(maps):
        ours_ms, theirs_ms = best_ms(ours), best_ms(theirs, repeats=2)
        print(f"{name:<22}{ours_ms:>10.2f}{theirs_ms:>10.2f}{theirs_ms / ours_ms:>7.1f}x")
    variants = {
        "plain": one_map,
        "max(3)": rf.maximum_filter(one_map, 3),
        "gaussian(1)": rf.gaussian_filter(one_map, 1),
    }
    print("\nTotal variation of the map scaled to [0, 1]: post-processing knows nothing of the model, and smooths")
    for name, m in variants.items():
        print(f"  {name:<12}{float(rf.total_variation(m, normalize='minmax')):>10.1f}")
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "strip.png"
    Image.fromarray(strip([image, *variants.values()])).save(path)
    print(f"\nInput, map, max-filtered, Gaussian-filtered: {path}")
    return path
