"""End to end: every CUB photo of the shared data imputed at nine drop rates, beside the extrapolated peer.

The photos are JPEG bytes, decoded before the clock starts, as a training pipeline would have them. Maps are smoothed
noise. The peer is timed on a few (photo, rate) pairs per rate and extrapolated; ours runs whole.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import cv2
import numpy as np
from impute_rivals import road_way

import roarfast as rf

RATES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data" / "cub20_224_jpeg.npz"


def smooth_codes(n: int, size: int) -> np.ndarray:
    """Rank codes of smoothed noise for RATES, uint8 [n, size, size]."""
    rng = np.random.default_rng(0)
    codes = np.empty((n, size, size), np.uint8)
    counts = [int(rate * size * size) for rate in RATES]
    for i in range(n):
        noise = rng.standard_normal((size, size), dtype=np.float32)
        order = np.argsort(-cv2.GaussianBlur(noise, (0, 0), size / 16), axis=None)
        rank = np.empty(size * size, np.int64)
        rank[order] = np.arange(size * size)
        codes[i] = np.searchsorted(counts, rank, side="right").reshape(size, size)
    return codes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--limit", type=int, default=None, help="photos; default all")
    parser.add_argument("--peer", type=int, default=1, help="photos per rate for the peer")
    args = parser.parse_args()
    with np.load(args.data, allow_pickle=False) as data:
        jpeg, offsets = data["jpeg"], data["offsets"]
    n = min(len(offsets) - 1, args.limit or len(offsets))
    photos = np.stack([cv2.imdecode(jpeg[offsets[i] : offsets[i + 1]], cv2.IMREAD_COLOR) for i in range(n)])
    codes = smooth_codes(n, photos.shape[1])

    out = np.empty(photos.shape, np.uint8)  # one rate at a time, as a study uses it
    start = time.perf_counter()
    for j in range(len(RATES)):
        rf.impute_dataset(photos, codes, RATES, rate_index=j, layout="NHWC", out=out, progress=False)
    ours = time.perf_counter() - start
    print(f"ours: {n} photos x {len(RATES)} rates, {rf.get_num_threads()} threads: {ours:.1f} s")

    peer = 0.0
    for j in range(len(RATES)):
        start = time.perf_counter()
        for i in range(args.peer):
            road_way(photos[i].transpose(2, 0, 1), codes[i] <= j)
        peer += (time.perf_counter() - start) / args.peer * n
    print(
        f"ROAD's way: {peer:.0f} s ({peer / 3600:.2f} h), extrapolated from {args.peer} photos per rate; x{peer / ours:.0f}"
    )


if __name__ == "__main__":
    main()
