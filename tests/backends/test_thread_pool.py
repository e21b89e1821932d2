"""The threads of the CPU kernels: same results for any number of them, from any thread, and in forked children."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import roarfast as rf


def work(seed: int) -> list[bytes]:
    maps = np.random.default_rng(seed).normal(size=(64, 33, 35)).astype(np.float32)
    results = rf.gaussian_filter(maps, 1.0), rf.removal_mask(maps, 0.3), rf.total_variation(maps)
    return [r.tobytes() for r in results]


@pytest.mark.parametrize("threads", [2, 3, 7, 40])
def test_results_do_not_depend_on_the_number_of_threads(threads: int) -> None:
    rf.set_num_threads(1)
    expected = work(0)
    rf.set_num_threads(threads)
    assert all(work(0) == expected for _ in range(20))


def test_calls_from_many_python_threads_share_the_workers() -> None:
    rf.set_num_threads(1)
    expected = [work(seed) for seed in range(8)]
    rf.set_num_threads(3)
    with ThreadPoolExecutor(8) as callers:
        for _ in range(5):
            assert list(callers.map(work, range(8))) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_has_threads_of_its_own() -> None:
    # As in the workers of a DataLoader, after the parent has used its threads. A process of its own: pytest must not fork.
    script = """
import os, sys
import numpy as np, roarfast as rf
rf.set_num_threads(4)
maps = np.random.default_rng(0).normal(size=(256, 32, 32)).astype(np.float32)
expected = rf.maximum_filter(maps, 3)
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        os._exit(0 if all((rf.maximum_filter(maps, 3) == expected).all() for _ in range(20)) else 1)
    children.append(child)
assert (rf.maximum_filter(maps, 3) == expected).all()
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0
