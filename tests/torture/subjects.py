"""What is tortured: a study, responses, a pack, a merge and a report. Each can be made, made again, and compared."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from helpers.study_helpers import outcome, tiny, write_tiny

TEXT = tiny(estimators=["grad^2", "rand"], postprocess=["plain"], drops=[0.5], examples="1\nkeep_codes = true")
"""A study of seconds that leaves every kind of file behind."""


@dataclass(frozen=True)
class Kind:
    """A kind of file: where it is, and what must be forgotten so that the next run uses it."""

    name: str
    pattern: str
    forget: Sequence[str] = ()
    before: Callable[[Path], None] | None = None
    """What else is done to a copy of the finished folder first."""


_ROAD = "DELETE FROM cells WHERE protocol = 'road' AND \"order\" = 'morf'"
_NO_CODES = ("DELETE FROM cells WHERE protocol = 'road'", "DELETE FROM work WHERE kind = 'codes'")


class StudySubject:
    """The tiny study, by one process or by workers."""

    name = "study"
    kinds = (
        Kind("maps", "run/maps/*/test/*/maps.npy", _NO_CODES),
        Kind("maps' scales", "run/maps/*/test/*/scales.npy", _NO_CODES),
        Kind("maps' facts", "run/maps/*/test/*/*.json", _NO_CODES),
        Kind("codes", "run/codes/*/test-morf.npy", (_ROAD,)),
        Kind("codes' facts", "run/codes/*/info.json", (_ROAD,)),
        Kind("base model", "run/models/base-*.pt", (_ROAD,)),
        Kind("checkpoint", "run/models/cell-*.ckpt", ("DELETE FROM cells WHERE protocol = 'roar'",)),
        Kind("examples", "run/examples/*.npz", (_ROAD,)),
        Kind("store", "run/results.sqlite"),
    )

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers

    def prepare(self, folder: Path) -> None:
        write_tiny(folder, TEXT)

    def work(self, folder: Path, keep: bool = False) -> Callable[[Callable[[str], None]], None]:
        """The run; with `keep`, one that leaves the checkpoints of its cells."""

        def run(say: Callable[[str], None]) -> None:
            from roarfast.study import Study, training
            from roarfast.study.progress import TaskProgress

            class Notes(TaskProgress):
                def note(self, text: str) -> None:
                    say(text)

            if keep:
                training._CHECKPOINT_PAUSE = 0.0  # type: ignore[attr-defined]
                training.Trainer.forget = lambda self, name: None  # type: ignore[method-assign]
            done = Study.from_toml(folder / "study.toml", folder / "run").run(workers=self.workers, progress=Notes())
            if done.failed:
                raise RuntimeError(f"{len(done.failed)} cells failed: {done.failed[:1]}")

        return run

    def result(self, folder: Path) -> Any:
        examples = {path.name: _content(path) for path in sorted((folder / "run" / "examples").glob("*.npz"))}
        return outcome(folder / "run"), examples

    def forget(self, folder: Path, kind: Kind) -> None:
        with sqlite3.connect(folder / "run" / "results.sqlite") as database:
            for statement in kind.forget:
                database.execute(statement)
        database.close()
        if kind.before is not None:
            kind.before(folder)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _content(path: Path) -> dict[str, str]:
    """The arrays of an `.npz` file, not the bytes between them, such as times."""
    with np.load(path, allow_pickle=False) as file:
        return {name: hashlib.sha256(file[name].tobytes()).hexdigest() for name in file.files}


class ResponsesSubject:
    """`respond(..., file=)`: a model's answers at many rates."""

    name = "responses"
    kinds = (Kind("responses", "answers.npz"),)

    def prepare(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)

    def work(self, folder: Path, keep: bool = False) -> Callable[[Callable[[str], None]], None]:
        def run(say: Callable[[str], None]) -> None:
            import warnings

            import torch

            from roarfast.metrics import respond

            torch.set_num_threads(1)
            torch.manual_seed(0)
            rng = np.random.default_rng(0)
            images, maps = (
                rng.integers(0, 256, (40, 8, 8, 3), dtype=np.uint8),
                rng.random((40, 8, 8)).astype(np.float32),
            )
            net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 4))
            drops = [k / 64 for k in range(1, 64)]
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                respond(net, images, maps, drops, labels=np.arange(40) % 4, batch_size=16, file=folder / "answers.npz")
            for warning in caught:
                say(str(warning.message))

        return run

    def result(self, folder: Path) -> Any:
        return _content(folder / "answers.npz")

    def forget(self, folder: Path, kind: Kind) -> None:
        """Nothing: a finished file is read by every further call."""


