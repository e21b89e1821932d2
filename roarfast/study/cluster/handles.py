"""What Ray gives for the actors of a run, as far as a run uses it: Ray itself says nothing of the methods behind a handle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ray import ObjectRef

T = TypeVar("T")
MadeT = TypeVar("MadeT", covariant=True)


class Method(Protocol[T]):
    """A method of an actor that returns T there."""

    def options(self, *, concurrency_group: str) -> Method[T]:
        """The same, run by the threads of a group."""

    def remote(self, *arguments: object) -> ObjectRef[T]:
        """Calls it, and does not wait."""


class Maker(Protocol[MadeT]):
    """A class of actors, with where and with how much of a node they start."""

    def remote(self, *arguments: object) -> MadeT:
        """Starts one."""


class FilesHandle(Protocol):
    """A `NodeFiles` somewhere in the cluster."""

    describe: Method[str]
    facts: Method[str]
    read: Method[npt.NDArray[np.uint8]]
    fetch: Method[str]
    delete: Method[None]
    leave: Method[None]
    say: Method[None]
    said: Method[str]


class WorkerHandle(Protocol):
    """A `RayWorker` somewhere in the cluster."""

    ready: Method[str]
    execute: Method[str]
    follow: Method[str]


def call(method: Method[T], group: str, *arguments: object) -> ObjectRef[T]:
    """Calls a method of an actor, in the threads of a group."""
    return method.options(concurrency_group=group).remote(*arguments)
