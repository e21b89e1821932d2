"""Curves of the class as pixels go or come: deletion and insertion (RISE), pixel flipping (Wang and Wang)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast.study.curve_scores import CurveScores, scores_of, summarise
from roarfast.study.protocol import Protocol

if TYPE_CHECKING:
    from roarfast.study.curves import CurveWork

_RATES = (0.01, 0.02, 0.05, *(k / 10 for k in range(1, 10)))
_INSERTION_BLUR = 10.0  # pixels: as RISE and `roarfast.metrics` have it


def deletion(cell: CurveWork) -> CurveScores:
    """The fill of the study, probability of the label."""
    how, filled = cell.filled()
    answers = cell.ask(how, filled=filled)
    return CurveScores(scores_of(answers), summarise(answers, answers.area("probability")))


def insertion(cell: CurveWork) -> CurveScores:
    """Pixels put back into the blurred image, probability of the class predicted for the whole image."""
    answers = cell.ask(cell.perturbation(keep=True, fill="blur", blur=_INSERTION_BLUR), scored="predicted")
    return CurveScores(scores_of(answers), summarise(answers, answers.area("probability")))


def flip(cell: CurveWork) -> CurveScores:
    """Black pixels, logit of the label."""
    answers = cell.ask(cell.perturbation(fill="zero"))
    return CurveScores(scores_of(answers, {"logit": answers.curve("logit")}), summarise(answers, answers.area("logit")))


PROTOCOLS = (
    Protocol(
        "deletion",
        "Deletion",
        deletion,
        trains=False,
        cost=0.3,
        shown="scores",
        unit="curve",
        rates=_RATES,
        score="area under the probability of the class",
        score_better="lower",
        rank=60,
    ),
    Protocol(
        "insertion",
        "Insertion",
        insertion,
        trains=False,
        keeps=True,
        removal=(),
        allowed_orders=("morf",),
        cost=0.3,
        shown="scores",
        unit="curve",
        rates=_RATES,
        score="area under the probability of the predicted class",
        rank=70,
    ),
    Protocol(
        "flip",
        "Pixel flipping",
        flip,
        trains=False,
        removal=(),
        cost=0.3,
        shown="scores",
        unit="curve",
        rates=_RATES,
        score="area under the logit of the class",
        score_better="lower",
        rank=80,
    ),
)
