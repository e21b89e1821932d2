"""Names of estimators: the grammar used in configs, file names and reports."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from roarfast._objects import check_name
from roarfast.explain.aggregate import Aggregation
from roarfast.explain.estimators import known

ENSEMBLES = {"sg": "SmoothGrad", "sg-sq": "SmoothGrad-squared", "vg": "VarGrad"}
"""Averages over noisy copies of the image: of `grad` unless another base is given in brackets."""

PAPER = ("grad", "grad^2", "gi^2", "ig^2", "sg^2", "sg-sq", "vg", "gc^2", "sobel^2", "rand")
"""The ten estimators that Song et al. compare."""

_NAME = re.compile(r"(?P<head>[a-z0-9_-]+)(\((?P<base>[a-z0-9_-]*)\))?(?P<power>\^2)?(@(?P<aggregate>.+))?")


@dataclass(frozen=True)
class Name:
    """A parsed estimator name; `str()` gives the canonical spelling and `slug` one that is safe in file names.

    Attributes:
        base: What is computed at each point: one of `estimators.known()`, or the name of a user's estimator.
        ensemble: `"sg"`, `"sg-sq"`, `"vg"`, or None for the base itself.
        squared: Whether the values are squared (before channels are aggregated).
        aggregate: How its channels become one value, as in `"mean(raw)"`; None: as those of the others it is computed with.

    Example:
        >>> name = parse("SG-SQ(IG)²")
        >>> str(name), name.slug, name.ensemble, name.base, name.squared
        ('sg-sq(ig)^2', 'sg-sq.ig.2', 'sg-sq', 'ig', True)
    """

    base: str
    ensemble: str | None = None
    squared: bool = False
    aggregate: str | None = None

    def __str__(self) -> str:
        if self.ensemble is None:
            term = self.base
        else:
            term = self.ensemble if self.base == "grad" else f"{self.ensemble}({self.base})"
        return term + ("^2" if self.squared else "") + (f"@{self.aggregate}" if self.aggregate else "")

    @property
    def slug(self) -> str:
        """The name in letters, digits, `-`, `_` and `.` only."""
        return slug(str(self))


def slug(name: str) -> str:
    """The canonical spelling of a name in characters that are safe in file names; no two names share one."""
    return name.replace("(", ".").replace(")", "").replace("^", ".").replace("@", ".")


@cache
def grammar() -> str:
    """How estimators are written, with every one there is; also `GRAMMAR`."""
    gradient = [name for name, record in known().items() if record.of_pass is not None]
    listed = " | ".join(f'"{name}"' for name in gradient)
    ensembles = " | ".join(f'"{name}"' for name in ENSEMBLES)
    lines = [
        'estimator := value | value "@" aggregation         @: how channels become one value, as in grad@mean(raw)',
        'value     := term | term "^2"                      ^2: the squared values',
        'term      := base | ensemble | ensemble "(" gradient-base ")"',
        f"ensemble  := {ensembles:<37} {', '.join(ENSEMBLES.values())}; of grad unless a base is given",
        f"gradient-base := {listed}",
        "base      := a name given to a user's estimator",
        *(f"           | {name:<37} {record.meaning}" for name, record in known().items()),
        "examples: grad  grad^2  ig^2  sg^2  sg-sq(ig)  vg(gb)  gc^2  sobel^2  rand",
    ]
    return "\n".join(lines)


def __getattr__(name: str) -> str:
    if name == "GRAMMAR":  # made when it is asked for: it lists the estimators, and they need torch
        return grammar()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def split_name(text: str | Name) -> Name:
    """The parts of a name; whether there are such an estimator and ensemble is not looked at.

    Example:
        >>> split_name("SG(mine)²").base
        'mine'
    """
    if isinstance(text, Name):
        return text
    if not isinstance(text, str):
        raise TypeError(f"an estimator name must be a string, got {text!r}")
    match = _NAME.fullmatch(re.sub(r"\s+", "", text).lower().replace("²", "^2"))
    if match is None:
        raise _error(text, "it does not follow the grammar", ())
    head, base, squared = match["head"], match["base"], match["power"] is not None
    if base is None and head in ENSEMBLES:
        base = "grad"
    aggregate = None if match["aggregate"] is None else _aggregate(text, match["aggregate"])
    return Name(head, None, squared, aggregate) if base is None else Name(base, head, squared, aggregate)


def _aggregate(text: str, aggregate: str) -> str:
    try:
        found = Aggregation.parse(aggregate)
        if found.reduce == "none":
            raise ValueError("one estimator's channels cannot be kept apart while others' are not")
    except ValueError as error:
        raise _error(text, str(error), ()) from None
    return str(found)


def parse(text: str | Name, custom: Collection[str] = ()) -> Name:
    """Reads an estimator name; case, spaces and the spelling `²` do not matter.

    Args:
        text: The name, as in `"sg-sq(ig)"`.
        custom: Names of the user's own estimators that are allowed besides the built-in ones; as a mapping from name to
            `Estimator`, those made from gradients are also allowed in ensembles.

    Raises:
        ValueError: If it is not a name; the message shows the grammar.

    Example:
        >>> str(parse("SG-SQ ( ig )²")), parse("grad^2") == parse("Grad²")
        ('sg-sq(ig)^2', True)
    """
    if isinstance(text, Name):
        return text
    name = split_name(text)
    if name.ensemble in ENSEMBLES:
        if not _averages(name.base, custom):
            raise _error(text, f"{name.ensemble}(...) takes a gradient-type base, not {name.base!r}", custom)
        return name
    head = name.ensemble or name.base
    if head == "block" and head not in custom:
        raise _error(
            text,
            "a block is a new rectangle for every drop rate, so it has no map; the map of nested ones is 'nested_block'",
            custom,
        )
    if head not in custom and head not in known():
        raise _error(text, f"there is no estimator {head!r}", custom)
    if name.ensemble is not None:
        raise _error(text, f"{head!r} is not an ensemble, so it takes no base in brackets", custom)
    return name


def _averages(base: str, custom: Collection[str]) -> bool:
    """Whether ensembles can average a base: it is computed from gradients, so noise on the input moves it."""
    record = custom.get(base) if isinstance(custom, Mapping) and base in custom else known().get(base)
    return record is not None and record.of_pass is not None


def parse_all(texts: Iterable[str | Name], custom: Collection[str] = ()) -> tuple[Name, ...]:
    """Reads several names; the same estimator twice is an error."""
    if isinstance(texts, str):
        texts = [texts]
    names = tuple(parse(text, custom) for text in texts)
    if not names:
        raise ValueError("estimators must name at least one estimator, got none")
    for i, name in enumerate(names):
        if name in names[:i]:
            raise ValueError(f"estimators must be different, got {str(name)!r} twice")
    return names


def check_custom(name: str) -> str:
    """A name for a user's estimator: none of the built-in ones."""
    if check_name(name, "an estimator") in known() or name in ENSEMBLES:
        raise ValueError(f"{name!r} is a built-in estimator; give yours another name")
    return name


def _error(text: str, why: str, custom: Collection[str]) -> ValueError:
    users = f"\nuser's estimators here: {', '.join(sorted(custom))}" if custom else ""
    return ValueError(f"cannot read estimator {text!r}: {why}. The grammar is\n{grammar()}{users}")
