"""One record per claim: what it says, what the paper gives, and how to see whether it holds here."""

from __future__ import annotations

import contextlib
import difflib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["holds", "differs", "fails"]


PAPERS = {"000": "Song et al.", "002": "Li et al.", "004": "Wang and Wang"}
"""The papers by the numbers that begin a `source`; docs/papers.md has their titles."""


class UnknownCheck(ValueError):
    """A name that is neither a check nor a group of checks."""


@dataclass(frozen=True)
class Outcome:
    """What a check found.

    Attributes:
        here: What was measured, for people.
        verdict: `"holds"`; `"differs"`: not what the paper prints, but what we know to be right (the claim says why);
            `"fails"`: neither, so something is broken.
        values: The measured numbers, for programs.
    """

    here: str
    verdict: Verdict
    values: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Check:
    """A claim with a known answer.

    Attributes:
        name: Unique, such as `"counterexample"`.
        group: The name of its file, such as `"theorems"`.
        claim: What is claimed, in one sentence.
        source: Where: number of the paper in `PAPERS`, and section.
        paper: The number that the source prints, or `"no number"`.
        run: Measures it; takes no arguments, trains nothing and always gives the same answer.
    """

    name: str
    group: str
    claim: str
    source: str
    paper: str
    run: Callable[[], Outcome]

    @property
    def cited(self) -> str:
        """The source for people: by the names of the authors."""
        return re.sub("|".join(PAPERS), lambda found: PAPERS[found[0]], self.source)


@dataclass(frozen=True)
class Result:
    """A check that has been run."""

    check: Check
    outcome: Outcome
    seconds: float


CHECKS: dict[str, Check] = {}
"""Every check by name; filled by the files of this package."""


def check(name: str, *, claim: str, source: str, paper: str = "no number") -> Callable[[Callable[[], Outcome]], Check]:
    """Registers a function as a check; its group is the name of the file it stands in.

    Example:
        >>> @check("two", claim="1 + 1 is 2", source="arithmetic")  # doctest: +SKIP
        ... def two() -> Outcome:
        ...     return exactly({"1 + 1": 1 + 1}, {"1 + 1": 2})
    """

    def register(run: Callable[[], Outcome]) -> Check:
        if name in CHECKS:
            raise ValueError(f"there are two checks called {name!r}")
        CHECKS[name] = Check(name, run.__module__.rsplit(".", 1)[-1], claim, source, paper, run)
        return CHECKS[name]

    return register


def exactly(
    values: Mapping[str, float], expected: Mapping[str, float], within: float = 0.0, *, otherwise: Verdict = "holds"
) -> Outcome:
    """The outcome of comparing numbers with what they must be.

    Args:
        values: What was measured, by name.
        expected: What it must be, by the same names (values without an expectation are only shown).
        within: Largest difference allowed.
        otherwise: The verdict if all agree: `"holds"`, or `"differs"` where they are known not to be the paper's.
    """
    good = all(abs(values[name] - number) <= within for name, number in expected.items())
    return Outcome(show(values), otherwise if good else "fails", {k: float(v) for k, v in values.items()})


def show(values: Mapping[str, float]) -> str:
    """Named numbers in one line, to six digits."""
    return ", ".join(f"{name} {_number(value)}" for name, value in values.items())


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e9 else f"{value:.6f}".rstrip("0")


def select(only: Iterable[str] | None = None) -> list[Check]:
    """The checks with these names or in these groups, in the order of the files; all if none is given.

    Raises:
        UnknownCheck: For a name that is neither; the message gives the nearest one.
    """
    if only is None:
        return list(CHECKS.values())
    wanted = list(only)
    groups = list(dict.fromkeys(c.group for c in CHECKS.values()))
    for word in wanted:
        if word not in CHECKS and word not in groups:
            close = difflib.get_close_matches(word, [*groups, *CHECKS], n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are the groups {', '.join(groups)}"
            raise UnknownCheck(f"there is no check or group of checks {word!r}; {hint}")
    return [c for c in CHECKS.values() if c.name in wanted or c.group in wanted]


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Matrices here are small: on a busy machine the threads of a BLAS mostly wait for each other."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
        return
    with threadpool_limits(1):
        yield


def run(checks: Iterable[Check]) -> Iterable[Result]:
    """Runs checks one after the other; an exception is an outcome that fails, so that the others still run."""
    for one in checks:
        began = time.perf_counter()
        try:
            with _one_thread():
                outcome = one.run()
        except Exception as error:  # a broken check must not hide the others
            outcome = Outcome(f"{type(error).__name__}: {error}", "fails")
        yield Result(one, outcome, time.perf_counter() - began)
