"""`RayWorker`: a worker of a study as an actor. Tasks and outcomes are JSON, as between processes."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from roarfast.study.errors import StudyError
from roarfast.study.images import shared_data
from roarfast.study.runfolder import RunFolder
from roarfast.study.schema import StudyConfig
from roarfast.study.tasks import decode, encode_outcome
from roarfast.study.workers import Settings, Worker

_PAUSE = 1.0
"""Seconds between lines of progress."""


class RayWorker:
    """Does one task after the other.

    Args:
        settings: As JSON.
        number: Which worker this is.
        home: The driver's `NodeFiles`, which takes lines of progress.
        working_folder: The driver's, which relative paths of the config start from; used where it exists.
        code: Modules of the user's that are not there: relative path → text.
    """

    def __init__(self, settings: str, number: int, home: Any, working_folder: str, code: dict[str, str]) -> None:
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
        return ""

    def execute(self, task: str) -> str:
        """Does a task; returns kind, text and outcome of the event that ends it, as JSON."""
        kind, text, outcome = self._worker.execute(decode(json.loads(task)), self._say)
        return json.dumps({"event": kind, "text": text, "outcome": encode_outcome(outcome)})

    def _say(self, text: str) -> None:
        if time.monotonic() - self._told > _PAUSE:
            self._told = time.monotonic()
            with contextlib.suppress(Exception):  # progress is no reason to fail
                self._home.say.options(concurrency_group="say").remote(self._number, text)


def _place(code: dict[str, str], folder: Path) -> None:
    for name, text in code.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_text() != text:
            place.write_text(text)
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
