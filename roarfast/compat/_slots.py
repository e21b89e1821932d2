"""Attributes that are replaced for a while, process-wide and counted, and put back exactly."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

from roarfast.compat._locks import forkable
from roarfast.compat._status import warn_once

_MISSING = object()
_lock = forkable(threading.RLock())

Owner: TypeAlias = ModuleType | type | dict[str, object]
"""What has attributes (or items) that can be replaced."""


class Target(NamedTuple):
    """One attribute of a module or class, or one item of a dict, and what to put there."""

    owner: Owner
    name: str
    replacement: object


class _Slot:
    """One attribute with every replacement that is in force; the latest is the one that shows.

    Blocks of several threads may end in any order: each takes away its own replacement, and the original comes back
    with the last.
    """

    def __init__(self, owner: Owner, name: str) -> None:
        self.owner, self.name = owner, name
        self.original = self.current()
        self.layers: list[tuple[object, object]] = []
        self.shown = self.original

    def current(self) -> object:
        # vars() and not getattr(): a staticmethod must come back as the staticmethod it was, and an attribute that
        # was inherited must be inherited again.
        attributes: Mapping[str, object] = self.owner if isinstance(self.owner, dict) else vars(self.owner)
        return attributes.get(self.name, _MISSING)

    def show(self) -> None:
        wanted = self.layers[-1][1] if self.layers else self.original
        if self.current() is not self.shown:
            # Somebody else has replaced it since: theirs stays, as undoing it would break what they set up.
            where = getattr(self.owner, "__name__", type(self.owner).__name__)
            warn_once("patch", f"{where}.{self.name} was replaced by other code while patched, and is left as it is")
            return
        if isinstance(self.owner, dict):
            self.owner[self.name] = wanted
        elif wanted is _MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, wanted)
        self.shown = wanted


_slots: dict[tuple[int, str], _Slot] = {}


def push(targets: list[Target]) -> object:
    """Puts every replacement in place, or none; returns a token for `pop`."""
    token = object()
    with _lock:
        try:
            for owner, name, replacement in targets:
                slot = _slots.setdefault((id(owner), name), _Slot(owner, name))
                slot.layers.append((token, replacement))
                slot.show()
        except BaseException:
            pop(token)
            raise
    return token


def pop(token: object) -> None:
    """Takes away what `push` put in place under this token."""
    with _lock:
        for key, slot in list(_slots.items()):
            kept = [layer for layer in slot.layers if layer[0] is not token]
            if len(kept) == len(slot.layers):
                continue
            slot.layers = kept
            slot.show()
            if not kept:
                del _slots[key]


def original(owner: Owner, name: str) -> Any:
    """The attribute as it is without any patch of ours: `getattr`, or the item of a dict."""
    with _lock:
        slot = _slots.get((id(owner), name))
    if slot is None or slot.original is _MISSING:
        return owner[name] if isinstance(owner, dict) else getattr(owner, name)
    value = slot.original
    if isinstance(owner, type) and isinstance(value, (staticmethod, classmethod)):
        return value.__get__(None, owner)
    return value
