"""The explorer: rank codes of the stored examples, from which the browser draws mask and modified image at any rate.

A pixel's code is the place of the first rate, in a list of rates, at which it is removed: one byte per pixel serves every
position of the slider. Linear imputation cannot be drawn from codes; its images are kept for a few rates.
"""

from __future__ import annotations

import io
import zlib
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np
import numpy.typing as npt

import roarfast as rf
from roarfast._types import Numpy
from roarfast.report.examples import Examples
from roarfast.report.grid import pretty

Bytes = npt.NDArray[np.uint8]
Masks = npt.NDArray[np.bool_]
MOST_BYTES = 11_000_000
"""Of the explorer in the page; the rest of the page then stays below 15 MB."""
LARGE = 96  # pixels of a side: larger images get a coarser slider and lossy imputed pictures
MOST_IMPUTED = 3


class Picture(TypedDict):
    """An image; `pixels` and `fill` as `packed` writes them."""

    label: str
    pixels: str
    fill: str


class Column(TypedDict):
    """A map of one image: its packed codes, and its imputed images as addresses that hold them."""

    codes: str
    imputed: list[str]


class MapEntry(TypedDict):
    """A map of all images: `codes` and `imputed` have one entry per image, `answers` are by rate and image."""

    estimator: str
    k: str
    nested: bool
    measured: list[float]
    answers: list[list[str]]
    codes: list[str]
    imputed: list[list[str]]


class ExplorerData(TypedDict):
    """What `explorer.js` reads."""

    height: int
    width: int
    rates: list[float]
    imputedRates: list[float]
    images: list[Picture]
    maps: list[MapEntry]


@dataclass
class Explorer:
    """What the script of the page reads, and what had to be left out."""

    data: ExplorerData
    images: int
    maps: int
    size: int = field(default=0)

    @property
    def left_out(self) -> str:
        """What is not shown so that the file stays small; empty if nothing."""
        shown, maps = len(self.data["images"]), len(self.data["maps"])
        parts = [f"{shown} of {self.images} stored images"] if shown < self.images else []
        parts += [f"{maps} of {self.maps} maps"] if maps < self.maps else []
        return f"Only {' and '.join(parts)} are in here, so that this file stays below 15 MB." if parts else ""


def rank_codes(processed: Numpy, masks: Masks, drops: Sequence[float], rates: Sequence[float]) -> Bytes:
    """Codes over `rates` that agree with stored masks at every rate of `drops`, whatever rule and ties made those.

    Between two stored rates pixels go by value, inside what the masks leave open.

    Args:
        processed: The map that was ranked, `[H, W]`.
        masks: bool `[D, H, W]`, nested, of the rates `drops`.
        drops: Ascending.
        rates: Ascending, none above the last of `drops`.

    Returns:
        uint8 `[H, W]`: place of the first of `rates` at which a pixel goes; `len(rates)`: at none.
    """
    values = np.nan_to_num(np.asarray(processed, np.float64)).reshape(-1)
    removed_at = (~np.asarray(masks, bool)).sum(0).reshape(-1)  # in how many of the stored masks it is still there
    order = np.lexsort((-values, removed_at))
    counts = [int(mask.sum()) for mask in masks]
    stored = dict(zip(drops, counts))
    below, asked = 0, []
    for rate in rates:
        ceiling = min((n for t, n in stored.items() if t >= rate), default=counts[-1])
        below = stored.get(rate, min(max(int(rate * values.size), below), ceiling))
        asked.append(below)
    codes = np.empty(values.size, np.uint8)
    codes[order] = np.searchsorted(asked, np.arange(values.size), side="right")
    return codes.reshape(np.shape(processed))


