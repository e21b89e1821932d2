"""Estimators and post-processing: attribution maps of many estimators from shared passes over the model.

Needs torch, which is imported with the first name that needs it; names and post-processings do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast._lazy import names_of

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
__getattr__ = names_of(__name__, _HOMES)

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
