"""The standing attack, a fixed part of it: `make fuzz` goes on from there under the sanitizers."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("scipy")

import fuzz_run
from fuzz_arrays import KINDS, Memory
from fuzz_cases import OPS

CASES = 2720  # 170 per op, under a minute; case 2672 is the first that a missing bound of the radius hangs


def test_no_crash_no_wrong_value_no_unnamed_error() -> None:
    ops, flavours, failures = fuzz_run.attack(seed=0, first=0, last=CASES, seconds=None)
    assert failures == []
    assert sum(ops.values()) == CASES and set(ops) >= set(OPS)
    assert set(flavours) >= {*fuzz_run.FLAVOURS, "threads", "forks"}


def test_cases_are_the_same_every_time() -> None:
    for number in range(0, 64, 7):
        op, flavour, rng = fuzz_run.plan(3, number)
        again, same, other = fuzz_run.plan(3, number)
        assert (op, flavour) == (again, same)
        first, second = OPS[op](rng), OPS[op](other)
        assert first.options.keys() == second.options.keys()
        np.testing.assert_array_equal(first.want, second.want)


@pytest.mark.parametrize("kind", KINDS)
def test_memory_of_every_kind_holds_the_values(kind: str) -> None:
    memory = Memory(np.random.default_rng(0))
    values = np.repeat(np.arange(12.0).reshape(1, 3, 4), 2, 0)
    made = memory.array("a", values, kind)
    np.testing.assert_array_equal(made, values)
    assert memory.damage() == ""
    memory.guards[0][-1] ^= 1
    assert "beside an array" in memory.damage()


def test_changed_inputs_and_wrong_values_are_noticed() -> None:
    memory = Memory(np.random.default_rng(0))
    made = memory.array("a", np.zeros(5), "plain")
    made[2] = 1
    assert memory.damage() == "the input a was changed"
    case = OPS["sobel"](np.random.default_rng(1))
    assert fuzz_run.difference(case, case.want) == ""
    wrong = case.want.copy()
    wrong.flat[-1] += 1 + 100 * case.atol
    assert fuzz_run.difference(case, wrong).startswith("1 of ")


def test_crashes_and_endless_loops_are_failures_with_a_number(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A child that dies at one case and hangs at another: both are reported, and the rest is done."""
    child = tmp_path_factory.mktemp("child") / "child.py"
    child.write_text(
        "import os, signal, sys\n"
        "seed, first, last = map(int, sys.argv[2].split(':'))\n"
        "for number in range(first, last):\n"
        "    open(sys.argv[3], 'r+b').write(number.to_bytes(8, 'little'))\n"
        "    if number == 3: os.kill(os.getpid(), signal.SIGSEGV)\n"
        "    while number == 5: pass\n"
    )
    monkeypatch.setattr(fuzz_run, "__file__", str(child))
    monkeypatch.setattr(fuzz_run, "HANG_SECONDS", 0.5)
    ops, _, failures = fuzz_run.attack(0, 0, 9, None)
    assert sum(ops.values()) == 9
    assert [line.split()[0] for line in failures] == ["0:3", "0:5"]
    assert "died of SIGSEGV" in failures[0] and "did not return" in failures[1], failures
