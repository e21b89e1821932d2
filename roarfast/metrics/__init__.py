"""Scores without retraining, for people with a model, images and maps of their own.

Needs torch, which is imported with the first name that needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast._lazy import names_of

if TYPE_CHECKING:
    from roarfast.metrics.audit_results import Audit, join_audits
    from roarfast.metrics.auditing import audit
    from roarfast.metrics.baselines import baseline_map, spearman
    from roarfast.metrics.damage import equal_damages, parts
    from roarfast.metrics.damage_curve import EqualDamage, common_low, equal_damage, equal_damage_draws, excess
    from roarfast.metrics.damage_parts import Parts
    from roarfast.metrics.distances import hausdorff, introduce, remove, separation
    from roarfast.metrics.engine import make_codes, respond
    from roarfast.metrics.evaluation import evaluate
    from roarfast.metrics.finetuning import finetune
    from roarfast.metrics.inputs import Inputs, read_inputs
    from roarfast.metrics.nulls import NULLS, Null, null_maps
    from roarfast.metrics.perturbation import Perturbation
    from roarfast.metrics.pgd import Enhanced, enhance
    from roarfast.metrics.problem import Problem
    from roarfast.metrics.record import Line, Outcome, Score, get_score, register, score_names
    from roarfast.metrics.resampling import Estimate, Resampled, bootstrap, holm
    from roarfast.metrics.responses import Responses, ResponsesCorrupt
    from roarfast.metrics.results import Comparison, Curve, Result, compare
    from roarfast.metrics.sanity import Randomization, parameter_randomization, untrained
    from roarfast.metrics.scores.reference_flipping import dice, expected_dice, reference_map
    from roarfast.metrics.scores.soundness import Convention, Soundness, soundness_along, soundness_of
    from roarfast.metrics.table import Scores

_HOMES = {
    "audit_results": ("Audit", "join_audits"),
    "auditing": ("audit",),
    "baselines": ("baseline_map", "spearman"),
    "damage": ("equal_damages", "parts"),
    "damage_curve": ("EqualDamage", "common_low", "equal_damage", "equal_damage_draws", "excess"),
    "damage_parts": ("Parts",),
    "distances": ("hausdorff", "introduce", "remove", "separation"),
    "engine": ("make_codes", "respond"),
    "pgd": ("Enhanced", "enhance"),
    "evaluation": ("evaluate",),
    "finetuning": ("finetune",),
    "inputs": ("Inputs", "read_inputs"),
    "nulls": ("NULLS", "Null", "null_maps"),
    "perturbation": ("Perturbation",),
    "problem": ("Problem",),
    "record": ("Line", "Outcome", "Score", "get_score", "register", "score_names"),
    "resampling": ("Estimate", "Resampled", "bootstrap", "holm"),
    "responses": ("Responses", "ResponsesCorrupt"),
    "results": ("Comparison", "Curve", "Result", "compare"),
    "sanity": ("Randomization", "parameter_randomization", "untrained"),
    "scores.reference_flipping": ("dice", "expected_dice", "reference_map"),
    "scores.soundness": ("Convention", "Soundness", "soundness_along", "soundness_of"),
    "table": ("Scores",),
}
__getattr__ = names_of(__name__, _HOMES)

__all__ = [
    "Audit",
    "Comparison",
    "Convention",
    "Curve",
    "Enhanced",
    "EqualDamage",
    "Estimate",
    "Inputs",
    "Line",
    "NULLS",
    "Null",
    "Outcome",
    "Parts",
    "Perturbation",
    "Problem",
    "Randomization",
    "Resampled",
    "Responses",
    "ResponsesCorrupt",
    "Result",
    "Score",
    "Scores",
    "Soundness",
    "audit",
    "baseline_map",
    "bootstrap",
    "common_low",
    "compare",
    "dice",
    "enhance",
    "equal_damage",
    "equal_damage_draws",
    "equal_damages",
    "evaluate",
    "excess",
    "expected_dice",
    "finetune",
    "get_score",
    "hausdorff",
    "holm",
    "introduce",
    "join_audits",
    "make_codes",
    "null_maps",
    "parameter_randomization",
    "parts",
    "read_inputs",
    "reference_map",
    "register",
    "remove",
    "respond",
    "score_names",
    "separation",
    "soundness_along",
    "soundness_of",
    "spearman",
    "untrained",
]
