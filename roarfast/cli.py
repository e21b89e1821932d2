"""The `roarfast` command. `info` needs nothing but NumPy; the rest, in `commands.py`, comes with `pip install 'roarfast[study]'`."""

from __future__ import annotations

import sys

from roarfast import info


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
    needs = "every command but `roarfast info [--json]` needs more packages: pip install 'roarfast[study]'"
    print(needs, file=sys.stderr)
    sys.exit(2)
