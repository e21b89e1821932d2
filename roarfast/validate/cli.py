"""The command `validate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from roarfast.validate.check import Result

_WIDTH_OF_FILES = 160  # where there is no terminal to ask
_COLOURS = {"holds": "green", "differs": "yellow", "fails": "bold red"}


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to the `roarfast` command."""
    app.command("validate")(validate_command)


def validate_command(
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Names of checks or groups, separated by commas; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    listing: Annotated[bool, typer.Option("--list", help="Name the checks and stop.")] = False,
) -> None:
    """Check the claims of the papers that have a known answer: no data, no training, under a minute.

    "differs" marks a number of a paper that is not what its own definition gives; the claim says which. The exit code
    is 1 if a check fails.
    """
    from rich.console import Console

    from roarfast import validate  # torch: `--help` need not wait for it

    words = [word.strip() for part in only for word in part.split(",") if word.strip()] if only is not None else None
    if words == []:
        words = None
    try:
        checks = validate.select(words)
    except validate.UnknownCheck as error:
        typer.echo(f"roarfast validate: --only: {error}", err=True)
        raise typer.Exit(2) from None
    if listing:
        for one in checks:
            typer.echo(f"{one.group}/{one.name}: {one.claim}")
        return
    console = Console() if sys.stdout.isatty() else Console(width=_WIDTH_OF_FILES)
    progress = Console(stderr=True)
    results: list[Result] = []
    with progress.status("validating") as status:
        for number, one in enumerate(checks, 1):
            status.update(f"{number} of {len(checks)}: {one.name}")
            results += validate.run([one])
    failed = [r for r in results if r.outcome.verdict == "fails"]
    if as_json:
        typer.echo(json.dumps([_as_dict(r) for r in results], indent=2))
    else:
        console.print(_table(results))
        seconds = sum(r.seconds for r in results)
        differ = sum(r.outcome.verdict == "differs" for r in results)
        console.print(
            f"{len(results)} claims in {seconds:.1f} s: {len(results) - len(failed) - differ} hold, {differ} differ from the "
            f"paper's print as stated, {len(failed)} failed"
        )
    if failed:
        raise typer.Exit(1)


def _as_dict(result: Result) -> dict[str, object]:
    one, outcome = result.check, result.outcome
    return {
        "name": one.name,
        "group": one.group,
        "claim": one.claim,
        "source": one.source,
        "paper": one.paper,
        "here": outcome.here,
        "values": outcome.values,
        "verdict": outcome.verdict,
        "seconds": round(result.seconds, 3),
    }


def _table(results: Iterable[Result]) -> Table:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_lines=True)
    for heading, ratio in (("check", 2), ("claim", 4), ("paper", 3), ("here", 4), ("verdict", 1)):
        table.add_column(heading, ratio=ratio, overflow="fold")
    for result in results:
        one, outcome = result.check, result.outcome
        colour = _COLOURS[outcome.verdict]
        table.add_row(
            escape(one.name),
            escape(f"{one.claim} ({one.cited})"),
            escape(one.paper),
            escape(outcome.here),
            f"[{colour}]{outcome.verdict}[/]",
        )
    return table
