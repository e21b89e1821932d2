"""The standing attack, a fixed part of it: `make fuzz` goes on from there under the sanitizers."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("scipy")

import fuzz_calls
import fuzz_record
import fuzz_run
from fuzz_arrays import KINDS, Memory
from fuzz_case import difference
from fuzz_cases import OPS
from fuzz_nonsense import is_named, must_be_refused

CASES = 8800  # 400 per op, half a minute; what a minute of random seeds finds is in RECORD.md


def test_no_crash_no_wrong_value_no_unnamed_error() -> None:
    counts, failures = fuzz_run.attack(seed=0, first=0, last=CASES, seconds=None)
    assert failures == []
    assert counts["cases"] == CASES
    for op in OPS:
        valid = counts[f"{op} valid"]
        assert valid >= 200, (op, valid)
        assert counts[f"{op} valid, large"] > 0, op
        assert counts[f"{op} nonsense"] >= 50, op
    large, valid = (sum(counts[f"{op} {kind}"] for op in OPS) for kind in ("valid, large", "valid"))
    assert large >= valid / 10, (large, valid)  # of one op it may be less: few of these cases have arrays of their own
    assert {key[8:] for key in counts if key.startswith("flavour ")} >= {*fuzz_calls.FLAVOURS, "threads", "forks"}


def test_every_public_op_is_attacked() -> None:
    """An op without a generator would be covered by nothing here."""
    from roarfast import ops

    functions = {name for name in ops.__all__ if callable(getattr(ops, name)) and name.islower()}
    assert functions - {"register_torch"} <= set(OPS)


def test_cases_are_the_same_every_time() -> None:
    for op, make in OPS.items():
        first, second = (make(np.random.default_rng([3, 7])) for _ in range(2))
        assert first.options.keys() == second.options.keys(), op
        np.testing.assert_array_equal(first.want, second.want)
    assert [fuzz_calls.plan(3, n) for n in range(50)] == [fuzz_calls.plan(3, n) for n in range(50)]
    planned = {fuzz_calls.plan(1, n) for n in range(2 * fuzz_calls.SHARED * len(OPS))}
    assert planned >= {(op, flavour) for op in OPS for flavour in fuzz_calls.FLAVOURS}


def test_an_error_is_named_by_a_sentence_about_an_argument() -> None:
    names = ("a", "codes", "drops", "x", "mask", "sigma", "dtype")
    for message in (
        "a must be [..., H, W]",
        "codes needs rate_index",
        "drops[1] must be in [0, 1]",
        "x and mask must be of one",
        "sigma * truncate must be at most",
        "dtype 'bfloat16' needs torch",
    ):
        assert is_named(ValueError(message), names), message
    for message in (
        "a tensor was freed",
        "not a number",
        "'int' has no attribute 'mask'",
        "unhashable type",
        "bad dtype",
    ):
        assert not is_named(ValueError(message), names), message
    assert must_be_refused("removal_mask", "keep", "no") and not must_be_refused("removal_mask", "keep", True)
    assert not must_be_refused("remove", "fill", [[1, 2], [3, 4]]), "right for two images of two channels"


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
    assert difference(case, case.want) == ""
    wrong = case.want.copy()
    wrong.flat[-1] += 1 + 100 * case.atol
    assert difference(case, wrong).startswith("1 of ")


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
    counts, failures = fuzz_run.attack(0, 0, 9, None)
    assert counts["cases"] == 9
    assert [line.split()[0] for line in failures] == ["0:3", "0:5"]
    assert "died of SIGSEGV" in failures[0] and "did not return" in failures[1], failures


def test_the_record_counts_every_range_once() -> None:
    def line(seed: int, first: int, sanitised: bool, failures: list[str], valid: int) -> str:
        counts = {"cases": 10, "flavour valid": 10, "sobel valid": valid, "sobel valid, large": 1, "sobel nonsense": 4}
        piece = {"seed": seed, "first": first, "last": first + 10, "sanitised": sanitised}
        return json.dumps(piece | {"counts": counts, "failures": failures})

    lines = [line(1, 0, False, ["1:3 sobel: wrong"], 5), line(1, 10, False, [], 5), line(2, 0, True, [], 5)]
    page = "\n".join(fuzz_record.report(fuzz_record.pieces([*lines, line(1, 0, False, [], 7)])))
    assert "**30 cases**, 10 of them under AddressSanitizer" in page and "0 failures" in page
    assert "1: 0 to 20; 2: 0 to 10 (sanitised)" in page and "| `sobel` | 17 | 18% |" in page
    assert "1:3 sobel: wrong" in "\n".join(fuzz_record.report(fuzz_record.pieces(lines)))
