"""What the commands `demo`, `init`, `run`, `status` and `merge` do; `cli.py` has their options."""

from __future__ import annotations

import sys
from pathlib import Path

from roarfast._files import write_atomic
from roarfast._progress import duration
from roarfast.report import build, summary
from roarfast.report.power import forecast
from roarfast.study import environment, estimate, own
from roarfast.study.errors import StudyError, nearest
from roarfast.study.grid import parse_shard
from roarfast.study.images import load_data
from roarfast.study.merge import merge
from roarfast.study.presets import PRESETS
from roarfast.study.progress import Eta, make_progress
from roarfast.study.results import Record, StudyResults, load
from roarfast.study.rows import SessionRow
from roarfast.study.runfolder import RunFolder, check_claim
from roarfast.study.store import Store
from roarfast.study.study import Setup, Study


def demo(out: Path, workers: int | None) -> bool:
    """Runs the preset `demo`, and reports; whether all went well."""
    check_claim(out, None)
    out.mkdir(parents=True, exist_ok=True)
    config = RunFolder(out).config
    if not config.exists():
        write_atomic(config, PRESETS["demo"])
    study = Study.from_toml(config, out)
    failed = _run(study, workers=workers)
    _report(study)
    return not failed


def init(file: Path, preset: str, force: bool, data: Path | None = None) -> None:
    """Writes a preset; `own` fits the images of `data`."""
    if preset not in (*PRESETS, own.NAME):
        raise StudyError(f"there is no preset {preset!r}{nearest(preset, (*PRESETS, own.NAME))}")
    if (preset == own.NAME) != (data is not None):
        raise StudyError("--preset own and --data DIR come together: the preset is made for your images")
    if file.exists() and not force:
        raise StudyError(f"{file} exists already: choose another name, or --force to replace it")
    above = next(folder for folder in (file.parent, *file.parents) if folder.exists())
    if not above.is_dir():
        raise StudyError(f"{above} is a file, so nothing can be written below it")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        text = own.config_text(data, file.parent) if data is not None else PRESETS[preset]
        write_atomic(file, text.replace("roarfast run study.toml", f"roarfast run {file}"))
    except OSError as error:
        raise StudyError(str(error)) from None
    print(f"wrote {file}: look at it, then `roarfast run {file}`")


def run(
    file: Path,
    out: Path | None,
    data_root: Path | None,
    mask_only: bool,
    shard: str | None,
    dry_run: bool,
    report: bool,
    machines: tuple[int, int, float] | None = None,
    *,
    workers: int | None = None,
    device: str | None = None,
    only: str | None = None,
    ray: str | None = None,
    redo: bool = False,
) -> bool:
    """Runs a study, or says what it would do (`dry_run`); whether all went well."""
    study = Study.from_toml(file, out, data_root, mask_only)
    part = parse_shard(shard) if shard else None
    if part:
        study = study.shard(*part)
    if dry_run:
        _dry_run(study, study.setup(device, workers, only, part), machines)
        if machines is None and (ray or study.config.run.ray):
            print("  (on this machine, not on the Ray cluster: --nodes N --gpus M simulates one)")
        return True
    failed = _run(study, workers, device, only, part, ray=ray, redo=redo)
    print(f"results: {RunFolder(study.folder).results_csv}; state: roarfast status {study.folder}")
    if report and part is None:
        _report(study)
    return not failed


def show_status(folder: Path, errors: bool = False) -> None:
    """Prints how far a study is, or the stored errors of its failed cells."""
    print(describe_errors(folder) if errors else describe_status(folder))


def describe_errors(folder: str | Path) -> str:
    """What went wrong in the failed cells, with tracebacks; an error that several cells share is shown once."""
    groups: dict[str, list[Record]] = {}
    for record in load(Path(folder)):
        if record.status == "failed":
            text = (record.error or "unknown error").strip()
            groups.setdefault(text.partition("which failed:\n")[2] or text, []).append(record)
    if not groups:
        return f"{folder}: no cell has failed"
    parts = []
    for text, records in groups.items():
        more = f" and {len(records) - 1} more cells" if len(records) > 1 else ""
        parts.append(f"{_label(records[0])}{more}:\n{text}")
    return "\n\n".join(parts)


def merge_shards(folder: Path, shards: list[Path] | None) -> bool:
    """Puts shards together; whether no cell has failed."""
    merged = merge(folder, shards or RunFolder(folder).find_shards())
    print(f"{folder}: {merged.done} cells done, {merged.failed} failed, {merged.missing} missing")
    return not merged.failed


def _run(
    study: Study,
    workers: int | None = None,
    device: str | None = None,
    only: str | None = None,
    shard: tuple[int, int] | None = None,
    ray: str | None = None,
    redo: bool = False,
) -> list[str]:
    """Runs a study with a progress display; prints what failed and returns it."""
    progress, on_cluster = make_progress(), bool(ray or study.config.run.ray)

    def tell(setup: Setup) -> None:
        if len(setup.devices) == 1 and not on_cluster:
            progress.note(f"one worker on {setup.devices[0]}, in this process")

    outcome = study.run(workers, device, only, shard, progress=progress, on_setup=tell, ray=ray, redo=redo)
    if outcome.skipped and not outcome.done:
        print("everything was done already")
    for line in outcome.failed[:20]:
        print(f"failed: {line}", file=sys.stderr)
    return outcome.failed


