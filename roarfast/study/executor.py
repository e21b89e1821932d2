"""Runs the tasks of a plan: shared work once, cells as soon as what they need is there, every result into the store."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roarfast.study.errors import OutOfSpace
from roarfast.study.plan import Plan, Task
from roarfast.study.pool import Event, Pool
from roarfast.study.progress import Eta, Silent
from roarfast.study.protocol import find
from roarfast.study.store import Store, disk_full_message

ATTEMPTS = 3
"""How often a task is tried whose worker process dies under it."""


@dataclass
class Outcome:
    """What a run did."""

    done: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: int = 0
    waiting: float = 0.0
    """Seconds, summed over workers, in which no task was ready for them."""


class Executor:
    """One run over the open tasks of a plan.

    Args:
        plan: All tasks.
        store: Where results go; this process is its only writer.
        artifact_exists: Tells whether the files of finished shared work are there.
        on_codes_unused: Called with the codes key when no open task needs it any more.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        progress: Silent,
        artifact_exists: Callable[[Task], bool],
        on_codes_unused: Callable[[str], None] = lambda key: None,
    ) -> None:
        self._plan, self._store, self._progress = plan, store, progress
        self._on_codes_unused = on_codes_unused
        statuses = store.statuses()
        self._work = store.work()
        done = {key for key, status in statuses.items() if status == "done"}
        present = {
            key
            for key, task in plan.tasks.items()
            if key in done | set(self._work) and _is_present(task, artifact_exists)
        }
        self.left = plan.needed(done, present)
        self.outcome = Outcome(skipped=sum(key in done for key in plan.tasks))
        self._running: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._busy = 0.0

    def run(self, pool: Pool, title: str) -> Outcome:
        """Works until nothing is left that can be done."""
        counts: dict[str, int] = {}
        for task in self.left.values():
            counts[task.cost_class] = counts.get(task.cost_class, 0) + 1
        self._progress.start(title, len(self.left), pool.size, Eta(counts))
        begun = time.perf_counter()
        try:
            while self.left:
                self._submit(pool)
                for event in pool.events():
                    self._handle(event)
        finally:
            pool.close()
            self._progress.stop()
        self.outcome.waiting = max(0.0, pool.size * (time.perf_counter() - begun) - self._busy)
        return self.outcome

    def _submit(self, pool: Pool) -> None:
        ready = sorted(
            (t for t in self.left.values() if t.key not in self._running and not any(n in self.left for n in t.needs)),
            key=lambda task: task.rank,
        )
        for worker, task in zip(pool.idle(), ready):
            self._running.add(task.key)
            if task.key in self._plan.cells:
                self._store.mark(task.key, "running")
            self._progress.begin(worker, task.label)
            pool.submit(worker, task)

    def _handle(self, event: Event) -> None:
        task = event.task
        self._busy += event.outcome.get("wall", 0.0) + event.outcome.get("seconds", {}).get("start", 0.0)
        if event.kind == "update":
            self._progress.update(event.worker, event.text)
        elif event.kind == "fatal":
            raise OutOfSpace(disk_full_message(self._store.path.parent))
        elif event.kind == "died" and self._attempts.get(task.key, 0) + 1 < ATTEMPTS:
            self._attempts[task.key] = self._attempts.get(task.key, 0) + 1
            self._running.discard(task.key)
            self._progress.note(f"{task.label}: {event.text}; trying again")
        elif event.kind == "damaged" and self._attempts.get(task.key, 0) + 1 < ATTEMPTS:
            self._make_again(task, event)
        elif event.kind in ("failed", "died", "damaged"):
            self._fail(task, event)
        else:
            self._finish(task, event)

    def _make_again(self, task: Task, event: Event) -> None:
        """A task found a file that an earlier one left missing or damaged: that one runs again, then this one."""
        self._attempts[task.key] = self._attempts.get(task.key, 0) + 1
        self._running.discard(task.key)
        if task.key in self._plan.cells:
            self._store.mark(task.key, "pending")
        makers = [t for t in self._sources(task) if _made(t, event.outcome["made_by"], event.outcome["spec"])]
        for maker in makers:
            self.left.setdefault(maker.key, maker)
        self._progress.note(f"{event.text}; making it again ({', '.join(maker.label for maker in makers)})")

    def _sources(self, task: Task) -> list[Task]:
        """Every task that this one needs, directly or not."""
        found: dict[str, Task] = {}
        front = list(task.needs)
        while front:
            key = front.pop()
            if key not in found:
                found[key] = self._plan.tasks[key]
                front += found[key].needs
        return list(found.values())

    def _finish(self, task: Task, event: Event) -> None:
        for note in event.outcome.get("notes", ()):
            self._progress.note(note)
        outcome, seconds = event.outcome, event.outcome["seconds"]
        if task.key in self._plan.cells:
            scores = self._shared_scores(task) | outcome["scores"]
            self._store.finish(task.key, scores, seconds)
            text = f"accuracy {scores['accuracy']:.3f}"
        else:
            info = outcome.get("info", {})
            self._store.finish_work(task.key, task.kind, task.label, info, seconds)
            self._work[task.key] = {"info": info}
            text = "done"
        self._leave(task)
        self.outcome.done += 1
        self._progress.finish(event.worker, task.label, text, task.cost_class, outcome["wall"])

    def _shared_scores(self, task: Task) -> dict[str, float | None]:
        """What the codes of a cell tell: how much goes, and how rough maps and masks are."""
        if task.kind == "base":
            return {"removed_fraction": 0.0, "removed_fraction_train": 0.0}
        cell, info = task.spec["cell"], self._work[task.spec["codes"]]["info"]
        drop = f"{cell['drop']:g}"
        test = info["test"][cell["order"]][drop]
        protocol = find(cell["protocol"])
        train = info["train"].get(cell["order"], {}).get(drop) if protocol.trains else None
        return {
            "removed_fraction": protocol.removed(test["removed"]),
            "removed_fraction_train": None if train is None else protocol.removed(train["removed"]),
            "tv_map": test["tv_map"] if "tv_map" in test else info["tv_map"],
            "tv_mask": None if cell["null"] == "roll" else test["tv_mask"],  # a shift opens a seam
        }

    def _fail(self, task: Task, event: Event) -> None:
        last = event.text.strip().splitlines()[-1] if event.text.strip() else "unknown error"
        victims = [task, *self._dependants(task)]
        cells = [t.key for t in victims if t.key in self._plan.cells]
        wall = float(event.outcome.get("wall", 0.0))
        own = [key for key in cells if key == task.key]
        self._store.fail(own, event.text, {"other": wall})
        self._store.fail([key for key in cells if key != task.key], f"needs {task.label}, which failed:\n{event.text}")
        for victim in victims:
            self._leave(victim)
            self.outcome.failed.append(f"{victim.label}: {last}")
        if not cells:
            self.outcome.failed[-1:] = [f"{task.label}: {last}"]
        self._progress.finish(event.worker, task.label, f"failed: {last}", task.cost_class, wall)
        for victim in victims[1:]:
            self._progress.finish(event.worker, victim.label, "failed: needs what failed", victim.cost_class, 0.0)

    def _dependants(self, task: Task) -> list[Task]:
        found: dict[str, Task] = {}
        front = {task.key}
        while front:
            front = {t.key for t in self.left.values() if t.key not in found and front & set(t.needs)}
            found |= {key: self.left[key] for key in front}
        return list(found.values())

    def _leave(self, task: Task) -> None:
        self.left.pop(task.key, None)
        self._running.discard(task.key)
        for key in task.needs:
            needed = self._plan.tasks.get(key)
            if needed is not None and needed.kind == "codes" and not any(key in t.needs for t in self.left.values()):
                self._on_codes_unused(key)


def _made(task: Task, kind: str, spec: dict[str, str]) -> bool:
    """Whether a task made the file that an `ArtefactDamaged` describes."""
    if task.kind != kind:
        return False
    if kind == "maps":
        return bool(task.spec["base"] == spec["base"] and spec["estimator"] in task.spec["estimators"])
    return task.key == spec["key"]


def _is_present(task: Task, artifact_exists: Callable[[Task], bool]) -> bool:
    return task.kind == "cell" or artifact_exists(task)


def worker_settings(config: dict[str, Any], folder: Path, devices: list[str], threads: int) -> list[dict[str, Any]]:
    """The settings of each worker: one per device given."""
    return [{"config": config, "folder": str(folder), "device": device, "threads": threads} for device in devices]
