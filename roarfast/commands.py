"""The commands of `roarfast`, as a typer application. Heavy imports happen inside the commands, so `--help` is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from roarfast import info as facts
from roarfast._version import __version__
from roarfast.data.cli import app as data_app
from roarfast.explain import cli as explain_commands
from roarfast.metrics import cli as metrics_commands
from roarfast.report.cli import compare, report
from roarfast.study import cli as study_commands
from roarfast.validate import cli as validate_commands

app = typer.Typer(
    name="roarfast",
    help="Fast, exact and honest remove-and-retrain evaluation of attribution maps.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    """Fast, exact and honest remove-and-retrain evaluation of attribution maps."""
    if version:
        print(__version__)
        raise typer.Exit


@app.command("info")
def info_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Show version, compiler, SIMD level, threads, CUDA and optional packages."""
    facts.show(as_json)


@app.command("selftest")
def selftest_command(
    device: Annotated[str, typer.Option("--device", help="cuda, cuda:1 or cpu.")] = "cuda",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Few shapes and dtypes.")] = False,
    out: Annotated[str | None, typer.Option("--out", help="Also write the JSON to this file.")] = None,
) -> None:
    """Compare every op on a device with the CPU; on a GPU also graph capture, streams and a training step."""
    from roarfast import selftest  # torch: `--help` need not wait for it

    raise typer.Exit(selftest.show(device, as_json, quick, out))


@app.command("kernels-demo")
def kernels_demo_command(
    out: Annotated[str, typer.Option("--out", help="Folder for the pictures.")] = "demo-out",
    size: Annotated[int, typer.Option("--size", min=16, max=4096, help="Image side in pixels.")] = 224,
    batch: Annotated[int, typer.Option("--batch", min=1, max=4096, help="Images in the timed batch.")] = 64,
) -> None:
    """Take a generated image and map through every op; print times against SciPy; write a picture strip."""
    from roarfast import demo  # SciPy: `--help` need not wait for it

    demo.run(out, size, batch)


study_commands.register(app)
app.command("report")(report)
app.command("compare")(compare)
explain_commands.register(app)
metrics_commands.register(app)
validate_commands.register(app)
app.add_typer(data_app, name="data")
