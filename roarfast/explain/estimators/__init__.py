"""The estimators of this package: each file of this folder has the records of its own in `ESTIMATORS`.

The files need torch, so they are imported when the first name is looked up.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roarfast.explain.record import Estimator


@functools.cache
def known() -> dict[str, Estimator]:
    """Name → record, of every file in this folder: those from shared passes first, then those without a model.

    Example:
        >>> list(known())[:5]
        ['gb', 'gc', 'gi', 'grad', 'ig']
    """
    modules = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
    records: list[Estimator] = [record for module in modules for record in module.ESTIMATORS]
    records.sort(key=lambda r: (r.of_pass is None, r.of_image is None, r.name))
    found = {record.name: record for record in records}
    if len(found) < len(records):
        raise RuntimeError(f"two estimators have one name: {sorted(record.name for record in records)}")
    return found


def find(name: str, own: Mapping[str, Estimator] | None = None) -> Estimator:
    """The record of a base: one of the user's, or one of ours."""
    return own[name] if own and name in own else known()[name]
