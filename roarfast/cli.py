"""The `roarfast` command. `info` needs nothing but NumPy; the other commands come with `pip install 'roarfast[study]'`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    import typer


def show_info(as_json: bool) -> None:
    """Prints what was built and what runs here."""
    from roarfast import info

    facts = info.gather()
    print(json.dumps(facts, indent=2) if as_json else info.render(facts))


def build_app() -> typer.Typer:
    """The typer application with all commands."""
    import typer

    app = typer.Typer(
        name="roarfast",
        help="Fast, exact and honest remove-and-retrain evaluation of attribution maps.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def root(
        version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
    ) -> None:
        if version:
            from roarfast._version import __version__

            print(__version__)
            raise typer.Exit

    @app.command("info")
    def info_command(
        as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    ) -> None:
        """Show version, compiler, SIMD level, threads, CUDA and optional packages."""
        show_info(as_json)

    @app.command("demo")
    def demo_command(
        out: Annotated[str, typer.Option("--out", help="Folder for the pictures.")] = "demo-out",
        size: Annotated[int, typer.Option("--size", min=16, max=4096, help="Image side in pixels.")] = 224,
        batch: Annotated[int, typer.Option("--batch", min=1, max=4096, help="Images in the timed batch.")] = 64,
    ) -> None:
        """Take a generated image and map through every op; print times against SciPy; write a picture strip."""
        from roarfast import demo

        demo.run(out, size, batch)

    from roarfast.study.cli import register as register_study_commands

    register_study_commands(app)
    return app


def main() -> None:
    """Entry point of the `roarfast` command."""
    try:
        import typer  # noqa: F401
    except ImportError:
        _main_without_typer(sys.argv[1:])
        return
    build_app()()


def _main_without_typer(arguments: list[str]) -> None:
    if arguments and arguments[0] == "info":
        show_info("--json" in arguments[1:])
        return
    needs = "every command but `roarfast info [--json]` needs more packages: pip install 'roarfast[study]'"
    print(needs, file=sys.stderr)
    sys.exit(2)
