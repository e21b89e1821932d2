"""`Responses`: what a model answered to every sample at every rate. All curve scores are bookkeeping on it."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from roarfast._files import write_atomic
from roarfast._temperature import UNSCALED, Scaled, fit
from roarfast._types import Json, Numpy
from roarfast.explain.hashing import checksum
from roarfast.metrics.perturbation import Perturbation

Floats = npt.NDArray[np.float64]
FORMAT = 1
INDICATORS = ("accuracy", "probability", "logit", "margin", "log-ratio")
_ROW_FIELDS = ("probability", "logit", "margin", "prediction")


class ResponsesCorrupt(ValueError):
    """A file of responses that is not what was written."""


@dataclass(frozen=True)
class Row:
    """The answers to every sample at one rate, `[N]` each."""

    correct: npt.NDArray[np.bool_]
    probability: npt.NDArray[np.float32]
    logit: npt.NDArray[np.float32]
    margin: npt.NDArray[np.float32]
    prediction: npt.NDArray[np.int32]

    def of(self, indicator: str) -> Floats:
        """The answers as numbers: `"accuracy"` is 0 or 1, the others are the fields."""
        values = self.correct if indicator == "accuracy" else getattr(self, indicator)
        return np.asarray(values, np.float64)


@dataclass(frozen=True)
class Responses:
    """What a model answered at R rates to N samples.

    Attributes:
        rates: float64 `[R]`, ascending: the drop rates asked for (rule `value`: 1 - threshold).
        removed: float64 `[R, N]`, the fraction really removed.
        correct: bool `[R, N]`, whether the prediction is the label.
        probability: float32 `[R, N]`, softmax of the scored class.
        logit: float32 `[R, N]`, of the scored class.
        margin: float32 `[R, N]`, that logit minus the largest other one.
        prediction: int32 `[R, N]`.
        whole: The answers with nothing removed.
        empty: The answers with everything removed.
        labels: int64 `[N]`.
        scored: int64 `[N]`, the class that probability, logit and margin are of.
        perturbation: Which pixels went, and what took their place.
        identity: What the answers were made from, as in files.
        halves: bool `[N]`, the samples on which temperatures are fitted; None if `respond` was given none.
        losses: float64 `[R, 2, T]`, mean cross entropy of the labels over each half at T temperatures; None likewise.
    """

    rates: Floats
    removed: Floats
    correct: npt.NDArray[np.bool_]
    probability: npt.NDArray[np.float32]
    logit: npt.NDArray[np.float32]
    margin: npt.NDArray[np.float32]
    prediction: npt.NDArray[np.int32]
    whole: Row
    empty: Row
    labels: npt.NDArray[np.int64]
    scored: npt.NDArray[np.int64]
    perturbation: Perturbation
    identity: Mapping[str, Json] = field(default_factory=dict, repr=False)
    halves: npt.NDArray[np.bool_] | None = None
    losses: Floats | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def values(self, of: str = "accuracy") -> Floats:
        """float64 `[R, N]` of an indicator: accuracy, probability, logit, margin or log-ratio (to the whole image)."""
        if of not in INDICATORS:
            raise ValueError(f"of must be one of {', '.join(INDICATORS)}, got {of!r}")
        if of == "accuracy":
            return self.correct.astype(np.float64)
        if of == "log-ratio":
            tiny = np.finfo(np.float32).tiny
            return np.log(np.maximum(self.probability, tiny)) - np.log(np.maximum(self.whole.probability, tiny))
        return np.asarray(getattr(self, of), np.float64)

    def ends(self, of: str = "accuracy") -> tuple[Floats, Floats]:
        """`[N]` of an indicator with nothing and with everything removed."""
        if of == "log-ratio":
            tiny = np.finfo(np.float32).tiny
            whole = np.log(np.maximum(self.whole.probability, tiny)).astype(np.float64)
            return np.zeros(len(self)), np.log(np.maximum(self.empty.probability, tiny)) - whole
        return self.whole.of(of), self.empty.of(of)

    def curve(self, of: str = "accuracy") -> Floats:
        """Mean over samples at each rate, float64 `[R]`; NaN without samples."""
        values = self.values(of)
        return values.mean(1) if len(self) else np.full(len(self.rates), np.nan)

    def areas(self, of: str = "probability", *, rule: str = "trapezoid", ends: bool = True) -> Floats:
        """Area under each sample's curve over the really removed fraction, float64 `[N]`.

        Args:
            of: The indicator.
            rule: `"trapezoid"`, or `"mean"` over the rates (as ROAD reports it).
            ends: Whether the points with nothing and with everything removed belong to the curve.
        """
        y, x = self.values(of), self.removed
        if rule == "mean":
            return y.mean(0)
        if rule != "trapezoid":
            raise ValueError(f"rule must be 'trapezoid' or 'mean', got {rule!r}")
        if self.perturbation.keep:  # the fraction removed falls as the rate rises
            y, x = y[::-1], x[::-1]
        if ends:
            whole, empty = self.ends(of)
            y = np.concatenate([whole[None], y, empty[None]])
            x = np.concatenate([np.zeros((1, len(self))), x, np.ones((1, len(self)))])
        return np.asarray((np.diff(x, axis=0) * (y[1:] + y[:-1]) / 2).sum(0))

    def area(self, of: str = "probability", *, rule: str = "trapezoid", ends: bool = True) -> float:
        """Mean over samples of `areas`; NaN without samples."""
        return float(self.areas(of, rule=rule, ends=ends).mean()) if len(self) else float("nan")

    def per_class(self, of: str = "accuracy", classes: int | None = None) -> Floats:
        """Mean of an indicator for the samples of each class, float64 `[R, classes]`; NaN for classes without samples."""
        count = int(self.labels.max()) + 1 if classes is None and len(self) else int(classes or 0)
        member = np.eye(count)[self.labels] if len(self) else np.zeros((0, count))
        size = member.sum(0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.values(of) @ member / size)

    def cross_entropy(self) -> Floats | None:
        """Mean cross entropy of the labels at each rate in nats, `[R]`, whatever class was scored; None without `halves`."""
        if self.losses is None or self.halves is None:
            return None
        shares = np.array([self.halves.sum(), (~self.halves).sum()]) / max(len(self), 1)
        return np.asarray((np.nan_to_num(self.losses[:, :, UNSCALED]) * shares).sum(1))

    def scaled(self) -> list[Scaled | None]:
        """At each rate, the cross entropy of one half of the samples at the temperature that fits the other; None without."""
        return [None] * len(self.rates) if self.losses is None else [fit(losses) for losses in self.losses]

    def save(self, path: str | Path) -> None:
        """Writes an `.npz` file with a checksum, atomically; the same responses are the same bytes."""
        arrays = self._arrays()
        header = {"format": FORMAT, "perturbation": self.perturbation.as_dict(), "identity": dict(self.identity)}
        text = json.dumps(header, sort_keys=True)
        buffer = io.BytesIO()
        sum_ = checksum(*arrays.values(), np.frombuffer(text.encode(), np.uint8))
        np.savez(buffer, header=np.array(text), checksum=np.array(sum_), **arrays)  # type: ignore[arg-type]
        write_atomic(path, buffer.getvalue())

    def _arrays(self) -> dict[str, Numpy]:
        names = ["rates", "removed", "correct", *_ROW_FIELDS, "labels", "scored"]
        names += ["halves", "losses"] if self.losses is not None else []
        arrays = {name: np.ascontiguousarray(getattr(self, name)) for name in names}
        for end in ("whole", "empty"):
            for name in ("correct", *_ROW_FIELDS):
                arrays[f"{end}_{name}"] = np.ascontiguousarray(getattr(getattr(self, end), name))
        return arrays

    @classmethod
    def load(cls, path: str | Path) -> Responses:
        """Reads what `save` wrote; a changed byte is a `ResponsesCorrupt` error. Nothing is unpickled."""
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            text, expected = str(arrays.pop("header")), str(arrays.pop("checksum"))
            header = json.loads(text)
        except FileNotFoundError:
            raise
        except Exception as error:  # zip, JSON and NumPy raise many kinds
            raise ResponsesCorrupt(f"{path} is no file of responses, or damaged: {error}") from error
        if checksum(*arrays.values(), np.frombuffer(text.encode(), np.uint8)) != expected:
            raise ResponsesCorrupt(f"{path} is damaged: its checksum is not that of its content")
        if header.get("format") != FORMAT:
            raise ResponsesCorrupt(f"{path} is of format {header.get('format')}, this version reads {FORMAT}")
        whole, empty = (
            Row(*(arrays.pop(f"{end}_{name}") for name in ("correct", *_ROW_FIELDS))) for end in ("whole", "empty")
        )
        how = Perturbation.from_dict(header["perturbation"])
        return cls(**arrays, whole=whole, empty=empty, perturbation=how, identity=header["identity"])
