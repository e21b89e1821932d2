"""Estimators and post-processing: attribution maps of many estimators from shared passes over the model.

Needs torch, which is imported with the first name that needs it; names and post-processings do not.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from roarfast.explain.aggregate import Aggregation
    from roarfast.explain.explainer import Explainer, explain
    from roarfast.explain.external import External, from_captum
    from roarfast.explain.generation import as_input, generate
    from roarfast.explain.hashing import data_hash, model_hash
    from roarfast.explain.model_state import Normalized, frozen
    from roarfast.explain.names import PAPER, Name, parse

    GRAMMAR: str
    from roarfast.explain.options import Options
    from roarfast.explain.plan import Plan
    from roarfast.explain.postprocess import PostProcess
    from roarfast.explain.record import Estimator, Gradients
    from roarfast.explain.store import AttributionStore, StoreCorrupt, StoredMaps, StoreMismatch
    from roarfast.explain.strip import picture_strip

_HOMES = {
    "aggregate": ("Aggregation",),
    "explainer": ("Explainer", "explain"),
    "external": ("External", "from_captum"),
    "generation": ("as_input", "generate"),
    "hashing": ("data_hash", "model_hash"),
    "model_state": ("Normalized", "frozen"),
    "names": ("GRAMMAR", "PAPER", "Name", "parse"),
    "options": ("Options",),
    "plan": ("Plan",),
    "postprocess": ("PostProcess",),
    "record": ("Estimator", "Gradients"),
    "store": ("AttributionStore", "StoreCorrupt", "StoreMismatch", "StoredMaps"),
    "strip": ("picture_strip",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "Aggregation",
    "AttributionStore",
    "Estimator",
    "Explainer",
    "External",
    "GRAMMAR",
    "Gradients",
    "Name",
    "Normalized",
    "Options",
    "PAPER",
    "Plan",
    "PostProcess",
    "StoreCorrupt",
    "StoreMismatch",
    "StoredMaps",
    "as_input",
    "data_hash",
    "explain",
    "from_captum",
    "frozen",
    "generate",
    "model_hash",
    "parse",
    "picture_strip",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
