"""Estimators and post-processing: attribution maps of many estimators from shared passes over the model. Needs torch."""

from roarfast.explain.aggregate import Aggregation
from roarfast.explain.explainer import Explainer, explain
from roarfast.explain.external import External, from_captum
from roarfast.explain.generate import as_input, generate
from roarfast.explain.hashing import data_hash, model_hash
from roarfast.explain.model_state import Normalized, frozen
from roarfast.explain.names import GRAMMAR, PAPER, Name, parse
from roarfast.explain.options import Options
from roarfast.explain.plan import Plan
from roarfast.explain.postprocess import PostProcess
from roarfast.explain.store import AttributionStore, StoreCorrupt, StoredMaps, StoreMismatch

__all__ = [
    "Aggregation",
    "AttributionStore",
    "Explainer",
    "External",
    "GRAMMAR",
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
]
