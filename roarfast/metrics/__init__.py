"""Scores without retraining, for people with a model, images and maps of their own.

Needs torch, which is imported with the first name that needs it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roarfast.metrics.damage import equal_damages, parts
    from roarfast.metrics.damage_curve import EqualDamage, common_low, equal_damage, excess
    from roarfast.metrics.damage_parts import Parts
    from roarfast.metrics.engine import make_codes, respond
    from roarfast.metrics.inputs import Inputs, read_inputs
    from roarfast.metrics.nulls import NULLS, Null, null_maps
    from roarfast.metrics.perturbation import Perturbation
    from roarfast.metrics.responses import Responses, ResponsesCorrupt

_HOMES = {
    "damage": ("equal_damages", "parts"),
    "damage_curve": ("EqualDamage", "common_low", "equal_damage", "excess"),
    "damage_parts": ("Parts",),
    "nulls": ("NULLS", "Null", "null_maps"),
    "inputs": ("Inputs", "read_inputs"),
    "perturbation": ("Perturbation",),
    "engine": ("make_codes", "respond"),
    "responses": ("Responses", "ResponsesCorrupt"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "EqualDamage",
    "Inputs",
    "NULLS",
    "Null",
    "Parts",
    "Perturbation",
    "Responses",
    "ResponsesCorrupt",
    "common_low",
    "equal_damage",
    "equal_damages",
    "excess",
    "make_codes",
    "null_maps",
    "parts",
    "read_inputs",
    "respond",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
