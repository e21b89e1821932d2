"""Philox 4x32-10 and what is derived from it, in plain NumPy: the definition `csrc/common/philox.h` must match bit for bit."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

TIE_BREAK, PIXEL_RANDOM, BLOCK_RANDOM, NOISE_FILL, IMPUTE_NOISE, AUGMENT, SHUFFLE, EXPLAIN_NOISE, RESIZED_CROP = range(
    1, 10
)
# From 256 on: domains that only Python draws from. Never reuse or renumber: stored results depend on them.
NULL_MAPS, WATERMARK, HALVES, FILL_SAMPLE = 256, 257, 258, 259

_F = np.float32


def blocks(
    seed: int, sample: int | npt.NDArray[np.uint64], block: npt.ArrayLike, domain: int
) -> npt.NDArray[np.uint32]:
    """The four words of each block: `[..., 4]` for blocks `[...]`, of one sample or of as many."""
    b = np.asarray(block, np.uint64)
    low = np.uint64(0xFFFFFFFF)
    c = [
        b & low,
        ((b >> np.uint64(32)) & np.uint64(0xFFFF)) | np.uint64(domain << 16),
        np.full_like(b, (sample & 0xFFFFFFFFFFFFFFFF) & 0xFFFFFFFF),
        np.full_like(b, (sample & 0xFFFFFFFFFFFFFFFF) >> 32),
    ]
    k0, k1 = seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        hi0, lo0, hi1, lo1 = p0 >> np.uint64(32), p0 & low, p1 >> np.uint64(32), p1 & low
        c = [hi1 ^ c[1] ^ np.uint64(k0), lo1, hi0 ^ c[3] ^ np.uint64(k1), lo0]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, -1).astype(np.uint32)


def words(seed: int, sample: int, features: int, domain: int) -> npt.NDArray[np.uint32]:
    """One word per feature: `[features]`; feature f owns word f % 4 of block f // 4."""
    return blocks(seed, sample, np.arange((features + 3) // 4), domain).reshape(-1)[:features]


def uniforms(seed: int, sample: int, features: int, domain: int) -> npt.NDArray[np.float32]:
    """Uniform numbers in [0, 1) on a grid of 2^-24, one per feature."""
    return (words(seed, sample, features, domain) >> np.uint32(8)).astype(_F) * _F(2.0**-24)


def _log_uniform(k: npt.NDArray[np.uint32]) -> npt.NDArray[np.float32]:
    m, exponent = np.frexp((k + np.uint32(1)).astype(_F))  # m in [0.5, 1)
    m, exponent = m * _F(2), exponent - 1
    large = m > _F(1.41421354)
    m, exponent = np.where(large, m * _F(0.5), m), np.where(large, exponent + 1, exponent)
    s = (m - _F(1)) / (m + _F(1))
    s2 = s * s
    p = np.full_like(s, 0.2222222222)
    for coefficient in (0.2857142857, 0.4, 0.6666666667, 2.0):
        p = p * s2 + _F(coefficient)
    e = (exponent - 24).astype(_F)
    return e * _F(0.693145752) + (p * s + e * _F(1.42860677e-6))


def _cos_sin_turn(k: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    turn = (k.astype(np.int64) + (1 << 21)) >> 22
    x = (k.astype(np.int64) - (turn << 22)).astype(_F) * _F(3.74507035e-7)
    x2 = x * x
    s = np.full_like(x, 2.75573164e-6)
    for coefficient in (-1.98412701e-4, 8.33333377e-3, -0.166666672):
        s = s * x2 + _F(coefficient)
    s = s * x2 * x + x
    c = np.full_like(x, 2.48015876e-5)
    for coefficient in (-1.38888892e-3, 4.16666679e-2, -0.5, 1.0):
        c = c * x2 + _F(coefficient)
    quadrant = turn & 3
    return np.choose(quadrant, [c, -s, -c, s]), np.choose(quadrant, [s, c, -s, -c])


def normals(seed: int, sample: int, features: int, domain: int) -> npt.NDArray[np.float32]:
    """Standard normal numbers, one per feature (Box-Muller over the words of a block)."""
    w = blocks(seed, sample, np.arange((features + 3) // 4), domain) >> np.uint32(8)
    radius = np.sqrt(_F(-2) * _log_uniform(w[:, 0::2]))
    cosine, sine = _cos_sin_turn(w[:, 1::2])
    return np.stack([radius * cosine, radius * sine], -1).reshape(-1)[:features]
