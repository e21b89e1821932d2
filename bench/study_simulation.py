"""The simulator beside runs: a replay with a run's own task times, and the calibrated prediction made before it.

    python bench/study_simulation.py CONFIG [--data-root DIR] [--workers 1 2]

Prints, per number of workers, the time of the run (from the first task to the last), that of its replay, and that of the
prediction, each as a ratio to the run's.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from roarfast.study.environment import calibrate
from roarfast.study.results import load
from roarfast.study.simulate import Machines, recorded, simulate
from roarfast.study.store import Store
from roarfast.study.study import Study


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    options = parser.parse_args()
    print(f"{'workers':>8}{'run':>11}{'replay':>18}{'predicted':>18}")
    for workers in options.workers:
        with tempfile.TemporaryDirectory() as folder:
            compare(Study.from_toml(options.config, Path(folder) / "run", options.data_root), workers)


def compare(study: Study, workers: int) -> None:
    setup = study.setup(workers=workers)
    tasks, machines = setup.plan.tasks, Machines(1, workers)
    pace = calibrate(study.config, "cpu")
    predicted = simulate(tasks, tasks, pace.seconds, machines).makespan
    outcome = study.run(workers=workers)
    assert not outcome.failed, outcome.failed
    cells = {record.key: sum(record.seconds.values()) for record in load(study.folder)}
    with Store.open_readonly(study.folder) as store:
        work = {key: sum(row["seconds"].values()) for key, row in store.work().items()}
    took = recorded(list(tasks.values()), cells, work)
    replay = simulate(tasks, tasks, lambda task: took[task.key], machines).makespan
    run = outcome.wall
    print(f"{workers:>8}{run:>9.1f} s{replay:>9.1f} s {replay / run:5.2f}x{predicted:>9.1f} s {predicted / run:5.2f}x")


if __name__ == "__main__":
    main()
