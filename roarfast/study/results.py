"""Results of a run folder."""

from __future__ import annotations

from pathlib import Path

from roarfast.study.protocols import describe
from roarfast.study.records import NO_ESTIMATOR, STAGES, Curve, Record, StudyResults, curves_of
from roarfast.study.store import Store

__all__ = ["NO_ESTIMATOR", "STAGES", "Curve", "Record", "StudyResults", "load"]


def load(folder: str | Path) -> StudyResults:
    """Reads the results of a run folder, also while the study is running.

    Args:
        folder: The run folder, as `runs/mine`.

    Raises:
        FileNotFoundError: If the folder has no `results.sqlite`.

    Example:
        >>> load("runs/nothing here")
        Traceback (most recent call last):
        FileNotFoundError: ...
    """
    with Store.open_readonly(folder) as store:
        records = store.records()
        return StudyResults(records, store.summary(), curves_of(records, store.work()))


def curve_scores(results: StudyResults) -> dict[str, dict[str, list[float]]]:
    """Scores of curves as `roarfast.metrics.agreement` takes them: protocol and order → map → one value per trial.

    Signed so that more is better; own masks only; maps that lack a trial are left out.
    """
    table: dict[str, dict[str, dict[int, float]]] = {}
    for curve in results.curves:
        if curve.null == "own":
            sign = 1.0 if describe(curve.protocol).better_score(curve.order) == "higher" else -1.0
            row = table.setdefault(f"{curve.protocol} {curve.order}", {})
            value = float("nan") if curve.score is None else sign * curve.score
            row.setdefault(f"{curve.estimator} {curve.postprocess}", {})[curve.trial] = value
    trials = {curve.trial for curve in results.curves}
    return {
        name: {one: [by[t] for t in sorted(trials)] for one, by in row.items() if trials <= set(by)}
        for name, row in table.items()
    }
