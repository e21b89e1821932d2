"""Post-processing `k`: model- and data-agnostic map to map."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from roarfast._objects import check_name
from roarfast._types import ArrayT
from roarfast.explain.steps import KINDS, apply

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

Function = Callable[..., Any]
"""A user's: `f(maps [..., H, W]) -> maps` of one library or of both; with a true attribute `random`, also of `seed` and `index`."""


def _grammar() -> str:
    lines = [
        'chain := step | step "|" chain              applied from left to right',
        'step  := "plain"                            leaves the map alone',
    ]
    lines += [f"       | {kind.form:<34} {kind.meaning}" for kind in KINDS.values()]
    lines += [
        "       | a name given to a user's function",
        'size, sigma: one number, or "rows,columns"',
        "examples: plain  max(3)  gaussian(1)  gaussian(1)|max(3)  max(3,5)  positive|power(0.5)",
    ]
    return "\n".join(lines)


GRAMMAR = _grammar()

PAPER = ("plain", "max(3)", "gaussian(1)")
"""The post-processings of Song et al."""

_STEP = re.compile(r"(?P<kind>[a-z][a-z0-9_-]*)(\((?P<numbers>[^()]*)\))?")


@dataclass(frozen=True)
class Step:
    """One filter or function of a chain."""

    kind: str
    numbers: tuple[float, ...] = ()
    function: Function | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.kind}({','.join(map(_format, self.numbers))})" if self.numbers else self.kind

    def __call__(self, a: ArrayT, *, seed: int = 0, index: npt.ArrayLike | Tensor | None = None) -> ArrayT:
        """The step applied to maps `[..., H, W]`; the random ones are keyed by (seed, sample id)."""
        if self.function is None:
            return apply(KINDS[self.kind], a, self.numbers, seed, index)
        random = getattr(self.function, "random", False)
        result = self.function(a, seed=seed, index=index) if random else self.function(a)
        if getattr(result, "shape", None) != a.shape:
            raise ValueError(f"post-processing {self.kind!r} must keep the shape {tuple(a.shape)} of the maps")
        return result


@dataclass(frozen=True)
class PostProcess:
    """A chain of steps; `str()` gives its canonical spelling and `slug` one that is safe in file names.

    Example:
        >>> import numpy as np
        >>> k = PostProcess.parse("gaussian | max(3)")
        >>> str(k), k.slug, k(np.eye(8, dtype=np.float32)).shape
        ('gaussian(1)|max(3)', 'gaussian-1+max-3', (8, 8))
    """

    steps: tuple[Step, ...] = ()

    @classmethod
    def parse(cls, text: str | PostProcess, custom: Mapping[str, Function] | None = None) -> PostProcess:
        """Reads a chain such as `"gaussian(1)|max(3)"`.

        Args:
            text: The chain.
            custom: The user's functions `f(maps [..., H, W]) -> maps` by name.

        Raises:
            ValueError: If it is none; the message shows the grammar.
        """
        if isinstance(text, PostProcess):
            return text
        steps = [_parse_step(part, text, custom or {}) for part in re.sub(r"\s+", "", text).lower().split("|")]
        return cls(tuple(step for step in steps if step.kind != "plain"))

    @classmethod
    def of(cls, name: str, function: Function) -> PostProcess:
        """A post-processing made of one user function `f(maps [..., H, W]) -> maps`."""
        return cls.parse(name, {_check_name(name): function})

    def __str__(self) -> str:
        return "|".join(map(str, self.steps)) or "plain"

    @property
    def slug(self) -> str:
        """The chain in letters, digits, `-`, `_`, `.` and `+` only."""
        return str(self).replace("|", "+").replace("(", "-").replace(",", "x").replace(")", "")

    def __call__(self, a: ArrayT, *, seed: int = 0, index: npt.ArrayLike | Tensor | None = None) -> ArrayT:
        """Maps `[..., H, W]`, NumPy or torch, to maps of the same shape; the input is not modified.

        Args:
            a: The maps.
            seed: Of random steps; each step of a chain draws from its own stream.
            index: Sample ids, one per map, for random steps (`is_random`).
        """
        for position, step in enumerate(self.steps):
            a = step(a, seed=seed + position, index=index)
        return a

    @property
    def is_random(self) -> bool:
        """Whether a step draws random numbers, so that sample ids must be given."""
        return any(
            getattr(step.function, "random", False) if step.function else KINDS[step.kind].random for step in self.steps
        )


def _check_name(name: str) -> str:
    if name == "plain" or name in KINDS:
        raise ValueError(f"{name!r} is a built-in post-processing; give yours another name")
    return check_name(name, "a post-processing")


def _parse_step(part: str, text: str, custom: Mapping[str, Function]) -> Step:
    match = _STEP.fullmatch(part)
    if match is None:
        raise _error(text, f"{part!r} does not follow the grammar")
    kind, numbers = match["kind"], match["numbers"]
    if kind in custom or kind == "plain":
        if numbers is not None:
            raise _error(text, f"{kind!r} takes no numbers")
        return Step(kind, (), custom.get(kind))
    if kind not in KINDS:
        close = difflib.get_close_matches(kind, [*KINDS, *custom, "plain"], n=1)
        raise _error(
            text, f"there is no post-processing {kind!r}" + (f" (did you mean {close[0]!r}?)" if close else "")
        )
    known = KINDS[kind]
    if numbers is None and known.default is None:
        raise _error(text, f"{kind!r} needs its numbers, as in {known.form}")
    if numbers is None:
        return Step(kind, known.default or ())
    try:
        values = tuple(float(number) for number in numbers.split(","))
    except ValueError:
        raise _error(text, f"{numbers!r} is not a list of numbers") from None
    if not all(math.isfinite(v) for v in values):
        raise _error(text, f"{numbers!r} is not a list of finite numbers")
    if wrong := known.wrong(values):
        raise _error(text, f"{wrong}, got {numbers}")
    pair = known.native and len(values) == 2 and values[0] == values[1]  # max(3,3) is max(3)
    return Step(kind, values[:1] if pair else values)


def _format(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _error(text: str, why: str) -> ValueError:
    return ValueError(f"cannot read post-processing {text!r}: {why}. The grammar is\n{GRAMMAR}")
