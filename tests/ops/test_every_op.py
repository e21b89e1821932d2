"""What holds for every op: the same bits at every SIMD level, and the number of threads that was set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.op_cases import CASES

import roarfast as rf
from roarfast import _backend

TESTS = Path(__file__).resolve().parents[1]
OPS = sorted(set(rf.ops.__all__) - {"ImputeInfo", "register_torch", "aggregate_channels"})  # of kernels


def test_every_op_has_cases() -> None:
    assert sorted(CASES) == OPS


def digests_at(level: str) -> dict[str, Any]:
    path = os.pathsep.join([str(TESTS), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "helpers.op_cases"],
        env=os.environ | {"PYTHONPATH": path, "ROARFAST_SIMD": level},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def base() -> dict[str, Any]:
    return digests_at("base")


@pytest.mark.parametrize("level", ["v3"])
def test_every_simd_level_gives_the_same_bits(level: str, base: dict[str, Any]) -> None:
    if level not in _backend.runnable_simd_levels():
        pytest.skip(f"SIMD level {level} is not built, or this processor does not run it")
    results = digests_at(level)
    assert (base.pop("backend", "cpu-base"), results.pop("backend")) == ("cpu-base", f"cpu-{level}")
    different = {name: [i for i, d in enumerate(results[name]) if d != base[name][i]] for name in base}
    assert {name: cases for name, cases in different.items() if cases} == {}


A, X, MASK = np.zeros((2, 8, 8), np.float32), np.zeros((2, 1, 8, 8), np.float32), np.zeros((2, 8, 8), bool)
BYTES, CODES = np.zeros((2, 1, 8, 8), np.uint8), np.zeros((2, 8, 8), np.uint8)
CALLS: dict[str, Callable[[], Any]] = {
    "block_random": lambda: rf.block_random((2, 8, 8), 0.5),
    "blur_fill": lambda: rf.blur_fill(X, MASK),
    "code_sums": lambda: rf.code_sums(A, CODES, 2),
    "distance_transform": lambda: rf.distance_transform(MASK),
    "fill": lambda: rf.fill(X, MASK, 0.5),
    "gather_batch": lambda: rf.gather_batch(BYTES, [0]),
    "gaussian_filter": lambda: rf.gaussian_filter(A, 1),
    "impute_dataset": lambda: rf.impute_dataset(BYTES, CODES, [0.5], progress=False),
    "impute_linear": lambda: rf.impute_linear(X, MASK),
    "impute_linear with out": lambda: rf.impute_linear(X, MASK, out=np.empty_like(X)),
    "mask_geometry": lambda: rf.mask_geometry(MASK),
    "maximum_filter": lambda: rf.maximum_filter(A, 3),
    "noise_fill": lambda: rf.noise_fill(X, MASK),
    "percentile": lambda: rf.percentile(A, 50),
    "philox_normal": lambda: rf.philox_normal(np.arange(2), (3,)),
    "pixel_random": lambda: rf.pixel_random((2, 8, 8)),
    "rank_codes": lambda: rf.rank_codes(A, [0.5]),
    "removal_mask": lambda: rf.removal_mask(A, 0.5),
    "remove": lambda: rf.remove(X, A, 0.5, 0.5),
    "removed_fraction": lambda: rf.removed_fraction(CODES, 0),
    "sobel": lambda: rf.sobel(A),
    "total_variation": lambda: rf.total_variation(A),
}


def test_every_op_is_called() -> None:
    assert set(CALLS) - {"impute_dataset", "impute_linear with out"} == set(OPS)


@pytest.mark.parametrize("name", CALLS)
def test_ops_use_the_number_of_threads_that_was_set(name: str) -> None:
    """In a thread of its own, where no earlier call has told the kernels how many there are."""
    rf.set_num_threads(3)
    seen = []

    def call() -> None:
        CALLS[name]()
        seen.append(_backend.cpu().get_num_threads())

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert seen == [3]
