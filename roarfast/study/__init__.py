"""Studies: a config file becomes cells, the executor runs them, the store keeps what they found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roarfast.study.errors import ConfigError, StudyError
from roarfast.study.results import Record, StudyResults, load

if TYPE_CHECKING:
    from roarfast.study.study import Study

__all__ = ["ConfigError", "Record", "Study", "StudyError", "StudyResults", "load"]


def __getattr__(name: str) -> type[Study]:
    if name == "Study":
        from roarfast.study.study import Study  # reading results needs no torch

        return Study
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
