"""Registers, shared memory, spills and theoretical occupancy of every CUDA kernel.

Compiles csrc/cuda/*.cu with nvcc for each architecture, into a temporary folder, and reads what ptxas says:

    python tools/kernel_resources.py                                   # every architecture of a wheel
    python tools/kernel_resources.py --archs sm_80 --fail-on-spill     # what CI runs
    python tools/kernel_resources.py csrc/cuda/gaussian_filter.cu
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from cuda_toolkit import ALL_ARCHITECTURES  # noqa: E402

SHIPPED = [f"sm_{name.partition('-')[0]}" for name in ALL_ARCHITECTURES]
DEFAULT_BLOCK = 256  # threads, of kernels without __launch_bounds__
# As the CUDA backend is built (CMakeLists.txt); the definitions are those of library.cu.
FLAGS = ("-std=c++17", "-O3", "--fmad=false", "--expt-relaxed-constexpr", "-Xptxas=-v")
DEFINITIONS = ('-DRF_BACKEND_NAME="cuda"', '-DRF_COMPILER="nvcc"')


@dataclass(frozen=True)
class Sm:
    """What one multiprocessor has (CUDA programming guide, "compute capabilities")."""

    warps: int
    blocks: int
    shared_bytes: int
    shared_reserved: int  # by the system, per block
    registers: int = 65536


SMS = {
    "sm_75": Sm(warps=32, blocks=16, shared_bytes=64 << 10, shared_reserved=0),
    "sm_80": Sm(warps=64, blocks=32, shared_bytes=164 << 10, shared_reserved=1024),
    "sm_86": Sm(warps=48, blocks=16, shared_bytes=100 << 10, shared_reserved=1024),
    "sm_89": Sm(warps=48, blocks=24, shared_bytes=100 << 10, shared_reserved=1024),
    "sm_90": Sm(warps=64, blocks=32, shared_bytes=228 << 10, shared_reserved=1024),
    "sm_100": Sm(warps=64, blocks=32, shared_bytes=228 << 10, shared_reserved=1024),
    "sm_120": Sm(warps=48, blocks=24, shared_bytes=100 << 10, shared_reserved=1024),
}


@dataclass(frozen=True)
class Kernel:
    """What ptxas reports of one kernel; all sizes in bytes, shared memory without the dynamic part."""

    symbol: str
    arch: str
    registers: int
    shared: int
    stack: int
    spill_stores: int
    spill_loads: int

    @property
    def spills(self) -> int:
        """Bytes stored and loaded because registers ran out."""
        return self.spill_stores + self.spill_loads


_ENTRY = re.compile(r"Compiling entry function '(\S+)' for '(\w+)'")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_MAX_THREADS = re.compile(r"\.entry\s+(\w+)\s*\([^)]*\)\s*((?:\.\w+[^{\n]*\n)*)")


def parse_ptxas(text: str) -> list[Kernel]:
    """The kernels in the output of `ptxas -v`."""
    kernels = []
    # Each part starts with the name of an entry function and holds what is said of it.
    parts = _ENTRY.split(text)[1:]
    for symbol, arch, part in zip(parts[0::3], parts[1::3], parts[2::3], strict=True):
        own = part.split("Function properties for ")
        # Functions that were not inlined are listed too; the frame and its spills belong to the name before it.
        frames = {piece.split(None, 1)[0]: _FRAME.search(piece) for piece in own[1:]}
        frame, registers, shared = frames.get(symbol), _REGISTERS.search(part), _SHARED.search(part)
        if frame is None or registers is None:
            raise ValueError(f"ptxas says nothing about the registers or the stack of {symbol}:\n{part}")
        spills = [match for match in frames.values() if match is not None]
        kernels.append(
            Kernel(
                symbol=symbol,
                arch=arch,
                registers=int(registers[1]),
                shared=int(shared[1]) if shared else 0,
                stack=int(frame[1]),
                spill_stores=sum(int(match[2]) for match in spills),
                spill_loads=sum(int(match[3]) for match in spills),
            )
        )
    return kernels


def parse_block_sizes(ptx: str) -> dict[str, int]:
    """Threads per block from `__launch_bounds__`, by symbol, for the kernels of a PTX file that have it."""
    sizes = {}
    for symbol, directives in _MAX_THREADS.findall(ptx):
        found = re.search(r"\.maxntid\s+(\d+)(?:,\s*(\d+))?(?:,\s*(\d+))?", directives)
        if found:
            sizes[symbol] = int(found[1]) * int(found[2] or 1) * int(found[3] or 1)
    return sizes


def occupancy(sm: Sm, threads: int, registers: int, shared: int) -> float:
    """Resident warps over the most a multiprocessor can hold; 0 where not even one block fits."""

    def round_up(n: int, to: int) -> int:
        return -(-n // to) * to

    warps = -(-threads // 32)
    # Registers are handed out to warps in units of 256, and each of the four schedulers has a quarter of them.
    warps_by_registers = sm.registers // round_up(max(registers, 1) * 32, 256) // 4 * 4
    shared_per_block = round_up(shared, 128) + sm.shared_reserved
    blocks = min(
        sm.blocks,
        sm.warps // warps,
        warps_by_registers // warps,
        sm.shared_bytes // shared_per_block if shared_per_block else sm.blocks,
    )
    return blocks * warps / sm.warps


def readable(demangled: str) -> str:
    """`void rf::(anonymous namespace)::sum_kernel<float, 256>(float const*)` -> `sum_kernel<float, 256>`."""
    name = re.sub(r"\(anonymous namespace\)::|_GLOBAL__N__\w+::", "", demangled)
    depth = 0
    for i, character in enumerate(name):
        depth += (character == "<") - (character == ">")
        if character == "(" and depth == 0:
            name = name[:i]
            break
    name = re.sub(r"\((?:int|bool|unsigned int|long)\)", "", name.removeprefix("void "))
    return name.replace("rf::", "")


def demangle(symbols: Sequence[str]) -> dict[str, str]:
    """Readable names by symbol; the symbols themselves where there is no c++filt."""
    if not symbols or shutil.which("c++filt") is None:
        return {symbol: symbol for symbol in symbols}
    out = subprocess.run(["c++filt"], input="\n".join(symbols), capture_output=True, text=True, check=True).stdout
    return dict(zip(symbols, map(readable, out.splitlines()), strict=True))


def compile_kernels(source: Path, arch: str) -> tuple[list[Kernel], dict[str, int]]:
    """The kernels of one file for one architecture, and the block sizes it declares."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["nvcc", *FLAGS, *DEFINITIONS, f"-arch={arch}", f"-I{ROOT / 'csrc'}"]
        command += ["--keep", "--keep-dir", folder, "-c", str(source), "-o", f"{folder}/out.o"]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0:
            raise SystemExit(f"nvcc failed on {source} for {arch}:\n{result.stdout}{result.stderr}")
        blocks: dict[str, int] = {}
        for ptx in Path(folder).glob("*.ptx"):
            blocks |= parse_block_sizes(ptx.read_text())
        return parse_ptxas(result.stdout + result.stderr), blocks


