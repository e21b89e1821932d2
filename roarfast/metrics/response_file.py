"""The file of a long evaluation: what is on disk of it survives a kill, and the finished file is the same bytes."""

from __future__ import annotations

import functools
import inspect
import os
import shutil
import types
import warnings
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from roarfast._files import create_memmap, read_json, write_json
from roarfast._temperature import TEMPERATURES
from roarfast._types import Json
from roarfast._version import RESULT_VERSION
from roarfast.explain.files import Journal, locked
from roarfast.explain.hashing import checksum, data_hash, model_hash
from roarfast.metrics.inputs import Inputs
from roarfast.metrics.model import Model
from roarfast.metrics.perturbation import Perturbation
from roarfast.metrics.responses import FORMAT, Responses, ResponsesCorrupt

# What is kept of one pair (sample, rate).
ANSWER = np.dtype([("probability", "<f4"), ("logit", "<f4"), ("margin", "<f4"), ("prediction", "<i4")])
LOSSES = np.dtype([*ANSWER.descr, ("losses", "<f4", (len(TEMPERATURES),))])
"""The same with the loss at every temperature, from which only means go into the finished file."""
_CHUNKS = 256  # pieces of a run that a kill can cost, at most


class ResponsesMismatch(ValueError):
    """A file holds the responses of something else than asked for."""


def identify(
    model: Model,
    inputs: Inputs,
    codes: Tensor,
    labels: Tensor,
    target: Tensor,
    rates: Sequence[float],
    how: Perturbation,
    seed: int,
    ids: Tensor,
    batch_size: int,
    filled: Tensor | None = None,
    halves: Tensor | None = None,
) -> dict[str, Json]:
    """What the answers depend on, as JSON values."""
    found: dict[str, Json] = {
        "format": FORMAT,
        "version": RESULT_VERSION,
        "model": model_hash(model) if isinstance(model, nn.Module) else _function_hash(model),
        "images": data_hash(inputs.pixels),
        "normalisation": [list(inputs.mean), list(inputs.std)],
        "codes": data_hash(codes),
        "labels": data_hash(labels),
        "scored": data_hash(target),
        "drops": list(rates),
        "perturbation": how.as_dict(),
        "seed": seed,
        "index": data_hash(ids),
        "batch_size": batch_size,
    }
    given = {"filled": filled, "halves": halves}
    return found | {name: data_hash(value) for name, value in given.items() if value is not None}


def _function_hash(function: Callable[[Tensor], Tensor]) -> str:
    """A function's name, and a hash of its code and of the modules, tensors and plain values that it names."""
    named = getattr(function, "__qualname__", type(function).__qualname__)
    reached: list[object] = []
    while isinstance(function, functools.partial):
        reached += [*function.args, *function.keywords.values()]
        function = function.func
    if not hasattr(function, "__code__"):  # an object with __call__, or a function written in C
        reached += vars(function).values() if hasattr(function, "__dict__") else ()
        function = type(function).__call__
    reached.append(getattr(function, "__self__", None))
    parts = [named]
    plain = getattr(function, "__func__", function)
    if isinstance(plain, types.FunctionType):
        names = inspect.getclosurevars(plain)
        reached += [plain.__code__.co_code, *plain.__code__.co_consts, *(plain.__defaults__ or ())]
        reached += [*names.nonlocals.values(), *names.globals.values()]
    for value in reached:
        if isinstance(value, nn.Module):
            parts.append(model_hash(value))
        elif isinstance(value, Tensor):
            parts.append(data_hash(value.reshape(-1)))
        elif value is None or isinstance(value, (bool, int, float, str, bytes)):
            parts.append(repr(value))
    text = "\n".join(parts).encode()
    return f"function {named} {checksum(np.frombuffer(text, np.uint8))}"


def _differences(stored: Json, wanted: dict[str, Json]) -> str:
    if not isinstance(stored, dict):
        return "it is damaged"
    keys = [key for key in wanted if stored.get(key) != wanted[key]]
    return ", ".join(keys)


class AnswerFile:
    """Answers on disk, written chunk by chunk; `<file>.partial/` until they are complete.

    Args:
        path: The finished file.
        identity: What the answers are made from.
        rows: How many there are.
        batch: Rows of a batch; chunks are whole batches, so that a resumed run sees the same ones.
        dtype: `ANSWER` or `LOSSES`.
    """

    def __init__(
        self, path: Path, identity: dict[str, Json], rows: int, batch: int, dtype: np.dtype[np.void] = ANSWER
    ) -> None:
        self.path, self.identity, self.rows, self.dtype = path, identity, rows, dtype
        self.folder = path.with_name(path.name + ".partial")
        chunk = batch * max(1, -(-rows // (batch * _CHUNKS)))
        self.chunks = [(start, min(start + chunk, rows)) for start in range(0, rows, chunk)]
        self._stack = ExitStack()

    @staticmethod
    def finished(path: Path, identity: dict[str, Json]) -> Responses | None:
        """The responses in a finished file; None if there is none, or a damaged one. Those of something else are an error."""
        if not path.exists():
            return None
        try:
            found = Responses.load(path)
        except ResponsesCorrupt as error:
            kept = path.with_name(path.name + ".damaged")  # and not deleted: it may be somebody's other file
            os.replace(path, kept)
            warnings.warn(f"{error}; it is kept as {kept.name} and made again", RuntimeWarning, stacklevel=4)
            return None
        wrong = _differences(dict(found.identity), identity)
        if wrong:
            raise ResponsesMismatch(f"{path} holds the responses of something else (other {wrong}): use another file")
        return found

    def __enter__(self) -> AnswerFile:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = self.path.with_name(f".{self.path.name}.lock")
        self._stack.enter_context(locked(lock, str(self.path)))
        if self.folder.exists():
            stored = read_json(self.folder / "identity.json")
            if isinstance(stored, dict) and (wrong := _differences(stored, self.identity)):
                self._stack.close()
                raise ResponsesMismatch(
                    f"{self.folder} is an unfinished run of something else (other {wrong}): delete it or use another file"
                )
            if not isinstance(stored, dict):  # killed before it could be resumed
                shutil.rmtree(self.folder)
        if not self.folder.exists():
            self.folder.mkdir()
            create_memmap(self._data, self.dtype, (max(self.rows, 1),)).flush()
            write_json(self.folder / "identity.json", self.identity)  # last: now it can be resumed
        self._answers = np.lib.format.open_memmap(self._data, mode="r+")
        self._journal = Journal(self.folder / "journal.jsonl")
        self._stack.callback(self._journal.close)
        whole = {c for c, sum_ in self._journal.done.items() if checksum(self._answers[c[0] : c[1]]) == sum_}
        self.missing = [c for c in self.chunks if c not in whole]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def _data(self) -> Path:
        return self.folder / "answers.npy"

    def write(self, start: int, answers: npt.NDArray[np.void]) -> None:
        """Puts the chunk that starts at `start` on disk."""
        stop = start + len(answers)
        self._answers[start:stop] = answers
        self._answers.flush()
        self._journal.add(start, stop, checksum(answers))
        self.missing.remove((start, stop))

    def read(self) -> npt.NDArray[np.void]:
        """All answers."""
        return np.array(self._answers[: self.rows])

    def finish(self, responses: Responses) -> None:
        """Writes the finished file, then deletes the parts."""
        responses.save(self.path)
        shutil.rmtree(self.folder, ignore_errors=True)
