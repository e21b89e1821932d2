"""What the CUDA kernels execute and move, per op and size, and what that would take on an A100 and an H100.

Counts come from nvcc's PTX executed on the host (tests/backends/ptx), registers from ptxas; no GPU is needed.

    python tools/kernel_traffic.py                                   # every op at 32² and 224²
    python tools/kernel_traffic.py --sizes 224 --only removal_mask percentile
    python tools/kernel_traffic.py --lines 10 --only removal_mask    # where its instructions are
    python tools/kernel_traffic.py --json build/traffic.json         # every counter of every launch
    python tools/kernel_traffic.py --update                          # the lines of tests/backends/test_traffic.py

The times are roofs, not predictions: the largest of what issue slots, double precision, shared memory, L2 and DRAM need for a
full device, without latency, launch overhead and what ptxas makes of an instruction.
"""

from __future__ import annotations

import argparse
import collections
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]
import kernel_resources as kr  # noqa: E402
from helpers.traffic import CASES, Traffic, measure  # noqa: E402

from roarfast import _backend  # noqa: E402

LINES = ROOT / "tests" / "backends" / "test_traffic.py"


@dataclass(frozen=True)
class Gpu:
    """Data sheet values; bandwidths as reached by copies (85 % of the DRAM's peak)."""

    arch: str
    sms: int
    clock: float  # Hz
    dram: float  # bytes/s
    l2: float  # bytes/s
    l2_size: int
    fp64_per_clock: float  # warp instructions per SM


GPUS = {
    "A100": Gpu("sm_80", 108, 1.41e9, 0.85 * 2.04e12, 4.5e12, 40 << 20, 1.0),
    "H100": Gpu("sm_90", 132, 1.75e9, 0.85 * 3.35e12, 5.5e12, 50 << 20, 2.0),
}
ISSUE_PER_CLOCK = 4.0  # warp instructions per SM
INT64_COST = 2.0  # 64-bit integer operations are two or more 32-bit ones


