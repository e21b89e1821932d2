"""What every benchmark shares: cases, fair timing, and rivals that are always there.

A file `bench/bench_<op>.py` has one function, `cases(quick: bool) -> Iterator[Case]`; `bench/run.py` and
`bench/test_regression.py` find it by its name. With `quick` it yields small cases that take seconds.
"""

from __future__ import annotations

import importlib
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numba
import numpy as np
import scipy
import torch

import roarfast as rf

HERE = Path(__file__).resolve().parent
COPY = "memory copy"

# "cpu" is what the process spent computing: it does not count the turns that other processes took, so it is the one to
# use on a busy machine. It adds up the threads, so it is fair with one thread only.
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}


@dataclass
class Case:
    """One line of the table for each rival.

    Attributes:
        op: The op's name.
        case: Sizes and parameters, e.g. "256x224x224 float32, sigma 1".
        ours: What we measure.
        rivals: Name -> the same work done by somebody else. Results are compared with ours before anything is timed.
        floors: Rival -> how many times faster we must be (0.25 for the memory copy: at most four times slower).
        copy_bytes: Adds a rival that only copies this many bytes, with the same number of threads: the limit.
        rtol: How closely rivals must agree with us, relative to the largest value.
        scaled: Rivals that do only the first part of the work -> the factor that makes their time comparable.
        incomparable: Rivals whose results are something else (another size of our own filter, say).
    """

    op: str
    case: str
    ours: Callable[[], Any]
    rivals: dict[str, Callable[[], Any]]
    floors: dict[str, float] = field(default_factory=dict)
    copy_bytes: int = 0
    rtol: float = 1e-4
    incomparable: tuple[str, ...] = ()
    scaled: dict[str, float] = field(default_factory=dict)

    def all_rivals(self) -> dict[str, Callable[[], Any]]:
        """The rivals and, if asked for, the memory copy."""
        return {**self.rivals, COPY: memory_copy(self.copy_bytes)} if self.copy_bytes else dict(self.rivals)

    def check_rivals(self) -> None:
        """Raises if a rival computes something else than we do: then the comparison would be worth nothing."""
        expected = np.asarray(self.ours())
        scale = float(np.abs(expected).max(initial=0.0)) or 1.0
        for name, run in self.rivals.items():
            if name in self.incomparable:
                continue
            got = np.asarray(run())
            wanted = expected[: len(got)] if name in self.scaled else expected
            error = float(np.abs(got - wanted).max(initial=0.0)) / scale
            if not error <= self.rtol:
                raise AssertionError(f"{self.op} {self.case}: {name} differs from ours by {error:.2g} (relative)")


def memory_copy(size: int) -> Callable[[], Any]:
    """A copy of `size` bytes between two arrays, by torch's threads."""
    source, target = torch.ones(size // 4), torch.empty(size // 4)
    return lambda: target.copy_(source)


def set_threads(threads: int) -> None:
    """The same number of threads for everybody. SciPy has one whatever we say."""
    rf.set_num_threads(threads)
    torch.set_num_threads(threads)
    cv2.setNumThreads(threads)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


REST_SECONDS = 0.01
LONG_SECONDS = 0.03  # a call that takes longer does not mind a slow start


def time_interleaved(
    runs: dict[str, Callable[[], Any]],
    seconds: float = 1.0,
    clock: str = "wall",
    min_repeats: int = 5,
    max_repeats: int = 60,
) -> dict[str, float]:
    """Milliseconds per call of each function: the minimum over repeats.

    Everybody is warmed up, then all take turns, so that a busy machine slows all of them; a sample of a short call
    is a loop of at least 2 ms. Before a sample comes a rest, in which the threads of the one before stop looking for
    work (libgomp's do so for milliseconds and would share the cores with the next), and unless a call takes long,
    some that do not count, since a core that rested is slow for a few milliseconds. Whoever has used up `seconds`
    sits out, but not before `min_repeats` samples (two for what takes longer than a second).
    """
    now = CLOCKS[clock]
    loops, warm_up, best, used, count = {}, {}, {}, {}, {}
    for name, run in runs.items():
        run()
        start = now()
        run()
        once = max(now() - start, 1e-7)
        loops[name] = max(1, math.ceil(2e-3 / once))
        warm_up[name] = math.ceil(5e-3 / once) if once < LONG_SECONDS else 0
        best[name], used[name], count[name] = math.inf, 0.0, 0
    for _ in range(max_repeats):
        waiting = True
        for name, run in runs.items():
            if used[name] > seconds and count[name] >= (min_repeats if best[name] < 1.0 else 2):
                continue
            waiting = False
            time.sleep(REST_SECONDS)
            for _ in range(warm_up[name]):
                run()
            start = now()
            for _ in range(loops[name]):
                run()
            elapsed = now() - start
            best[name] = min(best[name], elapsed / loops[name])
            used[name] += elapsed
            count[name] += 1
        if waiting:
            break
    return {name: 1e3 * t for name, t in best.items()}


def measure(case: Case, seconds: float = 1.0, clock: str = "wall") -> list[dict[str, Any]]:
    """The rows of a case: op, case, rival, ours_ms, rival_ms, ratio, and floor where there is one."""
    case.check_rivals()
    rivals = case.all_rivals()
    ms = time_interleaved({"": case.ours, **rivals}, seconds, clock)
    ms = {name: t * case.scaled.get(name, 1.0) for name, t in ms.items()}
    rows = []
    for rival in rivals:
        ratio = ms[rival] / ms[""]
        row = {"op": case.op, "case": case.case, "rival": rival, "ours_ms": round(ms[""], 4)}
        row |= {"rival_ms": round(ms[rival], 4), "ratio": round(ratio, 3)}
        if rival in case.floors:
            row |= {"floor": case.floors[rival], "reached": ratio >= case.floors[rival]}
        rows.append(row)
    return rows


def discover(only: list[str] | None = None) -> dict[str, Callable[[bool], Iterator[Case]]]:
    """op -> its `cases` function, for every bench_<op>.py in this folder."""
    sys.path.insert(0, str(HERE))
    ops = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    unknown = sorted(set(only or []) - set(ops))
    if unknown:
        raise SystemExit(f"--only must be one of {', '.join(ops)}, got {', '.join(unknown)}")
    return {op: importlib.import_module(f"bench_{op}").cases for op in ops if not only or op in only}


def environment(threads: int, clock: str = "wall") -> dict[str, Any]:
    """Where and with what the numbers were measured."""
    from roarfast import _backend

    model = ""
    if sys.platform == "linux":
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S"),
        "cpu": model or platform.processor(),
        "cores": os.cpu_count(),
        "threads": threads,
        "clock": clock,
        "backend": _backend.cpu().backend_name(),
        "python": platform.python_version(),
        "versions": {
            "roarfast": rf.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "opencv": cv2.__version__,
            "torch": torch.__version__,
            "numba": numba.__version__,
        },
    }


def random_maps(*shape: int) -> np.ndarray:
    """float32 maps in [0, 1)."""
    return np.random.default_rng(0).random(shape, dtype=np.float32)


def size_name(a: np.ndarray) -> str:
    """As in "256x224x224 float32"."""
    return f"{'x'.join(map(str, a.shape))} {a.dtype}"
