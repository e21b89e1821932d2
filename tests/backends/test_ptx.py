"""The interpreter of nvcc's PTX (tests/backends/ptx): right kernels pass for every seed, wrong ones never do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from helpers.ptx import counted, options, pointer_names, ptx_backend

import roarfast as rf
from roarfast import _backend

try:
    names = _backend.ptx().ptx_selftest_names()
except _backend.BackendError as error:
    pytest.skip(str(error), allow_module_level=True)

SEEDS = range(8)
AT = r".* at selftest_bugs\.cu:\d+ \[kernel \w+, block \(\d+, 0, 0\), thread \(\d+, 0, 0\), PTX line \d+: \S+"
RACE = r"race: this (read|write) and a (read|write) by thread \d+ are not ordered \(shared memory, byte \d+\)" + AT
CAUGHT = {
    "missing_barrier_bug": rf"({RACE})|(no thread of the block wrote{AT})",
    "missing_second_barrier_bug": RACE,
    "missing_syncwarp_bug": RACE,
    "shuffle_is_no_fence_bug": RACE,
    "two_writers_bug": RACE,
    "plain_and_atomic_bug": RACE,
    "global_race_bug": r"race: this (read|write) and a (read|write) .*\(global memory, byte \d+ of argument 1\)" + AT,
    "race_between_blocks_bug": r"race: this write and a write by thread 0 of block [01] are not ordered",
    "broken_promise_bug": r"(race: this|ld\.global\.nc of what this launch writes).*" + AT,
    "divergent_barrier_bug": r"not all threads of the block reach: 32 of 64 wait" + AT,
    "split_warp_barrier_bug": r"only part of a warp reaches: (31|1) of 32 lanes" + AT,
    "two_barriers_bug": r"threads wait at different barriers: the other is at selftest_bugs\.cu:\d+" + AT,
    "exited_lane_bug": r"(has exited|not all lanes of its mask reach)" + AT,
    "absent_lanes_bug": r"(only part of a warp reaches|not all lanes of its mask reach)" + AT,
    "wrong_mask_bug": r"a lane that is not in the mask of its own collective" + AT,
    "shared_overrun_bug": r"write of 4 bytes at 128 of 128 bytes of shared memory" + AT,
    "dynamic_overrun_bug": r"write of 4 bytes at 100 of 100 bytes of shared memory" + AT,
    "global_overrun_read_bug": r"global read of 4 bytes at 0x\w+, outside every array of the call" + AT,
    "global_overrun_write_bug": r"global write of 4 bytes at 0x\w+, outside every array of the call" + AT,
    "const_write_bug": r"write to argument 0, which is const" + AT,
    "local_overrun_bug": r"read of 4 bytes at \d+ of 32 bytes of local memory" + AT,
    "misaligned_bug": r"misaligned read of 16 bytes" + AT,
    "unwritten_shared_bug": r"read of shared memory that no thread of the block wrote" + AT,
    "unwritten_workspace_bug": r"read of byte 28 of argument \d, which nothing has written" + AT,
    "too_many_threads_bug": r"65 threads, but __launch_bounds__ says 64",
    "too_much_shared_bug": r"50176 bytes of dynamic shared memory .* at most 49152 are allowed",
    "empty_grid_bug": r"an empty grid or block",
    "endless_bug": r"the launch seems to hang",
}
WRONG = [name for name in names if name.endswith("_bug")]
RIGHT = [name for name in names if name not in WRONG]


@pytest.fixture
def ptx() -> Iterator[ModuleType]:
    with options(most_instructions=1_000_000) as module:
        yield module


@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_pass_for_every_seed(ptx: ModuleType, name: str) -> None:
    for seed in SEEDS:
        ptx.ptx_set_options(seed=seed)
        ptx.ptx_selftest(name)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_are_caught_for_every_seed(ptx: ModuleType, name: str) -> None:
    for seed in SEEDS:
        ptx.ptx_set_options(seed=seed)
        with pytest.raises(RuntimeError, match=CAUGHT[name]):
            ptx.ptx_selftest(name)


def test_every_selftest_is_expected() -> None:
    assert sorted(CAUGHT) == sorted(WRONG)
    assert len(RIGHT) >= 10


def test_a_failed_launch_leaves_no_trace(ptx: ModuleType) -> None:
    for _ in range(3):
        with pytest.raises(RuntimeError):
            ptx.ptx_selftest("two_barriers_bug")
        ptx.ptx_selftest("reverse")


def test_a_capped_grid_gives_each_block_more_items(ptx: ModuleType, rng) -> None:
    ptx.ptx_set_options(grid_cap=2)
    ptx.ptx_selftest("strided")  # reads gridDim
    ptx.ptx_selftest("reverse")  # does not: all its blocks run
    x = rng.standard_normal((5, 9, 70)).astype(np.float32)
    with ptx_backend():
        got = rf.gaussian_filter(x, 1.0)
    np.testing.assert_array_equal(got, rf.gaussian_filter(x, 1.0))


def test_a_removed_barrier_is_noticed_and_comes_back(ptx: ModuleType, rng) -> None:
    x = rng.standard_normal((2, 20, 30)).astype(np.float32)
    barriers = {
        place
        for kernel in ptx.ptx_kernels()
        for place, text, *_ in kernel["instructions"]
        if "bar.sync" in text and place.startswith("sobel.cu")
    }
    assert barriers
    for place in barriers:
        assert ptx.ptx_disable_barriers(place) > 0
        try:
            with ptx_backend(), pytest.raises(RuntimeError, match=r"race|no thread of the block wrote"):
                rf.sobel(x)
        finally:
            ptx.ptx_restore_barriers()
    with ptx_backend():
        np.testing.assert_array_equal(rf.sobel(x), rf.sobel(x))


def test_an_array_that_is_too_short_is_noticed(ptx: ModuleType) -> None:
    codes, out = np.zeros((1, 64), np.uint8), np.zeros(2)
    place = r"outside every array of the call at removed_fraction\.cu:\d+"
    with pytest.raises(RuntimeError, match=rf"global read of \d+ bytes .* {place}"):
        ptx.removed_fraction(codes, out, 2, 64, 1, 0)
    with pytest.raises(RuntimeError, match=rf"global write of 8 bytes .* {place}"):
        ptx.removed_fraction(np.zeros((2, 64), np.uint8), out[:1], 2, 64, 1, 0)


def test_no_kernel_has_an_instruction_that_the_interpreter_does_not_know(ptx: ModuleType) -> None:
    unknown = {
        re.sub(r"^@\S+\s+", "", text).split()[0]
        for kernel in ptx.ptx_kernels()
        for _, text, _, known in kernel["instructions"]
        if not known
    }
    assert not unknown, "add them to tests/backends/ptx (README.md says where)"


# ---- what is counted


def test_counters_of_a_copy_like_kernel() -> None:
    """A fill of n pixels reads image and mask once and writes once: known to the byte."""
    x, mask = np.ones((1, 1, 64, 64), np.float32), np.zeros((1, 64, 64), bool)
    _, (launch,) = counted(rf.fill, x, mask, 0.5)
    by_name = {array["name"]: array for array in launch["arrays"]}
    assert launch["function"] == "fill"
    assert by_name["out"]["store"]["bytes"] == by_name["x"]["load"]["bytes"] == 4 * 64 * 64
    assert by_name["mask"]["load"]["bytes"] == 64 * 64
    assert by_name["out"]["store"]["unique"] == 4 * 64 * 64 // 32
    assert by_name["x"]["load"]["sectors"] >= by_name["x"]["load"]["ideal"] >= by_name["x"]["load"]["unique"]
    assert sum(c["warps"] for c in launch["classes"].values()) == sum(c["warps"] for c in launch["lines"].values())


def test_counters_do_not_depend_on_where_an_array_begins_in_its_sector(rng) -> None:
    x = rng.standard_normal((2, 33, 47)).astype(np.float32)
    buffer = np.zeros(x.size + 4, np.float32)
    shifted = buffer[4:].reshape(x.shape)  # half a sector further on, and still aligned for vectors
    shifted[...] = x
    (_, first), (_, second) = counted(rf.removal_mask, x, 0.3), counted(rf.removal_mask, shifted, 0.3)
    assert first == second


def test_pointers_have_the_names_of_the_header() -> None:
    assert pointer_names()["sobel"] == ["in", "out", "stream"]
    assert pointer_names()["fill"][:3] == ["x", "mask", "out"]


# ---- single instructions, against NumPy

BINARY = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 a, .param .u64 b, .param .u64 out)
{{
  .reg .b64 %rd<8>; .reg .b32 %r<4>; .reg .{kind} %x<4>;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd4, %r1, {bytes};
  add.s64 %rd1, %rd1, %rd4; add.s64 %rd2, %rd2, %rd4; add.s64 %rd3, %rd3, %rd4;
  ld.global.{kind} %x1, [%rd1];
  ld.global.{kind} %x2, [%rd2];
  {code}
  st.global.{kind} [%rd3], %x3;
  ret;
}}
"""


