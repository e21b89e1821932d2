"""What an audit found: a cell per score, fill and post-processing, agreement between scores, files."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from roarfast._files import write_atomic
from roarfast.metrics.record import get_score
from roarfast.metrics.resampling import Estimate, Resampled

Floats = npt.NDArray[np.float64]
BETWEEN = " | "
"""Between the name of a set of maps and its post-processing."""


@dataclass(frozen=True)
class Cell:
    """What a post-processing does to a score.

    Attributes:
        score: The score's name.
        fill: What took the place of removed pixels.
        k: The post-processing.
        improved: How many sets of maps score better with it.
        worsened: How many score worse; the rest does not change by a bit.
        maps: How many sets of maps there are.
        change: Mean change of the score over the sets of maps, positive where it looks better, with the 95 % interval over
            images.
        spread: Standard deviation of the score over the plain maps: what a change is to be compared with.
        why: Why there is no value; empty where there is.
        note: What is unusual about the value, in a few words.
    """

    score: str
    fill: str
    k: str
    improved: int = 0
    worsened: int = 0
    maps: int = 0
    change: Estimate = field(default_factory=lambda: Estimate(float("nan")))
    spread: float = float("nan")
    why: str = ""
    note: str = ""

    def __str__(self) -> str:
        if self.why:
            return self.why
        if not self.improved and not self.worsened:
            return "unchanged"
        return f"{self.improved}/{self.maps} better, {self.change_with_interval()}"

    def change_with_interval(self) -> str:
        """The change, with its interval if it has one."""
        c = self.change
        return f"{c.value:+.4f}" + (f" [{c.low:+.4f}, {c.high:+.4f}]" if c.low <= c.high else " (no interval)")


@dataclass(frozen=True)
class Audit:
    """Every score × post-processing × fill; prints as a table.

    Attributes:
        cells: One per score, fill and post-processing.
        values: Score of each set of maps, plain and post-processed, by (score, fill): `{"ig": 0.3, "ig | max(3)": …}`.
        resampled: float64 `[B]` of each, under the same resamples of the images.
        count: How many images.
    """

    cells: tuple[Cell, ...]
    values: Mapping[tuple[str, str], Mapping[str, float]] = field(repr=False)
    resampled: Mapping[tuple[str, str], Mapping[str, Resampled]] = field(repr=False)
    count: int

    def rows(self) -> list[dict[str, str | float]]:
        """One dictionary per cell."""
        keys = ("score", "fill", "k", "improved", "worsened", "maps")
        return [
            {key: getattr(c, key) for key in keys}
            | {"change": c.change.value, "low": c.change.low, "high": c.change.high, "spread": c.spread}
            | {"why": c.why, "note": c.note}
            for c in self.cells
        ]

    def to_csv(self) -> str:
        """The rows as CSV."""
        out = io.StringIO()
        writer = csv.DictWriter(out, list(self.rows()[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows())
        return out.getvalue()

    def to_markdown(self) -> str:
        """A table: a row per score and fill, a column per post-processing."""
        names = list(dict.fromkeys(c.k for c in self.cells))
        lines = ["| score | fill | " + " | ".join(f"`{k}`" for k in names) + " |", "|---|---|" + "---|" * len(names)]
        for score, fill in dict.fromkeys((c.score, c.fill) for c in self.cells):
            row = {c.k: str(c) for c in self.cells if (c.score, c.fill) == (score, fill)}
            lines.append(f"| {score} | {fill} | " + " | ".join(row[k] for k in names) + " |")
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.count} images; changes are positive where the score looks better\n{self.to_markdown()}"

    def agreement(
        self, level: float = 0.95, *, plain: bool = False
    ) -> list[tuple[tuple[str, str], tuple[str, str], Estimate]]:
        """Kendall's τ between the orders that two (score, fill) give the same maps, with its interval over images.

        Args:
            level: Of the intervals.
            plain: Only maps without a post-processing.
        """
        found = []
        signed = {key: self._signed(key, plain) for key in self.values}
        keys = list(signed)
        for i, one in enumerate(keys):
            for two in keys[i + 1 :]:
                estimate = _agree(signed[one], signed[two], level)
                if estimate is not None:
                    found.append((one, two, estimate))
        return found

    def agreement_with(
        self, other: Audit, level: float = 0.95, *, plain: bool = False
    ) -> dict[tuple[str, str], Estimate]:
        """Kendall's τ between the orders that one (score, fill) gives here and in another audit, of another model say."""
        found = {}
        for key in self.values:
            if key in other.values:
                estimate = _agree(self._signed(key, plain), other._signed(key, plain), level)
                if estimate is not None:
                    found[key] = estimate
        return found

    def _signed(self, key: tuple[str, str], plain: bool) -> dict[str, Floats]:
        """Value and resamples `[1 + B]` of each set of maps, more is better."""
        return {
            name: np.concatenate([[r.value], r.draws]) * _sign(key[0])
            for name, r in self.resampled[key].items()
            if not (plain and BETWEEN in name)
        }

    def save(self, path: str | Path) -> None:
        """Writes an `.npz` file, atomically."""
        arrays: dict[str, Any] = {}
        for j, by_map in enumerate(self.resampled.values()):
            for field_name in ("value", "draws", "influence"):
                arrays[f"{field_name}{j}"] = np.array([getattr(r, field_name) for r in by_map.values()])
        header = {
            "count": self.count,
            "keys": [list(key) for key in self.resampled],
            "maps": [list(by_map) for by_map in self.resampled.values()],
            "cells": [asdict(c) for c in self.cells],
        }
        buffer = io.BytesIO()
        np.savez(buffer, header=np.array(json.dumps(header)), **arrays)
        write_atomic(path, buffer.getvalue())

    @classmethod
    def load(cls, path: str | Path) -> Audit:
        """Reads what `save` wrote. Nothing is unpickled."""
        with np.load(path, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            drawn = {}
            for j, (key, names) in enumerate(zip(header["keys"], header["maps"])):
                arrays = zip(*(file[f"{name}{j}"] for name in ("value", "draws", "influence")))
                by_map = {m: Resampled(a, b, c, header["count"]) for m, (a, b, c) in zip(names, arrays)}
                drawn[key[0], key[1]] = by_map
        cells = tuple(Cell(**{**c, "change": Estimate(**c["change"])}) for c in header["cells"])
        values = {key: {m: float(r.value) for m, r in by_map.items()} for key, by_map in drawn.items()}
        return cls(cells, values, drawn, header["count"])


def join_audits(audits: Sequence[Audit]) -> Audit:
    """One audit of several of the same images, with the same resamples and seed: of other scores, or of other maps.

    Where two have the same score and fill their sets of maps must have other names, and a cell is the mean over all of them.

    Raises:
        ValueError: They are of different numbers of images, or two have maps of the same name for the same score and fill.

    Example:
        >>> from roarfast.metrics import audit
        >>> net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 8 * 8, 4))
        >>> images, labels = torch.rand(6, 3, 8, 8), [0, 1, 2, 3, 0, 1]
        >>> how = {"labels": labels, "scores": {"deletion": ["zero"]}, "postprocess": ["power(2)"]}
        >>> parts = [audit(net, images, {name: torch.rand(6, 8, 8)}, **how) for name in ("ig", "gc")]
        >>> join_audits(parts).cells[0].maps
        2
    """
    counts = sorted({a.count for a in audits})
    if len(counts) != 1:
        raise ValueError(f"audits must be of the same images, got {counts or 'none'} of them")
    drawn: dict[tuple[str, str], dict[str, Resampled]] = {}
    given: dict[tuple[str, str, str], list[Cell]] = {}
    for one in audits:
        for key, by_map in one.resampled.items():
            twice = sorted(drawn.setdefault(key, {}).keys() & by_map.keys())
            if twice:
                raise ValueError(f"maps must have other names in each audit, got {twice[0]!r} twice for {key}")
            drawn[key] |= by_map
        for cell in one.cells:
            given.setdefault((cell.score, cell.fill, cell.k), []).append(cell)
    cells = []
    for (score, fill, k), parts in given.items():
        if len(parts) == 1 or any(c.why for c in parts):
            cells.append(next((c for c in parts if c.why), parts[0]))
            continue
        by_map = drawn[score, fill]
        plain = {m: r for m, r in by_map.items() if BETWEEN not in m}
        note = "; ".join(dict.fromkeys(c.note for c in parts if c.note))
        cells.append(
            make_cell((score, fill, k), plain, {m: by_map[f"{m}{BETWEEN}{k}"] for m in plain}, _sign(score), note)
        )
    values = {key: {m: float(r.value) for m, r in by_map.items()} for key, by_map in drawn.items()}
    return Audit(tuple(cells), values, drawn, counts[0])


def _agree(one: Mapping[str, Floats], two: Mapping[str, Floats], level: float) -> Estimate | None:
    shared = [name for name in one if name in two]
    if len(shared) < 3:
        return None
    taus = kendall(*(np.stack([of[name] for name in shared], 1) for of in (one, two)))
    known = taus[1:][np.isfinite(taus[1:])]
    low, high = np.percentile(known, [50 * (1 - level), 50 * (1 + level)]) if known.size else (np.nan, np.nan)
    return Estimate(float(taus[0]), float(low), float(high))


def kendall(x: Floats, y: Floats) -> Floats:
    """Kendall's τ-b of each pair of rows `[B, M]`: SciPy's, for many rows at once; NaN where one is constant.

    Example:
        >>> kendall(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 3.0, 2.0]])).round(4).tolist()
        [0.3333]
    """
    first, second = np.triu_indices(x.shape[1], 1)
    a, b = (np.sign(v[:, second] - v[:, first]) for v in (x, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((a * b).sum(1) / np.sqrt((a * a).sum(1) * (b * b).sum(1)))


def _sign(score: str) -> float:
    return -1.0 if get_score(score).better == "lower" else 1.0


def make_cell(
    key: tuple[str, str, str],
    plain: Mapping[str, Resampled | str],
    after: Mapping[str, Resampled | str],
    sign: float,
    note: str = "",
) -> Cell:
    """What a post-processing does to a score.

    Args:
        key: The names of score, fill and post-processing.
        plain: The score of each set of maps, or why there is none.
        after: The same with the post-processing.
        sign: 1 where more is better, -1 where less is.
        note: For the cell.
    """
    known = [(plain[m], after[m]) for m in plain]
    pairs = [(a, b) for a, b in known if isinstance(a, Resampled) and isinstance(b, Resampled)]
    if len(pairs) < len(known):
        return Cell(*key, why=next(r for r in (*plain.values(), *after.values()) if isinstance(r, str)))
    differences = [b - a if sign > 0 else -(b - a) for a, b in pairs]
    by = np.array([float(d.value) for d in differences])
    if np.isnan(by).any():
        return Cell(*key, why="undefined for some maps")
    mean = Resampled(
        by.mean(),
        np.mean([d.draws for d in differences], 0),
        np.mean([d.influence for d in differences], 0),
        differences[0].n,
    )
    spread = float(np.std([float(a.value) for a, _ in pairs], ddof=1)) if len(pairs) > 1 else float("nan")
    return Cell(*key, int((by > 0).sum()), int((by < 0).sum()), len(by), mean.estimate(), spread, note=note)
