"""A few seconds with an installed roarfast, as a stranger has it: no torch, no source tree, no compiler.

    python .ci/smoke.py [--modules _cpu_base,_cpu_v3]

Small results are compared with what they must be; then every SIMD level this processor runs must give the same bits.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import roarfast as rf


def results() -> list[np.ndarray]:
    """One result of each kind of op."""
    rng = np.random.default_rng(0)
    maps, images = rng.standard_normal((3, 37, 41), np.float32), rng.random((3, 3, 37, 41), np.float32)
    mask = rf.removal_mask(maps, 0.3)
    imputed = rf.impute_linear(images, mask)
    codes = rf.rank_codes(maps, [0.1, 0.3, 0.5])
    np.testing.assert_array_equal(mask.sum((1, 2)), round(0.3 * 37 * 41))
    np.testing.assert_array_equal(codes <= 1, mask)
    kept = np.broadcast_to(~mask[:, None], images.shape)
    np.testing.assert_array_equal(imputed[kept], images[kept])
    flat = np.full((1, 9, 9), 2.5, np.float32)
    np.testing.assert_allclose(rf.gaussian_filter(flat, 1), flat, rtol=1e-6)
    np.testing.assert_array_equal(rf.total_variation(flat), [0])
    windows = np.lib.stride_tricks.sliding_window_view(
        np.pad(maps, [(0, 0), (1, 1), (1, 1)], "symmetric"), (3, 3), (1, 2)
    )
    np.testing.assert_array_equal(rf.maximum_filter(maps, 3), windows.max((3, 4)))
    return [
        mask,
        codes,
        imputed,
        rf.gaussian_filter(maps, 1.5),
        rf.sobel(maps),
        rf.total_variation(maps),
        rf.pixel_random((3, 16, 16), seed=1),
        rf.philox_normal(np.arange(3), (64,), seed=1),
    ]


def digest() -> str:
    """Of the bytes of all results."""
    sum_ = hashlib.blake2b(digest_size=8)
    for array in results():
        sum_.update(np.ascontiguousarray(array).tobytes())
    return sum_.hexdigest()


def main(arguments: list[str]) -> None:
    """Checks, and prints the version, the modules and the digest."""
    if arguments == ["--digest"]:
        print(digest())
        return
    assert importlib.util.find_spec("torch") is None, "this is to be run without torch"
    assert "site-packages" in rf.__file__, f"{rf.__file__} is no installed copy"
    modules = sorted(path.name.split(".")[0] for path in Path(rf.__file__).parent.glob("_*.so"))
    if arguments[:1] == ["--modules"]:
        assert modules == arguments[1].split(","), modules
    levels = rf._backend.runnable_simd_levels()
    digests = {
        level: subprocess.run(
            [sys.executable, __file__, "--digest"],
            env={**os.environ, "ROARFAST_SIMD": level},
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout.strip()
        for level in levels
    }
    assert len(set(digests.values())) == 1, f"SIMD levels give other bits: {digests}"
    print(
        f"roarfast {rf.__version__}: {', '.join(modules)}; {', '.join(levels)} give the same bits, {digests.popitem()[1]}"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
