"""Claims of a paper and the comparisons that test them, for the pages of scores (score_claims.py, photo_page.py)."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from roarfast.metrics.resampling import Resampled

Key = tuple[str, str, str]
"""Score, estimator, post-processing."""
Get = Callable[[str, str, str], Resampled]
ENSEMBLES = ("sg(ig)", "sg-sq(ig)", "vg(ig)")
"""Of IG."""
TOO_NARROW = {"soundness": 2.0}
"""Scores whose intervals hold the truth too rarely (docs/scores.md: 70 % instead of 95 %), and how much wider they are judged."""


ROUNDING = 1e-9
"""An end of an interval this near to 0 is 0: sums of floating-point numbers."""


class Difference(Protocol):
    """A number with its interval."""

    @property
    def value(self) -> float | np.ndarray:
        """What was measured."""

    def interval(self) -> tuple[float, float]:
        """Both ends."""


@dataclass(frozen=True)
class Fixed:
    """A difference that was resampled before, read from a file."""

    value: float
    low: float
    high: float

    def interval(self) -> tuple[float, float]:
        """Both ends."""
        return self.low, self.high


@dataclass(frozen=True)
class Comparison:
    """One minus another, and what a claim says of the difference: `">"`, `"<"` 0, or `"not >"`, `"not <"` what is negligible.

    That something does not happen holds only where the interval excludes it: one that is merely too wide to show it is open.

    Attributes:
        what: In words.
        difference: With its interval.
        says: The claim.
        negligible: Of a claim that begins with "not": what it calls nothing, at least 0.
    """

    what: str
    difference: Difference
    says: str
    negligible: float = 0.0

    @property
    def claimed(self) -> str:
        """`"not > 0.02"`."""
        sign = "−" if self.says == "not <" and self.negligible else ""
        return f"{self.says} {sign}{self.negligible:.3g}"

    @property
    def verdict(self) -> str:
        """`"holds"`, `"fails"` or `"open"`: the interval cannot tell."""
        low, high = self.difference.interval()
        if np.isnan(low):
            return "open"
        wider = max((w for name, w in TOO_NARROW.items() if f", {name}" in self.what), default=1.0)
        value = float(self.difference.value)
        low, high = low - (wider - 1) * (value - low), high + (wider - 1) * (high - value)
        if self.says.endswith("<"):
            low, high = -high, -low
        if self.says.startswith("not"):
            return "fails" if low > ROUNDING else "holds" if high <= self.negligible + ROUNDING else "open"
        return "holds" if low > ROUNDING else "fails" if high < -ROUNDING else "open"


@dataclass(frozen=True)
class Claim:
    """A claim of a paper and the comparisons that test it."""

    paper: str
    text: str
    comparisons: list[Comparison]

    @property
    def verdict(self) -> str:
        """In a few words."""
        found = [c.verdict for c in self.comparisons]
        if all(v == "holds" for v in found):
            return "holds"
        if "holds" not in found and "fails" not in found:
            return "cannot be told here"
        counts = [
            f"{found.count(v)} {name}"
            for v, name in (("holds", "hold"), ("fails", "fail"), ("open", "open"))
            if v in found
        ]
        return f"{'partly' if 'holds' in found else 'does not hold'}: {', '.join(counts)} of {len(found)}"


def against(
    get: Get, names: dict[str, str], score: str, ones: Iterable[str], other: str, says: str
) -> list[Comparison]:
    """Plain maps of some estimators, each minus those of another."""
    return [
        Comparison(f"{names[e]} − {names[other]}, {score}", get(score, e, "plain") - get(score, other, "plain"), says)
        for e in ones
    ]


def of_002(get: Get, names: dict[str, str], others: Sequence[str], others_text: str, unit: str) -> list[Claim]:
    """What 002 says of IG, its ensembles and Grad-CAM.

    Args:
        get: Scores with their resamples.
        names: Of estimators, as the page has them.
        others: What Grad-CAM is said to be sounder than.
        others_text: The same in words.
        unit: What was explained: "image", "photo".
    """

    def minus(score: str, ones: Iterable[str], says: str) -> list[Comparison]:
        return against(get, names, score, ones, "ig", says)

    sounder = [c for e in others for c in against(get, names, "soundness", ("gc",), e, ">")]
    maps = [e for e in names if e != "rand"]
    more = [Comparison(f"{names[e]}, excess", get("completeness, excess", e, "plain"), ">") for e in maps]
    no_gain = minus("ROAD most relevant first", ENSEMBLES, "not <") + minus("deletion", ENSEMBLES, "not <")
    rows: list[tuple[str, str, list[Comparison]]] = [
        ("Fig. 8a", "IG's ensembles are sounder than IG", minus("soundness", ENSEMBLES, ">")),
        (
            "Fig. 8a",
            "IG's ensembles are sounder than IG by the algorithm as printed",
            minus("soundness, as printed", ENSEMBLES, ">"),
        ),
        ("Fig. 8b", "IG-SG is more complete than IG", minus("completeness", ENSEMBLES[:1], ">")),
        (
            "Fig. 8b",
            "IG-SQ and IG-Var are not more complete than IG",
            minus("completeness", ENSEMBLES[1:], "not >"),
        ),
        ("Fig. 8c, d", "ensembles are no clear gain in ROAD (most relevant first) and deletion", no_gain),
        (
            "Fig. 15",
            "ensembles are no clear gain in ROAD with the least relevant first",
            minus("ROAD least relevant first", ENSEMBLES, "not >"),
        ),
        ("Fig. 9", f"Grad-CAM is sounder than {others_text}", sounder),
        ("Theorem 4.12", f"maps are more complete than random pixels of the same number in each {unit}", more),
    ]
    return [Claim(f"002, {where}", text, comparisons) for where, text, comparisons in rows]


def of_004(get: Get, names: dict[str, str], at: Sequence[tuple[str, float]]) -> list[Claim]:
    """What 004 says of random pixels beside Grad-CAM's, with three fills.

    Args:
        get: Scores with their resamples.
        names: Of estimators.
        at: The fill as the scores name it, and its rate: black pixels, the mean colour, imputed ones.
    """
    black, mean, imputed = at
    rows = (
        ("004, Fig. 1", "black random pixels do more damage than Grad-CAM's", "rand", black, "<"),
        (
            "004, Fig. 4",
            "black pixels of the gradient, isolated ones, do more damage than Grad-CAM's",
            "grad",
            black,
            "<",
        ),
        ("ours", "random pixels in the mean colour do more damage than Grad-CAM's", "rand", mean, "<"),
        ("ours", "imputed random pixels do less damage than Grad-CAM's", "rand", imputed, ">"),
    )
    return [
        Claim(
            paper,
            text,
            [
                c
                for of in ("accuracy", "log-ratio")
                for c in against(get, names, f"{of} at {rate:g}, {fill}", (one,), "gc", says)
            ],
        )
        for paper, text, one, (fill, rate), says in rows
    ]


def write(path: Path, head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A CSV file; numbers with six digits."""
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(head)
        out.writerows([[f"{v:.6g}" if isinstance(v, float) else v for v in row] for row in rows])


CLAIM_COLUMNS = (
    "paper",
    "claim",
    "verdict",
    "comparison",
    "difference",
    "low",
    "high",
    "claimed",
    "comparison verdict",
)


def write_claims(path: Path, claims: Iterable[Claim]) -> None:
    """claims.csv: a row for each comparison."""
    write(
        path,
        CLAIM_COLUMNS,
        [
            [
                c.paper,
                c.text,
                c.verdict,
                d.what,
                float(d.difference.value),
                *d.difference.interval(),
                d.claimed,
                d.verdict,
            ]
            for c in claims
            for d in c.comparisons
        ],
    )


def read_claims(path: Path) -> list[Claim]:
    """What `write_claims` wrote, to be judged again."""
    found: dict[tuple[str, str], list[Comparison]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            says, _, negligible = row["claimed"].rpartition(" ")
            numbers = Fixed(float(row["difference"]), float(row["low"]), float(row["high"]))
            one = Comparison(row["comparison"], numbers, says, float(negligible.lstrip("−")))
            found.setdefault((row["paper"], row["claim"]), []).append(one)
    return [Claim(paper, text, comparisons) for (paper, text), comparisons in found.items()]
