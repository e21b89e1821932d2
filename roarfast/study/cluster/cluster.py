"""`Cluster`: the Ray cluster of a run, from connecting to leaving."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType

from roarfast.study.cluster.connect import connect
from roarfast.study.cluster.pool import RayPool
from roarfast.study.cluster.slots import Needs, alive, check_room, choose_device, place
from roarfast.study.schema import RunConfig
from roarfast.study.workers import Settings


class Cluster:
    """A connected cluster: `with Cluster("auto", config.run) as cluster`.

    Args:
        address: `"auto"`, or `HOST:PORT`.
        run: How the study is to run.
        device, workers: Instead of those of `run`.

    Attributes:
        devices: The device of every worker that has room now.
        start_seconds: What connecting, or starting Ray here, took.
    """

    def __init__(self, address: str, run: RunConfig, device: str | None = None, workers: int | None = None) -> None:
        self._address, self._run, self._device = address, run, device or run.device
        asked = workers or run.workers
        self._most = None if asked == "auto" else int(asked)

    def __enter__(self) -> Cluster:
        begun = time.perf_counter()
        self._was_connected = _is_connected()
        self._ray, self._own = connect(self._address)
        try:
            self._nodes = alive(self._ray.nodes())
            device = choose_device(self._device, self._nodes)
            memory = int((self._run.memory or 0) * 1e9)
            self._needs = Needs(self._run.threads, 1 if device == "cuda" else 0, memory, self._run.gpus_per_training)
            check_room(self._nodes, self._needs)
            self.devices = [device] * len(place(self._nodes, self._needs, self._most))
        except BaseException:
            self._leave()
            raise
        self.start_seconds = time.perf_counter() - begun
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        if not self._was_connected:
            self._ray.shutdown()

    def describe(self) -> str:
        """Where a run goes, in a sentence."""
        hosts = sorted({node.host for node in self._nodes if node.name in self._used()})
        nodes = f"{len(self._used())} node{'s' * (len(self._used()) != 1)}"
        what = "no Ray cluster was running: started one on this machine" if self._own else f"Ray cluster, {nodes} used"
        workers = f"{len(self.devices)} worker{'s' * (len(self.devices) != 1)}"
        listed = ", ".join(hosts[:4]) + (" …" if len(hosts) > 4 else "")
        return f"{what}; {workers} on {listed}; {self.start_seconds:.1f} s to connect"

    def _used(self) -> set[str]:
        return {node.name for node in place(self._nodes, self._needs, self._most)}

    def hardware(self) -> dict[str, object]:
        """What it runs on, for the report."""
        kinds = {
            node.host: ", ".join(
                sorted(name.partition(":")[2] for name in node.resources if name.startswith("accelerator"))
            )
            for node in self._nodes
            if node.name in self._used()
        }
        facts: dict[str, object] = {"workers": len(self.devices), "threads per worker": self._run.threads}
        if self._needs.ranks > 1:
            facts["processes per training"] = self._needs.ranks
        return facts | {"cores": os.cpu_count(), "nodes": len(self._used()), "devices": kinds}

    def pool(self, settings: Settings, code: dict[str, str]) -> RayPool:
        """The workers."""
        run = self._run
        return RayPool(
            self._ray,
            settings,
            self._needs,
            workers=self._most,
            use=run.artefacts,
            scratch=run.scratch,
            code=code,
            keep_codes=run.keep_codes,
            keep_models=run.keep_models,
        )


def _is_connected() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())
