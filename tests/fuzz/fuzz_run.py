"""The standing attack on the ops: valid calls against the oracle, nonsense, aliasing, threads, forks.

Case `number` of seed `seed` is the same everywhere and for ever: `--replay 1:4711` runs it alone. Cases run in a child
process, so that a crash or an endless loop is one failure with a number, and the attack goes on behind it.

    python tests/fuzz/fuzz_run.py --seed 1 --cases 3000
    python tests/fuzz/fuzz_run.py --seed 1 --minutes 30
"""

from __future__ import annotations

import argparse
import inspect
import mmap
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from fuzz_arrays import Memory
from fuzz_cases import OPS, Case, difference
from fuzz_nonsense import HUGE, NUMBERS, arrays, scalars, verdict

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

import roarfast as rf

FLAVOURS = ("valid", "valid", "valid", "torch", "out", "aliasing", "nonsense", "nonsense", "bad array", "direct")
HANG_SECONDS = 15.0
"""Processor time of one case; the longest right ones take a tenth of it."""
THREAD_CASES = 24
"""Calls of one case of flavour `threads`."""


def plan(seed: int, number: int) -> tuple[str, str, np.random.Generator]:
    """Op, flavour and random numbers of a case."""
    rng = np.random.default_rng([seed, number])
    if number % 200 == 199:
        return "all", "forks" if number % 400 == 399 else "threads", rng
    op = list(OPS)[number % len(OPS)]
    return op, FLAVOURS[(number // len(OPS)) % len(FLAVOURS)], rng


def run_case(seed: int, number: int) -> str:
    """Runs one case; what went wrong, or nothing."""
    op, flavour, rng = plan(seed, number)
    if flavour == "threads":
        return _threads(rng)
    if flavour == "forks":
        return _fork(rng)
    case = OPS[op](rng)
    return {
        "valid": _valid, "torch": _torch, "out": _out, "aliasing": _aliasing, "nonsense": _nonsense,
        "bad array": _bad_array, "direct": _direct,
    }[flavour](case, rng)  # fmt: skip


def _valid(case: Case, rng: np.random.Generator) -> str:
    memory = Memory(rng)
    given = {name: memory.array(name, a) for name, a in case.arrays.items()}
    return difference(case, case.call(**given)) or memory.damage()


def _out(case: Case, rng: np.random.Generator) -> str:
    if not case.takes_out:
        return _valid(case, rng)
    memory = Memory(rng)
    given = {name: memory.array(name, a) for name, a in case.arrays.items()}
    out = memory.out(case.want)
    result = case.call(**given, out=out)
    if result is not out:
        return "the result is not out"
    return difference(case, out.astype(case.want.dtype)) or memory.damage()


def _torch(case: Case, rng: np.random.Generator) -> str:
    if torch is None:
        return ""
    if case.makes:
        return difference(case, case.call(device="cpu").numpy())
    memory = Memory(rng)
    given = {}
    for name, a in case.arrays.items():
        tensor = torch.from_numpy(memory.array(name, a, str(rng.choice(["plain", "strided", "fortran"]))))
        if tensor.is_floating_point() and rng.random() < 0.3:
            tensor.requires_grad_()
        given[name] = tensor
    out = {}
    if case.takes_out and rng.random() < 0.5:
        out["out"] = torch.from_numpy(memory._array(np.zeros_like(case.want), str(rng.choice(["plain", "strided"]))))
    return difference(case, case.call(**given, **out).detach().numpy()) or memory.damage()


def _aliasing(case: Case, rng: np.random.Generator) -> str:
    if not case.takes_out or not case.arrays or not case.want.size:
        return ""
    memory = Memory(rng)
    name = str(rng.choice(sorted(case.arrays)))
    copy, out = memory.beside(name, case.arrays[name], case.want)
    given = case.arrays | {name: copy}
    as_torch = torch is not None and rng.random() < 0.4
    if as_torch:
        given = {key: torch.from_numpy(np.ascontiguousarray(a)) for key, a in given.items()}
    try:
        case.call(**given, out=torch.from_numpy(out) if as_torch else out)
    except ValueError as error:
        return "" if "share memory" in str(error) else f"refused: {error}"
    return difference(case, out) or memory.damage(skip_inputs=True)


def _attempt(case: Case, given: dict[str, Any], memory: Memory) -> str:
    """A call that may be refused: by a good error, with nothing changed."""
    try:
        case.call(**given)
    except Exception as error:
        return verdict(error, case) or memory.damage()
    return memory.damage()


def _nonsense(case: Case, rng: np.random.Generator) -> str:
    memory = Memory(rng)
    given: dict[str, Any] = {name: memory.array(name, a, "plain") for name, a in case.arrays.items()}
    names = [name for name in inspect.signature(getattr(rf, case.op)).parameters if name not in case.arrays]
    huge = rng.random() < 0.5
    if huge:  # numbers whose products overflow, where numbers belong
        names = [name for name in names if name in NUMBERS] or names
    for name in rng.choice(names, min(len(names), int(rng.integers(1, 3))), replace=False):
        values = HUGE if huge else scalars(torch)
        given[str(name)] = values[int(rng.integers(len(values)))]
    if not _affordable(case, given):
        return ""
    return _attempt(case, given, memory)


def _affordable(case: Case, given: dict[str, Any]) -> bool:
    """Whether what is asked for fits the memory: 2^31 numbers are a right shape."""
    shape = given.get("shape", case.options.get("shape", ()))
    try:
        return float(np.prod([float(s) for s in shape])) < 1e7
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return True


def _bad_array(case: Case, rng: np.random.Generator) -> str:
    if not case.arrays:
        return _nonsense(case, rng)
    memory = Memory(rng)
    given: dict[str, Any] = {name: memory.array(name, a, "plain") for name, a in case.arrays.items()}
    name = str(rng.choice(sorted(case.arrays)))
    bad = arrays(rng, case.arrays[name], torch)
    wrong = bad[int(rng.integers(len(bad)))]
    if torch is not None and isinstance(wrong, torch.Tensor) and rng.random() < 0.8:
        given = {key: torch.from_numpy(np.ascontiguousarray(a)) for key, a in given.items()}
        if wrong.is_meta and rng.random() < 0.5:
            given = {key: a.to("meta") for key, a in given.items()}
            if case.takes_out:
                given["out"] = torch.from_numpy(np.zeros_like(case.want)).to("meta")
    given[name] = wrong
    return _attempt(case, given, memory)


def _direct(case: Case, rng: np.random.Generator) -> str:
    """Calls `torch.ops.roarfast` past the public function, with a tensor or number replaced."""
    if torch is None:
        return ""
    if case.makes:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _attempt(case, {"device": str(rng.choice(["meta", "cpu", "xpu", "nowhere"]))}, Memory(rng))
    seen: list[tuple[Any, ...]] = []
    module = sys.modules[f"roarfast.ops.{'impute_linear' if case.op == 'impute_dataset' else case.op}"]
    op = module._op
    original, op.torch_op = op.torch_op, lambda *args: (seen.append(args), original(*args))[1]
    try:
        case.call(**{key: torch.from_numpy(np.ascontiguousarray(a)) for key, a in case.arrays.items()})
    finally:
        op.torch_op = original
    if not seen:
        return ""
    args = list(seen[0])
    position = int(rng.integers(len(args)))
    if isinstance(args[position], torch.Tensor):
        bad: list[Any] = [a for a in arrays(rng, args[position].numpy(), torch) if isinstance(a, torch.Tensor)]
        args[position] = bad[int(rng.integers(len(bad)))]
    else:
        some = [None, -1, 0, 2**61, -(2**61), 1e300, float("nan"), "", "exact", [], [1.0], [2**61, 2**61], [-1, -1]]
        args[position] = some[int(rng.integers(len(some)))]
    try:
        original(*args)
    except (ValueError, TypeError, RuntimeError, NotImplementedError, IndexError, MemoryError):
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _threads(rng: np.random.Generator) -> str:
    """Several Python threads inside ops at once, while another spoils the index of a batch."""
    cases = [list(OPS.values())[int(rng.integers(len(OPS)))](rng) for _ in range(THREAD_CASES)]
    images, index = np.zeros((4, 3, 16, 16), np.uint8), np.zeros(64, np.int64)
    found: list[str] = []
    stop = threading.Event()

    def work(part: list[Case]) -> None:
        for case in part:
            try:
                found.extend(filter(None, [difference(case, case.call())]))
            except Exception as error:
                found.append(f"{case.op}: {type(error).__name__}: {error}")

    def spoil() -> None:
        while not stop.is_set():
            index[:] = 2**40
            index[:] = 0

    def gather() -> None:
        while not stop.is_set():
            try:
                rf.gather_batch(images, index)
            except ValueError as error:
                if "index" not in str(error):
                    found.append(str(error))

    workers = [threading.Thread(target=work, args=(cases[i::3],)) for i in range(3)]
    others = [threading.Thread(target=f) for f in (spoil, gather)]
    for thread in workers + others:
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    for thread in others:
        thread.join()
    return found[0] if found else ""


def _fork(rng: np.random.Generator) -> str:
    """A child forked while a thread is inside an op runs every op."""
    cases = [make(rng) for make in OPS.values()]
    a, stop = np.zeros((64, 64, 64), np.float32), threading.Event()

    def work() -> None:
        while not stop.is_set():
            rf.gaussian_filter(a, 2)

    thread = threading.Thread(target=work)
    thread.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.alarm(20)
        code = 1
        try:
            code = 2 if any(difference(case, case.call()) for case in cases) else 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    stop.set()
    thread.join()
    return "" if status == 0 else f"the forked child ended with status {status}"


# The parent


def attack(
    seed: int, first: int, last: int | None, seconds: float | None, echo: Any = None
) -> tuple[Counter[str], Counter[str], list[str]]:
    """Runs cases [first, last), or from `first` on for some seconds.

    Returns:
        Counts per op, counts per flavour, and one line per failure.
    """
    ops: Counter[str] = Counter()
    flavours: Counter[str] = Counter()
    failures: list[str] = []
    deadline = None if seconds is None else time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "number"
        place.write_bytes(bytes(8))
        number = first
        while (last is None or number < last) and (deadline is None or time.monotonic() < deadline):
            stop = number + 2000 if last is None else last
            done, new, number = _child(seed, number, stop, place, deadline)
            for n in done:
                op, flavour, _ = plan(seed, n)
                ops[op] += 1
                flavours[flavour] += 1
            failures += new
            if echo is not None:
                print(f"seed {seed}: {sum(ops.values())} cases, {len(failures)} failures", file=echo, flush=True)
            if len(failures) >= 40:
                break
    return ops, flavours, failures


def _child(seed: int, first: int, last: int, place: Path, deadline: float | None) -> tuple[range, list[str], int]:
    """One child process over [first, last): the cases it did, what failed, and where to go on."""
    command = [sys.executable, __file__, "--child", f"{seed}:{first}:{last}", str(place)]
    log = place.with_name("log")
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream, text=True)
    failures: list[str] = []
    assert process.stdout is not None
    reader = threading.Thread(target=lambda: failures.extend(line.rstrip() for line in process.stdout))  # type: ignore[union-attr]
    reader.start()
    before, since, ended = -1, 0.0, ""
    while process.poll() is None:
        time.sleep(0.05)
        now = int.from_bytes(place.read_bytes(), "little")
        used = _processor_seconds(process.pid)
        if now != before:
            before, since = now, used
        elif used - since > HANG_SECONDS + (30 if now == 0 else 0):  # the imports come first
            ended = f"did not return in {HANG_SECONDS:.0f} s"
            process.kill()
        if deadline is not None and time.monotonic() > deadline:
            process.kill()
            process.wait()
            break
    reader.join()
    reached = int.from_bytes(place.read_bytes(), "little")
    code = process.returncode
    if deadline is not None and time.monotonic() > deadline and not ended:
        return range(first, max(first, reached)), failures, max(first, reached)
    if code == 0:
        return range(first, last), failures, last
    what = ended or (f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}")
    tail = log.read_text(errors="replace").strip().splitlines()
    hint = next(
        (line for line in tail if "ERROR: AddressSanitizer" in line or "runtime error" in line),
        tail[-1] if tail else "",
    )
    failures.append(_line(seed, reached, f"{what} {hint[:300]}"))
    return range(first, reached + 1), failures, reached + 1


def _processor_seconds(pid: int) -> float:
    """What a process has used so far: the clock on the wall runs on while others compute."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _line(seed: int, number: int, what: str) -> str:
    op, flavour, _ = plan(seed, number)
    return f"{seed}:{number} {op} ({flavour}): {what}"


def _serve(seed: int, first: int, last: int, place: str) -> None:
    warnings.simplefilter("ignore")
    rf.set_num_threads(2)
    with open(place, "r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
        for number in range(first, last):
            shared[:8] = number.to_bytes(8, "little")
            try:
                what = run_case(seed, number)
            except Exception as error:
                what = f"{type(error).__name__}: {error}"
            if what:
                print(_line(seed, number, what.replace("\n", " ")[:500]), flush=True)


def report(seed: int, ops: Counter[str], flavours: Counter[str], failures: list[str], seconds: float) -> Iterator[str]:
    """The table at the end."""
    yield f"seed {seed}: {sum(ops.values())} cases in {seconds:.0f} s, {len(failures)} failures"
    yield "  " + ", ".join(f"{op} {count}" for op, count in sorted(ops.items()))
    yield "  " + ", ".join(f"{flavour} {count}" for flavour, count in sorted(flavours.items()))
    yield from (f"  FAILED {line}" for line in failures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--replay", metavar="SEED:NUMBER")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _serve(*map(int, options.child[0].split(":")), options.child[1])
        return
    if options.replay:
        seed, number = map(int, options.replay.split(":"))
        op, flavour, _ = plan(seed, number)
        print(f"{op} ({flavour}): {run_case(seed, number) or 'nothing wrong'}")
        return
    begun = time.monotonic()
    last = None if options.cases is None else options.first + options.cases
    seconds = None if options.minutes is None else 60 * options.minutes
    if last is None and seconds is None:
        last = options.first + 3000
    ops, flavours, failures = attack(options.seed, options.first, last, seconds, sys.stderr)
    print("\n".join(report(options.seed, ops, flavours, failures, time.monotonic() - begun)))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
