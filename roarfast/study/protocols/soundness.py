"""Completeness and soundness (Li et al.): is what matters in the map, and does what is in the map matter?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast.study.curve_scores import CurveScores, scores_of, summarise
from roarfast.study.protocol import Protocol

if TYPE_CHECKING:
    from roarfast.study.curves import CurveWork


def completeness(cell: CurveWork) -> CurveScores:
    """Accuracy lost above a threshold, and its excess over as many random pixels of each image."""
    codes = cell.curve_codes()
    answers = cell.ask(cell.linear(), codes=codes)
    other = cell.ask(cell.linear(), codes=cell.random_codes_like(codes), suffix="-matched")
    lost, random_lost = (one.whole.of("accuracy").mean() - one.curve("accuracy") for one in (answers, other))
    extra = {"accuracy_lost": lost, "excess": lost - random_lost}
    return CurveScores(
        scores_of(answers, extra),
        summarise(answers, float(lost.mean()), excess=float((lost - random_lost).mean())),
    )


def soundness(cell: CurveWork) -> CurveScores:
    """The share of attribution on pixels that raised the accuracy as they were shown."""
    codes = cell.curve_codes()
    answers = cell.ask(cell.linear(), codes=codes)
    found, levels = cell.soundness(answers, codes)
    aim = (float(answers.empty.correct.mean()) + float(answers.whole.correct.mean())) / 2
    summary = summarise(answers, float(found.at([aim])[0]), level=aim, zero_maps=found.empty, **levels)
    return CurveScores(scores_of(answers, {"soundness": found.value[::-1]}), summary)


PROTOCOLS = (
    Protocol(
        "completeness",
        "Completeness",
        completeness,
        trains=False,
        imputes=True,
        removal=("noise", "tolerance"),
        allowed_orders=("morf",),
        cost=0.5,
        shown="scores",
        unit="curve",
        rule="value",
        rates=tuple(k / 10 for k in range(1, 10)),
        values=True,
        matched=True,
        score="accuracy lost above a threshold, mean over thresholds",
        rank=90,
    ),
    Protocol(
        "soundness",
        "Soundness",
        soundness,
        trains=False,
        imputes=True,
        removal=("noise", "tolerance"),
        orders=("lerf",),
        allowed_orders=("lerf",),
        cost=2.0,
        shown="scores",
        unit="curve",
        rule="exact",
        rates=tuple(k / 100 for k in range(2, 99)),
        values=True,
        score="share of attribution on pixels that raised the accuracy, halfway between empty and whole images",
        rank=100,
    ),
)
