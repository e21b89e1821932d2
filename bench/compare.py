"""Our CPU kernels against themselves: SIMD levels, or other builds of the library, taking turns in one process.

    python bench/compare.py v3 base                                two levels of this build
    python bench/compare.py v3 /elsewhere/_cpu_v3.cpython-311-x86_64-linux-gnu.so   a build of an earlier commit

One thread and processor time, so that a busy machine disturbs it little. Prints the times of each as a ratio to the first:
below 1 is slower.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import time
from pathlib import Path
from types import ModuleType

from _common import discover, set_threads

from roarfast import _backend


def load(name: str) -> ModuleType:
    """A level of this build, or the library in a file (its name says for which level it was built)."""
    path = Path(name)
    if name in _backend.SIMD_LEVELS:
        path = next(Path(_backend.__file__).parent.glob(f"_cpu_{name}.*so"))
    # pybind11 keeps modules by their full name, and two builds may be of one level.
    spec = importlib.util.spec_from_file_location(f"{path.parent}.{path.name.split('.')[0]}", path)
    assert spec and spec.loader, f"{name} is neither a SIMD level nor a library"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def times(libraries: list[ModuleType], run, seconds: float) -> list[float]:
    """Milliseconds of a call with each library: the minimum over samples of at least 2 ms, taking turns."""
    best = [math.inf] * len(libraries)
    used = 0.0
    loops = 0
    while used < seconds or loops < 5:
        loops += 1
        for k, library in enumerate(libraries):
            _backend.cpu = lambda chosen=library: chosen
            _backend._HOST_BACKENDS["cpu"] = _backend.cpu
            run()
            count, start = 0, time.process_time()
            while (elapsed := time.process_time() - start) < 2e-3:
                run()
                count += 1
            best[k] = min(best[k], 1e3 * elapsed / count)
            used += elapsed
    return best


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", nargs="+", help="base, v3, or the path of a library")
    parser.add_argument("--only", action="append", metavar="OP", help="measure this op only (may be repeated)")
    parser.add_argument("--seconds", type=float, default=1.0, help="time per case")
    parser.add_argument("--json", type=Path, help="write the times there")
    args = parser.parse_args()
    libraries = [load(name) for name in args.libraries]
    set_threads(1)
    rows = []
    skipped = {"explain", "respond"}  # mostly torch: only where named
    for op, cases in discover(args.only).items():
        for case in cases(False) if op not in skipped or args.only else ():
            ms = times(libraries, case.ours, args.seconds)
            rows.append({"op": op, "case": case.case, "ms": ms})
            ratios = "".join(f"{ms[0] / t:9.2f}" for t in ms[1:])
            print(f"{op:<20}{case.case:<58}{ms[0]:10.3f} ms{ratios}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
