"""The simulator beside runs, and Ray beside our own processes.

    python bench/study_simulation.py CONFIG [--data-root DIR] [--workers 1 2] [--ray] [--repeats 3]

Prints, per number of workers, the time of the run (from the first task to the last), that of its replay with the run's own
task times, and that of the calibrated prediction made before it, each as a ratio to the run's. `--ray` runs the study once
more on a Ray cluster of this machine with as many workers: the whole call, the start of Ray apart. `--repeats` does all of it
so often, in turn, and adds the medians: one run tells little where the clock of a machine changes by a third.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from pathlib import Path

from roarfast.study.environment import calibrate
from roarfast.study.estimate import BAND
from roarfast.study.progress import TaskProgress
from roarfast.study.results import load
from roarfast.study.simulate import Machines, recorded, simulate
from roarfast.study.store import Store
from roarfast.study.study import Study


class Notes(TaskProgress):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--ray", action="store_true", help="also on a Ray cluster of this machine")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    print(f"{'workers':>8}{'run':>11}{'replay':>18}{'predicted':>18}  in the band")
    for workers in options.workers:
        ratios: dict[str, list[float]] = {"replay": [], "predicted": [], "Ray beside own processes": []}
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory() as folder:

                def study(name: str, above: str = folder) -> Study:
                    return Study.from_toml(options.config, Path(above) / name, options.data_root)

                begun = time.perf_counter()
                mine, replay, predicted = compare(study("run"), workers)
                ratios["replay"].append(replay)
                ratios["predicted"].append(predicted)
                if options.ray:
                    ratios["Ray beside own processes"].append(beside_ray(study("run"), mine, study("ray"), workers))
                print(f"{'':8}  {time.perf_counter() - begun:.0f} s in all", flush=True)
        if options.repeats > 1:
            medians = (f"{name} {statistics.median(found):.3f}x" for name, found in ratios.items() if found)
            print(f"{workers:>8} medians of {options.repeats}: {', '.join(medians)}", flush=True)


def compare(study: Study, workers: int) -> tuple[tuple[float, float], float, float]:
    """Prints a row; seconds of the whole call and from the first task to the last, replay and prediction as ratios to that."""
    setup = study.setup(workers=workers)
    tasks, machines = setup.plan.tasks, Machines(1, workers)
    pace = calibrate(study.config, "cpu", workers)
    predicted = simulate(tasks, tasks, pace.seconds, Machines(1, workers, start=pace.start)).makespan
    begun = time.perf_counter()
    outcome = study.run(workers=workers)
    total = time.perf_counter() - begun
    assert not outcome.failed, outcome.failed
    cells = {record.key: sum(record.seconds.values()) for record in load(study.folder)}
    with Store.open_readonly(study.folder) as store:
        work = {key: sum(row["seconds"].values()) for key, row in store.work().items()}
    took = recorded(list(tasks.values()), cells, work)
    replay = simulate(tasks, tasks, lambda task: took[task.key], machines).makespan
    run = outcome.wall
    inside = "yes" if run / BAND <= predicted <= run * BAND else "no"
    print(
        f"{workers:>8}{run:>9.1f} s{replay:>9.1f} s {replay / run:5.2f}x{predicted:>9.1f} s {predicted / run:5.2f}x  {inside}",
        flush=True,
    )
    return (total, run), replay / run, predicted / run


def beside_ray(own: Study, took: tuple[float, float], other: Study, workers: int) -> float:
    """Prints the times beside each other; the ratio of the whole calls, without the start of Ray."""
    notes, begun = Notes(), time.perf_counter()
    outcome = other.run(workers=workers, ray="auto", progress=notes)
    assert not outcome.failed, outcome.failed
    whole = time.perf_counter() - begun
    connect = sum(float(found[1]) for line in notes.lines if (found := re.search(r"([0-9.]+) s to connect", line)))
    (mine, wall), ray_wall = took, outcome.wall
    ours = {record.key: record.accuracy for record in load(own.folder)}
    assert ours == {record.key: record.accuracy for record in load(other.folder)}
    print(
        f"{workers:>8} whole call: own processes {mine:.1f} s, Ray {whole - connect:.1f} s = {(whole - connect) / mine:.3f}x, after {connect:.1f} s "
        f"for the start of Ray; first to last task {wall:.1f} and {ray_wall:.1f} s",
        flush=True,
    )
    return (whole - connect) / mine


if __name__ == "__main__":
    main()
