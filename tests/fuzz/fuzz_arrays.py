"""Arrays as users have them: the same values in memory of every kind, between guard bytes that nobody may touch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

GUARD = 64
"""Bytes before and after the memory of an array."""
_PATTERN = 0xA5
KINDS = (
    "plain",
    "strided",
    "reversed",
    "fortran",
    "unaligned",
    "swapped",
    "read-only",
    "subclass",
    "broadcast",
    "bytes",
)


class Subclass(np.ndarray):
    """An array that is not quite `np.ndarray`."""


@dataclass
class Memory:
    """Buffers handed out in one case; `damage` tells what was overwritten beside or inside of inputs."""

    rng: np.random.Generator
    guards: list[np.ndarray[Any, Any]] = field(default_factory=list)
    inputs: list[tuple[str, Any, bytes]] = field(default_factory=list)

    def buffer(self, nbytes: int, shift: int = 0) -> np.ndarray[Any, Any]:
        """Fresh bytes with guards around; `shift` moves them off their alignment."""
        whole = np.full(GUARD + shift + nbytes + GUARD, _PATTERN, np.uint8)
        self.guards.append(whole[: GUARD + shift])
        self.guards.append(whole[GUARD + shift + nbytes :])
        return whole[GUARD + shift : GUARD + shift + nbytes]

    def array(self, name: str, values: np.ndarray[Any, Any], kind: str | None = None) -> np.ndarray[Any, Any]:
        """An input with these values, in memory of a random kind."""
        made = self._array(values, kind or KINDS[int(self.rng.integers(len(KINDS)))])
        self.inputs.append((name, made, made.tobytes()))
        return made

    def _array(self, values: np.ndarray[Any, Any], kind: str) -> np.ndarray[Any, Any]:
        item, shape = values.dtype.itemsize, values.shape
        if kind == "strided" and shape:
            wide = (*shape[:-1], 2 * shape[-1] + 1)
            base = self.buffer(int(np.prod(wide)) * item).view(values.dtype).reshape(wide)
            made = base[..., 1 : 1 + 2 * shape[-1] : 2][..., : shape[-1]]
        elif kind == "reversed" and shape:
            made = self.buffer(values.nbytes).view(values.dtype).reshape(shape)[..., ::-1]
        elif kind == "fortran":
            made = self.buffer(values.nbytes).view(values.dtype).reshape(shape[::-1]).T
        elif kind == "unaligned":
            made = self.buffer(values.nbytes, 1).view(values.dtype).reshape(shape)
        elif kind == "swapped" and item > 1:
            made = self.buffer(values.nbytes).view(values.dtype.newbyteorder()).reshape(shape)
        elif kind == "broadcast" and shape and shape[0] > 1 and (values == values[:1]).all():
            return np.broadcast_to(self._array(values[:1], "plain"), shape)
        else:
            made = self.buffer(values.nbytes).view(values.dtype).reshape(shape)
        made[...] = values
        if kind == "bytes" and made.dtype == bool:  # True as any byte but 0
            made.view(np.uint8)[...] *= np.uint8(self.rng.integers(1, 256))
        if kind == "read-only":
            made.flags.writeable = False
        return made.view(Subclass) if kind == "subclass" else made

    def out(self, values: np.ndarray[Any, Any], kinds: tuple[str, ...] = KINDS[:6]) -> np.ndarray[Any, Any]:
        """An array to write such values to."""
        made = self._array(np.zeros_like(values), kinds[int(self.rng.integers(len(kinds)))])
        if made.size:
            made[...] = 1
        return made

    def beside(self, values: np.ndarray[Any, Any], result: np.ndarray[Any, Any]) -> tuple[Any, Any]:
        """An input, and an `out` that overlaps it."""
        item = max(values.dtype.itemsize, result.dtype.itemsize)
        span = values.nbytes + result.nbytes + 8 * item
        buffer = self.buffer(span)
        steps = max(1, values.nbytes // result.dtype.itemsize)
        start = int(self.rng.integers(0, min(steps, 9))) * result.dtype.itemsize
        copy = buffer[: values.nbytes].view(values.dtype).reshape(values.shape)
        copy[...] = values
        return copy, buffer[start : start + result.nbytes].view(result.dtype).reshape(result.shape)

    def damage(self, skip_inputs: bool = False) -> str:
        """What was overwritten; empty if nothing was."""
        if any((guard != _PATTERN).any() for guard in self.guards):
            return "bytes beside an array were overwritten"
        if not skip_inputs:
            for name, array, before in self.inputs:
                if array.tobytes() != before:
                    return f"the input {name} was changed"
        return ""
