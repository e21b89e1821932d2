"""`pytest bench --benchmark-only`: fails when we have become slower, measured against the rivals and not by the clock.

Every quick case is timed beside its rivals, in CPU time with one thread, so that other processes hardly matter; the
ratios are compared with those saved in bench/baseline.json. A case fails if the median over its rivals of (ratio now /
ratio saved) is below 1 - TOLERANCE in each of ATTEMPTS tries. The median, because one rival may be having a bad or a
good day; the tolerance, because ratios vary by a tenth or two between runs on a busy machine. They vary more between kinds of
processors, so each has its own; one that has none is held to the lowest of the others.
New baseline, after a change that is meant to be one: `python bench/run.py --quick --save-baseline [--only OP]`.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import pytest

from roarfast import ops

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from _common import Case, discover, measure, set_threads  # noqa: E402
from saved import ATTEMPTS, TOLERANCE, UNSTEADY, saved_ratios  # noqa: E402

SAVED = saved_ratios()
OPS = sorted({name.split(",")[0] for name in SAVED})


def quick_cases() -> list[pytest.param]:
    """One parameter per saved case; the arrays are made when it runs."""
    names = [(op, i) for op in OPS for i in range(sum(n.split(",")[0] == op for n in SAVED))]
    return [pytest.param(op, i, id=f"{op}-{i}") for op, i in names]


def relative_speed(case: Case) -> float:
    """Median over the rivals of ratio now / ratio saved."""
    saved = SAVED[f"{case.op}, {case.case}"]
    now = {row["rival"]: row["ratio"] for row in measure(case, seconds=0.3, clock="cpu")}
    return statistics.median(now[rival] / saved[rival] for rival in saved.keys() & now.keys())


def test_every_op_is_saved(benchmark):
    """A new benchmark without saved ratios would not be guarded."""
    benchmark.pedantic(lambda: None, rounds=1)  # or --benchmark-only would skip this
    assert sorted(discover(None).keys() - UNSTEADY) == OPS
    without = {"ImputeInfo", "register_torch", "aggregate_channels", "blur_fill"}  # no kernel; a case of noise_fill
    assert set(ops.__all__) - without <= set(OPS)


@pytest.mark.parametrize(("op", "index"), quick_cases())
def test_no_slower_than_saved(benchmark, op, index):
    """Our time goes to pytest-benchmark's table; what may fail is the ratio."""
    set_threads(1)
    case = next(c for i, c in enumerate(discover([op])[op](True)) if i == index)
    benchmark.pedantic(case.ours, rounds=5, warmup_rounds=1)
    speeds = []
    for _ in range(ATTEMPTS):
        speeds.append(relative_speed(case))
        if speeds[-1] >= 1 - TOLERANCE:
            break
    benchmark.extra_info["relative_speed"] = max(speeds)
    assert max(speeds) >= 1 - TOLERANCE, (
        f"{case.op}, {case.case}: {max(speeds):.2f} times as fast as saved, compared with the same rivals "
        f"(allowed: {1 - TOLERANCE:.2f})"
    )