def explorer(found: Sequence[Examples], imputes: bool, most_bytes: int = MOST_BYTES) -> Explorer | None:
    """The data of the explorer; None if no examples are stored.

    Args:
        found: The stored examples of each estimator.
        imputes: Whether the study imputes: then imputed images are kept too.
        most_bytes: When they are reached, images are left out, or maps if it is the first image.
    """
    found = [one for one in found if one.images.shape == found[0].images.shape]
    if not found:
        return None
    first = found[0]
    total, height, width, _ = first.images.shape
    step = 1 if max(height, width) <= LARGE else 5
    # Beyond the last rate of a map nothing is known of its fill.
    last = min(one.drops[-1] for one in found)
    measured = {t for one in found for t in one.drops if t <= last}
    rates = sorted(measured | {n / 100 for n in range(step, round(100 * last), step)})
    common = sorted(measured.intersection(*(one.drops for one in found)))
    kept = {common[round(i * (len(common) - 1) / (MOST_IMPUTED - 1))] for i in range(MOST_IMPUTED)} if common else set()
    imputed = sorted(kept) if imputes else []
    maps = [(one, k) for one in found for k in range(len(one.postprocesses))]
    result = Explorer(
        {
            "height": height,
            "width": width,
            "rates": rates,
            "imputedRates": imputed,
            "images": [],
            "maps": [
                {
                    "estimator": pretty(one.estimator),
                    "k": one.postprocesses[k],
                    "nested": one.nested(k),
                    "measured": one.drops,
                    "answers": one.answers[k] if one.answers else [],
                    "codes": [],
                    "imputed": [],
                }
                for one, k in maps
            ],
        },
        total,
        len(maps),
    )
    for m in range(total):
        if not _add_image(result, found, maps, m, most_bytes):
            break
    return result


def _add_image(
    result: Explorer, found: Sequence[Examples], maps: Sequence[tuple[Examples, int]], m: int, most: int
) -> bool:
    """Adds an image with all its maps; False if that would be too much, and then only what fits is added of the first."""
    first, data = found[0], result.data
    picture: Picture = {
        "label": next((one for one in found if one.predictions), first).label(m),
        "pixels": packed(_rgb(first.images[m])),
        "fill": packed(_fill(found, m)),
    }
    size = result.size + sum(map(len, (picture["label"], picture["pixels"], picture["fill"])))
    columns: list[Column] = []
    for one, k in maps:
        column = _column(one, k, m, data["rates"], data["imputedRates"])
        size += len(column["codes"]) + sum(map(len, column["imputed"]))
        if size > most and (m > 0 or columns):
            break
        columns.append(column)
    if len(columns) < len(data["maps"]) and m > 0:
        return False
    data["images"].append(picture)
    del data["maps"][len(columns) :]
    for entry, column in zip(data["maps"], columns):
        entry["codes"].append(column["codes"])
        entry["imputed"].append(column["imputed"])
    result.size = size
    return len(columns) == len(maps)


def _column(one: Examples, k: int, m: int, rates: Sequence[float], imputed: Sequence[float]) -> Column:
    masks = one.masks[k, :, m]
    codes = rank_codes(one.processed[k, m], masks, one.drops, rates) if one.nested(k) else masks.astype(np.uint8)
    pictures = [_imputed(one.images[m], masks[one.drops.index(t)]) for t in imputed]
    return {"codes": packed(codes), "imputed": pictures}


def _fill(found: Sequence[Examples], m: int) -> Bytes:
    """What stands at removed pixels, wherever some stored mask removes them; the image itself elsewhere."""
    fill = found[0].images[m].copy()
    for one in found:
        for k in range(len(one.postprocesses)):
            mask = one.masks[k, -1, m]
            fill[mask] = one.modified[k, -1, m][mask]
    return _rgb(fill)


def _imputed(image: Bytes, mask: Masks) -> str:
    """The imputed image without its noise, as an address that holds the picture."""
    from PIL import Image

    filled = rf.impute_linear(np.ascontiguousarray(image), np.ascontiguousarray(mask), noise=0.0, layout="NHWC")
    buffer = io.BytesIO()
    kind = "png" if max(image.shape[:2]) <= LARGE else "webp"
    Image.fromarray(_rgb(np.rint(np.clip(filled, 0, 255)))).save(buffer, kind, quality=78)
    return f"data:image/{kind};base64,{b64encode(buffer.getvalue()).decode()}"


def _rgb(pixels: Numpy) -> Bytes:
    return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)).astype(np.uint8))


def packed(values: Bytes) -> str:
    """Bytes as the script reads them: zlib, then base64."""
    return b64encode(zlib.compress(np.ascontiguousarray(values).tobytes(), 9)).decode()
