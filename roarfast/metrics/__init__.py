"""Scores without retraining, for people with a model, images and maps of their own.

Needs torch, which is imported with the first name that needs it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roarfast.metrics.engine import make_codes, respond
    from roarfast.metrics.inputs import Inputs, read_inputs
    from roarfast.metrics.perturbation import Perturbation
    from roarfast.metrics.responses import Responses, ResponsesCorrupt

_HOMES = {
    "inputs": ("Inputs", "read_inputs"),
    "perturbation": ("Perturbation",),
    "engine": ("make_codes", "respond"),
    "responses": ("Responses", "ResponsesCorrupt"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["Inputs", "Perturbation", "Responses", "ResponsesCorrupt", "make_codes", "read_inputs", "respond"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
