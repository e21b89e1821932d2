"""Results of scores: numbers with intervals, curves, comparisons on the same images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from roarfast.metrics.record import Detail, Line, Outcome, Score
from roarfast.metrics.resampling import Resampled, bootstrap, holm, weighted_mean
from roarfast.metrics.responses import Responses

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """A curve with a band of 95 % over resampled images.

    Attributes:
        x: float64 `[R]`.
        value: float64 `[R]`.
        low: float64 `[R]`.
        high: float64 `[R]`.
        x_label: What x is.
        y_label: What the value is.
        responses: What it was computed from.
    """

    x: Floats
    value: Floats
    low: Floats
    high: Floats
    x_label: str
    y_label: str
    responses: Responses | None = None

    @classmethod
    def of(cls, line: Line, count: int, seed: int) -> Curve:
        """The curve of single samples' values, with its band."""
        found = bootstrap(weighted_mean(line.values), line.values.shape[1], count, seed, line.mean)
        return cls(line.x, found.value, *found.interval(), line.x_label, line.y_label, line.responses)


@dataclass(frozen=True)
class Result:
    """One score of one set of maps.

    Attributes:
        score: The score's name.
        map: The maps' name.
        value: The score.
        low: Lower end of its 95 % interval over resampled images.
        high: Upper end.
        better: `"higher"`, `"lower"` or `"neither"`.
        measures: What the score measures.
        per_image: float64 `[N]` whose mean is the score; None for scores that are no mean.
        per_class: float64 `[classes]`, the score of the images of each class; NaN without images.
        resampled: The score under each resample; equal resamples for all maps.
        curves: By name.
        details: Other numbers of the score.
        notes: What is unusual.
        kind: `"performance"` (the model was asked) or `"plausibility"`.
    """

    score: str
    map: str
    value: float
    low: float
    high: float
    better: str
    measures: str
    per_image: Floats | None
    per_class: Floats
    resampled: Resampled = field(repr=False)
    curves: Mapping[str, Curve] = field(repr=False)
    details: Mapping[str, Detail] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    kind: str = "performance"

    @property
    def curve(self) -> Curve:
        """The score's own curve."""
        if not self.curves:
            raise AttributeError(f"score {self.score!r} has no curve")
        return next(iter(self.curves.values()))

    @classmethod
    def of(
        cls, score: Score, name: str, outcome: Outcome, labels: npt.NDArray[np.int64], count: int, seed: int
    ) -> Result:
        """A score's outcome with intervals."""
        n = len(labels)
        statistic = outcome.resample()
        found = bootstrap(statistic, n, count, seed)
        low, high = found.interval()
        classes = int(labels.max()) + 1 if n else 0
        member = np.eye(classes)[labels].T if n else np.zeros((0, 0))
        some = member.sum(1) > 0 if n else np.zeros(0, bool)
        per_class = np.full(classes, np.nan)
        if some.any():
            per_class[some] = statistic(member[some])
        curves = {key: Curve.of(line, count, seed) for key, line in outcome.curves.items()}
        return cls(
            score.name,
            name,
            float(found.value),
            low,
            high,
            score.better,
            score.measures,
            outcome.per_image,
            per_class,
            found,
            curves,
            dict(outcome.details),
            outcome.notes,
            score.kind,
        )


@dataclass(frozen=True)
class Comparison:
    """Whether one set of maps beats another under a score, on the same images.

    Attributes:
        score: The score's name.
        winner: The better maps.
        loser: The other ones.
        by: How much better, >= 0.
        low: Lower end of the 95 % interval of that.
        high: Upper end.
        p: p-value of "no difference", corrected by Holm for all pairs of this score.
        significant: Whether p < 0.05.
    """

    score: str
    winner: str
    loser: str
    by: float
    low: float
    high: float
    p: float
    significant: bool


def compare(results: Mapping[str, Result]) -> list[Comparison]:
    """All pairs of maps under one score, paired over images: which is better, by how much, with Holm's p.

    Args:
        results: Of one score on the same images, by the name of the maps, as `scores["road"]` has them.

    Example:
        >>> from roarfast.metrics import evaluate
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4))
        >>> maps = {"a": torch.rand(8, 8, 8), "b": torch.rand(8, 8, 8)}
        >>> scores = evaluate(net, torch.rand(8, 3, 8, 8), maps, labels=torch.arange(8) % 4, metrics=["deletion"])
        >>> [sorted((one.winner, one.loser)) for one in compare(scores["deletion"])]
        [['a', 'b']]
    """
    names = list(results)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    found = []
    for a, b in pairs:
        one, two = results[a], results[b]
        difference = two.resampled - one.resampled if one.better == "lower" else one.resampled - two.resampled
        if difference.value < 0:
            a, b, difference = b, a, -difference
        found.append((one.score, a, b, float(difference.value), *difference.interval(), difference.p()))
    corrected = holm(np.array([row[-1] for row in found]))
    return [Comparison(*row[:-1], p=float(p), significant=bool(p < 0.05)) for row, p in zip(found, corrected)]
