"""tools/kernel_resources.py on captured compiler output: no nvcc needed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

_path = Path(__file__).resolve().parents[2] / "tools" / "kernel_resources.py"
_spec = importlib.util.spec_from_file_location("kernel_resources", _path)
assert _spec is not None and _spec.loader is not None
kr = importlib.util.module_from_spec(_spec)
sys.modules["kernel_resources"] = kr
_spec.loader.exec_module(kr)

SPILL = "_ZN2rf36_GLOBAL__N__5e815a3e_4_s_cu_3b01708512spill_kernelIdEEvPKT_PS2_"
SUM = "_ZN2rf36_GLOBAL__N__5e815a3e_4_s_cu_3b01708510sum_kernelIfLi256EEEvPKT_PS2_"
PLAIN = "_ZN2rf36_GLOBAL__N__5e815a3e_4_s_cu_3b01708512plain_kernelEPfl"

PTXAS = f"""\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '{SPILL}' for 'sm_80'
ptxas info    : Function properties for {SPILL}
    1048 bytes stack frame, 1248 bytes spill stores, 1384 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 1048 bytes cumulative stack size, 368 bytes cmem[0]
ptxas info    : Compile time = 207.914 ms
ptxas info    : Compiling entry function '{SUM}' for 'sm_80'
ptxas info    : Function properties for {SUM}
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 22 registers, used 1 barriers, 1024 bytes smem, 368 bytes cmem[0]
ptxas info    : Compile time = 53.611 ms
ptxas info    : Compiling entry function '{PLAIN}' for 'sm_80'
ptxas info    : Function properties for {PLAIN}
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for __internal_trig_reduction_slowpathd
    40 bytes stack frame, 8 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 368 bytes cmem[0]
"""

PTX = f"""\
.version 9.0
.entry {PLAIN}(
	.param .u64 {PLAIN}_param_0,
	.param .u64 {PLAIN}_param_1
)
{{
	.reg .pred 	%p<2>;
}}
.entry {SUM}(
	.param .u64 {SUM}_param_0
)
.maxntid 16, 16, 1
{{
}}
.entry {SPILL}(
	.param .u64 {SPILL}_param_0
)
.maxntid 1024
.minnctapersm 2
{{
}}
"""


def test_ptxas_output_is_read() -> None:
    spill, total, plain = kr.parse_ptxas(PTXAS)
    assert spill == kr.Kernel(SPILL, "sm_80", registers=32, shared=0, stack=1048, spill_stores=1248, spill_loads=1384)
    assert (total.symbol, total.registers, total.shared, total.spills) == (SUM, 22, 1024, 0)
    assert (plain.registers, plain.stack, plain.spills) == (8, 0, 8)  # of a function that was not inlined


def test_output_without_a_kernel_is_no_error_but_half_a_kernel_is() -> None:
    assert kr.parse_ptxas("ptxas info    : 0 bytes gmem\n") == []
    with pytest.raises(ValueError, match="says nothing about the registers"):
        kr.parse_ptxas(PTXAS.split("ptxas info    : Used")[0])


def test_block_sizes_come_from_launch_bounds() -> None:
    assert kr.parse_block_sizes(PTX) == {SUM: 256, SPILL: 1024}


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "expected"),
    [
        ("sm_80", 256, 32, 0, 1.0),
        ("sm_80", 256, 33, 0, 48 / 64),  # 40 registers per thread: 51 warps, 48 in fours, 6 blocks
        ("sm_80", 256, 255, 0, 8 / 64),
        ("sm_80", 1024, 64, 0, 32 / 64),
        ("sm_80", 1024, 65, 0, 0.0),  # 72 registers per thread: not one block
        ("sm_80", 32, 16, 0, 32 / 64),  # 32 blocks at most
        ("sm_80", 256, 32, 48 << 10, 24 / 64),  # 3 blocks of 49 KB in 164
        ("sm_90", 256, 32, 48 << 10, 32 / 64),  # 4 of 49 KB in 228
        ("sm_75", 256, 32, 0, 1.0),
    ],
)
def test_occupancy(arch: str, threads: int, registers: int, shared: int, expected: float) -> None:
    assert kr.occupancy(kr.SMS[arch], threads, registers, shared) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("demangled", "expected"),
    [
        ("void rf::(anonymous namespace)::sum_kernel<float, 256>(float const*, float*)", "sum_kernel<float, 256>"),
        ("rf::_GLOBAL__N__5e815a3e_4_s_cu_3b017085::plain_kernel(float*, long)", "plain_kernel"),
        ("void rf::(anonymous namespace)::k<rf::half_t, (int)3, (bool)1>(rf::half_t const*)", "k<half_t, 3, 1>"),
    ],
)
def test_names_are_readable(demangled: str, expected: str) -> None:
    assert kr.readable(demangled) == expected
