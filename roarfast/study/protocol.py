"""The protocols of studies, one record each: what is removed from which images, and which model meets what is left.

Config, keys, plan, ETA, estimate, executor and report read these fields. A protocol of one's own is a `Protocol` named in
the config as `"package.module:object"`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from roarfast._objects import is_reference, load_object
from roarfast.study.errors import nearest

Run = Callable[[Any], Any]
"""Takes a `roarfast.study.cells.CellWork`; returns scores by name, or for `unit="curve"` a `curves.CurveScores`."""

_NO_RETRAIN = (
    "No retraining with a constant fill is shown as what it is, a comparison. The original model meets images unlike any it "
    "was trained on, and scattered filled pixels disturb it more than one filled region of the same size. This can even "
    "reverse the effect of smoothing: a drop of accuracy here mixes what the pixels meant with how odd the image looks."
)


@dataclass(frozen=True)
class Protocol:
    """One protocol.

    Attributes:
        name: As in configs.
        title: As in the report.
        run: What a worker does for a cell, or where that is (`"package.module:function"`, imported by workers only).
        trains: Whether a model is trained per cell: then the train images are modified too.
        imputes: Whether removed pixels are imputed from their neighbours.
        keeps: Whether the drop rate says what is kept (KAR).
        removal: Keys of `[removal]` that its results depend on.
        orders: The orders it runs in unless the config says otherwise.
        allowed_orders: The orders that make sense.
        cost: Of a cell relative to one training, until one has been timed.
        shown: `"panel"` of the report, `"leakage"` (accuracy of the masks alone), or `"scores"`: only the score of its curves.
        note: What to know before reading its results.
        unit: What one task computes: a `"cell"`, or a `"curve"`, all rates of (estimator, post-processing, order, trial).
        rule: Which pixels count as the top; `""`: `removal.rule`.
        rates: The rates it runs at unless the config has some.
        values: Whether it needs the values of maps, not only their order: then `block`, which has none, is left out.
        score: What a curve is summed up to, in a few words; `""` if it is not.
        score_better: Which way that is better.
        version: Raised when its results change.
    """

    name: str
    title: str
    run: Run | str
    trains: bool
    imputes: bool = False
    keeps: bool = False
    removal: tuple[str, ...] = ("fill",)
    orders: tuple[str, ...] = ("morf",)
    allowed_orders: tuple[str, ...] = ("morf", "lerf")
    cost: float = 1.0
    shown: Literal["panel", "leakage", "scores"] = "panel"
    note: str = ""
    unit: Literal["cell", "curve"] = "cell"
    rule: str = ""
    rates: tuple[float, ...] = ()
    values: bool = False
    score: str = ""
    score_better: Literal["higher", "lower"] = "higher"
    version: int = 1

    def better(self, order: str) -> Literal["higher", "lower"]:
        """Removing what matters should hurt; keeping what matters or removing the rest should not."""
        return "higher" if self.keeps != (order == "lerf") else "lower"

    def better_score(self, order: str) -> Literal["higher", "lower"]:
        """Which way the score of a curve is better: with the least relevant pixels first, the other one."""
        flips = order == "lerf" and "morf" in self.allowed_orders
        return {"higher": "lower", "lower": "higher"}[self.score_better] if flips else self.score_better  # type: ignore[return-value]

    def why_better(self, order: str) -> str:
        """The reason for `better`."""
        if self.keeps:
            return (
                "keeping what does not matter should not help"
                if order == "lerf"
                else "keeping what matters should preserve accuracy"
            )
        return (
            "removing what does not matter should not hurt" if order == "lerf" else "removing what matters should hurt"
        )

    def removed(self, drop: float) -> float:
        """The fraction of pixels that goes at a rate."""
        return 1 - drop if self.keeps else drop

    @property
    def rate_name(self) -> str:
        """What its drop rate counts."""
        return "fraction of pixels kept" if self.keeps else "fraction of pixels removed"

    def work(self) -> Run:
        """The function behind `run`."""
        return load_object(self.run) if isinstance(self.run, str) else self.run  # type: ignore[no-any-return]


_CELLS, _CURVES = "roarfast.study.cells:", "roarfast.study.curves:"
_TENTHS = tuple(k / 10 for k in range(1, 10))
_EARLY = (0.01, 0.02, 0.05, *_TENTHS)
_IMPUTED = ("noise", "tolerance")
PROTOCOLS: dict[str, Protocol] = {
    p.name: p
    for p in (
        Protocol("roar", "ROAR", _CELLS + "retrain", trains=True),
        Protocol("kar", "KAR", _CELLS + "retrain", trains=True, keeps=True, allowed_orders=("morf",)),
        Protocol(
            "road", "ROAD", _CURVES + "road", trains=False, imputes=True, removal=_IMPUTED, orders=("morf", "lerf"), cost=0.05,
            unit="curve", score="mean accuracy over the rates", score_better="lower",
        ),
        Protocol(
            "road-retrain", "ROAD with retraining", _CELLS + "retrain", trains=True, imputes=True, removal=_IMPUTED, cost=1.3,
        ),
        Protocol(
            "no-retrain", "No retraining, constant fill (comparison only)", _CURVES + "no_retrain", trains=False, cost=0.05,
            note=_NO_RETRAIN, unit="curve", score="mean accuracy over the rates", score_better="lower",
        ),
        Protocol(
            "deletion", "Deletion", _CURVES + "deletion", trains=False, cost=0.3, shown="scores", unit="curve", rates=_EARLY,
            score="area under the probability of the class", score_better="lower",
        ),
        Protocol(
            "insertion", "Insertion", _CURVES + "insertion", trains=False, keeps=True, removal=(), allowed_orders=("morf",),
            cost=0.3, shown="scores", unit="curve", rates=_EARLY, score="area under the probability of the predicted class",
        ),
        Protocol(
            "flip", "Pixel flipping", _CURVES + "flip", trains=False, removal=(), cost=0.3, shown="scores", unit="curve",
            rates=_EARLY, score="area under the logit of the class", score_better="lower",
        ),
        Protocol(
            "completeness", "Completeness", _CURVES + "completeness", trains=False, imputes=True, removal=_IMPUTED,
            allowed_orders=("morf",), cost=0.5, shown="scores", unit="curve", rule="value", rates=_TENTHS, values=True,
            score="accuracy lost above a threshold, mean over thresholds",
        ),
        Protocol(
            "soundness", "Soundness", _CURVES + "soundness", trains=False, imputes=True, removal=_IMPUTED, orders=("lerf",),
            allowed_orders=("lerf",), cost=2.0, shown="scores", unit="curve", rule="exact",
            rates=tuple(k / 100 for k in range(2, 99)), values=True,
            score="share of attribution on pixels that raised the accuracy, halfway between empty and whole images",
        ),
        Protocol("mask-only", "Masks alone", _CELLS + "train_on_masks", trains=True, removal=(), shown="leakage"),
    )
}  # fmt: skip
"""Name → record, in the order of the report."""


@functools.cache
def find(name: str) -> Protocol:
    """The protocol of a name in a config.

    Raises:
        ValueError: If there is none.
    """
    if name in PROTOCOLS:
        return PROTOCOLS[name]
    if not is_reference(name):
        raise ValueError(f"there is no protocol {name!r}{nearest(name, PROTOCOLS)} (or 'package.module:object')")
    found = load_object(name)
    if not isinstance(found, Protocol):
        raise ValueError(f"{name!r} is no roarfast.study.protocol.Protocol, but {type(found).__name__}")
    return found


def describe(name: str) -> Protocol:
    """The protocol of stored results: one that cannot be found here any more is shown by its name."""
    try:
        return find(name)
    except ValueError:
        return Protocol(name, name, "", trains=False)


def position(name: str) -> int:
    """Where a protocol stands in the report."""
    return list(PROTOCOLS).index(name) if name in PROTOCOLS else len(PROTOCOLS)
