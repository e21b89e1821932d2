"""One record per score, one registry; a score of your own is `package.module:object`."""

from __future__ import annotations

import ast
import difflib
import importlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor

from roarfast._objects import load_object
from roarfast.metrics.problem import Problem
from roarfast.metrics.resampling import Statistic, weighted_mean
from roarfast.metrics.responses import Responses

Floats = npt.NDArray[np.float64]
Detail: TypeAlias = float | Floats
_BUILTIN = (
    "road",
    "deletion",
    "insertion",
    "pixel_flipping",
    "reference_flipping",
    "completeness",
    "soundness",
    "sensitivity_n",
    "faithfulness_correlation",
    "infidelity",
    "f_fidelity",
    "average_drop",
)
_FORM = re.compile(r"(?P<name>[^()]+)(\((?P<options>.*)\))?", re.DOTALL)


@dataclass(frozen=True)
class Line:
    """A curve before its band is drawn: `values` `[R, N]` of single samples against `x` `[R]`.

    Attributes:
        x: float64 `[R]`.
        values: float64 `[R, N]`.
        x_label: What x is.
        y_label: What the values are.
        responses: What they were computed from.
        mean: float64 `[R]`; default the mean of the values over samples, NaN left out.
    """

    x: Floats
    values: Floats
    x_label: str
    y_label: str
    responses: Responses | None = None
    mean: Floats | None = None


@dataclass(frozen=True)
class Outcome:
    """What a score found for one set of maps.

    Attributes:
        per_image: float64 `[N]` whose mean is the score; NaN where a sample has none.
        statistic: For scores that are no mean: weights `[B, N]` of the samples to the score `[B]`.
        curves: Curves by name; the first is the score's own.
        details: Other numbers, by name.
        notes: Sentences about what is unusual.
    """

    per_image: Floats | None = None
    statistic: Statistic | None = None
    curves: Mapping[str, Line] = field(default_factory=dict)
    details: Mapping[str, Detail] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def resample(self) -> Statistic:
        """The score as a function of the weights of the samples."""
        if self.statistic is not None:
            return self.statistic
        if self.per_image is None:
            raise ValueError("a score must give per_image or a statistic")
        return weighted_mean(np.asarray(self.per_image, np.float64))


Run: TypeAlias = Callable[..., Outcome | npt.ArrayLike]
"""`run(problem, maps, **options)`."""


@dataclass(frozen=True)
class Score:
    """How to judge maps.

    Attributes:
        name: In tables and in `metrics=[…]`.
        run: `run(problem, maps, **options)`, maps a tensor `[N, H, W]`; returns an `Outcome`, or float `[N]`.
        better: `"higher"`, `"lower"` or `"neither"` (a diagnostic).
        measures: What it measures, in a few words: the goal that a map must serve to score well.
        kind: `"performance"` (the model is asked) or `"plausibility"` (people are).
        additive: Whether it expects contributions, which add up to what the model says: a map of sensitivities, such as the
            gradient, answers another question (the goals of Wang and Wang), which a note says.
        turned: Options that turn the direction, with what is then better: `{("order", "morf"): "lower"}`.
        options: Given to `run`.

    Example:
        >>> mine = Score("mine", lambda problem, maps: maps.flatten(1).amax(1).numpy(), better="higher")
        >>> mine.name
        'mine'
    """

    name: str
    run: Run
    better: str = "higher"
    measures: str = ""
    kind: str = "performance"
    additive: bool = False
    turned: Mapping[tuple[str, object], str] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("better", self.better, ("higher", "lower", "neither")),
            ("kind", self.kind, ("performance", "plausibility")),
        ):
            if value not in allowed:
                raise ValueError(f"{name} of score {self.name!r} must be one of {', '.join(allowed)}, got {value!r}")

    def with_options(self, **options: object) -> Score:
        """The same score with other options, which become part of its name."""
        if not options:
            return self
        listed = ", ".join(f"{key}={value}" for key, value in options.items())
        better = next((way for (key, value), way in self.turned.items() if options.get(key) == value), self.better)
        return replace(self, name=f"{self.name}({listed})", better=better, options={**self.options, **options})

    def __call__(self, problem: Problem, maps: Tensor) -> Outcome:
        """Scores maps."""
        found = self.run(problem, maps, **self.options)
        if isinstance(found, Outcome):
            return found
        values = np.asarray(found, np.float64)
        if values.shape != (len(problem),):
            raise ValueError(
                f"score {self.name!r} must return an Outcome or one number per sample, got shape {values.shape}"
            )
        return Outcome(per_image=values)


_registry: dict[str, Score] = {}


def register(score: Score) -> Score:
    """Makes a score known by its name.

    Args:
        score: The record; one of the same name is replaced.

    Example:
        >>> mine = register(Score("largest", lambda problem, maps: maps.flatten(1).amax(1).numpy()))
        >>> get_score("largest") is mine
        True
        >>> del _registry["largest"]
    """
    _registry[score.name] = score
    return score


def score_names() -> list[str]:
    """The scores known by name.

    Example:
        >>> score_names()[:3]
        ['road', 'deletion', 'insertion']
    """
    return [*_BUILTIN, *(name for name in _registry if name not in _BUILTIN)]


def get_score(score: str | Score | Run, **options: object) -> Score:
    """A score by name, with options, or `package.module:object`.

    Example:
        >>> get_score("deletion(fill=zero)").options["fill"]
        'zero'
        >>> get_score("deletion", indicator="accuracy").name
        'deletion(indicator=accuracy)'
        >>> get_score("road").better, get_score("road", order="morf").better
        ('higher', 'lower')
    """
    if isinstance(score, Score):
        return score.with_options(**options)
    if not isinstance(score, str):
        if callable(score):
            return Score(getattr(score, "__name__", type(score).__name__), score).with_options(**options)
        raise TypeError(f"a score must be a name, a Score or a function, got {type(score).__name__}")
    match = _FORM.fullmatch(score.strip())
    if match is None:
        raise ValueError(f"a score must look like 'deletion' or 'deletion(fill=zero)', got {score!r}")
    name = match["name"].strip()
    given = {**_options(score, match["options"]), **options}
    if ":" in name:
        return _imported(name).with_options(**given)
    if name in _BUILTIN:
        importlib.import_module(f"roarfast.metrics.scores.{name}")
    if name not in _registry:
        close = difflib.get_close_matches(name, score_names(), 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"there is no score {name!r}{hint} Known are {', '.join(score_names())}; your own is 'package.module:object'"
        )
    return _registry[name].with_options(**given)


def _options(score: str, text: str | None) -> dict[str, object]:
    result: dict[str, object] = {}
    for part in re.split(r",(?![^(\[]*[)\]])", text) if text else ():
        key, equals, value = part.partition("=")
        if not equals or not key.strip().isidentifier():
            raise ValueError(f"options of a score must look like 'name=value', got {part.strip()!r} in {score!r}")
        try:
            result[key.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            result[key.strip()] = value.strip()
    return result


def _imported(name: str) -> Score:
    try:
        found = load_object(name)
    except ValueError as error:
        raise ValueError(f"score {error}") from error
    if isinstance(found, Score):
        return found
    if not callable(found):
        raise ValueError(f"score {name!r} is neither a Score nor a function")
    return Score(name, found)
