"""The peers: one record each, found by name, loaded when first asked for."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from roarfast.compat._options import Options
from roarfast.compat._slots import Target
from roarfast.compat._status import warn_once

# Name -> module with its record `PEER`. The module is imported when the peer is first asked for.
MODULES = {
    "quantus": "roarfast.compat.quantus",
    "grad-cam": "roarfast.compat.grad_cam",
    "road": "roarfast.compat.road",
    "soco": "roarfast.compat.soco",
    "roar": "roarfast.compat.roar",
    "scipy": "roarfast.compat.ndimage",
}


Replaced: TypeAlias = Mapping[str, Any]
"""Functions and classes of a peer, which have no types of ours, by a short name."""


@dataclass(frozen=True)
class Peer:
    """Another package whose functions are replaced.

    Attributes:
        name: As given to `patch`.
        distribution: Its name in the package index, for the version; None for a clone that has no version.
        versions: Versions the conformance suite ran against; empty for a clone.
        load: Imports the peer and returns what it replaces, by a short name: the functions whose source is compared
            with `digests`. Raises ModuleNotFoundError if it is not installed.
        digests: Per short name the digests of the sources that were tested.
        targets: Attributes to replace, given what `load` returned and the options.
    """

    name: str
    distribution: str | None
    versions: tuple[str, ...]
    load: Callable[[], Replaced]
    targets: Callable[[Replaced, Options], list[Target]]
    digests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def find(name: str) -> Peer:
    """The record of a peer."""
    if name not in MODULES:
        raise ValueError(f"unknown peer {name!r}: one of {', '.join(MODULES)}, or a class like NoisyLinearImputer")
    return importlib.import_module(MODULES[name]).PEER  # type: ignore[no-any-return]


def version(peer: Peer) -> str | None:
    """The installed version, or None."""
    if peer.distribution is None:
        return None
    try:
        return importlib.metadata.version(peer.distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def digest(function: Callable[..., object]) -> str:
    """Of the source of a function or class; empty where there is none to read."""
    try:
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    except (OSError, TypeError):
        return ""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def is_tested(peer: Peer, replaced: Replaced) -> bool:
    """Whether version and sources are those of the conformance suite; warns once if not."""
    installed = version(peer)
    what = f"version {installed}" if installed else "this copy"
    if peer.versions and installed not in peer.versions:
        known = " and ".join(peer.versions)
        warn_once(
            peer.name,
            f"{what} is not one that roarfast.compat was tested against ({known}); patched all the same, compare a few results",
        )
        return False
    changed = [name for name, known in peer.digests.items() if digest(replaced[name]) not in known]
    if changed:
        warn_once(
            peer.name,
            f"the source of {', '.join(changed)} in {what} differs from the one that was tested; patched all the same, compare a few results",
        )
        return False
    return True
