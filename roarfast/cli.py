"""The `roarfast` command. `info` needs nothing but NumPy; the rest, in `commands.py`, comes with `pip install 'roarfast[study]'`."""

from __future__ import annotations

import json
import sys


def show_info(as_json: bool) -> None:
    """Prints what was built and what runs here."""
    from roarfast import info

    facts = info.gather()
    print(json.dumps(facts, indent=2) if as_json else info.render(facts))


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
        show_info("--json" in arguments[1:])
        return
    needs = "every command but `roarfast info [--json]` needs more packages: pip install 'roarfast[study]'"
    print(needs, file=sys.stderr)
    sys.exit(2)
