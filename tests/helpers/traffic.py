"""What ops execute and move, from the `ptx` backend: the cases of `make traffic` and of tests/backends/test_traffic.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import roarfast as rf
from helpers.ptx import counted

NINE = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
EIGHT = [5.0, 10.0, 20.0, 30.0, 50.0, 70.0, 90.0, 95.0]
# The cache that one block has to itself: 20 KB where eight blocks share an SM, 100 KB where one block fills it.
L1_BYTES = {"impute": 100 << 10}


class Inputs:
    """Arrays of one size, the same in every run."""

    def __init__(self, size: int, n: int) -> None:
        rng = np.random.default_rng(0)
        self.n, self.size = n, size
        self.x = rng.standard_normal((n, size, size)).astype(np.float32)
        self.relu = np.maximum(self.x, 0)  # half of it ties
        self.nchw = rng.standard_normal((n, 3, size, size)).astype(np.float32)
        self.nhwc = np.ascontiguousarray(np.moveaxis(self.nchw, 1, -1))
        self.mask = rng.random((n, size, size)) < 0.5
        self.codes = rng.integers(0, 10, (n, size, size), dtype=np.uint8)
        self.u8 = rng.integers(0, 256, self.nchw.shape, dtype=np.uint8)
        self.u8_last = np.ascontiguousarray(np.moveaxis(self.u8, 1, -1))
        self.index = np.arange(n)


Case = Callable[[Inputs], tuple[Any, ...]]  # (op, *args, {**kwargs})

CASES: dict[str, Case] = {
    "total_variation": lambda i: (rf.total_variation, i.x),
    "gaussian 1": lambda i: (rf.gaussian_filter, i.x, 1.0),
    "gaussian 3": lambda i: (rf.gaussian_filter, i.x, 3.0),
    "gaussian 10": lambda i: (rf.gaussian_filter, i.x, 10.0),
    "sobel": lambda i: (rf.sobel, i.x),
    "maximum 3": lambda i: (rf.maximum_filter, i.x, 3),
    "maximum 3 uint8": lambda i: (rf.maximum_filter, i.codes, 3),
    "maximum 15": lambda i: (rf.maximum_filter, i.x, 15),
    "maximum 41": lambda i: (rf.maximum_filter, i.x, 41),
    "removal_mask": lambda i: (rf.removal_mask, i.x, 0.3),
    "removal_mask relu": lambda i: (rf.removal_mask, i.relu, 0.3),
    "rank_codes 9": lambda i: (rf.rank_codes, i.x, NINE),
    "rank_codes 9 relu": lambda i: (rf.rank_codes, i.relu, NINE),
    "percentile 8": lambda i: (rf.percentile, i.x, EIGHT),
    "removed_fraction": lambda i: (rf.removed_fraction, i.codes, 4),
    "pixel_random": lambda i: (rf.pixel_random, (i.n, i.size, i.size)),
    "philox_normal": lambda i: (rf.philox_normal, i.index, (i.size, i.size)),
    "block_random": lambda i: (rf.block_random, (i.n, i.size, i.size), 0.3),
    "fill value NCHW": lambda i: (rf.fill, i.nchw, i.mask, [0.1, 0.2, 0.3]),
    "fill value NHWC": lambda i: (rf.fill, i.nhwc, i.mask, [0.1, 0.2, 0.3], {"layout": "NHWC"}),
    "fill mean NCHW": lambda i: (rf.fill, i.nchw, i.mask, "kept_mean"),
    "fill mean NHWC": lambda i: (rf.fill, i.nhwc, i.mask, "kept_mean", {"layout": "NHWC"}),
    "remove value": lambda i: (rf.remove, i.nchw, i.x, 0.3, [0.1, 0.2, 0.3]),
    "remove mean": lambda i: (rf.remove, i.nchw, i.x, 0.3, "image_mean"),
    "gather NCHW": lambda i: (rf.gather_batch, i.u8, i.index, i.codes, 4, {"mean": 0.5, "std": 0.25}),
    "gather NHWC": lambda i: (
        rf.gather_batch,
        i.u8_last,
        i.index,
        i.codes,
        4,
        {"mean": 0.5, "std": 0.25, "layout": "NHWC", "out_layout": "NHWC"},
    ),
    "gather NHWC f16": lambda i: (
        rf.gather_batch,
        i.u8_last,
        i.index,
        i.codes,
        4,
        {"mean": 0.5, "std": 0.25, "layout": "NHWC", "out_layout": "NHWC", "dtype": "float16"},
    ),
    "impute": lambda i: (rf.impute_linear, i.nchw, i.mask),
}
IMAGES = {32: 8, 64: 2, 224: 1}  # how many of each size: enough for every kernel's usual path


@dataclass
class Traffic:
    """Sums over the launches of one call."""

    launches: list[dict[str, Any]]
    pixels: int

    def classes(self, *names: str, what: str = "warps") -> int:
        """Of some classes of instructions (all if none is named): executions by warps, wavefronts, …"""
        return sum(
            sums[what]
            for launch in self.launches
            for name, sums in launch["classes"].items()
            if not names or name in names
        )

    def arrays(self, what: str, *directions: str) -> int:
        """`sectors`, `l2`, … of all arrays, loads and stores."""
        return sum(
            array[direction][what]
            for launch in self.launches
            for array in launch["arrays"]
            for direction in directions or ("load", "store")
        )

    @property
    def instructions(self) -> int:
        """Executed warp instructions."""
        return self.classes()

    @property
    def l2_bytes(self) -> int:
        """Bytes that leave the SMs' own caches."""
        return 32 * self.arrays("l2")

    @property
    def unique_bytes(self) -> int:
        """Distinct bytes of each launch: what an endless cache would leave."""
        return 32 * self.arrays("unique")

    @property
    def wavefronts(self) -> int:
        """Passes over the banks of shared memory."""
        return self.classes(what="wavefronts")

    @property
    def barriers(self) -> float:
        """Per block, summed over launches."""
        total = 0.0
        for launch in self.launches:
            warps = -(-int(np.prod(launch["block"])) // 32) * int(np.prod(launch["grid"]))
            total += launch["classes"]["barrier"]["warps"] / warps
        return total


def measure(name: str, size: int) -> Traffic:
    """Runs one case on the interpreter."""
    inputs = Inputs(size, IMAGES[size])
    op, *args = CASES[name](inputs)
    kwargs = args.pop() if args and isinstance(args[-1], dict) else {}
    _, launches = counted(op, *args, **kwargs, l1_bytes=L1_BYTES.get(name, 20 << 10))
    return Traffic(launches, inputs.n * size * size)
