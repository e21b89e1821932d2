"""Names of estimators: the grammar used in configs, file names and reports."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

GRADIENT_BASES = ("grad", "gi", "ig", "gb", "gc")
"""Bases that an ensemble can average: each is computed from gradients, so noise on the input moves it."""

MODEL_FREE_BASES = ("sobel", "rand", "nested_block")
FUNCTION_BASES = ("deconvnet", "linear-approx", "excitation", "iba", "rollout", "experturb", "deepshap")
"""Bases with passes of their own, one file each: `roarfast.explain.functions` knows where."""

AT_A_LAYER = ("gc", "linear-approx", "excitation", "iba", "rollout", "experturb")
"""Bases whose maps have one channel: they look at a layer (the option `gc_layer`) and are scaled up to the image."""

BASES = GRADIENT_BASES + MODEL_FREE_BASES + FUNCTION_BASES
ENSEMBLES = ("sg", "sg-sq", "vg")

GRAMMAR = """\
estimator := term | term "^2"                      ^2: the squared values
term      := base | ensemble | ensemble "(" gradient-base ")"
ensemble  := "sg" | "sg-sq" | "vg"                 SmoothGrad, SmoothGrad-squared, VarGrad; of grad unless a base is given
base      := gradient-base | "sobel" | "rand" | "nested_block" | function-base | a name given to a user's estimator
function-base := "deconvnet" | "linear-approx" | "excitation" | "iba" | "rollout" | "experturb" | "deepshap"
gradient-base := "grad" | "gi" | "ig" | "gb" | "gc"
examples: grad  grad^2  ig^2  sg^2  sg-sq(ig)  vg(gb)  gc^2  sobel^2  rand"""

PAPER = ("grad", "grad^2", "gi^2", "ig^2", "sg^2", "sg-sq", "vg", "gc^2", "sobel^2", "rand")
"""The ten estimators that the seed paper compares."""

_CUSTOM = re.compile(r"[a-z][a-z0-9_]*(-[a-z0-9_]+)*")
_NAME = re.compile(r"(?P<head>[a-z0-9_-]+)(\((?P<base>[a-z0-9_-]*)\))?(?P<power>\^2)?")


@dataclass(frozen=True)
class Name:
    """A parsed estimator name; `str()` gives the canonical spelling and `slug` one that is safe in file names.

    Attributes:
        base: What is computed at each point: one of `BASES`, or the name of a user's estimator.
        ensemble: `"sg"`, `"sg-sq"`, `"vg"`, or None for the base itself.
        squared: Whether the values are squared (before channels are aggregated).

    Example:
        >>> name = parse("SG-SQ(IG)²")
        >>> str(name), name.slug, name.ensemble, name.base, name.squared
        ('sg-sq(ig)^2', 'sg-sq.ig.2', 'sg-sq', 'ig', True)
    """

    base: str
    ensemble: str | None = None
    squared: bool = False

    def __str__(self) -> str:
        if self.ensemble is None:
            term = self.base
        else:
            term = self.ensemble if self.base == "grad" else f"{self.ensemble}({self.base})"
        return term + ("^2" if self.squared else "")

    @property
    def slug(self) -> str:
        """The name in letters, digits, `-`, `_` and `.` only; `from_slug` reads it back."""
        return str(self).replace("(", ".").replace(")", "").replace("^", ".")


def parse(text: str | Name, custom: Collection[str] = ()) -> Name:
    """Reads an estimator name; case, spaces and the spelling `²` do not matter.

    Args:
        text: The name, as in `"sg-sq(ig)"`.
        custom: Names of the user's own estimators that are allowed besides the built-in ones.

    Raises:
        ValueError: If it is not a name; the message shows the grammar.
    """
    if isinstance(text, Name):
        return text
    if not isinstance(text, str):
        raise TypeError(f"an estimator name must be a string, got {text!r}")
    normal = re.sub(r"\s+", "", text).lower().replace("²", "^2")
    match = _NAME.fullmatch(normal)
    if match is None:
        raise _error(text, "it does not follow the grammar", custom)
    head, base, squared = match["head"], match["base"], match["power"] is not None
    if head in ENSEMBLES:
        base = "grad" if base is None else base
        if base not in GRADIENT_BASES:
            raise _error(text, f"{head}(...) takes a gradient-type base, not {base!r}", custom)
        return Name(base, head, squared)
    if head == "block" and head not in custom:
        raise _error(
            text,
            "a block is a new rectangle for every drop rate, so it has no map; the map of nested ones is 'nested_block'",
            custom,
        )
    if head not in BASES and head not in custom:
        raise _error(text, f"there is no estimator {head!r}", custom)
    if base is not None:
        raise _error(text, f"{head!r} is not an ensemble, so it takes no base in brackets", custom)
    return Name(head, None, squared)


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


def from_slug(slug: str, custom: Collection[str] = ()) -> Name:
    """The name whose `slug` this is."""
    head, *rest = slug.split(".")
    power = "^2" if rest and rest[-1] == "2" else ""
    bases = rest[:-1] if power else rest
    return parse(head + "".join(f"({base})" for base in bases) + power, custom)


def check_custom(name: str) -> str:
    """A name for a user's estimator: `[a-z][a-z0-9_-]*`, and none of the built-in ones."""
    if not isinstance(name, str) or _CUSTOM.fullmatch(name) is None:
        raise ValueError(f"the name of an estimator must be lower-case letters, digits, '_' and '-', got {name!r}")
    if name in BASES or name in ENSEMBLES:
        raise ValueError(f"{name!r} is a built-in estimator; give yours another name")
    return name


def _error(text: str, why: str, custom: Collection[str]) -> ValueError:
    known = f"\nuser's estimators here: {', '.join(sorted(custom))}" if custom else ""
    return ValueError(f"cannot read estimator {text!r}: {why}. The grammar is\n{GRAMMAR}{known}")
