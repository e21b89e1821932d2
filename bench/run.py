"""Prints one table, ours beside the rivals of every op, and writes bench/latest.json.

    python bench/run.py                                  # on the CPU
    python bench/run.py --device cuda --out gpu.json     # on a GPU: needs roarfast and torch only (rivals: torch, CuPy if there)
    python bench/run.py --render gpu.json                # its tables, in Markdown

Times are the minimum of repeats in which everybody takes turns, with equal threads. Ratios above 1 mean that we
are faster. Never fails because of a time, unless `--check`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def _print_row(row: dict[str, Any], previous: dict[str, Any]) -> None:
    new_case = (row["op"], row["case"]) != (previous.get("op"), previous.get("case"))
    if new_case:
        print(f"\n{row['op']}, {row['case']}: {row['ours_ms']:.3f} ms")
    verdict = ""
    if "floor" in row:
        verdict = f"   floor {row['floor']:.3g}x {'reached' if row['reached'] else 'NOT REACHED'}"
    print(f"    {row['rival']:<18}{row['rival_ms']:>12.3f} ms{row['ratio']:>10.2f}x{verdict}", flush=True)


def main_device(arguments: list[str]) -> int:
    """`--device`, `--render`: without the packages of the CPU's rivals."""
    import on_device

    parser = argparse.ArgumentParser(
        description=on_device.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1; cpu, simt, ptx run the same code on the host")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="smaller batches, fewer repeats")
    sizes.add_argument("--tiny", action="store_true", help="a few pixels: whether everything runs, not how fast")
    parser.add_argument("--out", type=Path, default=HERE / "latest-device.json", help="the report")
    parser.add_argument("--render", type=Path, metavar="FILE", help="print the tables of a report and measure nothing")
    options = parser.parse_args(arguments)
    if options.render is not None:
        report = json.loads(options.render.read_text())
        on_device.check_report(report)
        print(on_device.render(report))
        return 0
    try:
        chosen = on_device.QUICK if options.quick else on_device.TINY if options.tiny else None
        report = on_device.run(options.device, chosen)
    except (RuntimeError, ValueError) as error:
        print(f"bench/run.py: {error}", file=sys.stderr)
        return 2
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{on_device.render(report)}\n\nwritten: {options.out}")
    return 0


def main() -> None:
    """Entry point."""
    if any(argument.partition("=")[0] in ("--device", "--render") for argument in sys.argv[1:]):
        raise SystemExit(main_device(sys.argv[1:]))
    from _common import CLOCKS, discover, environment, measure, set_threads
    from saved import save_ratios

    import roarfast as rf

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="OP", help="measure this op only (may be repeated)")
    parser.add_argument("--quick", action="store_true", help="small cases: seconds instead of minutes; no floors")
    parser.add_argument("--threads", type=int, default=rf.get_num_threads(), help="threads for everybody")
    parser.add_argument(
        "--clock", choices=CLOCKS, default="wall", help="cpu: for busy machines; implies one thread for everybody"
    )
    parser.add_argument("--seconds", type=float, default=1.0, help="time per rival and case")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a floor is not reached")
    parser.add_argument(
        "--save-baseline",
        action="store_true",
        help="with --quick: save the ratios that test_regression.py compares with",
    )
    args = parser.parse_args()
    if args.save_baseline and not args.quick:
        parser.error("--save-baseline needs --quick: the regression test runs the quick cases")

    if args.save_baseline or args.clock == "cpu":
        args.clock, args.threads = "cpu", 1
    set_threads(args.threads)
    about = environment(args.threads, args.clock)
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    print(f"{about['cpu']}, {args.threads} threads, {args.clock} time, {about['backend']}\n{versions}")
    rows: list[dict[str, Any]] = []
    for cases in discover(args.only).values():
        for case in cases(args.quick):
            for row in measure(case, args.seconds, args.clock):
                _print_row(row, rows[-1] if rows else {})
                rows.append(row)

    (HERE / "latest.json").write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")
    print(f"\nwritten: {HERE / 'latest.json'}")
    if args.save_baseline:
        save_ratios(rows, about)
    missed = [row for row in rows if not row.get("reached", True)]
    floors = sum("floor" in row for row in rows)
    if floors:
        print(f"floors: {floors - len(missed)} of {floors} reached")
    if args.check and missed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
