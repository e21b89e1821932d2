"""Locks that a process forked in the middle of another thread's call does not inherit locked."""

from __future__ import annotations

import os
from typing import Protocol, TypeVar


class _Lock(Protocol):
    def acquire(self) -> bool: ...

    def release(self) -> None: ...


LockT = TypeVar("LockT", bound=_Lock)


def forkable(lock: LockT) -> LockT:
    """The lock; whoever forks waits for it first, as a DataLoader's worker could wait for its owner for ever.

    Those that are taken while another one is held must be made before that one: the last one made is taken first.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
