"""The commands `demo`, `init`, `run`, `status` and `merge`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer

from roarfast.study.errors import StudyError
from roarfast.study.presets import PRESETS

Out = Annotated[Path | None, typer.Option("--out", help="Run folder. Default: runs/<name of the study>.")]


def register(app: typer.Typer) -> None:
    """Adds the commands of this module to the `roarfast` command."""
    app.command("demo")(demo_command)
    app.command("init")(init_command)
    app.command("run")(run_command)
    app.command("status")(status_command)
    app.command("merge")(merge_command)


def demo_command(
    out: Annotated[Path, typer.Option("--out", help="Run folder.")] = Path("runs/demo"),
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes. Default: one per GPU, or one per core.")
    ] = None,
) -> None:
    """Run the embedded study on generated images, a few minutes on two cores; write its report, print a summary."""
    with _clear_errors():
        _exit(_actions().demo(out, workers))


def init_command(
    file: Annotated[Path, typer.Argument(help="The config file to write.")] = Path("study.toml"),
    preset: Annotated[
        str,
        typer.Option(help=f"own (with --data: your images), {', '.join(PRESETS)}."),
    ] = "demo",
    data: Annotated[Path | None, typer.Option(help="With --preset own: your images, a folder, pack or .npz.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a commented config file to start from; `--preset own --data DIR` looks at your images first."""
    with _clear_errors():
        _actions().init(file, preset, force, data)


def run_command(
    file: Annotated[Path, typer.Argument(help="The config file (roarfast init writes one).")],
    out: Out = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the work and estimate its time; run nothing.")
    ] = False,
    only: Annotated[str | None, typer.Option(help="A part of the grid: 'estimator=sg-sq,drop=0.3'.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes. Default: one per GPU, or one per core.")
    ] = None,
    shard: Annotated[str | None, typer.Option(help="i/n: the i-th of n parts, in a folder of its own.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 or auto.")] = None,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="auto|ADDRESS", help="Run on a Ray cluster; auto: the one that is running, or one of this machine."
        ),
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(min=1, help="With --dry-run: simulate a cluster of so many nodes …")
    ] = None,
    gpus: Annotated[
        int | None, typer.Option(min=1, help="… with so many workers each, one per GPU (default 1) …")
    ] = None,
    speed: Annotated[
        float | None,
        typer.Option(min=1e-6, help="… each so many times as fast as a worker of this machine (default 1)."),
    ] = None,
    data_root: Annotated[Path | None, typer.Option(help="Where the data is, instead of data.root.")] = None,
    report: Annotated[
        bool, typer.Option(help="End with the report; --no-report leaves it to `roarfast report`.")
    ] = True,
    mask_only: Annotated[
        bool, typer.Option("--mask-only", help="Also train on the masks alone, per roar cell: do they leak the class?")
    ] = False,
    redo: Annotated[
        bool, typer.Option("--redo", help="After a change of your own files: make the cells that depend on them again.")
    ] = False,
) -> None:
    """Run a study up to its report, or resume it: the same command after a kill loses no finished cell."""
    with _clear_errors():
        where = {"workers": workers, "device": device, "only": only, "ray": ray, "redo": redo}
        if nodes is None and (gpus or speed):
            given = "--gpus" if gpus else "--speed"
            raise StudyError(f"{given} describes the nodes of a simulated cluster: say how many with --nodes")
        machines = None if nodes is None else (nodes, gpus or 1, speed or 1.0)
        if machines and not dry_run:
            raise StudyError("--nodes simulates a cluster: use it with --dry-run; a run on one is --ray ADDRESS")
        _exit(_actions().run(file, out, data_root, mask_only, shard, dry_run, report, machines, **where))


def status_command(
    folder: Annotated[Path, typer.Argument(help="A run folder.")],
    errors: Annotated[bool, typer.Option("--errors", help="Show why cells failed, with tracebacks.")] = False,
) -> None:
    """Show how far a study is: done, running, failed, time left."""
    with _clear_errors():
        _actions().show_status(folder, errors)


def merge_command(
    folder: Annotated[Path, typer.Argument(help="The study's folder, which gets all results.")],
    shards: Annotated[
        list[Path] | None, typer.Argument(help="Shard folders. Default: those below FOLDER/shards.")
    ] = None,
) -> None:
    """Put the shards of a study together."""
    with _clear_errors():
        _exit(_actions().merge_shards(folder, shards))


def _actions() -> ModuleType:
    from roarfast.study import actions  # torch, matplotlib: `--help` need not wait for them

    return actions


def _exit(well: bool) -> None:
    if not well:
        raise typer.Exit(1)


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Errors that a user can act on are printed without a traceback; Ctrl-C says how to go on."""
    try:
        yield
    except (StudyError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        print("\nstopped; the same command goes on where this one ended", file=sys.stderr)
        raise typer.Exit(130) from None
