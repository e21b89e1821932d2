"""Starts and ends the actors of a run: the files of a node, and the processes of a worker."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, overload

from roarfast.study.cluster.files import GROUPS, NodeFiles
from roarfast.study.cluster.handles import FilesHandle, Maker, WorkerHandle
from roarfast.study.cluster.slots import Needs, Node
from roarfast.study.cluster.worker import RayWorker
from roarfast.study.errors import StudyError

if TYPE_CHECKING:
    from ray.util.placement_group import PlacementGroup


@dataclass
class Processes:
    """The processes of a worker.

    Attributes:
        lead: Takes its tasks.
        followers: Train with it, and do nothing else.
        group: Where there are followers: what keeps all of them on one node.
    """

    lead: WorkerHandle
    followers: list[WorkerHandle] = field(default_factory=list)
    group: PlacementGroup | None = None

    def end(self, ray: ModuleType) -> None:
        """Ends them at once."""
        for actor in [*self.followers, self.lead]:
            with contextlib.suppress(Exception):
                ray.kill(actor)
        if self.group is not None:
            with contextlib.suppress(Exception):
                ray.util.remove_placement_group(self.group)


def start_files(ray: ModuleType, node: Node, *arguments: object) -> FilesHandle:
    """Starts the `NodeFiles` of a node."""
    return _on(ray, NodeFiles, node, {"num_cpus": 0, "concurrency_groups": GROUPS}).remote(*arguments)


def start_worker(ray: ModuleType, node: Node, needs: Needs, *arguments: object) -> Processes:
    """Starts a worker on a node, all of its processes."""
    if needs.ranks == 1:
        return Processes(_on(ray, RayWorker, node, needs.options()).remote(*arguments))
    group, makers = _grouped(ray, node, needs)
    followers = [make.remote(*arguments) for make in makers[1:]]
    return Processes(makers[0].remote(*arguments, followers), followers, group)


@overload
def _on(ray: ModuleType, cls: type[NodeFiles], node: Node, options: Mapping[str, object]) -> Maker[FilesHandle]: ...


@overload
def _on(ray: ModuleType, cls: type[RayWorker], node: Node, options: Mapping[str, object]) -> Maker[WorkerHandle]: ...


def _on(
    ray: ModuleType, cls: type[NodeFiles] | type[RayWorker], node: Node, options: Mapping[str, object]
) -> Maker[FilesHandle] | Maker[WorkerHandle]:
    """Makes actors on a node."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    where = NodeAffinitySchedulingStrategy(node.name, soft=False)
    return ray.remote(scheduling_strategy=where, max_restarts=0, **options)(cls)


def _grouped(ray: ModuleType, node: Node, needs: Needs) -> tuple[PlacementGroup, list[Maker[WorkerHandle]]]:
    """Makers of the processes of a worker, all in one placement group on its node."""
    from ray.util.placement_group import placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    ranks, here = needs.ranks, {"ray.io/node-id": node.name}
    try:
        group = placement_group([needs.bundle()] * ranks, strategy="STRICT_PACK", bundle_label_selector=[here] * ranks)
    except TypeError:
        raise StudyError(
            f"run.gpus_per_training = {ranks} needs a newer Ray than {ray.__version__}, which cannot say where a "
            "placement group goes: pip install --upgrade ray, on every node"
        ) from None
    makers = []
    for rank in range(ranks):
        where = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank)
        makers.append(ray.remote(scheduling_strategy=where, max_restarts=0, **needs.options())(RayWorker))
    return group, makers
