"""Example strips for the report: input, map, post-processed map, mask and modified image of a few test images."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from roarfast.study.selection import apply_codes
from roarfast.study.work import Clock, Work, fill_split, fill_value


def collect(w: Work, spec: dict[str, Any], clock: Clock) -> bytes:
    """The npz file of an estimator, as bytes.

    Arrays: `images` uint8 `[M, H, W, C]`, `labels` `[M]`, `map` float32 `[M, H, W]`, `processed` `[K, M, H, W]`, `mask`
    bool `[K, D, M, H, W]`, `modified` uint8 `[K, D, M, H, W, C]`, `postprocess` `[K]`, `drops` `[D]`, `class_names`.
    Post-processings share the drop rates that all of them have.
    """
    rows = example_rows(w.test.labels, spec["count"])
    images = w.test.images[rows]
    groups = spec["codes"]
    drops = [d for d in groups[0]["drops"] if all(d in group["drops"] for group in groups)]
    filled, constant = fill_split(w, "test", clock), fill_value(w)
    fill = np.rint(constant).astype(np.uint8) if constant is not None else filled[rows]  # type: ignore[index]
    plain, processed, masks = None, [], []
    for group in groups:
        selection = w.selection(group, "test", "morf")
        maps = None
        if group["map"] is not None:
            maps = w.stored_maps(group["estimator"], group["base"], "test")
            plain = np.stack([maps[int(row)] for row in rows]) if plain is None else plain
        per_image = [selection.codes(maps, np.array([row]), w.test.images.shape[1:3]) for row in rows]
        positions = [group["drops"].index(d) for d in drops]
        if selection.baseline == "block":
            masks.append(np.stack([[codes[j, 0] == 0 for codes, _ in per_image] for j in positions]))
            processed.append(np.stack([maps[positions[-1], 0] for _, maps in per_image]))
        else:
            masks.append(np.stack([[apply_codes(codes[0], j) for codes, _ in per_image] for j in positions]))
            processed.append(np.stack([maps[0] for _, maps in per_image]))
    mask = np.stack(masks)
    modified = np.where(mask[..., None], fill, images)
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        images=images,
        labels=w.test.labels[rows],
        map=np.asarray(processed[0] if plain is None else plain, np.float32),
        processed=np.stack(processed).astype(np.float32),
        mask=mask,
        modified=modified,
        postprocess=np.array([group["postprocess"] for group in groups]),
        drops=np.array(drops),
        class_names=np.array(w.test.class_names),
    )
    return buffer.getvalue()


def example_rows(labels: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    """The first image of each class in turn, then the second, …: `count` rows that show different classes."""
    order = np.argsort(labels, kind="stable")
    rank = np.empty(len(labels), np.int64)
    _, starts = np.unique(labels[order], return_index=True)
    for begin, end in zip(starts, [*starts[1:], len(labels)]):
        rank[order[begin:end]] = np.arange(end - begin)
    return np.lexsort((labels, rank))[:count]