@cache
def resources(symbol: str, arch: str) -> kr.Kernel:
    """Registers of a kernel, by ptxas from the PTX that was counted."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(_backend.ptx().ptx_text(symbol))
        file.flush()
        command = ["ptxas", "-v", f"-arch={arch}", f"--entry={symbol}", file.name, "-o", "/dev/null"]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    (kernel,) = kr.parse_ptxas(result.stdout + result.stderr)
    return kernel


def occupancy(launch: dict, arch: str) -> float:
    """Share of an SM's warps, with the launch's dynamic shared memory."""
    threads = launch["block"][0] * launch["block"][1] * launch["block"][2]
    shared = launch["static_shared"] + launch["dynamic_shared"]
    return kr.occupancy(kr.SMS[arch], threads, resources(launch["symbol"], arch).registers, shared)


def roofs(launch: dict, gpu: Gpu) -> dict[str, float]:
    """Seconds that each part of the GPU needs for a launch that fills it, were it alone."""
    classes = launch["classes"]
    warps = {name: sums["warps"] for name, sums in classes.items()}
    issue = sum(warps.values()) + (INT64_COST - 1) * warps["int64"]
    sectors = sum(a[d]["sectors"] for a in launch["arrays"] for d in ("load", "store"))
    wavefronts = sum(sums["wavefronts"] for sums in classes.values()) + sectors / 4
    l2 = 32 * sum(a[d]["l2"] for a in launch["arrays"] for d in ("load", "store"))
    unique = 32 * sum(a[d]["unique"] for a in launch["arrays"] for d in ("load", "store"))
    blocks = launch["grid"][0] * launch["grid"][1] * launch["grid"][2]
    warps_per_block = -(-launch["block"][0] * launch["block"][1] * launch["block"][2] // 32)
    resident = gpu.sms * max(occupancy(launch, gpu.arch) * kr.SMS[gpu.arch].warps / warps_per_block, 1)
    fits = resident * unique / blocks <= gpu.l2_size  # what the running blocks come back to stays in L2
    per_sm = gpu.sms * gpu.clock
    return {
        "issue": issue / (ISSUE_PER_CLOCK * per_sm),
        "fp64": warps["fp64"] / (gpu.fp64_per_clock * per_sm),
        "shared": wavefronts / per_sm,
        "L2": l2 / gpu.l2,
        "DRAM": (unique if fits else l2) / gpu.dram,
    }


def estimate(traffic: Traffic, gpu: Gpu) -> tuple[float, str]:
    """Microseconds per million pixels in large batches, and what binds the slowest launch."""
    total, binding, longest = 0.0, "", 0.0
    for launch in traffic.launches:
        name, seconds = max(roofs(launch, gpu).items(), key=lambda item: item[1])
        total += seconds
        if seconds > longest:
            binding, longest = name, seconds
    return total / traffic.pixels * 1e12, binding


def ratio(a: float, b: float) -> str:
    return f"{a / b:.2f}" if b else "-"


def row(name: str, size: int, traffic: Traffic) -> tuple[str, ...]:
    per32, px = traffic.pixels / 32, traffic.pixels
    shared = ("ld_shared", "st_shared", "atomic")
    main = max(traffic.launches, key=lambda launch: sum(c["warps"] for c in launch["classes"].values()))
    a100 = resources(main["symbol"], "sm_80")
    times = [estimate(traffic, gpu) for gpu in GPUS.values()]
    return (
        name,
        f"{size}²",
        str(len(traffic.launches)),
        f"{traffic.instructions / per32:.0f}",
        f"{traffic.classes('int64') / traffic.instructions:.0%}",
        f"{traffic.classes('fp32', 'fp64') / per32:.0f}",
        f"{traffic.classes('ld_generic', 'st_generic') / per32:.0f}",
        f"{traffic.classes('local') / per32:.1f}",
        f"{traffic.classes(what='lanes') / traffic.instructions:.1f}",
        ratio(traffic.arrays("sectors", "load"), traffic.arrays("ideal", "load")),
        ratio(traffic.arrays("sectors", "store"), traffic.arrays("ideal", "store")),
        f"{traffic.arrays('bytes') / px:.1f}",
        f"{traffic.l2_bytes / px:.1f}",
        f"{traffic.unique_bytes / px:.1f}",
        f"{traffic.classes(*shared) / per32:.1f}",
        f"{traffic.wavefronts / per32:.1f}",
        f"{traffic.barriers:.0f}",
        str(a100.registers),
        f"{occupancy(main, 'sm_80'):.0%}",
        *(text for us, binds in times for text in (f"{us:.1f}", binds)),
    )


HEADER = (
    *("op", "size", "launches", "instr", "int64", "fp", "generic", "local", "lanes", "ld/ideal", "st/ideal"),
    *("B asked", "B L2", "B unique", "shared", "wavefr.", "barriers", "regs", "occup."),
    *(text for name in GPUS for text in (f"{name} µs", "binds")),
)
LEGEND = """
instr, fp, generic, local, shared, wavefr.: executed by warps per 32 pixels; lanes: active ones per instruction
ld/ideal, st/ideal: 32-byte sectors over those the distinct bytes would fill; B: per pixel (of all channels): asked for by
lanes, after a cache of 20 KB per block (impute: 100 KB), distinct in a launch; barriers: per block, summed over launches
regs, occup.: of the largest launch on sm_80, dynamic shared memory included; µs: roofs per million pixels, large batches"""


def print_lines(traffic: Traffic, count: int) -> None:
    lines: collections.Counter[str] = collections.Counter()
    wavefronts: collections.Counter[str] = collections.Counter()
    for launch in traffic.launches:
        for place, sums in launch["lines"].items():
            lines[place] += sums["warps"]
            wavefronts[place] += sums["wavefronts"]
    for place, warps in lines.most_common(count):
        share = warps / traffic.instructions
        per32 = traffic.pixels / 32
        print(f"    {warps / per32:8.1f} ({share:4.0%})  wavefronts {wavefronts[place] / per32:6.1f}  {place}")


def expected_line(name: str, size: int, traffic: Traffic) -> str:
    """One line of tests/backends/test_traffic.py."""
    return f"{name:18} {size:4} {traffic.instructions:12} {traffic.l2_bytes:12} {traffic.wavefronts:12} {traffic.barriers:8.0f}"


def update(lines: list[str]) -> None:
    """Rewrites the lines of the test whose case was measured; adds those that are new."""
    text = LINES.read_text()
    head, table, tail = re.split(r'(?<=EXPECTED = """\n)(.*?)(?=""")', text, maxsplit=1, flags=re.S)
    old = {line[:23]: line for line in table.splitlines()}
    old.update({line[:23]: line for line in lines})
    LINES.write_text(head + "\n".join(old.values()) + "\n" + tail)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="cases whose name has one of these")
    parser.add_argument("--sizes", nargs="+", type=int, default=[32, 224], choices=(32, 64, 224))
    parser.add_argument("--lines", type=int, default=0, metavar="N", help="the N source lines that execute most")
    parser.add_argument("--json", type=Path, help="write all counters here")
    parser.add_argument(
        "--update", action="store_true", help="only rewrite the lines of tests/backends/test_traffic.py"
    )
    options = parser.parse_args(arguments)
    names = [name for name in CASES if not options.only or any(text in name for text in options.only)]
    everything, rows, lines = {}, [HEADER], []
    for name in names:
        for size in options.sizes:
            traffic = measure(name, size)
            everything[f"{name} {size}"] = traffic.launches
            lines.append(expected_line(name, size, traffic))
            if options.update:
                continue
            rows.append(row(name, size, traffic))
            if options.lines:
                print(f"{name} {size}²")
                print_lines(traffic, options.lines)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(everything))
    if options.update:
        update(lines)
    else:
        print(kr.table(rows))
        print(LEGEND)
    return 0


if __name__ == "__main__":
    sys.exit(main())
