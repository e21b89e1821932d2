"""The `roarfast` command. `info` needs nothing but NumPy, `selftest` torch; the rest, in `commands.py`, comes with `pip install 'roarfast[study]'`."""

from __future__ import annotations

import argparse
import sys

from roarfast import info


def main() -> None:
    """Entry point of the `roarfast` command."""
    try:
        import typer  # noqa: F401
    except ImportError:
        _main_without_typer(sys.argv[1:])
        return
    from roarfast.commands import app  # needs typer, which may be missing

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
        from roarfast import selftest  # torch

        sys.exit(selftest.show(given.device, given.json, given.quick, given.out))
    needs = (
        "every command but `roarfast info` and `roarfast selftest` needs more packages: pip install 'roarfast[study]'"
    )
    print(needs, file=sys.stderr)
    sys.exit(2)