def run_binary(ptx: ModuleType, code: str, kind: str, a: Any, b: Any) -> np.ndarray:
    out = np.zeros_like(a)
    text = BINARY.format(kind=kind, bytes=a.itemsize, code=code)
    ptx.ptx_run_text(text, "kernel", (1, 1, 1), (len(a), 1, 1), [a, b, out])
    return out


@pytest.mark.parametrize(
    ("code", "kind", "expected"),
    [
        ("add.s32 %x3, %x1, %x2;", "s32", np.add),
        ("sub.u32 %x3, %x1, %x2;", "u32", np.subtract),
        ("mul.lo.s32 %x3, %x1, %x2;", "s32", np.multiply),
        ("mul.hi.u32 %x3, %x1, %x2;", "u32", lambda a, b: (a.astype(np.uint64) * b >> np.uint64(32)).astype(np.uint32)),
        ("mul.lo.s64 %x3, %x1, %x2;", "s64", np.multiply),
        ("mad.lo.s32 %x3, %x1, %x2, %x1;", "s32", lambda a, b: a * b + a),
        ("min.s32 %x3, %x1, %x2;", "s32", np.minimum),
        ("max.u32 %x3, %x1, %x2;", "u32", np.maximum),
        ("and.b32 %x3, %x1, %x2;", "u32", np.bitwise_and),
        ("lop3.b32 %x3, %x1, %x2, %x1, 0x96;", "u32", lambda a, b: a ^ b ^ a),
        ("xor.b64 %x3, %x1, %x2;", "u64", np.bitwise_xor),
        ("popc.b32 %x3, %x1;", "u32", lambda a, b: np.array([bin(v).count("1") for v in a], np.uint32)),
        ("clz.b32 %x3, %x1;", "u32", lambda a, b: np.array([32 - int(v).bit_length() for v in a], np.uint32)),
        ("brev.b32 %x3, %x1;", "u32", lambda a, b: np.array([int(f"{v:032b}"[::-1], 2) for v in a], np.uint32)),
        ("shf.l.wrap.b32 %x3, %x1, %x2, 8;", "u32", lambda a, b: b << np.uint32(8) | a >> np.uint32(24)),
        ("prmt.b32 %x3, %x1, %x2, 0x5410;", "u32", lambda a, b: (a & 0xFFFF) | b << np.uint32(16)),
        ("bfe.u32 %x3, %x1, 4, 9;", "u32", lambda a, b: a >> np.uint32(4) & np.uint32(511)),
        (
            "bfi.b32 %x3, %x1, %x2, 4, 8;",
            "u32",
            lambda a, b: (b & np.uint32(0xFFFFF00F)) | (a & np.uint32(255)) << np.uint32(4),
        ),
        ("add.rn.f32 %x3, %x1, %x2;", "f32", np.add),
        ("mul.rn.f32 %x3, %x1, %x2;", "f32", np.multiply),
        ("div.rn.f32 %x3, %x1, %x2;", "f32", np.divide),
        ("div.rn.f64 %x3, %x1, %x2;", "f64", np.divide),
        ("sqrt.rn.f64 %x3, %x1;", "f64", lambda a, b: np.sqrt(a)),
        ("max.f32 %x3, %x1, %x2;", "f32", np.fmax),
        ("min.NaN.f32 %x3, %x1, %x2;", "f32", np.minimum),
        (
            "{.reg .pred %p; setp.ltu.f32 %p, %x1, %x2; selp.f32 %x3, %x1, %x2, %p;}",
            "f32",
            lambda a, b: np.where(~(a >= b), a, b),
        ),
        (
            "{.reg .b16 %h; cvt.rn.f16.f32 %h, %x1; cvt.f32.f16 %x3, %h;}",
            "f32",
            lambda a, b: a.astype(np.float16).astype(np.float32),
        ),
        ("cvt.rni.f32.f32 %x3, %x1;", "f32", lambda a, b: np.rint(a)),
        (
            "{.reg .b32 %i; cvt.rzi.s32.f32 %i, %x1; cvt.rn.f32.s32 %x3, %i;}",
            "f32",
            lambda a, b: np.where(np.isnan(a), 0, np.trunc(np.clip(a.astype(float), -(2**31), 2**31 - 1))).astype(
                np.float32
            ),
        ),
    ],
)
def test_instructions_equal_numpy(ptx: ModuleType, rng, code: str, kind: str, expected: Any) -> None:
    dtype = np.dtype({"s": "i", "u": "u", "f": "f"}[kind[0]] + str(int(kind[1:]) // 8))
    with np.errstate(all="ignore"):
        if kind[0] == "f":
            odd = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 1e-40, 65519.0, 65520.0, 3e38, 2.5, 1e9]
            values = np.concatenate([odd, rng.standard_normal(51) * 10.0 ** rng.integers(-6, 6, 51)]).astype(dtype)
            a, b = values, rng.permutation(values)
        else:
            a, b = (rng.integers(0, 256, 64 * dtype.itemsize, dtype=np.uint8).view(dtype) for _ in range(2))
        got, want = run_binary(ptx, code, kind, a, b), expected(a, b)
    same = (got == want) | (np.isnan(got) & np.isnan(want)) if kind[0] == "f" else got == want
    assert same.all(), (a[~same], b[~same], got[~same], want[~same])


def test_shifts_beyond_the_width(ptx: ModuleType) -> None:
    a = np.array([-1, 5, -(2**31), 2**31 - 1], np.int32)
    for amount in (0, 1, 31, 32, 40):
        b = np.zeros(4, np.int32)
        right = run_binary(ptx, f"shr.s32 %x3, %x1, {amount};", "s32", a, b)
        np.testing.assert_array_equal(right, a >> min(amount, 31))
        left = run_binary(ptx, f"shl.b32 %x3, %x1, {amount};", "s32", a, b)
        np.testing.assert_array_equal(left, a << amount if amount < 32 else 0)
