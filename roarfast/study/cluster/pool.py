"""`RayPool`: workers of a study on the nodes of a Ray cluster.

The driver is the only writer of the store. A worker is an actor that stays on its node; nodes that come get workers, and the
tasks of nodes that go run again elsewhere. Where a node does not share the run folder, `NodeFiles` brings what a task needs
before it starts, and takes what it left to the run folder before it counts as done.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from roarfast.study.artefacts import extras, inputs, outputs
from roarfast.study.cluster.actors import Processes, start_files, start_worker
from roarfast.study.cluster.errors import SAME_PACKAGES, cause, disk_full, gone_errors, one_line, why
from roarfast.study.cluster.files import Fetched
from roarfast.study.cluster.handles import FilesHandle, call
from roarfast.study.cluster.hosts import Host, driver_node
from roarfast.study.cluster.places import FOLDER, Places
from roarfast.study.cluster.slots import Needs, Node, alive, place
from roarfast.study.cluster.worker import Executed
from roarfast.study.errors import StudyError
from roarfast.study.schedule import Missing
from roarfast.study.tasks import Outcome, Task, decode_outcome, encode
from roarfast.study.workers import Event, Settings

if TYPE_CHECKING:
    from ray import ObjectRef

_LOOK = 3.0
"""Seconds between looks at which nodes there are."""
_PAUSE = 1.0
"""Seconds between asks for lines of progress, and the longest wait for anything."""
_STARTS = 3
"""How often a worker may die before it is ready."""


@dataclass
class _Slot:
    """A worker: where it is, and what it does; `processes` is None while it is not there."""

    number: int
    host: Host
    processes: Processes | None = None
    state: str = "starting"
    task: Task | None = None
    outcome: Outcome = field(default_factory=Outcome)
    starts: int = 0


class RayPool:
    """Workers on a cluster.

    Args:
        ray: The module, connected.
        settings: Of a worker; its folder is the run folder.
        needs: What a worker takes.
        workers: At most so many; None: as many as fit.
        use: As in `NodeFiles`; `"shared"` refuses nodes that do not see the run folder.
        scratch: As in `NodeFiles`.
        code: The user's modules, for nodes that do not have them.
        keep_codes: Whether codes are to end in the run folder.
    """

    def __init__(
        self,
        ray: ModuleType,
        settings: Settings,
        needs: Needs,
        *,
        workers: int | None = None,
        use: str = "auto",
        scratch: str | None = None,
        code: dict[str, str] | None = None,
        keep_codes: bool = False,
        keep_models: bool = False,
    ) -> None:
        self._ray, self._settings, self._needs, self._most = ray, settings, needs, workers
        self._use, self._scratch, self._code = use, scratch, code or {}
        self._keep_codes, self._keep_models = keep_codes, keep_models
        self._folder = Path(settings.folder).resolve()
        self._probe = (f".probe-{random.SystemRandom().randrange(1 << 62):x}", os.urandom(8).hex())
        (self._folder / self._probe[0]).write_text(self._probe[1])
        self._hosts: dict[str, Host] = {}
        self._slots: dict[int, _Slot] = {}
        self._refs: dict[ObjectRef[str], tuple[str, int]] = {}
        self._places = Places(self._folder)
        self._paths: dict[str, list[str]] = {}
        """Key of a task → what it reads."""
        self._pending: list[Event] = []
        self._looked, self._numbers = 0.0, 0
        self._home: FilesHandle | None = None
        self._said: ObjectRef[str] | None = None
        self._asked = 0.0
        self.moved = 0
        """Bytes that travelled between nodes."""
        self.missing: Missing | None = None
        try:
            self._home = self._start_files(driver_node(ray), home=True).files
            self._look()
        except BaseException:
            self.close()
            raise

    @property
    def size(self) -> int:
        """How many workers there are now."""
        return len(self._slots)

    def idle(self) -> list[int]:
        """Workers that can take a task."""
        return [slot.number for slot in self._slots.values() if slot.state == "idle"]

    def submit(self, worker: int, task: Task) -> None:
        """Hands a task to an idle worker; what it needs comes to its node first."""
        slot = self._slots[worker]
        slot.task, slot.outcome = task, Outcome()
        self._bring(slot)

    def forget(self, task: Task) -> None:
        """Nodes delete their copies; in the run folder the files are the study's own business."""
        for path in outputs(task):
            for name in self._places.forget(path) - {FOLDER}:
                if name in self._hosts:
                    call(self._hosts[name].files.delete, "fetch", path)

    def events(self) -> Iterator[Event]:
        """Waits until something happens, then yields it."""
        if time.monotonic() - self._looked > _LOOK:
            self._look()
        if self._said is None and self._home is not None and time.monotonic() - self._asked > _PAUSE:
            self._said, self._asked = call(self._home.said, "say"), time.monotonic()
        waited = [*self._refs, *([] if self._said is None else [self._said])]
        patience = 0.0 if self._pending else _PAUSE
        ready: list[ObjectRef[str]] = []
        if waited:
            ready, _ = self._ray.wait(waited, num_returns=1, timeout=patience)
            if ready:  # and whatever else is there by now
                ready, _ = self._ray.wait(waited, num_returns=len(waited), timeout=0)
        else:
            time.sleep(patience)
        for ref in ready:
            if ref == self._said:
                yield from self._lines(ref)
                continue
            what, number = self._refs.pop(ref)
            if number in self._slots:
                yield from self._happened(what, self._slots[number], ref)
        pending, self._pending = self._pending, []
        yield from pending

    def close(self) -> None:
        """Ends the workers at once, and deletes the copies of nodes that do not share the run folder."""
        with contextlib.suppress(OSError):
            (self._folder / self._probe[0]).unlink(missing_ok=True)
        with contextlib.suppress(Exception):  # the cluster may be gone
            for slot in self._slots.values():
                self._kill(slot)
            leaving = [call(host.files.leave, "fetch") for host in self._hosts.values() if host.place != FOLDER]
            if leaving:
                self._ray.wait(leaving, num_returns=len(leaving), timeout=5.0)
            for files in [*(host.files for host in self._hosts.values()), self._home]:
                if files is not None:
                    self._ray.kill(files)
        self._slots, self._hosts, self._refs = {}, {}, {}

    # nodes

    def _look(self) -> None:
        """Gives nodes that came their workers, and gives up those that went."""
        self._looked = time.monotonic()
        nodes = alive(self._ray.nodes())
        names = {node.name for node in nodes}
        for name in [name for name in self._hosts if name not in names]:
            self._lose(name)
        wanted = place(nodes, self._needs, self._most)
        started = {}
        for node in {node.name: node for node in wanted}.values():
            if node.name not in self._hosts:
                started[node.name] = self._start_files(node)
        for name, host in started.items():
            with contextlib.suppress(*gone_errors(self._ray)):  # it went again already
                host.greet(self._ray, self._use, self._folder)
                if host.place != FOLDER:
                    self.missing = self._missing_bytes
                continue
            self._lose(name)
        have = {name: sum(slot.host.node.name == name for slot in self._slots.values()) for name in self._hosts}
        for node in wanted:
            if have.get(node.name, 1) > 0:
                have[node.name] = have.get(node.name, 1) - 1
            elif node.name in self._hosts and (self._most is None or len(self._slots) < self._most):
                slot = _Slot(self._numbers, self._hosts[node.name])
                self._slots[slot.number] = slot
                self._numbers += 1
                self._start(slot)

    def _start_files(self, node: Node, home: bool = False) -> Host:
        run = f"{os.getpid():x}-{self._probe[0].removeprefix('.probe-')[:8]}"
        arguments = (str(self._folder), self._probe, self._scratch, run, node.name, self._use, home)
        files = start_files(self._ray, node, *arguments)
        host = Host(node, files)
        if not home:
            self._hosts[node.name] = host
        return host

    def _lose(self, name: str) -> None:
        host = self._hosts.pop(name, None)
        if host is None:
            return
        self._places.lose(name)
        for slot in [slot for slot in self._slots.values() if slot.host is host]:
            del self._slots[slot.number]
            self._kill(slot)
            if slot.task is not None:
                self._pending.append(Event(slot.number, "lost", slot.task, f"node {host.node.host} is gone"))

    def _look_at_files(self) -> None:
        """Gives up nodes that went, or whose files nobody serves any more; those come back with the next look."""
        self._look()
        for host in [host for host in self._hosts.values() if not host.answers(self._ray)]:
            self._lose(host.node.name)
        here = Host(driver_node(self._ray), self._home) if self._home is not None else None
        if here is not None and not here.answers(self._ray):
            self._home = self._start_files(here.node, home=True).files

    # workers

    def _start(self, slot: _Slot) -> None:
        slot.state, slot.task, slot.starts = "starting", None, slot.starts + 1
        settings = replace(self._settings, folder=slot.host.root)
        code = self._code if slot.host.place != FOLDER else {}
        arguments = (json.dumps(settings.encode()), slot.number, self._home, str(Path.cwd()), code)
        slot.processes = start_worker(self._ray, slot.host.node, self._needs, *arguments)
        self._refs[slot.processes.lead.ready.remote()] = ("ready", slot.number)

    def _kill(self, slot: _Slot) -> None:
        if slot.processes is not None:
            slot.processes.end(self._ray)
        slot.processes = None

    def _bring(self, slot: _Slot) -> None:
        """Starts a task, or first the transfers that it waits for."""
        assert slot.task is not None
        absent = [one.path for one in inputs(slot.task) if slot.host.place not in self._places.of(one.path)]
        if not absent:
            self._execute(slot)
            return
        sources = [self._source(path) for path in absent]
        slot.state = "fetching"
        if None in sources:
            self._gone(slot, [path for path, source in zip(absent, sources) if source is None], "lost")
        else:
            # Into the run folder only one actor fetches: two would get the same files twice, into one place.
            taker = self._home if slot.host.place == FOLDER else slot.host.files
            assert taker is not None
            self._refs[call(taker.fetch, "fetch", absent, sources)] = ("fetched", slot.number)

    def _execute(self, slot: _Slot) -> None:
        assert slot.task is not None and slot.processes is not None
        slot.state = "busy"
        self._refs[slot.processes.lead.execute.remote(json.dumps(encode(slot.task)))] = ("executed", slot.number)

    def _source(self, path: str) -> FilesHandle | None:
        """The files of a place that has an artefact; any of them, so that many nodes do not all ask one."""
        places = sorted(name for name in self._places.of(path) if name == FOLDER or name in self._hosts)
        if not places:
            return None
        chosen = random.choice(places)
        return self._home if chosen == FOLDER else self._hosts[chosen].files

    def _missing_bytes(self, worker: int, task: Task) -> int:
        if task.key not in self._paths:  # the schedule asks for every worker
            self._paths[task.key] = [one.path for one in inputs(task)]
        where = self._slots[worker].host.place
        return sum(self._places.size(path) for path in self._paths[task.key] if where not in self._places.of(path))

    # what happens

    def _happened(self, what: str, slot: _Slot, ref: ObjectRef[str]) -> Iterator[Event]:
        try:
            value = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:  # of a worker that went, or of our own code on a node
            yield from self._broken(what, slot, cause(error))
            return
        if what == "ready":
            if value:
                raise StudyError(f"a worker on node {slot.host.node.host} cannot start: {value}")
            slot.state, slot.starts = "idle", 0
        elif what == "fetched":
            yield from self._fetched(slot, json.loads(value))
        elif what == "executed":
            yield from self._executed(slot, json.loads(value))
        elif what == "collected":
            assert slot.task is not None
            found = json.loads(value)
            self.moved += found["bytes"]
            if found["full"]:
                yield self._ended(slot, "fatal", "disk full")
            elif set(found["gone"]) & set(outputs(slot.task)):
                yield self._ended(slot, "died", f"node {slot.host.node.host} lost what the task had made")
            else:
                self._places.came(outputs(slot.task), FOLDER)
                yield self._ended(slot, "done", "", slot.outcome)

    def _fetched(self, slot: _Slot, found: Fetched) -> Iterator[Event]:
        assert slot.task is not None
        self.moved += found["bytes"]
        if found["full"]:
            raise disk_full(found["full"])
        if found["gone"]:
            self._gone(slot, found["gone"], "damaged")
            return
        self._places.came((one.path for one in inputs(slot.task)), slot.host.place)
        self._execute(slot)
        yield from ()

    def _executed(self, slot: _Slot, message: Executed) -> Iterator[Event]:
        assert slot.task is not None
        outcome, here = decode_outcome(message["outcome"]), slot.host.place
        if message["event"] != "done":
            if message["event"] == "fatal" and here != FOLDER:  # not the disk of the run folder
                raise disk_full(f"{slot.host.node.host}: {slot.host.root}")
            if message["event"] == "damaged":  # it deleted what it could not read
                self._places.deleted((one.path for one in inputs(slot.task)), here)
            yield self._ended(slot, message["event"], message["text"], outcome)
            return
        self._places.made(outputs(slot.task), here)
        made = outputs(slot.task) + extras(slot.task, self._keep_models)
        if here == FOLDER or not made or (slot.task.passing and not self._keep_codes):
            yield self._ended(slot, "done", "", outcome)
            return
        assert self._home is not None
        slot.state, slot.outcome = "collecting", outcome
        ref = call(self._home.fetch, "fetch", made, [slot.host.files] * len(made))
        self._refs[ref] = ("collected", slot.number)

    def _gone(self, slot: _Slot, paths: list[str], kind: str) -> None:
        """What a task needs is nowhere any more: its maker runs again. `"lost"` where nobody is to blame."""
        assert slot.task is not None
        for path in paths:
            self._places.forget(path)
        lost = next(one for one in inputs(slot.task) if one.path in paths)
        text = (
            f"{lost.path} was only on a node that is gone" if kind == "lost" else f"{lost.path} is not there any more"
        )
        self._pending.append(self._ended(slot, kind, text, Outcome(damage=lost.lost)))

    def _ended(self, slot: _Slot, kind: str, text: str, outcome: Outcome | None = None) -> Event:
        assert slot.task is not None
        task, slot.task, slot.state = slot.task, None, "idle"
        return Event(slot.number, kind, task, text, outcome or Outcome())

    def _broken(self, what: str, slot: _Slot, error: Exception) -> Iterator[Event]:
        """A worker, its node, or the node that it fetched from went away."""
        host, task = slot.host, slot.task
        transfer = what in ("fetched", "collected")  # where the other node may be the one that died
        if not host.is_alive(self._ray) or (not transfer and "its node has died" in str(error)):
            self._lose(host.node.name)
            return
        if transfer:  # the worker itself is well
            self._look_at_files()
            if slot.number in self._slots and task is not None:
                # What is not somebody's going may come again and again: it counts as an attempt.
                kind = "lost" if isinstance(error, gone_errors(self._ray)) else "died"
                yield self._ended(slot, kind, f"a transfer was interrupted ({one_line(error)})")
            return
        self._kill(slot)
        if slot.starts >= _STARTS:
            raise StudyError(f"a worker on node {host.node.host} cannot start: {one_line(error)}{SAME_PACKAGES}")
        self._start(slot)
        if task is not None:
            yield Event(slot.number, "died", task, why(error, host.node.host))

    def _lines(self, ref: ObjectRef[str]) -> Iterator[Event]:
        self._said = None
        try:
            said = json.loads(self._ray.get(ref))
        except gone_errors(self._ray):
            self._look_at_files()
            return
        for number, text in said.items():
            slot = self._slots.get(int(number))
            if slot is not None and slot.task is not None:
                yield Event(slot.number, "update", slot.task, text)
