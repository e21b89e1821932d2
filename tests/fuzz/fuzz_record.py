"""Sums what `fuzz_run.py --record` wrote: `python tests/fuzz/fuzz_record.py fuzz.jsonl … > tests/fuzz/RECORD.md`."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from fuzz_calls import SHARED
from fuzz_cases import OPS

_HEAD = """\
# The attack on the ops so far

Made by `tests/fuzz/fuzz_record.py` from the lines that `fuzz_run.py --record` wrote. Case `number` of a seed is always the
same: `python tests/fuzz/fuzz_run.py --replay SEED:NUMBER`. {shared} cases in a row share the values of their arrays and the
answer of the oracle; memory, `out=`, library and mistakes are each one's own.
"""


def pieces(lines: Iterable[str]) -> list[dict[str, Any]]:
    """The pieces of a record, each range of cases of a seed once: a piece that was run again replaces the first."""
    latest: dict[tuple[int, int, bool], dict[str, Any]] = {}
    for line in lines:
        piece = json.loads(line)
        latest[piece["seed"], piece["first"], piece["sanitised"]] = piece
    return sorted(latest.values(), key=lambda piece: (piece["sanitised"], piece["seed"], piece["first"]))


def ranges(found: list[dict[str, Any]]) -> Iterator[str]:
    """Seeds and ranges of cases, neighbours joined."""
    joined: list[list[Any]] = []
    for piece in found:
        if joined and joined[-1][:2] == [piece["sanitised"], piece["seed"]] and joined[-1][3] == piece["first"]:
            joined[-1][3] = piece["last"]
        else:
            joined.append([piece["sanitised"], piece["seed"], piece["first"], piece["last"]])
    for sanitised, seed, first, last in joined:
        yield f"{seed}: {first:,} to {last:,}" + (" (sanitised)" if sanitised else "")


def report(found: list[dict[str, Any]]) -> Iterator[str]:
    """The page."""
    total: Counter[str] = Counter()
    for piece in found:
        total.update(piece["counts"])
    sanitised = sum(piece["counts"]["cases"] for piece in found if piece["sanitised"])
    failures = [line for piece in found for line in piece["failures"]]
    nonsense, refused = (sum(total[f"{op} {tag}"] for op in OPS) for tag in ("nonsense", "refused"))
    yield _HEAD.format(shared=SHARED)
    yield f"- **{total['cases']:,} cases**, {sanitised:,} of them under AddressSanitizer and UBSan: {len(failures)} failures"
    yield f"  (crashes, endless loops, reports, wrong values, changed inputs, errors without a name){':' if failures else '.'}"
    yield from (f"  - {line}" for line in failures)
    yield f"- **{nonsense:,} calls with nonsense**: {refused:,} refused by an error that names an argument, the others right after all."
    yield "- Flavours: " + ", ".join(
        f"{key[8:]} {count:,}" for key, count in sorted(total.items()) if key.startswith("flavour ")
    )
    yield "- Seeds and cases: " + "; ".join(ranges(found)) + ".\n"
    yield "| op | valid calls against the oracle | above 64x64 | not contiguous or `out=` | nonsense | `torch.ops` directly |"
    yield "|---|---|---|---|---|---|"
    for op in OPS:
        valid = max(1, total[f"{op} valid"])
        shares = [f"{total[f'{op} valid, {tag}'] / valid:.0%}" for tag in ("large", "odd memory")]
        yield f"| `{op}` | {valid:,} | {shares[0]} | {shares[1]} | {total[f'{op} nonsense']:,} | {total[f'{op} direct']:,} |"


if __name__ == "__main__":
    print("\n".join(report(pieces(line for name in sys.argv[1:] for line in Path(name).read_text().splitlines()))))
