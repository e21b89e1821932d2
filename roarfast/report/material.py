"""What the sections of the page are made of, and what several of them write."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from roarfast.report.audit import Audit
from roarfast.report.html import TableIds, Td, percent
from roarfast.report.leakage import Leakage
from roarfast.report.parts import StudyParts
from roarfast.report.plotting import Figure
from roarfast.report.stats import Interval
from roarfast.report.words import notes
from roarfast.study.records import StudyResults


@dataclass(frozen=True)
class Material:
    """All that the page is made of. `curves`, `arrows` and `scatters` stand in the order of `audits`."""

    results: StudyResults
    audits: list[Audit]
    curves: Sequence[Figure]
    arrows: Sequence[Figure | None]
    scatters: Sequence[Figure | None]
    strips: Sequence[Figure]
    leakages: Sequence[tuple[Leakage, Figure]]
    config_text: str
    parts: Sequence[tuple[StudyParts, Figure]] = ()
    ids: TableIds = field(default_factory=TableIds)


def new_notes(m: Material, i: int) -> list[str]:
    """The notes of a panel that no panel before it has: what holds for all is said once."""
    said = {words for a in m.audits[:i] for words in notes(a.panel)}
    return [words for words in notes(m.audits[i].panel) if words not in said]


def accuracy_td(accuracy: Interval, n_trials: int) -> Td:
    """Mean ± half-width in percent, with the number of trials where some are missing."""
    text = percent(accuracy.mean)
    if not math.isnan(accuracy.half_width):
        text += f" ± {percent(accuracy.half_width)}"
    if accuracy.n < n_trials:
        text += f" ({accuracy.n})"
    return Td(text, accuracy.mean)
