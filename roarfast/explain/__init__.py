"""Estimators and post-processing: attribution maps of many estimators from shared passes over the model. Needs torch."""

from roarfast.explain.aggregate import Aggregation
from roarfast.explain.explainer import Explainer, explain
from roarfast.explain.external import External, from_captum
from roarfast.explain.model_state import Normalized, frozen
from roarfast.explain.names import GRAMMAR, PAPER, Name, parse
from roarfast.explain.options import Options
from roarfast.explain.plan import Plan

__all__ = [
    "Aggregation",
    "Explainer",
    "External",
    "GRAMMAR",
    "Name",
    "Normalized",
    "Options",
    "PAPER",
    "Plan",
    "explain",
    "from_captum",
    "frozen",
    "parse",
]
