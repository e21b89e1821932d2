"""Counts of what was fast and what went to the original, and why: the evidence behind `status()`."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType

from roarfast.compat._locks import forkable
from roarfast.compat._options import CompatWarning

_lock = forkable(threading.Lock())
_fast: Counter[tuple[str, str]] = Counter()
_passed_on: Counter[tuple[str, str, str]] = Counter()
_warned: set[tuple[str, str]] = set()


class Outside(ValueError):
    """A call outside our domain: the original takes it, and the argument is the reason that `status()` shows."""


def require(condition: bool, reason: str) -> None:
    """`Outside` with this reason unless the condition holds."""
    if not condition:
        raise Outside(reason)


class refusal:
    """Makes `Outside` a ValueError that names the arguments: import swaps have no original to pass a call on to."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Outside):
            raise ValueError(f"{self.wanted}, got {error}") from None


@dataclass(frozen=True)
class PeerStatus:
    """What happened to the calls of one peer.

    Attributes:
        name: As given to `patch`.
        version: Of the installed package; None if it is not installed or has none.
        tested: Whether what is replaced is what the conformance suite ran against; None before the first patch.
        active: Whether a patch is in force now.
        fast: Calls that ran here, per function.
        passed_on: Calls that went to the original, per function and reason.
    """

    name: str
    version: str | None = None
    tested: bool | None = None
    active: bool = False
    fast: dict[str, int] = field(default_factory=dict)
    passed_on: dict[tuple[str, str], int] = field(default_factory=dict)

    def __str__(self) -> str:
        tested = {None: "", True: ", tested", False: ", NOT a tested version"}[self.tested]
        lines = [f"{self.name} {self.version or ''}".rstrip() + tested + (", patched" if self.active else "")]
        lines += [f"  fast       {count:>8}  {name}" for name, count in sorted(self.fast.items())]
        lines += [f"  passed on  {n:>8}  {name}: {why}" for (name, why), n in sorted(self.passed_on.items())]
        return "\n".join(lines)


def fast(peer: str, function: str) -> None:
    """Counts a call that ran here."""
    with _lock:
        _fast[peer, function] += 1


def passed_on(peer: str, function: str, reason: str) -> None:
    """Counts a call that goes to the original."""
    with _lock:
        _passed_on[peer, function, reason] += 1


def counts(peer: str) -> tuple[dict[str, int], dict[tuple[str, str], int]]:
    """Fast calls per function, and calls passed on per function and reason."""
    with _lock:
        return (
            {name: n for (of, name), n in _fast.items() if of == peer},
            {(name, why): n for (of, name, why), n in _passed_on.items() if of == peer},
        )


def rows() -> list[tuple[str, str, str, int]]:
    """(peer, function, reason or "", calls) of every count: what one process tells another."""
    with _lock:
        fast = [(peer, name, "", n) for (peer, name), n in _fast.items()]
        return fast + [(peer, name, why, n) for (peer, name, why), n in _passed_on.items()]


def add(counted: Iterable[tuple[str, str, str, int]]) -> None:
    """Adds the `rows` of another process."""
    with _lock:
        for peer, name, why, n in counted:
            if why:
                _passed_on[peer, name, why] += n
            else:
                _fast[peer, name] += n


def counted_peers() -> set[str]:
    """The names of peers that any call was counted for."""
    with _lock:
        return {key[0] for key in _fast} | {key[0] for key in _passed_on}


def reset() -> None:
    """Sets every count to zero; warnings that were given once may be given again.

    Example:
        >>> reset()
        >>> counts("scipy")
        ({}, {})
    """
    with _lock:
        _fast.clear()
        _passed_on.clear()
        _warned.clear()


def warn_once(peer: str, message: str, stacklevel: int = 3) -> None:
    """One `CompatWarning` per peer and message in the life of the process."""
    with _lock:
        if (peer, message) in _warned:
            return
        _warned.add((peer, message))
    warnings.warn(f"{peer}: {message}", CompatWarning, stacklevel=stacklevel)
