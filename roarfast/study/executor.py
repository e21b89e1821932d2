"""Runs the tasks of a plan: shared work once, cells as soon as what they need is there, every result into the store."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from roarfast.study.errors import OutOfSpace
from roarfast.study.plan import Plan
from roarfast.study.progress import Eta, TaskProgress
from roarfast.study.schedule import Schedule
from roarfast.study.store import Store, disk_full_message
from roarfast.study.tasks import Damage, Info, Task
from roarfast.study.workers import Event, Pool

ATTEMPTS = 3
"""How often a task is tried whose worker process dies under it."""


@dataclass
class RunOutcome:
    """What a run did."""

    done: int = 0
    failed: list[str] = field(default_factory=list)
    """A line per task that failed; those that were left out because of it are counted in it."""
    skipped: int = 0
    waiting: float = 0.0
    """Seconds, summed over workers, in which no task was ready for them."""
    wall: float = 0.0
    """Seconds from the first task to the last."""


class Executor:
    """One run over the open tasks of a plan.

    Args:
        plan: All tasks.
        store: Where results go; this process is its only writer.
        is_present: Tells whether the files of a finished task are there.
        on_unused: Called with a `passing` task when no open task needs its files any more.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        progress: TaskProgress,
        is_present: Callable[[Task], bool],
        on_unused: Callable[[Task], None] = lambda task: None,
    ) -> None:
        self._plan, self._store, self._progress, self._on_unused = plan, store, progress, on_unused
        self._known: dict[str, Info] = {key: row["info"] for key, row in store.work().items()}
        self._done = {key for key, status in store.statuses().items() if status == "done"}
        present = {k for k, t in plan.tasks.items() if t.is_finished(self._done, self._known) and is_present(t)}
        self._schedule = Schedule(plan.needed(self._done, present), plan.tasks)
        self.outcome = RunOutcome(skipped=sum(key in self._done for t in plan.tasks.values() for key in t.finishes))
        self._attempts: dict[str, int] = {}
        self._busy = 0.0
        self._forget: Callable[[Task], None] = lambda task: None

    @property
    def left(self) -> dict[str, Task]:
        """Key → task that is not done."""
        return self._schedule.left

    def run(self, pool: Pool, title: str) -> RunOutcome:
        """Works until nothing is left that can be done."""
        counts: dict[str, int] = {}
        for task in self.left.values():
            counts[task.cost_class] = counts.get(task.cost_class, 0) + 1
        cells = sum(len(self._open_cells(task)) for task in self.left.values())
        self._progress.start(title, len(self.left), pool.size, Eta(counts), cells)
        begun, self._forget = time.perf_counter(), pool.forget
        try:
            while self.left:
                self._submit(pool)
                for event in pool.events():
                    self._handle(event)
        finally:
            pool.close()
            self._progress.stop()
        self.outcome.wall = time.perf_counter() - begun
        self.outcome.waiting = max(0.0, pool.size * self.outcome.wall - self._busy)
        return self.outcome

    def _submit(self, pool: Pool) -> None:
        for worker, task in self._schedule.assign(pool.idle(), pool.missing):
            self._store.mark(self._open_cells(task), "running")
            self._progress.begin(worker, task.label)
            pool.submit(worker, task)

    def _handle(self, event: Event) -> None:
        task = event.task
        self._busy += event.outcome.wall + event.outcome.seconds.get("start", 0.0)
        if event.kind == "update":
            self._progress.update(event.worker, event.text)
        elif event.kind == "fatal":
            raise OutOfSpace(disk_full_message(self._store.path.parent))
        elif event.kind == "lost":
            self._run_elsewhere(task, event)
        elif event.kind == "died" and self._attempts.get(task.key, 0) + 1 < ATTEMPTS:
            self._attempts[task.key] = self._attempts.get(task.key, 0) + 1
            self._schedule.retry(task)
            self._progress.note(f"{task.label}: {event.text}; trying again")
        elif (damage := event.outcome.damage) and self._attempts.get(task.key, 0) + 1 < ATTEMPTS:
            self._make_again(task, damage, event.text)
        elif event.kind in ("failed", "died", "damaged"):
            self._fail(task, event)
        else:
            self._finish(task, event)

    def _run_elsewhere(self, task: Task, event: Event) -> None:
        """A node went, with a task or with what only it had: nobody is to blame, so it is no attempt."""
        damage = event.outcome.damage
        makers = [t for t in self._sources(task) if damage is not None and t.made(damage)]
        self._schedule.retry(task, makers)
        self._store.mark(self._open_cells(task), "pending")
        again = f"{', '.join(maker.label for maker in makers)} and it run" if makers else "it runs"
        self._progress.note(f"{task.label}: {event.text}; {again} again elsewhere")

    def _make_again(self, task: Task, damage: Damage, text: str) -> None:
        """A task found a file that an earlier one left missing or damaged: that one runs again, then this one."""
        self._attempts[task.key] = self._attempts.get(task.key, 0) + 1
        self._store.mark(self._open_cells(task), "pending")
        makers = [t for t in self._sources(task) if t.made(damage)]
        self._schedule.retry(task, makers)
        self._progress.note(f"{text}; making it again ({', '.join(maker.label for maker in makers)})")

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

    def _open_cells(self, task: Task) -> list[str]:
        """The cells it is to finish; of a curve that was extended, those that are done keep their results."""
        return [key for key in task.finishes if key not in self._done]

    def _finish(self, task: Task, event: Event) -> None:
        outcome, text = event.outcome, "done"
        for note in outcome.notes:
            self._progress.note(note)
        if not task.finishes or outcome.info:
            self._store.finish_work(
                task.key, task.kind, task.label, outcome.info, {} if task.finishes else outcome.seconds
            )
            self._known[task.key] = outcome.info
        open_cells = self._open_cells(task)
        if open_cells:
            scores = task.scores(outcome, self._known)
            share = {stage: value / len(open_cells) for stage, value in outcome.seconds.items()}
            self._store.finish({key: scores[key] for key in open_cells}, share, outcome.torch)
            self._done |= set(open_cells)
            text = " … ".join(
                f"accuracy {scores[key]['accuracy']:.3f}" for key in dict.fromkeys((open_cells[0], open_cells[-1]))
            )
        self._leave(task)
        self.outcome.done += 1
        self._progress.finish(event.worker, task.label, text, task.cost_class, outcome.wall)

    def _fail(self, task: Task, event: Event) -> None:
        last = event.text.strip().splitlines()[-1] if event.text.strip() else "unknown error"
        victims = [task, *self._schedule.dependants(task)]
        own = self._open_cells(task)
        wall = event.outcome.wall
        self._store.fail(own, event.text, {"other": wall / max(1, len(own))})
        others = dict.fromkeys(key for victim in victims[1:] for key in self._open_cells(victim))
        self._store.fail(others, f"needs {task.label}, which failed:\n{event.text}")
        lost = f"; {len(victims) - 1} tasks that need it are left out" if len(victims) > 1 else ""
        self.outcome.failed.append(f"{task.label}: {last}{lost}")
        for victim in victims:
            self._leave(victim)
        self._progress.finish(event.worker, task.label, f"failed: {last}{lost}", task.cost_class, wall)
        for victim in victims[1:]:
            self._progress.drop(victim.cost_class)

    def _leave(self, task: Task) -> None:
        for unused in self._schedule.finish(task):
            self._on_unused(unused)
            self._forget(unused)
