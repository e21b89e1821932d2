"""Rows of the store as Python has them, and the digests that tell a damaged one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from roarfast.study.keys import digest

STATUSES = ("done", "failed", "pending", "running")
FIRST_SCORES = (
    "accuracy",
    "true_class_probability",
    "removed_fraction",
    "removed_fraction_train",
    "tv_map",
    "tv_mask",
)
LATER_SCORES = ("cross_entropy",)
SCORES = (*FIRST_SCORES, *LATER_SCORES)
"""Scores with a column of their own."""
_LATER_COLUMNS = (*LATER_SCORES, "torch")
"""Absent from the digests of rows that have none, which are those of before they were there."""

CELL_COLUMNS = (
    "key",
    "protocol",
    "estimator",
    "postprocess",
    "order",
    "drop",
    "trial",
    "null",
    *FIRST_SCORES,
    "extra",
    "seconds",
    "error",
)
WORK_COLUMNS = ("key", "kind", "label", "info", "seconds")
"""What the digest of a row is made of."""


class CellRow(TypedDict):
    """A cell; `seconds` and `extra` are JSON."""

    key: str
    position: int
    protocol: str
    dataset: str
    estimator: str
    postprocess: str
    order: str
    drop: float
    trial: int
    status: str
    accuracy: float | None
    true_class_probability: float | None
    removed_fraction: float | None
    removed_fraction_train: float | None
    tv_map: float | None
    tv_mask: float | None
    seconds: str | None
    error: str | None
    started: str | None
    finished: str | None
    null: str
    extra: str
    digest: str | None
    cross_entropy: float | None
    torch: str | None


class WorkRow(TypedDict):
    """Finished shared work, with `info` and `seconds` decoded."""

    key: str
    kind: str
    label: str
    info: dict[str, Any]
    seconds: dict[str, float]
    finished: str
    digest: str | None


class SessionRow(TypedDict):
    """A process that worked on the study, with `facts` decoded."""

    id: int
    started: str
    finished: str | None
    facts: dict[str, Any]


def row_digest(row: Mapping[str, object], columns: tuple[str, ...]) -> str:
    """What a finished row of `cells` or `work` is stored with."""
    later = {name: row[name] for name in _LATER_COLUMNS if row.get(name) is not None}
    return digest({name: row[name] for name in columns} | later)


def is_whole(row: Mapping[str, object], table: str) -> bool:
    """Whether a finished row of `cells` or `work` is certainly what was written."""
    columns = CELL_COLUMNS if table == "cells" else WORK_COLUMNS
    return row.get("status", "done") == "done" and row["digest"] is not None and not is_damaged(row, columns)


def is_damaged(row: Mapping[str, object], columns: tuple[str, ...]) -> bool:
    """Whether a row is not what was written; one without a digest (unfinished, or of version 3) cannot be told."""
    if "status" in row and row["status"] not in STATUSES:
        return True
    if row["digest"] is None or row.get("status", "done") != "done":
        return False
    try:
        return bool(row_digest(row, columns) != row["digest"])
    except (TypeError, ValueError):  # bytes that are no text, or NaN
        return True
