"""Saved ratios (bench/baseline.json), by kind of processor: the ratio of a short call differs by a half between generations."""

from __future__ import annotations

import json
import math
import platform
import re
from pathlib import Path
from typing import Any

BASELINE = Path(__file__).resolve().parent / "baseline.json"
TOLERANCE, ATTEMPTS = 0.3, 3  # slower by more than that in each of so many tries is a failure
UNSTEADY = {"respond"}  # torch's passes on both sides: not guarded
Ratios = dict[str, dict[str, float]]  # by "op, case" and rival


def write_json(path: Path, table: dict[str, Any]) -> None:
    """Whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(table, indent=1) + "\n")
    part.replace(path)


def processor() -> str:
    """The kind of processor, as far as the system tells."""
    try:
        fields = dict(
            re.findall(r"^([\w ]+?)\s*: (.*)$", Path("/proc/cpuinfo").read_text().split("\n\n")[0], re.MULTILINE)
        )
    except OSError:
        return platform.processor() or "unknown"
    return f"{fields.get('model name', 'unknown')}, family {fields.get('cpu family')}, model {fields.get('model')}"


def saved_ratios(section: str = "ratios") -> Ratios:
    """Those of this kind of processor; of another kind the lowest that any kind has."""
    machines = json.loads(BASELINE.read_text())["machines"]
    if section in machines.get(processor(), {}):
        return machines[processor()][section]  # type: ignore[no-any-return]
    lowest: Ratios = {}
    for machine in machines.values():
        for case, rivals in machine.get(section, {}).items():
            known = lowest.setdefault(case, {})
            known.update({rival: min(ratio, known.get(rival, ratio)) for rival, ratio in rivals.items()})
    return lowest


def save_ratios(rows: list[dict[str, Any]], about: dict[str, Any], section: str = "ratios") -> None:
    """For this kind of processor; those of cases that were not measured now are kept."""
    table = json.loads(BASELINE.read_text()) if BASELINE.exists() else {"machines": {}}
    machine = table["machines"].setdefault(processor(), {})
    ratios: Ratios = machine.get(section, {})
    for row in (row for row in rows if row["op"] not in UNSTEADY):
        ratios.setdefault(f"{row['op']}, {row['case']}", {})[row["rival"]] = round(row["ratio"], 3)
    assert all(math.isfinite(x) for by_rival in ratios.values() for x in by_rival.values())
    machine["measured" if section == "ratios" else f"{section} measured"] = about
    machine[section] = dict(sorted(ratios.items()))
    write_json(BASELINE, table)
    print(f"written: {BASELINE}")
