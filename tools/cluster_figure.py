"""Draws docs/_static/cluster.svg: how long two presets take on up to 512 GPUs, by the simulator of `--dry-run --nodes`.

    python tools/cluster_figure.py

The seconds per image are those that `PACES` says, of no machine in particular: the figure shows how the time falls with the
number of workers, and where waiting for each other begins.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

from roarfast.explain import Plan as PassPlan
from roarfast.explain.names import parse_all
from roarfast.study.config import parse_config
from roarfast.study.environment import Pace
from roarfast.study.grid import grid_cells
from roarfast.study.identity import Identity
from roarfast.study.plan import build_plan
from roarfast.study.presets import PRESETS
from roarfast.study.simulate import Machines, Simulation, simulate

OUT = Path(__file__).resolve().parents[1] / "docs" / "_static" / "cluster.svg"
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
PACES = {
    "paper-cifar10": {"train": 1 / 5000, "evaluate": 1 / 15000, "gradient": 1 / 6000, "codes": 2e-5, "impute": 5e-5},
    "roar-imagenet": {"train": 1 / 2500, "evaluate": 1 / 7000, "gradient": 1 / 2800, "codes": 2e-4, "impute": 5e-4},
}
IMAGES = {"paper-cifar10": {"train": 50_000, "test": 10_000}, "roar-imagenet": {"train": 1_281_167, "test": 50_000}}


def runs(preset: str) -> list[Simulation]:
    """The simulated runs of a preset, one per number of workers."""
    config = parse_config(PRESETS[preset])
    options, outside = config.explain_options(), [entry.name for entry in config.estimators]
    pace = Pace(
        **PACES[preset],
        images=IMAGES[preset],
        epochs=config.resolved_recipe().epochs,
        passes=lambda names: max(1, PassPlan(parse_all(names, outside), options, predict=True).backwards),
    )
    nothing = Identity({}, {}, {}, {}, config.removal.model_dump(mode="json"), config.seed, {})
    tasks = build_plan(config, nothing, grid_cells(config)).tasks
    return [simulate(tasks, tasks, pace.seconds, Machines(1, workers)) for workers in WORKERS]


def main() -> None:
    plt.rcParams["svg.hashsalt"] = "roarfast"
    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    for preset, colour in zip(PACES, ("tab:blue", "tab:orange")):
        found = runs(preset)
        axes.loglog(WORKERS, [one.makespan / 3600 for one in found], "o-", color=colour, label=preset)
        axes.loglog(WORKERS, [one.bound / 3600 for one in found], ":", color=colour, label="  no order could be faster")
        for one in found:
            print(
                f"{preset:<15}{one.workers:>5} workers  {one.makespan / 3600:>9.2f} h, {100 * one.idle:5.1f} % idle, "
                f"{100 * one.least_idle:5.1f} % unavoidable"
            )
    axes.set(xlabel="workers, one GPU each", ylabel="hours", xticks=WORKERS, xticklabels=WORKERS)
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(OUT, metadata={"Date": None})


if __name__ == "__main__":
    main()
