"""What a curve found, from the answers of the base model: scores of each rate, and of the curve as a whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from roarfast._temperature import Scaled
from roarfast.metrics.responses import Responses, Row
from roarfast.study.protocol import Scores

_TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class CurveScores:
    """What a curve found: scores of each rate, and of the curve as a whole."""

    rates: dict[float, Scores]
    summary: dict[str, float | None]


def scores_of(answers: Responses, extra: dict[str, npt.NDArray[np.float64]] | None = None) -> dict[float, Scores]:
    """Rate → accuracy, mean probability of the label and cross entropy; `extra` has more, `[R]` each."""
    known = answers.scored is answers.labels or bool((answers.scored == answers.labels).all())
    found: dict[float, Scores] = {}
    entropies, scaled = answers.cross_entropy(), answers.scaled()
    for j, rate in enumerate(answers.rates.tolist()):
        scores: Scores = {"accuracy": float(answers.correct[j].mean())}
        if known:  # else the probability is that of another class than the label
            scores["true_class_probability"] = float(answers.probability[j].mean(dtype=np.float64))
            scores["cross_entropy"] = cross_entropy(answers.probability[j])
        elif entropies is not None:
            scores["cross_entropy"] = float(entropies[j])
        scores |= scaled_scores(scaled[j])
        found[rate] = scores | {name: float(values[j]) for name, values in (extra or {}).items()}
    return found


def scaled_scores(found: Scaled | None) -> dict[str, float]:
    """Extra scores of a cell: the cross entropy after temperature scaling in nats, and the temperature."""
    if found is None:
        return {}
    return {"scaled_cross_entropy": found.cross_entropy, "temperature": found.temperature}


def cross_entropy(probability: npt.NDArray[np.float32]) -> float:
    """Mean of -ln p in nats; p below the smallest normal float32 counts as that."""
    return float(-np.log(np.maximum(probability, _TINY), dtype=np.float64).mean())


def summarise(answers: Responses, score: float, **details: float | None) -> dict[str, float | None]:
    """What the store keeps of a curve beside its cells: its score, and the ends of the curve."""
    ends = {
        f"{name}_{what}": value
        for name, row in (("whole", answers.whole), ("empty", answers.empty))
        for what, value in (("accuracy", _mean(row)), ("probability", float(row.probability.mean(dtype=np.float64))))
    }
    return {"score": score if np.isfinite(score) else None, "images": len(answers)} | ends | details


def _mean(row: Row) -> float:
    return float(row.correct.mean()) if len(row.correct) else float("nan")
