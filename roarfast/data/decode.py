"""Decoding image files to uint8 arrays of one size."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from roarfast._backend import available_cores
from roarfast._types import Numpy
from roarfast.data.dataset import DataError

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp"})

Item = TypeVar("Item")
Result = TypeVar("Result")


def decode_image(source: str | Path | bytes, size: int | None = None) -> Numpy:
    """Decode one image to RGB.

    Grey images get three equal channels, palettes their colours; transparency is dropped, with the colours below it as
    they are stored. 16-bit values are scaled: 65535 becomes 255. The orientation that a camera notes is not applied.

    Args:
        source: a file, or the bytes of one.
        size: scale the short side to this (antialiased bilinear) and cut out the centre square. None: as it is.

    Returns:
        uint8 `[H, W, 3]`.

    Raises:
        DataError: it cannot be decoded, or has values without a known range (32-bit integers, floats); the message names
            the file.
    """
    from PIL import Image

    where = f"{len(source)} bytes" if isinstance(source, bytes) else str(source)
    try:
        with Image.open(io.BytesIO(source) if isinstance(source, bytes) else source) as image:
            if size is not None:
                # JPEG decodes at a power-of-two fraction where that leaves at least twice the size asked for.
                image.draft("RGB", (2 * size, 2 * size))
            rgb = to_8_bits(image, where).convert("RGB")
    except DataError:
        raise
    except (OSError, SyntaxError, ValueError, MemoryError, Image.DecompressionBombError) as error:
        raise DataError(f"cannot decode image {where}: {error}") from error
    if size is not None:
        rgb = rgb.resize(_scaled(rgb.size, size), Image.Resampling.BILINEAR) if min(rgb.size) != size else rgb
        left, top = (rgb.width - size) // 2, (rgb.height - size) // 2
        rgb = rgb.crop((left, top, left + size, top + size))
    return np.array(rgb, np.uint8)


def to_8_bits(image: Image.Image, where: str) -> Image.Image:
    """Pillow clips to 255 when it converts wider values, which turns most of a 16-bit image white."""
    from PIL import Image

    if image.mode.startswith("I;16") or (image.mode == "I" and image.format in ("PNG", "PPM")):
        values = np.asarray(image).astype(np.uint32)  # PNG and PGM have at most 16 bits, which Pillow may hold in 32
        return Image.fromarray(((np.minimum(values, 65535) + 128) // 257).astype(np.uint8))
    if image.mode in ("I", "F"):
        kind = "32-bit integers" if image.mode == "I" else "floats"
        raise DataError(
            f"image {where} has {kind}, whose range is not known: save it with 8 or 16 bits, or an .npz of uint8"
        )
    return image


def _scaled(wh: tuple[int, int], size: int) -> tuple[int, int]:
    short = min(wh)
    return tuple(size if side == short else max(size, round(side * size / short)) for side in wh)  # type: ignore[return-value]


def transform_box(box: Numpy, wh: tuple[int, int], size: int) -> Numpy:
    """Where x0 y0 x1 y1 of the original image lies after `decode_image(..., size)`, clipped to it."""
    w, h = _scaled(wh, size)
    scale = np.array([w / wh[0], h / wh[1]] * 2)
    offset = np.array([(w - size) // 2, (h - size) // 2] * 2)
    return np.clip(box * scale - offset, 0, size).astype(np.float32)


def image_files(folder: Path) -> list[Path]:
    """The image files below a folder, sorted by path."""
    return sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())


def sizes_of(files: Iterable[Path]) -> set[tuple[int, int]]:
    """The (width, height) that occur in image files, from their headers."""
    from PIL import Image

    found = set()
    for file in files:
        try:
            with Image.open(file) as image:
                found.add(image.size)
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise DataError(f"cannot decode image {file}: {error}") from error
    return found


def map_parallel(work: Callable[[Item], Result], items: Iterable[Item], workers: int | None = None) -> Iterator[Result]:
    """Results in the order of the items, computed by threads that stay a bounded number of items ahead."""
    workers = workers or available_cores()
    waiting: list[Future[Result]] = []
    with ThreadPoolExecutor(workers) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= 4 * workers:
                    yield waiting.pop(0).result()
            while waiting:
                yield waiting.pop(0).result()
        finally:
            for future in waiting:
                future.cancel()


def stack_images(images: list[Numpy], names: Sequence[object]) -> Numpy:
    """`[N, H, W, C]`; an image of another size is an error that names it."""
    for image, name in zip(images, names):
        if image.shape != images[0].shape:
            raise DataError(
                f"image of another size: {name} is {image.shape[1]}x{image.shape[0]}, {names[0]} is "
                f"{images[0].shape[1]}x{images[0].shape[0]}. Pass size=… (data.image_size in a study) to scale and crop all of them alike."
            )
    return np.stack(images)