def table(rows: Iterable[Sequence[str]]) -> str:
    """Text columns; the first two to the left, numbers to the right."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) if i < 2 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths)))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", type=Path, help="default: csrc/cuda/*.cu")
    parser.add_argument("--archs", nargs="+", default=SHIPPED, choices=sorted(SMS), metavar="sm_XX")
    parser.add_argument("--fail-on-spill", action="store_true", help="exit with 1 if a kernel spills registers")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at a time (2)")
    options = parser.parse_args(arguments)
    if shutil.which("nvcc") is None:
        print("nvcc is not on PATH: nothing to compile the kernels with", file=sys.stderr)
        return 2
    sources = options.sources or sorted((ROOT / "csrc" / "cuda").glob("*.cu"))
    with ThreadPoolExecutor(options.jobs) as pool:
        work = [(source, arch) for source in sources for arch in options.archs]
        results = list(pool.map(lambda item: compile_kernels(*item), work))

    names = demangle([kernel.symbol for kernels, _ in results for kernel in kernels])
    rows: list[tuple[str, ...]] = [("kernel", "arch", "block", "registers", "shared", "stack", "spills", "occupancy")]
    for kernels, blocks in results:
        for k in sorted(kernels, key=lambda kernel: names[kernel.symbol]):
            threads = blocks.get(k.symbol, DEFAULT_BLOCK)
            block = str(threads) if k.symbol in blocks else f"({threads})"
            share = occupancy(SMS[k.arch], threads, k.registers, k.shared)
            numbers = (k.registers, k.shared, k.stack, k.spills)
            rows.append((names[k.symbol], k.arch, block, *map(str, numbers), f"{share:.0%}"))
    print(table(rows))
    print("\nblock: threads of __launch_bounds__, (256) where there is none. shared: static, in bytes.")
    spilling = [
        f"{names[k.symbol]} ({k.arch}: {k.spills} bytes)" for kernels, _ in results for k in kernels if k.spills
    ]
    if spilling:
        print(f"\nregisters are spilled by {', '.join(spilling)}", file=sys.stderr)
    return 1 if spilling and options.fail_on_spill else 0


if __name__ == "__main__":
    sys.exit(main())
