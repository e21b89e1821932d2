"""Results of a run folder."""

from __future__ import annotations

from pathlib import Path

from roarfast.study.records import NO_ESTIMATOR, STAGES, Curve, Record, StudyResults, curves_of
from roarfast.study.store import Store

__all__ = ["NO_ESTIMATOR", "STAGES", "Curve", "Record", "StudyResults", "load"]


def load(folder: str | Path) -> StudyResults:
    """Reads the results of a run folder, also while the study is running.

    Raises:
        FileNotFoundError: If the folder has no `results.sqlite`.
    """
    with Store.open_readonly(folder) as store:
        records = store.records()
        return StudyResults(records, store.summary(), curves_of(records, store.work()))