def _report(study: Study) -> None:
    results = study.results
    print(summary(results, build(study.folder, results=results)))


def _dry_run(study: Study, setup: Setup, machines: tuple[int, int, float] | None) -> None:
    done: set[str] = set()
    work: set[str] = set()
    files = RunFolder(study.folder)
    if files.store.exists():
        with Store.open_readonly(study.folder) as store:
            done = {key for key, status in store.statuses().items() if status == "done"}
            known = store.work()
        work = {k for k, t in setup.plan.tasks.items() if t.is_finished(done, known) and t.is_present(files)}
    left = setup.plan.needed(done, work)
    print(environment.list_cells(setup.plan, left))  # long: what sums it up comes after it
    print(_what_with(study))
    for note in setup.notes:
        print(f"warning: {note}")
    print("calibrating …", file=sys.stderr)
    here = machines[1] if machines else len(setup.devices)
    pace = environment.calibrate(study.config, setup.devices[0], here, start=machines is not None) if left else None
    print(environment.describe(study.config, setup.plan, left, pace, len(setup.devices)))
    if machines and pace is not None:
        train, test = load_data(study.config.data)
        images = {"train": len(train), "test": len(test)}
        size = estimate.sizes(study.config, images, train.image_shape, train.num_classes)
        each, seconds = study.config.run.gpus_per_training, estimate.pace_of(study.config, pace)
        simulated = estimate.cluster(*machines, each, pace.start)
        print(estimate.describe_cluster(setup.plan, left, seconds, simulated, size, each))
    print(forecast(max(cell.trial for cell in study.cells) + 1))


def _what_with(study: Study) -> str:
    """Images, classes and model of a study, a line each."""
    config = study.config
    train, test = load_data(config.data)
    model = f"{config.model.name}, " + (
        "as given" if config.model.trained else f"trained by {config.train.function or config.train.recipe}"
    )
    return f"  train  {train.describe()}\n  test   {test.describe()}\n  model  {model}"


def eta_seconds(results: StudyResults) -> float | None:
    """Seconds left at the pace of the finished cells; None if none is."""
    left: dict[str, int] = {}
    timings: dict[str, list[float]] = {}
    for record in results:
        if record.status == "done":
            timings.setdefault(record.protocol, []).append(sum(record.seconds.values()))
        elif record.status in ("pending", "running"):
            left[record.protocol] = left.get(record.protocol, 0) + 1
    sessions: list[SessionRow] = results.meta.get("sessions", [])
    workers = sessions[-1]["facts"].get("workers", 1) if sessions else 1
    return Eta(left, timings).seconds_left(workers)


def describe_status(folder: str | Path) -> str:
    """The state of a run folder in a few lines."""
    folder = Path(folder)
    results = load(folder)
    counts = {status: [r for r in results if r.status == status] for status in ("done", "running", "failed", "pending")}
    running = RunFolder(folder).is_running()
    if not running:  # what a killed run left is waiting, not running
        counts["pending"] += counts["running"]
        counts["running"] = []
    name = results.meta.get("config", {}).get("name", folder.name)
    lines = [f"{name} in {folder}: {'running' if running else 'not running'}"]
    lines.append(
        "  " + ", ".join(f"{len(records)} {status}" for status, records in counts.items()) + f" of {len(results)} cells"
    )
    by_protocol: dict[str, list[Record]] = {}
    for record in results:
        by_protocol.setdefault(record.protocol, []).append(record)
    for protocol, records in by_protocol.items():
        lines.append(f"  {protocol:<13}{sum(r.status == 'done' for r in records):>5} of {len(records)} done")
    lines += [f"  now: {_label(record)}" for record in counts["running"]]
    left = eta_seconds(results)
    if counts["pending"] or counts["running"]:
        lines.append(
            f"  about {duration(left)} left"
            if left is not None
            else "  time left: not known before the first training ends"
        )
        if not running:
            lines.append("  go on with the same `roarfast run` command")
    for record in counts["failed"][:10]:
        last = (record.error or "").strip().splitlines()[-1:] or ["unknown error"]
        lines.append(f"  failed: {_label(record)}: {last[0]}")
    if counts["failed"]:
        lines.append(f"  with tracebacks: roarfast status {folder} --errors")
    if len(counts["failed"]) > 10:
        lines.append(f"  … and {len(counts['failed']) - 10} more failed cells (results.csv has all)")
    return "\n".join(lines)


def _label(r: Record) -> str:
    return f"{r.protocol} {r.estimator} {r.postprocess} {r.order} t={r.drop:g} trial {r.trial}"
