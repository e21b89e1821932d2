"""`roarfast status`: how far a study is, from its store alone."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

from roarfast.study.lock import LOCK_NAME
from roarfast.study.progress import Eta, duration
from roarfast.study.results import Record, StudyResults, load


def is_running(folder: Path) -> bool:
    """Whether a process holds the folder now."""
    try:
        descriptor = os.open(folder / LOCK_NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(descriptor)


def eta_seconds(results: StudyResults) -> float | None:
    """Seconds left at the pace of the finished cells; None if none is."""
    left: dict[str, int] = {}
    timings: dict[str, list[float]] = {}
    for record in results:
        if record.status == "done":
            timings.setdefault(record.protocol, []).append(sum(record.seconds.values()))
        elif record.status in ("pending", "running"):
            left[record.protocol] = left.get(record.protocol, 0) + 1
    sessions: list[dict[str, Any]] = results.meta.get("sessions", [])
    workers = sessions[-1]["facts"].get("workers", 1) if sessions else 1
    return Eta(left, timings).seconds_left(workers)


def describe(folder: str | Path) -> str:
    """The state of a run folder in a few lines."""
    folder = Path(folder)
    results = load(folder)
    counts = {status: [r for r in results if r.status == status] for status in ("done", "running", "failed", "pending")}
    running = is_running(folder)
    if not running:  # what a killed run left is waiting, not running
        counts["pending"] += counts["running"]
        counts["running"] = []
    name = results.meta.get("config", {}).get("name", folder.name)
    lines = [f"{name} in {folder}: {'running' if running else 'not running'}"]
    lines.append(
        "  " + ", ".join(f"{len(records)} {status}" for status, records in counts.items()) + f" of {len(results)} cells"
    )
    by_protocol: dict[str, list[Record]] = {}
    for record in results:
        by_protocol.setdefault(record.protocol, []).append(record)
    for protocol, records in by_protocol.items():
        lines.append(f"  {protocol:<13}{sum(r.status == 'done' for r in records):>5} of {len(records)} done")
    lines += [f"  now: {_label(record)}" for record in counts["running"]]
    left = eta_seconds(results)
    if counts["pending"] or counts["running"]:
        lines.append(
            f"  about {duration(left)} left"
            if left is not None
            else "  time left: not known before the first training ends"
        )
        if not running:
            lines.append("  go on with the same `roarfast run` command")
    for record in counts["failed"][:10]:
        last = (record.error or "").strip().splitlines()[-1:] or ["unknown error"]
        lines.append(f"  failed: {_label(record)}: {last[0]}")
    if len(counts["failed"]) > 10:
        lines.append(f"  … and {len(counts['failed']) - 10} more failed cells (results.csv has all)")
    return "\n".join(lines)


def _label(r: Record) -> str:
    return f"{r.protocol} {r.estimator} {r.postprocess} {r.order} t={r.drop:g} trial {r.trial}"
