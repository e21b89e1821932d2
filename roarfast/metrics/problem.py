"""`Problem`: a model, samples and labels that scores ask questions of."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

import roarfast as rf
from roarfast.explain.hashing import checksum
from roarfast.metrics.engine import RunOptions, make_codes, respond
from roarfast.metrics.inputs import Inputs, Integers
from roarfast.metrics.maps import random_maps, segment_means
from roarfast.metrics.model import Model, choose_device
from roarfast.metrics.perturbation import Fill, Perturbation
from roarfast.metrics.pgd import adversarial_pixels
from roarfast.metrics.responses import Responses, Row

_KEPT = 1 << 21  # answers kept, each of about 30 bytes

_Ends: TypeAlias = tuple[Perturbation, str, int]
"""What the answers to whole and empty samples depend on: the perturbation, the class that is scored, the seed."""
_Asked: TypeAlias = tuple[str, tuple[float, ...], Perturbation, str, int]
"""What all answers depend on: the codes and the rates, too."""


@dataclass
class Problem:
    """What is scored: made by `evaluate`, handed to every score.

    Attributes:
        model: Returns logits.
        inputs: The samples.
        labels: int64 `[N]`.
        seed: Breaks ties, draws noise and random masks.
        ids: int64 `[N]`, sample ids.
        segments: int64 `[N, H, W]`: pixels that go together; None: each by itself.
        options: Of `respond`: batch size, device, progress.
        shared: What a score has found out that does not depend on the maps, for the next maps.
    """

    model: Model
    inputs: Inputs
    labels: Tensor
    seed: int
    ids: Tensor
    segments: Tensor | None = None
    options: RunOptions = field(default_factory=RunOptions)
    shared: dict[Hashable, Any] = field(default_factory=dict, repr=False)
    _predicted: Tensor | None = None
    _answers: dict[_Asked, Responses] = field(default_factory=dict, repr=False)
    _ends: dict[_Ends, tuple[Row, Row]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def features(self) -> int:
        """Pixels of a map."""
        h, w = self.inputs.map_shape
        return h * w

    def codes(self, a: Tensor, drops: Sequence[float], how: Perturbation) -> Tensor:
        """Rank codes uint8 `[N, H, W]` of maps; with segments, of whole segments by their mean value."""
        if self.segments is None:
            return make_codes(self.inputs, a, drops, how, self.seed, self.ids)
        result = torch.empty(a.shape, dtype=torch.uint8)
        means = segment_means(a, self.segments)
        sizes = np.array([len(m) for m in means])
        for size in np.unique(sizes):  # rows of one length are ranked together
            rows = np.flatnonzero(sizes == size)
            table = torch.stack([means[i] for i in rows])
            chosen = rf.rank_codes(
                table, drops, rule=how.rule, order=how.order, seed=self.seed, index=self.ids[rows], ndim=1
            )
            for i, row in zip(rows, chosen):
                result[i] = row[self.segments[i]]
        return result

    def respond(
        self,
        a: Tensor | None,
        drops: Sequence[float],
        how: Perturbation,
        *,
        codes: Tensor | None = None,
        scored: str | Integers = "label",
        seed: int | None = None,
    ) -> Responses:
        """Answers to the samples with pixels removed by the maps `a`, or by `codes`."""
        if codes is None:
            assert a is not None
            codes = self.codes(a, drops, how)
        asked = scored if isinstance(scored, str) else checksum(np.asarray(scored))
        if isinstance(scored, str) and scored == "predicted" and self._predicted is not None:
            scored = self._predicted
        drawn = self.seed if seed is None else seed
        key = (checksum(codes.numpy()), tuple(drops), how, asked, drawn)
        if key in self._answers:
            return self._answers[key]
        # Whole and empty samples are the same for all maps, orders and rules: they are asked about once.
        alike = (replace(how, order="morf", rule="exact", keep=False), asked, drawn)
        found = respond(
            self.model,
            self.inputs,
            codes=codes,
            drops=drops,
            labels=self.labels,
            perturbation=how,
            scored=scored,
            seed=drawn,
            index=self.ids,
            filled=self._attacked(how, scored),
            ends=self._ends.get(alike),
            **self.options,
        )
        self._ends[alike] = (found.whole, found.empty)
        if isinstance(scored, str) and scored == "predicted":
            self._predicted = torch.from_numpy(found.scored)
        self._remember(key, found)
        return found

    def _remember(self, key: _Asked, found: Responses) -> None:
        """Keeps answers: maps that remove the same pixels (powers of a map; deletion and flipping) ask the model once."""
        self._answers[key] = found
        while len(self._answers) > 1 and sum(a.removed.size for a in self._answers.values()) > _KEPT:
            del self._answers[next(iter(self._answers))]

    def _attacked(self, how: Perturbation, scored: str | Integers) -> Tensor | None:
        """The attacked images, for the fill that needs them; made once for all maps."""
        if how.fill != "adversarial" or not (
            scored is self._predicted or (isinstance(scored, str) and scored == "label")
        ):
            return None  # respond makes its own
        target = self.labels if isinstance(scored, str) else torch.as_tensor(scored)
        key = ("attacked", isinstance(scored, str))
        if key not in self.shared:
            place = choose_device(self.model, self.inputs.pixels, True, self.options.get("device"))
            self.shared[key] = adversarial_pixels(self.model, self.inputs, target, place)
        return self.shared[key]  # type: ignore[no-any-return]

    def random_maps(self, draw: int) -> Tensor:
        """Maps of independent uniform numbers `[N, H, W]`, other ones for every draw; one per segment where there are."""
        return random_maps(self.inputs, self.ids, (self.seed + 0x9E3779B9 * (draw + 1)) % 2**63, self.segments)

    def auto_fill(self, fill: Fill) -> Fill:
        """`"auto"`: linear imputation for images, the mean of each value otherwise."""
        return fill if fill != "auto" else "linear" if self.inputs.kind == "images" else "dataset_mean"
