"""What a study runs on (devices, versions, hardware), and about how long it would take there (`--dry-run`)."""

from __future__ import annotations

import contextlib
import copy
import os
import platform
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

import roarfast as rf
from roarfast import info
from roarfast._backend import available_cores
from roarfast._progress import duration
from roarfast._version import __version__
from roarfast.explain import Plan as PassPlan
from roarfast.explain.names import parse_all
from roarfast.study.errors import StudyError
from roarfast.study.images import load_data
from roarfast.study.plan import Plan
from roarfast.study.protocols import find
from roarfast.study.schema import StudyConfig
from roarfast.study.simulate import Machines, simulate
from roarfast.study.tasks import BaseTask, CellsTask, CodesTask, MapsTask, Task
from roarfast.train import build_model

_SAMPLE = 256


def choose_devices(device: str, workers: int | str, config: StudyConfig) -> list[str]:
    """One device per worker: GPUs in turn, or the CPU as often as its cores allow."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    kind = device.split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise StudyError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:<number>', got {device!r}")
    if kind == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not count:
            raise StudyError(f"device {device!r} was asked for, but torch sees no CUDA device here")
        listed = [device] if ":" in device else [f"cuda:{i}" for i in range(count)]
        number = len(listed) if workers == "auto" else int(workers)
        return [listed[i % len(listed)] for i in range(number)]
    number = max(1, available_cores() // config.run.threads) if workers == "auto" else int(workers)
    return ["cpu"] * number


def versions() -> dict[str, str]:
    """Versions of what computes."""
    return {
        "roarfast": __version__,
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


def hardware(devices: list[str], threads: int) -> dict[str, object]:
    """What it runs on."""
    names = {d: torch.cuda.get_device_name(d) if d.startswith("cuda") else _cpu_name() for d in dict.fromkeys(devices)}
    facts = {"workers": len(devices), "threads per worker": threads, "cores": os.cpu_count(), "devices": names}
    return facts | {"simd": info.gather()["cpu"]["simd"]}


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@dataclass(frozen=True)
class Pace:
    """Seconds per image of every kind of work, and the sizes of a study.

    Attributes:
        train: A step of training.
        evaluate: A forward pass.
        gradient: A forward and a backward pass.
        codes: Ranking.
        impute: Linear imputation.
        images: Split → number.
        epochs: Of a training.
        passes: Estimators → gradient passes per image.
        trained: Whether the base model is given.
        start: Seconds from the start of a worker's process to its first task; 0 where this process is the worker.
    """

    train: float
    evaluate: float
    gradient: float
    codes: float
    impute: float
    images: dict[str, int]
    epochs: int
    passes: Callable[[Sequence[str]], int]
    trained: bool = False
    start: float = 0.0

    def seconds(self, task: Task) -> float:
        """The time of a task."""
        train, test = self.images["train"], self.images["test"]
        training = self.train * train * self.epochs + self.evaluate * test
        if isinstance(task, BaseTask):
            return self.evaluate * test if self.trained else training
        if isinstance(task, MapsTask):
            return self.passes(task.estimators) * self.gradient * sum(self.images[split] for split in task.splits)
        if isinstance(task, CodesTask):
            return self.codes * sum(self.images[split] for split, orders in task.orders.items() if orders)
        if not isinstance(task, CellsTask):
            return 0.5
        protocol = find(task.cell.protocol)
        each = training if protocol.trains else self.evaluate * test
        if protocol.imputes:
            each += self.impute * (train + test if protocol.trains else test)
        return each * len(task.cells)


def calibrate(config: StudyConfig, device: str, workers: int = 1, start: bool = False) -> Pace:
    """Times a few batches of training, evaluation, gradients, codes and imputation.

    Args:
        config: Of the study.
        device: Where.
        workers: How many share this machine: on a CPU the others are kept busy meanwhile, as they share its caches and clock.
        start: Whether the start of workers counts even if there is one.
    """
    if device == "cpu":
        torch.set_num_threads(config.run.threads)
        rf.set_num_threads(config.run.threads)
    train, test = load_data(config.data)
    recipe = config.resolved_recipe()
    model = build_model(config.model.name, train.num_classes, train.image_shape[2], seed=0, **config.model.options).to(
        device
    )
    n = min(_SAMPLE, len(train), len(test), recipe.batch_size)
    x = (torch.from_numpy(np.array(train.images[:n])).permute(0, 3, 1, 2).float() / 255).to(device)
    y = torch.from_numpy(train.labels[:n]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    def gradient() -> None:
        leaf = x.clone().requires_grad_()
        torch.autograd.grad(model(leaf).amax(1).sum(), leaf)

    def evaluate() -> None:
        with torch.no_grad():
            model(x)

    maps = np.random.default_rng(0).random((n, *train.image_shape[:2]), np.float32)
    images = np.ascontiguousarray(train.images[:n].transpose(0, 3, 1, 2), np.float32) / 255
    options = config.explain_options()
    own = config.own_estimators()
    others = min(workers, available_cores() // config.run.threads) - 1 if device == "cpu" else 0
    with _busy(others, model, x, config.run.threads):
        train_pace = _seconds(step) / n
        model.eval()
        times = {
            "evaluate": _seconds(evaluate) / n,
            "gradient": _seconds(gradient) / n,
            "codes": 2 * _seconds(lambda: rf.rank_codes(maps, [0.1, 0.3, 0.5])) / n,
            "impute": _seconds(lambda: rf.impute_linear(images, maps > 0.5)) / n,
        }
    return Pace(
        train=train_pace,
        **times,
        images={"train": len(train), "test": len(test)},
        epochs=recipe.epochs,
        passes=lambda names: max(1, PassPlan(parse_all(names, own), options, True, own).backwards),
        trained=config.model.trained,
        start=_worker_start(workers) if start or workers > 1 else 0.0,
    )


@contextlib.contextmanager
def _busy(threads: int, model: torch.nn.Module, x: torch.Tensor, each: int) -> Iterator[None]:
    """Keeps threads busy with passes of their own copies of a model."""
    stop = threading.Event()

    def work(mine: torch.nn.Module) -> None:
        torch.set_num_threads(each)  # of this thread
        while not stop.is_set():
            leaf = x.clone().requires_grad_()
            torch.autograd.grad(mine(leaf).amax(1).sum(), leaf)

    running = [threading.Thread(target=work, args=(copy.deepcopy(model),), daemon=True) for _ in range(threads)]
    for thread in running:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in running:
            thread.join()


def _worker_start(workers: int) -> float:
    """Seconds until processes that start together have imported what a worker needs."""
    command = [sys.executable, "-P", "-c", "import roarfast.study.workers"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    begun = time.perf_counter()
    for process in [subprocess.Popen(command, env=environment) for _ in range(min(workers, available_cores()))]:
        process.wait()
    return time.perf_counter() - begun


def _seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """The median: what a run will see, not what this machine can do at best."""
    call()
    times = []
    for _ in range(repeats):
        begun = time.perf_counter()
        call()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def describe(config: StudyConfig, plan: Plan, left: dict[str, Task], pace: Pace | None, workers: int) -> str:
    """The tasks by kind with their share of the time, and the total."""
    lines = [f"{config.name}: {len(plan.cells)} cells in the grid, by {len(plan.tasks)} tasks"]
    kinds = {
        "base": "base models as given, nothing is trained" if config.model.trained else "base models, one per trial",
        "maps": "passes for maps: estimators that share passes are computed together" + _splits(plan),
        "codes": "rank codes, one per (estimator, post-processing, trial), for all drop rates and protocols",
        "examples": "example strips",
    }
    counts: dict[str, list[Task]] = {}
    for task in plan.tasks.values():
        counts.setdefault(task.cost_class, []).append(task)
    order = sorted(counts, key=lambda name: list(kinds).index(name) if name in kinds else len(kinds))
    for name in order:
        tasks = counts[name]
        open_tasks = [task for task in tasks if task.key in left]
        line = f"  {name:<13}{len(tasks):>5}  {kinds.get(name) or _what(tasks)}"
        if len(open_tasks) < len(tasks):
            line += f" ({len(tasks) - len(open_tasks)} done)"
        if pace is not None and open_tasks:
            line += f": about {duration(sum(pace.seconds(task) for task in open_tasks))}"
        lines.append(line)
    if pace is not None:
        start = pace.start if workers > 1 else 0.0
        total = simulate(left, plan.tasks, pace.seconds, Machines(1, workers, start=start)).makespan
        lines.append(f"  about {duration(total)} with {workers} worker{'s' * (workers != 1)}, from a short calibration")
    return "\n".join(lines)


def _splits(plan: Plan) -> str:
    """Which images are explained, where it is not all of them."""
    maps = [task for task in plan.tasks.values() if isinstance(task, MapsTask)]
    return "; test images only" if maps and all(task.splits == ("test",) for task in maps) else ""


def _what(tasks: list[Task]) -> str:
    """What tasks of a protocol are."""
    first = next(task for task in tasks if isinstance(task, CellsTask))
    if first.kind == "curve":
        return f"curves on the base model, {sum(len(task.finishes) for task in tasks)} cells"
    return "cells, retrained" if find(first.cell.protocol).trains else "cells on the base model"


def list_cells(plan: Plan, left: dict[str, Task]) -> str:
    """One line per cell or curve: key, label, and whether it is done."""
    lines, shown = [], set()
    task_of = {key: task for task in plan.tasks.values() for key in task.finishes}
    still_open = {key for task in left.values() for key in task.finishes}
    for key, cell in plan.cells.items():
        task = task_of.get(key)
        if task is None or task.key in shown:
            continue
        shown.add(task.key)
        label = cell.label if len(task.finishes) == 1 else task.label
        lines.append(f"  {key[:12]}  {label}{'' if still_open & set(task.finishes) else '  (done)'}")
    return "\n".join(lines)
