"""`Host`: a node of the cluster with the files of a run there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from roarfast.study.cluster.errors import SAME_PACKAGES, one_line
from roarfast.study.cluster.files import packages
from roarfast.study.cluster.handles import FilesHandle, call
from roarfast.study.cluster.places import FOLDER
from roarfast.study.cluster.slots import Node, alive
from roarfast.study.errors import StudyError


@dataclass
class Host:
    """A node with its files.

    Attributes:
        node: As Ray describes it.
        files: Its `NodeFiles`.
        place: Where its artefacts are, as `Places` calls it.
        root: The run folder, or the folder of its copies.
    """

    node: Node
    files: FilesHandle
    place: str = FOLDER
    root: str = ""

    def greet(self, ray: ModuleType, use: str, folder: Path) -> None:
        """Learns where the node keeps files, and refuses one that would compute something else.

        Args:
            ray: The module, connected.
            use: As in `NodeFiles`; `"shared"` refuses a node that does not see the run folder.
            folder: The run folder.

        Raises:
            StudyError: Saying what to do there.
        """
        try:
            known = json.loads(ray.get(call(self.files.describe, "say")))
        except ray.exceptions.RayActorError as error:
            if isinstance(error, ray.exceptions.ActorDiedError) and "Error" in str(error) and self.is_alive(ray):
                raise StudyError(
                    f"node {self.node.host} cannot start a worker: {one_line(error)}{SAME_PACKAGES}"
                ) from None
            raise
        here = packages()
        if different := [name for name in here if known["versions"].get(name) != here[name]]:
            listed = ", ".join(f"{name} {known['versions'].get(name)} instead of {here[name]}" for name in different)
            raise StudyError(f"node {self.node.host} has other versions than this machine: {listed}{SAME_PACKAGES}")
        self.root = known["root"]
        if not known["shared"]:
            self.place = self.node.name
            if use == "shared":
                raise StudyError(
                    f"node {self.node.host} does not see the run folder {folder}, and run.artefacts = 'shared' asks for "
                    "that: mount it there at the same path, or say 'auto'"
                )

    def is_alive(self, ray: ModuleType) -> bool:
        """Whether the node is still there."""
        return any(node.name == self.node.name for node in alive(ray.nodes()))

    def answers(self, ray: ModuleType) -> bool:
        """Whether its files are still served; one that only takes long is."""
        try:
            ray.get(call(self.files.describe, "say"), timeout=5.0)
        except ray.exceptions.GetTimeoutError:
            return True
        except ray.exceptions.RayError:
            return False
        return True


def driver_node(ray: ModuleType) -> Node:
    """The node that this process is on."""
    own = ray.get_runtime_context().get_node_id()
    return next(node for node in alive(ray.nodes()) if node.name == own)
