"""What one case of the standing attack does: an op, a flavour, and the random numbers of both."""

from __future__ import annotations

import sys
import warnings
from functools import lru_cache
from typing import Any

import numpy as np
from fuzz_arrays import Memory
from fuzz_case import Case, Rng, difference, pick
from fuzz_cases import OPS
from fuzz_nonsense import HUGE, NUMBERS, bad_array, direct_verdict, must_be_refused, parameters, scalar, verdict
from fuzz_processes import fork_case, thread_case

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

FLAVOURS = ("valid", "valid", "valid", "torch", "out", "aliasing", "nonsense", "nonsense", "bad array", "direct")
"""Neighbours take turns: of every pair, one problem has the first and the next problem of the op the second."""
Tags = set[str]
"""What a case turned out to be: `valid` (compared with its oracle), `large`, `odd memory` (not contiguous, or `out=`),
`nonsense` (a public function called with a wrong argument) and then `refused` or `accepted`, `direct`."""


SHARED = 5
"""So many cases in a row call one op with the same values, each in memory and with mistakes of its own: the oracle is
what takes time."""
_NAMES = list(OPS)


def plan(seed: int, number: int) -> tuple[str, str]:
    """Op and flavour of a case."""
    if number % 1000 == 999:
        return "all", "forks" if number % 2000 == 1999 else "threads"
    problem, turn = divmod(number, SHARED)
    halves = len(FLAVOURS) // SHARED
    return _NAMES[problem % len(_NAMES)], FLAVOURS[halves * turn + problem // len(_NAMES) % halves]


@lru_cache(maxsize=1)
def _problem(seed: int, op: str, problem: int) -> Case:
    return OPS[op](np.random.default_rng([seed, problem]))


def run_case(seed: int, number: int) -> tuple[str, Tags]:
    """Runs one case: what went wrong, or nothing; and what it was."""
    op, flavour = plan(seed, number)
    rng = np.random.default_rng([seed, number // SHARED, 1 + number % SHARED])
    if flavour == "threads":
        return thread_case(rng), set()
    if flavour == "forks":
        return fork_case(rng), set()
    case = _problem(seed, op, number // SHARED)
    tags: Tags = {"large"} if case.is_large() else set()
    if flavour == "aliasing" and (not case.takes_out or not case.arrays or not case.want.size):
        flavour = "out"
    if (flavour == "out" and not case.takes_out) or (flavour == "torch" and torch is None):
        flavour = "valid"
    if flavour == "bad array" and not case.arrays:
        flavour = "nonsense"
    return _FLAVOURS[flavour](case, rng, tags), tags


def _valid(case: Case, rng: Rng, tags: Tags) -> str:
    memory = Memory(rng)
    given = {name: memory.array(name, a) for name, a in case.arrays.items()}
    tags |= {"valid", "odd memory"} if any(not a.flags.c_contiguous for a in given.values()) else {"valid"}
    return difference(case, case.call(**given)) or memory.damage()


def _out(case: Case, rng: Rng, tags: Tags) -> str:
    memory = Memory(rng)
    given = {name: memory.array(name, a) for name, a in case.arrays.items()}
    out = memory.out(case.want)
    tags |= {"valid", "odd memory"}
    result = case.call(**given, out=out)
    if result is not out:
        return "the result is not out"
    return difference(case, out.astype(case.want.dtype)) or memory.damage()


def _torch(case: Case, rng: Rng, tags: Tags) -> str:
    tags |= {"valid"}
    if case.makes:
        return difference(case, case.call(device="cpu").numpy())
    memory = Memory(rng)
    given = {}
    for name, a in case.arrays.items():
        tensor = torch.from_numpy(memory.array(name, a, pick(rng, ("plain", "strided", "fortran"))))
        if not tensor.is_contiguous():
            tags |= {"odd memory"}
        if tensor.is_floating_point() and rng.random() < 0.3:
            tensor.requires_grad_()
        given[name] = tensor
    out = {}
    if case.takes_out and rng.random() < 0.5:
        tags |= {"odd memory"}
        out["out"] = torch.from_numpy(memory.out(case.want, ("plain", "strided")))
    return difference(case, case.call(**given, **out).detach().numpy()) or memory.damage()


def _aliasing(case: Case, rng: Rng, tags: Tags) -> str:
    memory = Memory(rng)
    name = pick(rng, sorted(case.arrays))
    copy, out = memory.beside(case.arrays[name], case.want)
    given = case.arrays | {name: copy}
    as_torch = torch is not None and rng.random() < 0.4
    if as_torch:
        given = {key: torch.from_numpy(np.ascontiguousarray(a)) for key, a in given.items()}
    try:
        case.call(**given, out=torch.from_numpy(out) if as_torch else out)
    except ValueError as error:
        return "" if "share memory" in str(error) else f"refused: {error}"
    tags |= {"valid", "odd memory"}
    return difference(case, out) or memory.damage(skip_inputs=True)


def _attempt(case: Case, given: dict[str, Any], memory: Memory, tags: Tags, refuse: bool = False) -> str:
    """A call that may be refused: by a good error, with nothing changed."""
    tags |= {"nonsense"}
    try:
        case.call(**given)
    except Exception as error:
        tags |= {"refused"}
        return verdict(error, case) or memory.damage()
    tags |= {"accepted"}
    return "accepted in silence" if refuse else memory.damage()


def _nonsense(case: Case, rng: Rng, tags: Tags) -> str:
    memory = Memory(rng)
    given: dict[str, Any] = {name: memory.array(name, a, "plain") for name, a in case.arrays.items()}
    names = [name for name in parameters(case.op) if name not in case.arrays]
    huge = rng.random() < 0.4
    if huge:  # numbers whose products overflow, where numbers belong
        names = [name for name in names if name in NUMBERS] or names
    refuse = False
    for name in rng.choice(names, min(len(names), int(rng.integers(1, 3))), replace=False):
        given[str(name)] = pick(rng, HUGE) if huge else scalar(rng)
        refuse = refuse or must_be_refused(case.op, str(name), given[str(name)])
    if not _affordable(case, given):
        return ""
    wrong = _attempt(case, given, memory, tags, refuse)
    return f"{wrong} (given { {name: given[name] for name in names if name in given} })" if wrong else ""


def _affordable(case: Case, given: dict[str, Any]) -> bool:
    """Whether what is asked for fits the memory: 2^31 numbers are a right shape."""
    shape = given.get("shape", case.options.get("shape", ()))
    try:
        return float(np.prod([float(s) for s in shape])) < 1e7
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return True


def _bad_array(case: Case, rng: Rng, tags: Tags) -> str:
    memory = Memory(rng)
    given: dict[str, Any] = {name: memory.array(name, a, "plain") for name, a in case.arrays.items()}
    name = pick(rng, sorted(case.arrays))
    wrong = bad_array(rng, case.arrays[name], torch)
    if torch is not None and isinstance(wrong, torch.Tensor) and rng.random() < 0.8:
        given = {key: torch.from_numpy(np.ascontiguousarray(a)) for key, a in given.items()}
        if wrong.is_meta and rng.random() < 0.5:
            given = {key: a.to("meta") for key, a in given.items()}
            if case.takes_out:
                given["out"] = torch.from_numpy(np.zeros_like(case.want)).to("meta")
    given[name] = wrong
    return _attempt(case, given, memory, tags)


_MODULES = {"impute_dataset": "impute_linear", "blur_fill": "fill", "noise_fill": "fill"}


def _direct(case: Case, rng: Rng, tags: Tags) -> str:
    """Calls `torch.ops.roarfast` past the public function, with a tensor or number replaced."""
    module = sys.modules[f"roarfast.ops.{_MODULES.get(case.op, case.op)}"]
    if torch is None or not hasattr(module, "_op"):
        return _nonsense(case, rng, tags)
    if case.makes and rng.random() < 0.2:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _attempt(case, {"device": pick(rng, ("meta", "cpu", "xpu", "nowhere"))}, Memory(rng), tags)
    seen: list[tuple[Any, ...]] = []
    op = module._op
    original, op.torch_op = op.torch_op, lambda *args: (seen.append(args), original(*args))[1]
    try:
        given = {key: torch.from_numpy(np.ascontiguousarray(a)) for key, a in case.arrays.items()}
        case.call(**given, **({"device": "cpu"} if case.makes else {}))
    finally:
        op.torch_op = original
    if not seen:
        return ""
    tags |= {"direct"}
    args = list(seen[0])
    position = int(rng.integers(len(args)))
    if isinstance(args[position], torch.Tensor):
        args[position] = bad_array(rng, args[position].numpy(), torch, only_tensors=True)
    else:
        args[position] = pick(
            rng, (None, -1, 0, 2**61, -(2**61), 1e300, float("nan"), "", "exact", [], [1.0], [2**61, 2**61], [-1, -1])
        )
    try:
        original(*args)
    except Exception as error:
        names = tuple(argument.name for argument in original._schema.arguments)
        return direct_verdict(error, names)
    return ""


_FLAVOURS = {
    "valid": _valid,
    "torch": _torch,
    "out": _out,
    "aliasing": _aliasing,
    "nonsense": _nonsense,
    "bad array": _bad_array,
    "direct": _direct,
}
