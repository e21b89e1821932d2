"""Results of a run folder."""

from __future__ import annotations

from pathlib import Path

from roarfast.study.records import NO_ESTIMATOR, STAGES, Record, StudyResults
from roarfast.study.store import Store

__all__ = ["NO_ESTIMATOR", "STAGES", "Record", "StudyResults", "load"]


def load(folder: str | Path) -> StudyResults:
    """Reads the results of a run folder, also while the study is running.

    Raises:
        FileNotFoundError: If the folder has no `results.sqlite`.
    """
    with Store.open_readonly(folder) as store:
        return StudyResults(store.records(), store.summary())
