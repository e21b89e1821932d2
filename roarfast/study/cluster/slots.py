"""How many workers the nodes of a cluster have room for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from roarfast.study.errors import StudyError


class Listed(TypedDict):
    """A node in what `ray.nodes()` returns, as far as it is read here."""

    NodeID: str
    NodeManagerHostname: str
    NodeManagerAddress: str
    Resources: Mapping[str, float]
    Alive: bool


@dataclass(frozen=True)
class Node:
    """A node of a cluster, as Ray describes it.

    Attributes:
        name: Its id in Ray.
        host: For people.
        resources: `CPU`, `GPU`, `memory` (bytes).
    """

    name: str
    host: str
    resources: Mapping[str, float]


@dataclass(frozen=True)
class Needs:
    """What one worker takes.

    Attributes:
        threads: CPUs.
        gpus: GPUs.
        memory: Bytes; 0: not counted.
        ranks: How many processes it is made of, each of which takes this.
    """

    threads: int = 1
    gpus: int = 0
    memory: int = 0
    ranks: int = 1

    def room(self, node: Node) -> int:
        """How many workers fit on a node."""
        have = node.resources
        counts = [int(have.get("CPU", 0) // self.threads)]
        if self.gpus:
            counts.append(int(have.get("GPU", 0) // self.gpus))
        if self.memory:
            counts.append(int(have.get("memory", 0) // self.memory))
        return max(0, min(counts) // self.ranks)

    def bundle(self) -> dict[str, float]:
        """What one of its processes takes, for a placement group."""
        found = {"CPU": float(self.threads), "GPU": float(self.gpus), "memory": float(self.memory)}
        return {name: value for name, value in found.items() if value}

    def options(self) -> dict[str, int]:
        """As arguments of Ray."""
        return {"num_cpus": self.threads, "num_gpus": self.gpus} | ({"memory": self.memory} if self.memory else {})


def alive(nodes: Sequence[Listed]) -> list[Node]:
    """The living nodes of what `ray.nodes()` returns, in a stable order."""
    found = [
        Node(n["NodeID"], f"{n['NodeManagerHostname']} ({n['NodeManagerAddress']})", n["Resources"])
        for n in nodes
        if n["Alive"]
    ]
    return sorted(found, key=lambda node: node.name)


def place(nodes: Sequence[Node], needs: Needs, most: int | None) -> list[Node]:
    """A node per worker: all that fit, or `most`, spread over the nodes in turn."""
    rooms = {node.name: needs.room(node) for node in nodes}
    found: list[Node] = []
    for turn in range(max(rooms.values(), default=0)):
        found += [node for node in nodes if rooms[node.name] > turn]
    return found[:most]


def choose_device(device: str, nodes: Sequence[Node]) -> str:
    """`cpu` or `cuda`, as the config asks and the cluster has.

    Raises:
        StudyError: GPUs are asked for, and no node has one.
    """
    if device.startswith("cuda:"):
        raise StudyError(f"device {device!r}: on a cluster Ray chooses the GPU of every worker; say 'cuda'")
    if device not in ("auto", "cpu", "cuda"):
        raise StudyError(f"device must be 'auto', 'cpu' or 'cuda' with --ray, got {device!r}")
    gpus = sum(node.resources.get("GPU", 0) for node in nodes)
    if device == "cuda" and not gpus:
        raise StudyError(
            f"device 'cuda' was asked for, but none of the {len(nodes)} nodes of the Ray cluster has a GPU. Ray counts those "
            "that it finds when `ray start` runs, or what `ray start --num-gpus=N` says; `--device cpu` does without"
        )
    return "cuda" if gpus and device != "cpu" else "cpu"


def check_room(nodes: Sequence[Node], needs: Needs) -> None:
    """Refuses a cluster on which no worker fits.

    Raises:
        StudyError: Naming what a worker needs and what the largest nodes have.
    """
    if any(needs.room(node) for node in nodes):
        return

    def most(name: str) -> float:
        return max((node.resources.get(name, 0) for node in nodes), default=0)

    wants = [f"{needs.threads} CPUs (run.threads)"]
    wants += [f"{needs.gpus} GPUs"] if needs.gpus else []
    wants += [f"{needs.memory / 1e9:.3g} GB (run.memory)"] if needs.memory else []
    wants[0] = f"{needs.ranks} times (run.gpus_per_training) {wants[0]}" if needs.ranks > 1 else wants[0]
    raise StudyError(
        f"no node of the Ray cluster has room for a worker, which takes {', '.join(wants)}: of its {len(nodes)} nodes the "
        f"largest has {most('CPU'):g} CPUs, {most('GPU'):g} GPUs and {most('memory') / 1e9:.3g} GB"
    )
