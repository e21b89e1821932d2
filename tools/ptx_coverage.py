"""Which PTX of the CUDA kernels no test executed, from the files that `pytest --ptx all --ptx-coverage FOLDER` writes.

    python tools/ptx_coverage.py build/ptx-coverage            # kernels never launched, source lines never executed
    python tools/ptx_coverage.py build/ptx-coverage --check    # fails where tests/backends/ptx/not_executed.txt does not list it

A source line counts as executed if an instruction of it ran in at least one kernel (a template has many); `instances` counts
the instructions of launched kernels that never ran, in this or that instance.
"""

from __future__ import annotations

import argparse
import collections
import json
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = ROOT / "tests" / "backends" / "ptx" / "not_executed.txt"


def merged(folder: Path) -> dict[str, dict]:
    """Kernels by symbol; executions of all files added up. Selftests are left out."""
    kernels: dict[str, dict] = {}
    for file in sorted(folder.glob("*.json")):
        for kernel in json.loads(file.read_text()):
            if kernel["instructions"] and kernel["instructions"][0][0].startswith("selftest"):
                continue
            known = kernels.setdefault(
                kernel["symbol"], {**kernel, "launches": 0, "executed": [0] * len(kernel["instructions"])}
            )
            known["launches"] += kernel["launches"]
            known["executed"] = [a + i[2] for a, i in zip(known["executed"], kernel["instructions"], strict=True)]
    return kernels


def source_text(place: str) -> str:
    """The line of the source that `gaussian_filter.cu:80` names, without blanks at its ends."""
    name, _, number = place.partition(":")
    for path in (ROOT / "csrc").rglob(name):
        lines = path.read_text().splitlines()
        if number.isdigit() and int(number) <= len(lines):
            return lines[int(number) - 1].strip()
    return ""


def report(kernels: dict[str, dict]) -> tuple[list[str], list[str]]:
    """Kernels never launched; source lines never executed, as `file: text`. Prints both."""
    never = sorted(kernel["kernel"] for kernel in kernels.values() if not kernel["launches"])
    ran: collections.Counter[str] = collections.Counter()
    missing: collections.Counter[str] = collections.Counter()
    total = 0
    for kernel in kernels.values():
        for (place, *_), executed in zip(kernel["instructions"], kernel["executed"], strict=True):
            total += kernel["launches"] > 0
            (ran if executed else missing)[place] += kernel["launches"] > 0 or executed > 0
    instances = sum(missing.values())
    lines = {}
    for place in sorted(missing):
        if missing[place] and not ran[place]:
            lines[place] = f"{place.partition(':')[0]}: {source_text(place)}"
    print(f"{len(kernels) - len(never)} of {len(kernels)} kernels launched, {total} PTX instructions in them")
    print(
        f"{instances} instances never executed ({1 - instances / max(total, 1):.2%} covered), {len(lines)} source lines in no kernel"
    )
    for name in never:
        print(f"  never launched: {name}")
    for place, text in lines.items():
        print(f"  never executed: {place}  {text.partition(': ')[2]}")
    return never, sorted(set(lines.values()))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    never, lines = report(merged(options.folder))
    if not options.check:
        return 0
    allowed = {line for line in ALLOWED.read_text().splitlines() if line and not line.startswith("#")}
    surprises = [f"kernel: {name}" for name in never] + lines
    new = [line for line in surprises if line not in allowed]
    for line in new:
        print(f"not in {ALLOWED.name}: {line}", file=sys.stderr)
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
