"""What is said of workers and nodes that went, or cannot start."""

from __future__ import annotations

from types import ModuleType

from roarfast.study.errors import StudyError

SAME_PACKAGES = (
    ". Every node needs the same Python packages as this machine: install roarfast there in the same version, then `ray stop` "
    "and `ray start` it again"
)

_NO_MEMORY = ("low on memory", "memory pressure", "memory usage threshold", "OutOfMemory")
"""What Ray says when its memory monitor ended a worker."""


def one_line(error: Exception) -> str:
    """What Ray says, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines)[-400:] if lines else type(error).__name__


def why(error: Exception, host: str) -> str:
    """Why a worker died, and what to do about it."""
    text = str(error)
    if type(error).__name__ == "OutOfMemoryError" or any(sign in text for sign in _NO_MEMORY):
        return (
            f"a worker on {host} ran out of memory and was ended by Ray. Give each worker more room, that is fewer per node, "
            "with run.memory (in GB), or make explain.batch_size or train.batch_size smaller"
        )
    return (
        f"a worker on {host} died ({one_line(error)}); its output is in Ray's logs there (/tmp/ray/session_latest/logs)"
    )


def disk_full(where: str) -> StudyError:
    """What to do about the disk of a node that keeps copies."""
    return StudyError(
        f"the disk of a node is full ({where}): free some space there, or name another folder with run.scratch. Nothing finished "
        "is lost"
    )


def gone_errors(ray: ModuleType) -> tuple[type[Exception], ...]:
    """What Ray raises when a node or an actor went."""
    errors = ray.exceptions
    return (
        errors.RayActorError,
        errors.ActorUnschedulableError,
        errors.ActorPlacementGroupRemoved,
        errors.NodeDiedError,
        errors.ObjectLostError,
    )


def cause(error: Exception) -> Exception:
    """What our own code met on a node: Ray wraps it, once per node that it came through."""
    while isinstance(inner := getattr(error, "cause", None), Exception):
        error = inner
    return error
