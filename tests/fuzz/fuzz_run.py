"""The standing attack on the ops: valid calls against the oracle, nonsense, aliasing, threads, forks.

Case `number` of seed `seed` is the same everywhere and for ever: `--replay 1:4711` runs it alone. Cases run in a child
process, so that a crash or an endless loop is one failure with a number, and the attack goes on behind it.

    python tests/fuzz/fuzz_run.py --seed 1 --cases 3000
    python tests/fuzz/fuzz_run.py --seed 1 --minutes 30 --record fuzz.jsonl
"""

from __future__ import annotations

import argparse
import json
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

sys.path.insert(0, str(Path(__file__).parent))
from fuzz_calls import plan, run_case

import roarfast as rf

HANG_SECONDS = 15.0
"""Processor time of one case; the longest right ones take a tenth of it."""
PIECE = 10000
"""Cases of one child process, and of one line of the record."""
_TALLY = "#tally "
_TALLY_EVERY = 200


def attack(
    seed: int,
    first: int,
    last: int | None,
    seconds: float | None,
    echo: Any = None,
    record: Path | None = None,
    most: int = 40,
) -> tuple[Counter[str], list[str]]:
    """Runs cases [first, last), or from `first` on for some seconds; stops after `most` failures.

    Returns:
        Counts (`cases`, `op sobel`, `flavour torch`, `sobel valid`, …), and one line per failure.
    """
    counts: Counter[str] = Counter()
    failures: list[str] = []
    deadline = None if seconds is None else time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "number"
        place.write_bytes(bytes(8))
        number = first
        while (last is None or number < last) and (deadline is None or time.monotonic() < deadline):
            piece_size = PIECE if most > 1 else PIECE // 4
            stop = number + piece_size if last is None else min(last, number + piece_size)
            piece, new, reached = _child(seed, number, stop, place, deadline)
            for n in range(number, reached):
                op, flavour = plan(seed, n)
                piece.update(("cases", f"op {op}", f"flavour {flavour}"))
            if record is not None:
                _append(record, {"seed": seed, "first": number, "last": reached, "counts": piece, "failures": new})
            counts += piece
            failures += new
            number = reached
            if echo is not None:
                print(f"seed {seed}: {counts['cases']} cases, {len(failures)} failures", file=echo, flush=True)
            if len(failures) >= most:
                break
    return counts, failures


def _append(record: Path, line: dict[str, Any]) -> None:
    line["sanitised"] = "libasan" in os.environ.get("LD_PRELOAD", "")
    with record.open("a") as file:
        file.write(json.dumps(line) + "\n")


def _child(
    seed: int, first: int, last: int, place: Path, deadline: float | None
) -> tuple[Counter[str], list[str], int]:
    """One child process over [first, last): what it counted, what failed, and where to go on."""
    command = [sys.executable, __file__, "--child", f"{seed}:{first}:{last}", str(place)]
    log = place.with_name("log")
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream, text=True)
    failures: list[str] = []
    counts: Counter[str] = Counter()

    def read() -> None:
        for line in process.stdout:  # type: ignore[union-attr]
            if line.startswith(_TALLY):
                counts.update(json.loads(line[len(_TALLY) :]))
            else:
                failures.append(line.rstrip())

    reader = threading.Thread(target=read)
    reader.start()
    before, since, ended, late = -1, 0.0, "", False
    while process.poll() is None:
        time.sleep(0.05)
        now = int.from_bytes(place.read_bytes(), "little")
        used = _processor_seconds(process.pid)
        if now != before:
            before, since = now, used
        elif used - since > HANG_SECONDS + (30 if now == 0 else 0):  # the imports come first
            ended = f"did not return in {HANG_SECONDS:.0f} s"
            process.kill()
        if deadline is not None and time.monotonic() > deadline and not ended:
            late = True
            process.kill()
            process.wait()
    reader.join()
    reached = int.from_bytes(place.read_bytes(), "little")
    code = process.returncode
    if code == 0:
        return counts, failures, last
    if late:
        return counts, failures, max(first, reached)
    what = ended or (f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}")
    tail = log.read_text(errors="replace").strip().splitlines()
    hint = next(
        (line for line in tail if "ERROR: AddressSanitizer" in line or "runtime error" in line),
        tail[-1] if tail else "",
    )
    failures.append(_line(seed, reached, f"{what} {hint[:300]}"))
    return counts, failures, reached + 1


def _processor_seconds(pid: int) -> float:
    """What a process has used so far: the clock on the wall runs on while others compute."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return time.monotonic()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _line(seed: int, number: int, what: str) -> str:
    op, flavour = plan(seed, number)
    return f"{seed}:{number} {op} ({flavour}): {what}"


def _serve(seed: int, first: int, last: int, place: str) -> None:
    warnings.simplefilter("ignore")
    rf.set_num_threads(2)
    tally: Counter[str] = Counter()
    with open(place, "r+b") as file, mmap.mmap(file.fileno(), 8) as shared:
        for number in range(first, last):
            shared[:8] = number.to_bytes(8, "little")
            try:
                what, tags = run_case(seed, number)
            except Exception as error:
                what, tags = f"{type(error).__name__}: {error}", set()
            op = plan(seed, number)[0]
            tally.update(f"{op} {tag}" for tag in tags - {"large", "odd memory"})
            if "valid" in tags:
                tally.update(f"{op} valid, {tag}" for tag in tags & {"large", "odd memory"})
            if what:
                print(_line(seed, number, what.replace("\n", " ")[:500]), flush=True)
            if tally and (number % _TALLY_EVERY == 0 or number == last - 1):
                print(_TALLY + json.dumps(tally), flush=True)
                tally.clear()


def report(seed: int, counts: Counter[str], failures: list[str], seconds: float) -> Iterator[str]:
    """The table at the end."""
    yield f"seed {seed}: {counts['cases']} cases in {seconds:.0f} s, {len(failures)} failures"
    yield "  " + ", ".join(f"{key[8:]} {count}" for key, count in sorted(counts.items()) if key.startswith("flavour "))
    yield from (f"  FAILED {line}" for line in failures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--until-failure", action="store_true", help="stop at the first one")
    parser.add_argument("--record", type=Path, help=f"append one line of JSON per {PIECE} cases")
    parser.add_argument("--replay", metavar="SEED:NUMBER")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _serve(*map(int, options.child[0].split(":")), options.child[1])
        return
    if options.replay:
        seed, number = map(int, options.replay.split(":"))
        op, flavour = plan(seed, number)
        print(f"{op} ({flavour}): {run_case(seed, number)[0] or 'nothing wrong'}")
        return
    begun = time.monotonic()
    last = None if options.cases is None else options.first + options.cases
    seconds = None if options.minutes is None else 60 * options.minutes
    if last is None and seconds is None:
        last = options.first + (300_000 if options.until_failure else 3000)
    counts, failures = attack(
        options.seed, options.first, last, seconds, sys.stderr, options.record, 1 if options.until_failure else 40
    )
    print("\n".join(report(options.seed, counts, failures, time.monotonic() - begun)))
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
