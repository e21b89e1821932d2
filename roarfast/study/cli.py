"""The commands `demo`, `init`, `run`, `status` and `merge`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roarfast._files import write_atomic
from roarfast.study.errors import StudyError

if TYPE_CHECKING:
    from roarfast.study.study import Setup, Study

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
    from roarfast.report import build, summary
    from roarfast.study.presets import PRESETS
    from roarfast.study.runfolder import check_claim
    from roarfast.study.study import Study

    with _clear_errors():
        check_claim(out, None)
        out.mkdir(parents=True, exist_ok=True)
        config = out / "study.toml"
        if not config.exists():
            write_atomic(config, PRESETS["demo"])
        study = Study.from_toml(config, out)
        failed = run_study(study, workers=workers)
        results = study.results
        print(summary(results, build(out, results=results)))
        if failed:
            raise typer.Exit(1)


def init_command(
    file: Annotated[Path, typer.Argument(help="The config file to write.")] = Path("study.toml"),
    preset: Annotated[
        str, typer.Option(help="demo, paper-cifar10, paper-svhn, paper-cub200 or roar-imagenet.")
    ] = "demo",
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write a commented config file to start from."""
    from roarfast.study.errors import nearest
    from roarfast.study.presets import PRESETS

    with _clear_errors():
        if preset not in PRESETS:
            raise StudyError(f"there is no preset {preset!r}{nearest(preset, PRESETS)}")
        if file.exists() and not force:
            raise StudyError(f"{file} exists already: choose another name, or --force to replace it")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            write_atomic(file, PRESETS[preset])
        except OSError as error:
            raise StudyError(str(error)) from None
        print(f"wrote {file}: look at it, then `roarfast run {file}`")


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
    data_root: Annotated[Path | None, typer.Option(help="Where the data is, instead of data.root.")] = None,
    report: Annotated[
        bool, typer.Option(help="End with the report; --no-report leaves it to `roarfast report`.")
    ] = True,
    mask_only: Annotated[
        bool, typer.Option("--mask-only", help="Also train on the masks alone, per roar cell: do they leak the class?")
    ] = False,
) -> None:
    """Run a study up to its report, or resume it: the same command after a kill loses no finished cell."""
    from roarfast.report import build, summary
    from roarfast.study.grid import parse_shard
    from roarfast.study.runfolder import RunFolder
    from roarfast.study.study import Study

    with _clear_errors():
        study = Study.from_toml(file, out, data_root, mask_only)
        part = parse_shard(shard) if shard else None
        if part:
            study = study.shard(*part)
        if dry_run:
            _dry_run(study, workers, device, only, part)
            return
        failed = run_study(study, workers=workers, device=device, only=only, shard=part)
        print(f"results: {RunFolder(study.folder).results_csv}; state: roarfast status {study.folder}")
        if report and part is None:
            results = study.results
            print(summary(results, build(study.folder, results=results)))
        if failed:
            raise typer.Exit(1)


def status_command(folder: Annotated[Path, typer.Argument(help="A run folder.")]) -> None:
    """Show how far a study is: done, running, failed, time left."""
    from roarfast.study.status import describe

    with _clear_errors():
        print(describe(folder))


def merge_command(
    folder: Annotated[Path, typer.Argument(help="The study's folder, which gets all results.")],
    shards: Annotated[
        list[Path] | None, typer.Argument(help="Shard folders. Default: those below FOLDER/shards.")
    ] = None,
) -> None:
    """Put the shards of a study together."""
    from roarfast.study.merge import merge
    from roarfast.study.runfolder import RunFolder

    with _clear_errors():
        merged = merge(folder, shards or RunFolder(folder).find_shards())
        print(f"{folder}: {merged.done} cells done, {merged.failed} failed, {merged.missing} missing")
        if merged.failed:
            raise typer.Exit(1)


def run_study(study: Study, **options: Any) -> list[str]:
    """Runs a study with a progress display; prints what failed and returns it."""
    from roarfast.study.progress import make_progress

    progress = make_progress()

    def tell(setup: Setup) -> None:
        if len(setup.devices) == 1:
            progress.note(f"one worker on {setup.devices[0]}, in this process")

    outcome = study.run(progress=progress, on_setup=tell, **options)
    if outcome.skipped and not outcome.done:
        print("everything was done already")
    for line in outcome.failed[:20]:
        print(f"failed: {line}", file=sys.stderr)
    return outcome.failed


def _dry_run(
    study: Study, workers: int | None, device: str | None, only: str | None, part: tuple[int, int] | None
) -> None:
    from roarfast.study import estimate
    from roarfast.study.calibrate import calibrate
    from roarfast.study.runfolder import RunFolder
    from roarfast.study.store import Store

    setup = study.setup(device, workers, only, part)
    done: set[str] = set()
    work: set[str] = set()
    files = RunFolder(study.folder)
    if files.store.exists():
        with Store.open_readonly(study.folder) as store:
            done = {key for key, status in store.statuses().items() if status == "done"}
            finished = done | set(store.work())
        work = {k for k, t in setup.plan.tasks.items() if k in finished and files.has(t)}
    left = setup.plan.needed(done, work)
    print(estimate.list_cells(setup.plan, left))
    print("calibrating …", file=sys.stderr)
    pace = calibrate(study.config, setup.devices[0]) if left else None
    print(estimate.describe(study.config, setup.plan, left, pace, len(setup.devices)))


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
