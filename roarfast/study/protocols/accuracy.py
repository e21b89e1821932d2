"""Protocols that test the base model at every rate: ROAD, and removal by a constant without retraining."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast.study.curve_scores import CurveScores
from roarfast.study.protocol import Protocol

if TYPE_CHECKING:
    from roarfast.study.curves import CurveWork

_NO_RETRAIN = (
    "No retraining with a constant fill is shown as what it is, a comparison. The original model meets images unlike any it "
    "was trained on, and scattered filled pixels disturb it more than one filled region of the same size. This can even "
    "reverse the effect of smoothing: a drop of accuracy here mixes what the pixels meant with how odd the image looks."
)


def road(cell: CurveWork) -> CurveScores:
    """Linear imputation, accuracy."""
    return cell.accuracy(cell.linear())


def no_retrain(cell: CurveWork) -> CurveScores:
    """The fill of the study, accuracy."""
    return cell.accuracy(*cell.filled())


PROTOCOLS = (
    Protocol(
        "road",
        "ROAD",
        road,
        trains=False,
        imputes=True,
        removal=("noise", "tolerance"),
        orders=("morf", "lerf"),
        cost=0.05,
        unit="curve",
        score="mean accuracy over the rates",
        score_better="lower",
        rank=30,
    ),
    Protocol(
        "no-retrain",
        "No retraining, constant fill (comparison only)",
        no_retrain,
        trains=False,
        cost=0.05,
        note=_NO_RETRAIN,
        unit="curve",
        score="mean accuracy over the rates",
        score_better="lower",
        rank=50,
    ),
)
