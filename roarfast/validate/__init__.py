"""Claims of the papers that have a known answer, checked without data and without training: `roarfast validate`.

One file per group; importing it registers its checks. To add a claim, decorate a function with `check`. The groups need
torch, and are imported when the checks are asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from roarfast.validate import check as _registry
from roarfast.validate.check import Check, Outcome, Result, UnknownCheck, check, run

if TYPE_CHECKING:
    from roarfast.validate.check import CHECKS, select

_GROUPS = ("flipping", "localisation", "soundness", "theorems", "votes")

__all__ = ["CHECKS", "Check", "Outcome", "Result", "UnknownCheck", "check", "run", "select"]


def __getattr__(name: str) -> object:
    if name not in ("CHECKS", "select"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for group in _GROUPS:
        importlib.import_module(f"{__name__}.{group}")
    return getattr(_registry, name)
