"""What a worker would say of a task, for tests that train nothing."""

from __future__ import annotations

from roarfast.study.tasks import CodesTask, Outcome, Task


def outcome_of(task: Task) -> Outcome:
    """A finished task of any kind."""
    drops = task.drops if isinstance(task, CodesTask) else ()
    rates = {f"{d:g}": {"removed": d, "tv_mask": 0.1, "tv_map": 5.0} for d in drops}
    info = {"train": {"morf": rates}, "test": {"morf": rates, "lerf": rates}, "tv_map": 5.0} if rates else {}
    scores = {key: {"accuracy": 0.5, "true_class_probability": 0.4} for key in task.finishes}
    return Outcome(scores, info, {"training": 1.0}, wall=1.0)
