"""Hashes and seeds: stable over processes, machines and Python versions."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass


def digest(value: object) -> str:
    """32 hexadecimal digits of a JSON value; the order of keys does not matter, numbers keep their exact value.

    Example:
        >>> digest({"a": 1, "b": [0.1]}) == digest({"b": [0.1], "a": 1})
        True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def derive_seed(seed: int, *parts: str | int) -> int:
    """A 31-bit seed for one use: `derive_seed(study_seed, "base", trial)`."""
    return int(digest([seed, *parts])[:8], 16) >> 1


@dataclass(frozen=True)
class Seeds:
    """Every seed of a study, one method per use: workers draw from it, and the report lists what it says.

    Train and test are other images, so ties, random pixels and noise have a seed for each of them.
    """

    study: int

    def base(self, trial: int) -> int:
        """Weights, order and augmentation of a base model."""
        return derive_seed(self.study, "base", trial)

    def retrain(self, trial: int) -> int:
        """The same of retrained models; equal for all cells of a trial, so that differences are due to the pixels."""
        return derive_seed(self.study, "retrain", trial)

    def explain(self, trial: int) -> int:
        """Noise inside estimators."""
        return derive_seed(self.study, "explain", trial)

    def ties(self, trial: int, split: str) -> int:
        """Which of equal pixels goes first."""
        return derive_seed(self.study, "ties", trial, split)

    def baseline(self, name: str, trial: int, split: str) -> int:
        """Random pixels (`rand`) or rectangles (`block`)."""
        return derive_seed(self.study, name, trial, split)

    def noise(self, trial: int, split: str) -> int:
        """Noise on imputed pixels."""
        return derive_seed(self.study, "noise", trial, split)

    def matched(self, trial: int) -> int:
        """Random test pixels that go in the place of as many of a map's."""
        return derive_seed(self.study, "matched", trial, "test")

    def null(self, trial: int, split: str) -> int:
        """How null masks are moved."""
        return derive_seed(self.study, "null", trial, split)

    def fill(self, split: str) -> int:
        """Noise as a fill."""
        return derive_seed(self.study, "fill", split)

    def halves(self) -> int:
        """Which test images a temperature is fitted on; the same for all cells, so that they can be compared."""
        return derive_seed(self.study, "halves")

    def table(
        self,
        trials: int,
        baselines: tuple[str, ...],
        noise: tuple[str, ...],
        moved: tuple[str, ...] = (),
        matched: bool = False,
    ) -> dict[str, int | dict[str, int]]:
        """All of them by trial and use, as the report shows them.

        Args:
            trials: How many.
            baselines: Which of `rand` and `block` the study has.
            noise: Splits whose images are imputed.
            moved: Splits whose masks a null moves.
            matched: Whether a protocol removes random pixels in the place of a map's.
        """
        rows: dict[str, int | dict[str, int]] = {
            "study": self.study,
            "fill": {s: self.fill(s) for s in ("train", "test")},
        }
        rows["temperature"] = {"halves of the test images": self.halves()}
        for trial in range(trials):
            row = {"base": self.base(trial), "retrain": self.retrain(trial), "explain": self.explain(trial)}
            for split in ("train", "test"):
                row[f"ties {split}"] = self.ties(trial, split)
                row |= {f"{name} {split}": self.baseline(name, trial, split) for name in baselines}
                if split in noise:
                    row[f"noise {split}"] = self.noise(trial, split)
                if split in moved:
                    row[f"null {split}"] = self.null(trial, split)
            if matched:
                row["matched test"] = self.matched(trial)
            rows[f"trial {trial}"] = row
        return rows
