"""Where the time of a study went: the model's passes, and the overhead around them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

MAX_OVERHEAD = 0.10
"""The aim: at most this share of the work is not done by a model."""

PASSES = {
    "training": "forward and backward passes and optimiser steps of base models and retrained models",
    "evaluation": "forward passes on test images, with making their batches",
    "map_passes": "forward and backward passes that the estimators ask of the base models",
}
"""Stage → what it is; all of them are the model at work."""

OVERHEAD = {
    "map_other": "maps: noise, averages over passes, channels to pixels, total variation, writing and checksums",
    "codes": "post-processing of maps, ranking of pixels, total variation of masks",
    "impute": "linear imputation of removed pixels, or fills that depend on the image",
    "data": "making the batches of training: gather, remove, crop, flip, normalise",
    "start": "reading data and working out tasks; start and imports of worker processes",
    "other": "building models, checkpoints, reading and writing files, example strips",
}
"""Stage → what it is; everything that is no pass."""

LEGACY = {"explain": "maps as a whole: the run was made before their passes were timed apart"}
NAMES = {"map_passes": "maps: passes", "map_other": "maps: the rest", "explain": "maps", "impute": "imputation"}


@dataclass(frozen=True)
class Times:
    """Seconds per stage, and what they say.

    Attributes:
        passes: Stages in which a model works.
        rest: All others, the overhead.
        unknown: Seconds of stages that hold both.
        waiting: Seconds in which workers had nothing to do, as no task was ready; part of neither. None if no run of
            this folder ended by itself.
    """

    passes: dict[str, float]
    rest: dict[str, float]
    unknown: float = 0.0
    waiting: float | None = None

    @property
    def total(self) -> float:
        """Seconds of work, over all workers."""
        return sum(self.passes.values()) + sum(self.rest.values()) + self.unknown

    @property
    def low(self) -> float:
        """Share of overhead, if all that is unknown were passes."""
        return sum(self.rest.values()) / self.total if self.total > 0 else float("nan")

    @property
    def high(self) -> float:
        """Share of overhead, if nothing that is unknown were passes."""
        return self.low + self.unknown / self.total if self.total > 0 else float("nan")

    @property
    def share(self) -> str:
        """The share of overhead as text, as in "6.1 %", or "2.0 to 9.1 %" where it is not known exactly."""
        low, high = f"{100 * self.low:.1f}", f"{100 * self.high:.1f}"
        return f"{high} %" if low == high else f"{low} to {high} %"

    @property
    def aim(self) -> str:
        """The share of overhead that a study should stay below."""
        return f"{100 * MAX_OVERHEAD:.0f} %"

    @property
    def verdict(self) -> str:
        """How the overhead compares with the aim."""
        return "within" if self.high <= MAX_OVERHEAD else "above" if self.low > MAX_OVERHEAD else "perhaps above"


def times(meta: Mapping[str, Any]) -> Times:
    """From the metadata of a study.

    Example:
        >>> t = times({"stage_seconds": {"training": 80, "evaluation": 10, "codes": 10}})
        >>> t.total, t.low, t.high
        (100.0, 0.1, 0.1)
    """
    stages = {name: float(seconds) for name, seconds in (meta.get("stage_seconds") or {}).items()}
    return Times(
        {name: stages.get(name, 0.0) for name in PASSES},
        {name: seconds for name, seconds in stages.items() if name not in PASSES and name not in LEGACY},
        sum(stages.get(name, 0.0) for name in LEGACY),
        meta.get("waiting_seconds"),
    )
