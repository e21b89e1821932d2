"""The `roarfast` command. `info` needs nothing but NumPy, `selftest` torch; the rest, in `commands.py`, comes with `pip install 'roarfast[study]'`."""

from __future__ import annotations

import argparse
import json
import sys

from roarfast import info


def selftest(device: str, as_json: bool, quick: bool, out: str | None) -> int:
    """Compares the ops on a device with the CPU; the exit code: 0 passed, 1 failed, 2 could not be run."""
    from pathlib import Path

    try:
        from roarfast import selftest as tests

        report = tests.run(device, quick)
    except (ImportError, RuntimeError, ValueError) as error:
        print(f"roarfast selftest: {error}", file=sys.stderr)
        return 2
    text = json.dumps(report, indent=2)
    if out is not None:
        Path(out).write_text(text + "\n")
    print(text if as_json else tests.render(report))
    return 0 if report["ok"] else 1


def main() -> None:
    """Entry point of the `roarfast` command."""
    try:
        import typer  # noqa: F401
    except ImportError:
        _main_without_typer(sys.argv[1:])
        return
    from roarfast.commands import app

    app()


def _main_without_typer(arguments: list[str]) -> None:
    if arguments and arguments[0] == "info":
        info.show("--json" in arguments[1:])
        return
    if arguments and arguments[0] == "selftest":
        options = argparse.ArgumentParser("roarfast selftest")
        options.add_argument("--device", default="cuda")
        options.add_argument("--json", action="store_true")
        options.add_argument("--quick", action="store_true")
        options.add_argument("--out")
        given = options.parse_args(arguments[1:])
        sys.exit(selftest(given.device, given.json, given.quick, given.out))
    needs = (
        "every command but `roarfast info` and `roarfast selftest` needs more packages: pip install 'roarfast[study]'"
    )
    print(needs, file=sys.stderr)
    sys.exit(2)
