"""From maps to rank codes on disk, with the statistics of masks that the records carry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

import roarfast as rf
from roarfast._files import create_memmap
from roarfast._types import Numpy
from roarfast.explain.oracles import ORACLES, oracle_maps
from roarfast.explain.postprocess import PostProcess
from roarfast.explain.store import StoredMaps

_CHUNK_PIXELS = 1 << 22
Maps = StoredMaps | npt.NDArray[np.float32] | None
"""Of all images of a split; None for a baseline or an oracle, which have none."""


@dataclass(frozen=True)
class Selection:
    """Which pixels go: drop rates, rule, order, post-processing, and the seed of ties or of the random baseline.

    `baseline` is a name for which there are no maps: a random baseline, or an oracle, which sees `labels` of `classes`.
    """

    drops: tuple[float, ...]
    rule: str
    order: str
    postprocess: str
    seed: int
    baseline: str | None = None
    outside: Mapping[str, Callable[..., Numpy]] = field(default_factory=dict)
    labels: npt.NDArray[np.int64] | None = None
    classes: int = 0
    channels: int = 1
    """Of `rand` where features are ranked; those of maps are in their shape."""

    def codes(
        self, maps: Maps, rows: npt.NDArray[np.int64], size: tuple[int, int]
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.float32]]:
        """Codes and post-processed maps of some images.

        Args:
            maps: `[N, H, W]` of all images, or `[N, C, H, W]` whose channels are ranked together; None for a baseline or an
                oracle.
            rows: Which images, int64 `[B]`; also their ids.
            size: (H, W).

        Returns:
            uint8 `[B, H, W]`, `[B, C, H, W]` where features are ranked, or `[D, B, H, W]` for `block`, whose rectangles are not nested; and the maps `[B, H, W]`
            (`[D, B, H, W]`: the masks themselves).
        """
        if self.baseline == "block":
            # What is least relevant to a random block is nothing in particular: another block of that size.
            seed = self.seed ^ 1 if self.order == "lerf" else self.seed
            masks = [np.asarray(rf.block_random((len(rows), *size), d, seed=seed, index=rows)) for d in self.drops]
            stacked = np.stack(masks).astype(bool)
            return np.where(stacked, 0, 1).astype(np.uint8), stacked.astype(np.float32)
        processed = self.processed(maps, rows, size)
        codes = rf.rank_codes(
            processed,
            list(self.drops),
            rule=self.rule,
            order=self.order,
            seed=self.seed,
            index=rows,
            ndim=processed.ndim - 1,
        )
        return np.asarray(codes), processed

    def processed(self, maps: Maps, rows: npt.NDArray[np.int64], size: tuple[int, int]) -> npt.NDArray[np.float32]:
        """The maps after post-processing, `[B, H, W]` or `[B, C, H, W]`."""
        if self.baseline == "rand":
            planes, ids = ((self.channels,), _feature_ids(rows, self.channels)) if self.channels > 1 else ((), rows)
            return np.asarray(rf.pixel_random((len(rows), *planes, *size), seed=self.seed, index=ids), np.float32)
        if self.baseline in ORACLES:
            assert self.labels is not None
            return oracle_maps(self.baseline, self.labels[rows], size, self.classes)
        assert maps is not None
        chain = PostProcess.parse(self.postprocess, self.outside)
        some, ids = maps[rows[0] : rows[-1] + 1], rows
        if some.ndim == 4 and some.shape[1] == 1:  # of an estimator without channels: pixels after all
            some = some[:, 0]
        if some.ndim == 4:  # random steps draw for each channel
            ids = _feature_ids(rows, some.shape[1])
        return np.asarray(chain(some, seed=self.seed, index=ids), np.float32)


def _feature_ids(rows: npt.NDArray[np.int64], channels: int) -> npt.NDArray[np.int64]:
    """An id for each channel of each image."""
    return (rows[:, None] * channels + np.arange(channels)).reshape(-1)


def select(
    selection: Selection, maps: Maps, shape: Sequence[int], path: Path, with_masks: bool
) -> tuple[dict[str, dict[str, float]], float]:
    """Writes the codes of a whole split.

    Args:
        selection: What to select.
        maps: `[N, H, W]` or `[N, C, H, W]`, also a memory map; None for a baseline or an oracle.
        shape: (N, H, W).
        path: The `.npy` file to write.
        with_masks: Whether to compute the total variation of the masks, too.

    Returns:
        Drop rate → `removed` (mean fraction), `tv_mask` and, for `block`, `tv_map`; and the mean total variation of
        the post-processed maps, each scaled to [0, 1].
    """
    n, h, w = (int(extent) for extent in shape)
    per_drop = selection.baseline == "block"
    channels = selection.channels if maps is None or len(maps.shape) == 3 else int(maps.shape[1])
    out_shape = (len(selection.drops), n, h, w) if per_drop else (n, channels, h, w) if channels > 1 else (n, h, w)
    out = create_memmap(path, np.uint8, out_shape)
    removed = np.zeros(len(selection.drops))
    tv_mask = np.zeros(len(selection.drops))
    tv_map = np.zeros(len(selection.drops) if per_drop else 1)
    step = max(1, _CHUNK_PIXELS // (h * w * channels))
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n), dtype=np.int64)
        codes, processed = selection.codes(maps, rows, (h, w))
        here = slice(start, start + len(rows))
        out[(slice(None), here) if per_drop else here] = codes
        for j in range(len(selection.drops)):
            at, rate_index = (codes[j], 0) if per_drop else (codes, j)
            removed[j] += np.asarray(rf.removed_fraction(at, rate_index, ndim=at.ndim - 1)).sum()
            if with_masks:
                variation = rf.total_variation(apply_codes(at, rate_index), normalize="mean")
                tv_mask[j] += np.asarray(variation).sum() / channels
        variation = np.asarray(rf.total_variation(processed, normalize="minmax"), np.float64)
        tv_map += variation.sum(-1) if channels == 1 else variation.mean(-1).sum()
    out.flush()
    rates = {}
    for j, drop in enumerate(selection.drops):
        rate = {"removed": float(removed[j] / n)}
        if with_masks:
            rate["tv_mask"] = float(tv_mask[j] / n)
        if per_drop:
            rate["tv_map"] = float(tv_map[j] / n)
        rates[f"{drop:g}"] = rate
    return rates, float(tv_map[0] / n)


def apply_codes(codes: npt.NDArray[np.uint8], rate_index: int, keeps: bool = False) -> npt.NDArray[np.bool_]:
    """The removal mask at one of the rates: True = removed."""
    return np.asarray(codes > rate_index if keeps else codes <= rate_index)
