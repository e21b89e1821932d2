"""The protocols of this package: each file of this folder has the records of its own in `PROTOCOLS`.

The files do not import torch: configs and reports read the records, and what a protocol needs for its work is in the `cell`
that it is given.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from roarfast._objects import is_reference, load_object
from roarfast.study.errors import nearest
from roarfast.study.protocol import Protocol


def _known() -> dict[str, Protocol]:
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    records: list[Protocol] = [record for module in modules for record in module.PROTOCOLS]
    found = {record.name: record for record in sorted(records, key=lambda record: (record.rank, record.name))}
    if len(found) < len(records):
        raise RuntimeError(f"two protocols have one name: {sorted(record.name for record in records)}")
    return found


PROTOCOLS: dict[str, Protocol] = _known()
"""Name → record, in the order of the report."""


@functools.cache
def find(name: str) -> Protocol:
    """The protocol of a name in a config.

    Raises:
        ValueError: If there is none.
    """
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    if not is_reference(name):
        raise ValueError(f"there is no protocol {name!r}{nearest(name, PROTOCOLS)} (or 'package.module:object')")
    found = load_object(name)
    if not isinstance(found, Protocol):
        raise ValueError(f"{name!r} is no roarfast.study.protocol.Protocol, but {type(found).__name__}")
    return found


def describe(name: str) -> Protocol:
    """The protocol of stored results: one that cannot be found here any more is shown by its name."""
    try:
        return find(name)
    except ValueError:
        return Protocol(name, name, "", trains=False)


def position(name: str) -> int:
    """Where a protocol stands in the report."""
    return list(PROTOCOLS).index(name) if name in PROTOCOLS else len(PROTOCOLS)
