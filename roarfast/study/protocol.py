"""`Protocol`: the record of what is removed from which images, and which model meets what is left.

Config, keys, plan, ETA, estimate, executor and report read these fields. A file of `roarfast/study/protocols/` has the records
of its protocols in `PROTOCOLS`; one of your own is named in the config as `"package.module:object"`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from roarfast._objects import load_object

Scores = dict[str, float | None]
"""Scores of a cell by name."""

Run = Callable[[Any], Any]
"""Takes a `cells.CellWork` and returns scores by name; for `unit="curve"` a `curves.CurveWork` and a `CurveScores`."""


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
        whole_test: Whether the test images stay whole; those that a model is trained on are modified.
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
        matched: Whether it also removes as many random pixels (`CurveWork.random_codes_like`), which have a seed.
        features: Whether it can remove single features (a channel of a pixel): `explain.aggregate = "none(…)"`.
        score: What a curve is summed up to, in a few words; `""` if it is not.
        score_better: Which way that is better.
        rank: Where it stands in the report.
        version: Raised when its results change.
    """

    name: str
    title: str
    run: Run | str
    trains: bool
    imputes: bool = False
    keeps: bool = False
    whole_test: bool = False
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
    matched: bool = False
    features: bool = False
    score: str = ""
    score_better: Literal["higher", "lower"] = "higher"
    rank: int = 100
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
