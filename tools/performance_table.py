"""Writes the table of docs/performance.md from bench/latest.json, which `make bench` leaves: every op, case and rival.

python tools/performance_table.py [FILE]
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- measured: tools/performance_table.py -->", "<!-- end of measured -->"


def ratio(value: float) -> str:
    """Two digits, and no more than three where they are many."""
    return f"{value:.0f}" if value >= 9.95 else f"{value:.2g}"


def sizes(case: str) -> str:
    """The case with a sign between its sizes."""
    return re.sub(r"(?<=\d)x(?=\d)", "×", case)


def table(report: dict[str, Any]) -> str:
    """The report as Markdown: a row per case; rivals by how many times longer they take than we do."""
    cases: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in report["rows"]:
        cases.setdefault((row["op"], row["case"]), []).append(row)
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items() if name != "roarfast")
    lines = [
        f"{report['cpu']}, {report['cores']} cores, {report['threads']} threads, {report['backend']}, {versions}; {report['date'][:10]}.",
        "",
        "| op | case | ours | how many times longer the rivals take |",
        "|---|---|---|---|",
    ]
    previous = ""
    for (op, case), rows in cases.items():
        rivals = ", ".join(f"{row['rival']} **{ratio(row['ratio'])}**" for row in rows)
        lines.append(
            f"| {'' if op == previous else f'`{op}`'} | {sizes(case)} | {rows[0]['ours_ms']:.3g} ms | {rivals} |"
        )
        previous = op
    return "\n".join(lines)


def write(page: str, report: dict[str, Any]) -> str:
    """The page with a new table between its two marks."""
    if BEGIN not in page or END not in page:
        raise SystemExit(f"{PAGE.name} has lost a mark: {BEGIN} or {END}")
    return re.sub(
        f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: f"{BEGIN}\n{table(report)}\n{END}", page, flags=re.DOTALL
    )


if __name__ == "__main__":
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "bench" / "latest.json"
    PAGE.write_text(write(PAGE.read_text(), json.loads(source.read_text())))
    print(f"written: {PAGE.relative_to(ROOT)}")