class PackSubject:
    """`roarfast data pack`, and a run over the images of the pack with their checksums looked at."""

    name = "pack"
    kinds = (
        Kind("pack's images", "pack/images.npy"),
        Kind("pack's labels", "pack/labels.npy"),
        Kind("pack's checksums", "pack/checksums.npy"),
        Kind("pack's manifest", "pack/pack.json"),
    )

    def prepare(self, folder: Path) -> None:
        from PIL import Image

        rng = np.random.default_rng(0)
        for label in ("cat", "dog"):
            (folder / "photos" / label).mkdir(parents=True, exist_ok=True)
            for k in range(30):
                pixels = rng.integers(0, 256, (24, 24, 3), dtype=np.uint8)
                Image.fromarray(pixels).save(folder / "photos" / label / f"{k}.png")

    def work(self, folder: Path, keep: bool = False) -> Callable[[Callable[[str], None]], None]:
        def run(say: Callable[[str], None]) -> None:
            from roarfast.data.pack import open_pack, write_pack

            if not (folder / "pack").exists():
                write_pack(folder / "photos", folder / "pack", 16, workers=1)
            try:
                open_pack(folder / "pack", verify=True)
            except ValueError as error:  # as its user would: pack again
                say(str(error))
                shutil.rmtree(folder / "pack")
                write_pack(folder / "photos", folder / "pack", 16, workers=1)

        return run

    def result(self, folder: Path) -> Any:
        return {path.name: _digest(path) for path in sorted((folder / "pack").glob("*.npy"))}

    def forget(self, folder: Path, kind: Kind) -> None:
        """Nothing: the pack is read by every further call."""


class MergeSubject:
    """`roarfast merge` of two shards of the tiny study, then its report."""

    name = "merge and report"
    kinds: tuple[Kind, ...] = ()

    def __init__(self, finished: Path) -> None:
        self.finished = finished
        """A finished study; the shards are two halves of its rows."""

    def prepare(self, folder: Path) -> None:
        for k in (0, 1):
            shard = folder / "shards" / str(k)
            shutil.copytree(self.finished / "run", shard, ignore=shutil.ignore_patterns("report"))
            with sqlite3.connect(shard / "results.sqlite") as database:
                database.execute("DELETE FROM cells WHERE position % 2 = ? AND protocol != 'base'", (k,))
            database.close()

    def work(self, folder: Path, keep: bool = False) -> Callable[[Callable[[str], None]], None]:
        def run(say: Callable[[str], None]) -> None:
            from roarfast.report.build import build
            from roarfast.study.merge import merge

            merge(folder / "run", sorted((folder / "shards").iterdir()))
            build(folder / "run")

        return run

    def result(self, folder: Path) -> Any:
        report = folder / "run" / "report"
        tables = {path.name: _digest(path) for path in sorted((report / "tables").glob("*.csv"))}
        page = (report / "index.html").read_text()
        assert page.rstrip().endswith("</html>"), "the page is cut"
        return outcome(folder / "run"), tables, sorted(path.name for path in (report / "figures").iterdir())

    def forget(self, folder: Path, kind: Kind) -> None:
        """Nothing of it is damaged here: its files are those of a study."""
