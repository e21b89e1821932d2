"""The emulator that runs CUDA kernels on the host (tests/backends/simt): right kernels pass for every seed, wrong ones never do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest

from roarfast import _backend

SEEDS = range(25)
MODULE = os.environ.get("ROARFAST_SIMT_MODULE", "_simt")
ASAN = MODULE == "_simt_asan"  # memory errors end the process there, with a report

try:
    names = _backend.simt().simt_selftest_names().split()
except _backend.BackendError as error:
    pytest.skip(str(error), allow_module_level=True)

# What a launch with the mistake must say. In _simt, errors are exceptions ...
CAUGHT = {
    "missing_barrier_bug": r"(race: this thread reads|no thread of the block has written).* at selftest_bugs.cpp:\d+",
    "missing_second_barrier_bug": r"race: this thread (reads|writes) byte \d+ of row \(256 bytes\)",
    "missing_syncwarp_race_bug": r"race: this thread",
    "two_writers_race_bug": r"race: this thread writes byte 0 of winner \(4 bytes\), which thread",
    "plain_and_atomic_race_bug": r"race: this thread",
    "divergent_barrier_bug": r"not all its threads reach: 32 of 64 wait in __syncthreads \(selftest_bugs.cpp:\d+\), 32 have exited"
    r" \[kernel rf::simt::divergent_barrier_kernel, block \(0, 0, 0\)",
    "two_barriers_bug": r"this thread is in __syncthreads .*, thread \(\d+, 0, 0\) in __syncthreads",
    "barrier_or_shuffle_bug": r"40 of 64 wait in __syncthreads .*, 24 of 64 wait in __syncwarp",
    "exited_lane_bug": r"exited",
    "different_collectives_bug": r"lane \d+ (is in|in) __any_sync with mask 0xffffffff",
    "wrong_mask_bug": r"mask 0xffff, which does not name the calling lane (1[6-9]|2\d|3[01])",
    "shared_row_overrun_bug": r"out-of-range index 8 of 'float \[8\]' at selftest_bugs.cpp:\d+",
    "shared_overrun_bug": r"out-of-range store of shared memory: byte 1(28|32) of buffer \(128 bytes\)",
    "shared_underrun_bug": r"out-of-range store of shared memory: byte -[48] of buffer",
    "dynamic_overrun_bug": r"out-of-range store of shared memory: byte 100 of dynamic shared memory \(100 bytes\)",
    "unwritten_bug": r"this thread reads byte 0 of row \(128 bytes\), which no thread of the block has written",
    "misaligned_bug": r"misaligned access of 'const struct float4' .* alignment 16",
    "misaligned_shared_bug": r"misaligned access of 'const struct float4' .* alignment 16",
    "block_too_large_refused": r"a block of \(32, 33, 1\) threads",
    "block_too_deep_refused": r"a block of \(1, 1, 65\) threads",
    "empty_grid_refused": r"a grid of \(0, 1, 1\) blocks",
    "grid_too_tall_refused": r"a grid of \(1, 65536, 1\) blocks",
    "dynamic_too_large_refused": r"49153 bytes of dynamic shared memory",
    "static_and_dynamic_too_large_refused": r"53248 bytes of shared memory, of at most 49152",
    "allowance_too_large_refused": r"cannot use 233472 bytes",
    "beyond_allowance_refused": r"233472 bytes of dynamic shared memory, but the kernel is allowed 232448",
}
# ... in _simt_asan these differ: races show by what they computed, memory errors are the sanitizers'.
CAUGHT_BY_ASAN = {
    "missing_barrier_bug": "wrong result: missing barrier",
    "missing_second_barrier_bug": "wrong result: missing second barrier",
    "unwritten_bug": "wrong result: unwritten element",
    "shared_row_overrun_bug": r"index 8 out of bounds for type 'float \[8\]'",
    "shared_overrun_bug": "AddressSanitizer: use-after-poison",
    "shared_underrun_bug": "AddressSanitizer: use-after-poison",
    "dynamic_overrun_bug": "AddressSanitizer: use-after-poison",
    "misaligned_bug": r"misaligned address .* requires 16 byte alignment",
    "misaligned_shared_bug": r"misaligned address .* requires 16 byte alignment",
    "global_overrun_asan_bug": r"AddressSanitizer: heap-buffer-overflow[\s\S]*global_overrun_kernel",
}
ONLY_SIMT = [name for name in names if name.endswith("_race_bug")]
ONLY_ASAN = [name for name in names if name.endswith("_asan_bug")]
WRONG = [name for name in names if name.endswith(("_bug", "_refused"))]
RIGHT = [name for name in names if name not in WRONG]


@pytest.fixture
def simt() -> Iterator[ModuleType]:
    module = _backend.simt()
    seed = module.simt_get_seed()
    yield module
    module.simt_set_seed(seed)


def run_in_process(name: str, seed: int) -> subprocess.CompletedProcess[str]:
    """One selftest in a fresh interpreter, which a sanitizer may end."""
    code = f"from roarfast import {MODULE} as m; print('seed', m.simt_get_seed()); m.simt_selftest({name!r}); print('fine')"
    environment = {**os.environ, "ROARFAST_SIMT_SEED": str(seed)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)


@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_pass_for_every_seed(simt: ModuleType, name: str) -> None:
    for seed in SEEDS:
        simt.simt_set_seed(seed)
        simt.simt_selftest(name)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_are_caught_for_every_seed(simt: ModuleType, name: str) -> None:
    if ASAN and name in CAUGHT_BY_ASAN:
        for seed in (0, 1, 7):
            result = run_in_process(name, seed)
            assert result.returncode != 0 and "fine" not in result.stdout
            assert re.search(CAUGHT_BY_ASAN[name], result.stderr), result.stderr
        return
    if name in (ONLY_SIMT if ASAN else ONLY_ASAN):
        pytest.skip(f"{MODULE} does not look for this")
    for seed in SEEDS:
        simt.simt_set_seed(seed)
        with pytest.raises(ValueError if name.endswith("_refused") else RuntimeError, match=CAUGHT[name]):
            simt.simt_selftest(name)


def test_every_selftest_is_expected() -> None:
    assert sorted({*CAUGHT, *CAUGHT_BY_ASAN}) == sorted(WRONG)
    assert {"block_reduce", "warp_reduce_float", "histogram", "transpose", "grid_3d"} <= set(RIGHT)


def test_a_failed_launch_leaves_no_trace(simt: ModuleType) -> None:
    for _ in range(3):
        with pytest.raises(RuntimeError):
            simt.simt_selftest("barrier_or_shuffle_bug")
        simt.simt_selftest("block_reduce")
        simt.simt_selftest("warp_reduce_float")


def message(simt: ModuleType, name: str, seed: int) -> str:
    simt.simt_set_seed(seed)
    with pytest.raises(RuntimeError) as caught:
        simt.simt_selftest(name)
    return str(caught.value)


def test_a_seed_fixes_the_thread_order(simt: ModuleType) -> None:
    # Which lane comes to the wrong collective last depends on the order only.
    first = [message(simt, "different_collectives_bug", seed) for seed in range(10)]
    assert first == [message(simt, "different_collectives_bug", seed) for seed in range(10)]
    assert len({re.sub("seed .*", "", text) for text in first}) > 3
    assert "thread (31, 0, 0), seed 0" in first[0]  # 0 is the order of thread numbers


def test_the_environment_sets_the_seed() -> None:
    result = run_in_process("block_reduce", 12345)
    assert result.stdout.split() == ["seed", "12345", "fine"], result.stderr


def test_an_unknown_selftest_is_an_error(simt: ModuleType) -> None:
    with pytest.raises(ValueError, match="no selftest is called nonsense"):
        simt.simt_selftest("nonsense")


def test_launches_from_several_threads_take_turns(simt: ModuleType) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(simt.simt_selftest, RIGHT * 8))
