"""As much of Ray as `RayPool` uses, in one process: every call is done when it is made, and nodes go when a test says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ray as real
from ray import exceptions as errors

from helpers.fake_outcomes import outcome_of
from roarfast.study.artefacts import inputs, outputs
from roarfast.study.cluster.files import NodeFiles
from roarfast.study.tasks import Task, decode, encode_outcome

DRIVER = "driver"
BYTES = {"base": 1000, "maps": 5000, "codes": 300, "examples": 70}
"""What a task leaves, in each of its files."""


def node_id(name: str) -> str:
    """What Ray would call a node: it checks that this is 28 bytes in hex."""
    return name.encode().hex().ljust(56, "f")


class Ref:
    """A value to come, or an error."""

    def __init__(self, name: str, value: Any = None, error: Exception | None = None) -> None:
        self.name, self.value, self.error = name, value, error


class Method:
    def __init__(self, actor: Actor, name: str) -> None:
        self.actor, self.name = actor, name

    def options(self, **options: object) -> Method:
        return self

    def remote(self, *arguments: Any) -> Ref:
        actor, fake = self.actor, self.actor.fake
        fake.calls.append((actor.node, type(actor.thing).__name__, self.name))
        if self.name == "read":
            fake.asked += 1
            fake.most_asked = max(fake.most_asked, fake.asked)
        if actor.dead or actor.node in fake.lost:
            return Ref(self.name, error=errors.ActorDiedError())
        try:
            mishap = fake.mishaps.get((actor.node, self.name), [])
            if mishap:
                raise mishap.pop(0)
            return Ref(self.name, getattr(actor.thing, self.name)(*arguments))
        except errors.RayError as error:
            return Ref(self.name, error=error)
        except Exception as error:
            return Ref(self.name, error=errors.RayTaskError(self.name, f"{type(error).__name__}: {error}", error))


class Actor:
    """A handle: every attribute is a method of the thing behind it."""

    def __init__(self, fake: FakeRay, node: str, thing: object) -> None:
        self.fake, self.node, self.thing, self.dead = fake, node, thing, False

    def __getattr__(self, name: str) -> Method:
        return Method(self, name)


class FakeWorker:
    """Leaves files as tasks do, once it has seen that those it reads are there."""

    def __init__(self, node: str, settings: str, *others: object) -> None:
        self.node, self.root = node, Path(json.loads(settings)["folder"])

    def ready(self) -> str:
        return ""

    def execute(self, text: str) -> str:
        task = decode(json.loads(text))
        for one in inputs(task):
            assert (self.root / one.path).exists(), f"{task.label} needs {one.path}, which is not on {self.node}"
        leave(self.root, task)
        return json.dumps({"event": "done", "text": "", "outcome": encode_outcome(outcome_of(task))})


def leave(root: Path, task: Task) -> None:
    """The files of a task."""
    for path in outputs(task):
        place = root / path
        if not place.suffix:
            place.mkdir(parents=True, exist_ok=True)
            place = place / "info.json"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(bytes(BYTES[task.kind]))


class FakeRay:
    """The module `ray`, connected to a cluster.

    Args:
        nodes: Those with one CPU, beside a head that has none.
        apart: Those of them that do not see the run folder.

    Attributes:
        mishaps: (node, method) → errors of its next calls.
        lost: Nodes that went.
        calls: (node, class, method) of every call.
        most_asked: The most pieces of files that were asked for and not yet taken.
    """

    exceptions = errors
    __version__ = real.__version__

    def __init__(self, nodes: Sequence[str], apart: Sequence[str] = ()) -> None:
        self.names, self.apart = [*nodes], {*apart}
        self.lost: set[str] = set()
        self.mishaps: dict[tuple[str, str], list[Exception]] = {}
        self.calls: list[tuple[str, str, str]] = []
        self.asked = self.most_asked = 0

    def nodes(self) -> list[dict[str, Any]]:
        return [
            {
                "NodeID": node_id(name),
                "NodeManagerHostname": f"host-{name}",
                "NodeManagerAddress": "10.0.0.1",
                "Resources": {"CPU": 0.0 if name == DRIVER else 1.0},
                "Alive": name not in self.lost,
            }
            for name in (DRIVER, *self.names)
        ]

    def get_runtime_context(self) -> Any:
        return SimpleNamespace(get_node_id=lambda: node_id(DRIVER))

    def remote(self, *, scheduling_strategy: Any, **options: object) -> Callable[[type], Any]:
        node = next(name for name in (DRIVER, *self.names) if node_id(name) == scheduling_strategy.node_id)

        def make(cls: type, *arguments: Any) -> Actor:
            if cls is not NodeFiles:
                return Actor(self, node, FakeWorker(node, *arguments))
            folder, probe, scratch, run, name, use, home = arguments
            use = "transfer" if node in self.apart else use
            return Actor(self, node, NodeFiles(folder, probe, scratch, run, name, use, home))

        return lambda cls: SimpleNamespace(remote=lambda *arguments: make(cls, *arguments))

    def get(self, ref: Ref, timeout: float | None = None) -> Any:
        self.asked -= ref.name == "read"
        if isinstance(ref.error, errors.RayTaskError):
            raise ref.error.as_instanceof_cause()
        if ref.error is not None:
            raise ref.error
        return ref.value

    def wait(self, refs: list[Ref], num_returns: int, timeout: float) -> tuple[list[Ref], list[Ref]]:
        return list(refs), []

    def kill(self, actor: Actor) -> None:
        actor.dead = True
