"""`RayWorker`: a worker of a study as an actor. Tasks and outcomes are JSON, as between processes."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict

from roarfast._types import Json
from roarfast.study.cluster.handles import FilesHandle, WorkerHandle
from roarfast.study.errors import StudyError
from roarfast.study.images import shared_data
from roarfast.study.protocols import find
from roarfast.study.runfolder import RunFolder
from roarfast.study.schema import StudyConfig
from roarfast.study.tasks import BaseTask, CellsTask, Outcome, Task, decode, encode_outcome
from roarfast.study.workers import Settings, Worker
from roarfast.train.distributed import as_rank, wait

_PAUSE = 1.0
"""Seconds between lines of progress."""


class Executed(TypedDict):
    """What `RayWorker.execute` tells of the event that ended a task."""

    event: str
    text: str
    outcome: Json


class RayWorker:
    """Does one task after the other.

    Args:
        settings: As JSON.
        number: Which worker this is.
        home: The driver's `NodeFiles`, which takes lines of progress.
        working_folder: The driver's, which relative paths of the config start from; used where it exists.
        code: Modules of the user's that are not there: relative path → text.
        followers: The other processes of this worker, on the same node: they train with it, and do nothing else.
    """

    def __init__(
        self,
        settings: str,
        number: int,
        home: FilesHandle,
        working_folder: str,
        code: dict[str, str],
        followers: Sequence[WorkerHandle] = (),
    ) -> None:
        begun = time.perf_counter()
        self._settings = Settings(**json.loads(settings))
        self._number, self._home = number, home
        if Path(working_folder).is_dir():
            os.chdir(working_folder)
        folder = RunFolder(self._settings.folder)
        self._held = folder.hold_as_worker()  # a new run waits until the workers of a killed one are gone
        if code:
            _place(code, folder.path / "code")
        self._worker = Worker(self._settings, begun=time.perf_counter() - begun)
        self._told = 0.0
        self._followers = list(followers)

    def ready(self) -> str:
        """What is wrong with this worker's device or images; nothing if it can start."""
        if self._settings.device.startswith("cuda"):
            import torch

            if not torch.cuda.is_available():
                return (
                    "Ray gave it a GPU, but torch sees none there: install a torch with CUDA on the node, or start it "
                    "with `ray start --num-gpus=0`"
                )
        config, folder = StudyConfig.of(self._settings.config), RunFolder(self._settings.folder)
        try:
            parts = shared_data(folder, config.data)
        except StudyError as error:
            return f"{error} (the driver has these images; nodes read them from the same path)"
        for part, expected in zip(parts, self._settings.images):
            if part.data_hash != expected:
                return f"its {part.split} images or labels are not the driver's: copy the data of {config.data.name!r} to it"
        if self._followers:
            import ray

            return next(filter(None, ray.get([one.ready.remote() for one in self._followers])), "")
        return ""

    def execute(self, task: str) -> str:
        """Does a task; returns kind, text and outcome of the event that ends it, as JSON."""
        known = decode(json.loads(task))
        if self._followers and trains(known, StudyConfig.of(self._settings.config)):
            kind, text, outcome = self._lead(task, known)
        else:
            kind, text, outcome = self._worker.execute(known, self._say)
        return json.dumps({"event": kind, "text": text, "outcome": encode_outcome(outcome)})

    def follow(self, task: str, rank: int, size: int, meeting: str) -> str:
        """Takes part in the training of a task that another process leads; what went wrong, or nothing."""
        self._worker.leads = False
        found = _LOST
        with contextlib.suppress(RuntimeError), as_rank(rank, size, meeting):  # errors of the group itself
            found = self._worker.execute(decode(json.loads(task)), lambda line: None)
            if found[0] == "done":
                wait()
        return "" if found[0] == "done" else found[1]

    def _lead(self, task: str, known: Task) -> tuple[str, str, Outcome]:
        """Trains together with the followers. A follower that died takes this process along: the driver starts all anew."""
        import ray

        size = len(self._followers) + 1
        meeting = str(RunFolder(self._settings.folder).path / f".meeting-{os.getpid()}-{time.monotonic_ns():x}")
        others = [one.follow.remote(task, rank + 1, size, meeting) for rank, one in enumerate(self._followers)]
        found, errors = _LOST, list[str]()
        try:
            with contextlib.suppress(RuntimeError), as_rank(0, size, meeting):
                found = self._worker.execute(known, self._say)
                if found[0] == "done":
                    wait()
            errors = list(filter(None, ray.get(others)))
        except ray.exceptions.RayActorError as error:
            print(f"a process of this worker died: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        finally:
            Path(meeting).unlink(missing_ok=True)
        if found[0] == "failed" and errors:
            return "failed", f"{found[1]}\n\nIn another process of this training:\n{errors[0]}", found[2]
        return found

    def _say(self, text: str) -> None:
        if time.monotonic() - self._told > _PAUSE:
            self._told = time.monotonic()
            with contextlib.suppress(Exception):  # progress is no reason to fail
                self._home.say.options(concurrency_group="say").remote(self._number, text)


_LOST: tuple[str, str, Outcome] = ("failed", "the processes of a training lost each other", Outcome())


def trains(task: Task, config: StudyConfig) -> bool:
    """Whether several processes can share a task: whether our own loop trains a model in it."""
    if config.train.function is not None:
        return False
    if isinstance(task, BaseTask):
        return not config.model.trained
    return isinstance(task, CellsTask) and find(task.cell.protocol).trains


def _place(code: dict[str, str], folder: Path) -> None:
    for name, text in code.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_text() != text:
            place.write_text(text)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
