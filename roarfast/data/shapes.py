"""`shapes`: a generated dataset that needs no download and knows where its objects are.

32x32 RGB, ten classes. Each image has a background of coloured 1/f noise, a few small distractors (dots and strokes that
say nothing about the class), and one textured shape of random colour, size, tilt and place. Image i of a split depends
only on (seed, split, i), so a smaller set is the beginning of a larger one.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from roarfast._backend import available_cores
from roarfast._types import Numpy
from roarfast.data.dataset import Dataset

CLASS_NAMES = ("disk", "ring", "square", "triangle", "plus", "star", "crescent", "bar", "corner", "bowtie")
SIZE = 32
DEFAULT_COUNT = {"train": 10_000, "test": 2_000}
_CHUNK = 100  # images that share one random stream; ten of each class
_DISTRACTORS = 4
_TILT = np.pi / 4  # how far shapes turn either way; by any angle, ten epochs do not suffice to tell them apart


def generate(split: str = "train", n: int | None = None, seed: int = 0) -> Dataset:
    """Generate a split.

    Args:
        split: `"train"` or `"test"`.
        n: number of images; default 10,000 or 2,000.
        seed: another seed, another dataset.

    Returns:
        A `Dataset` with `masks`: True where the object is.

    Example:
        >>> data = generate("test", n=20)
        >>> data.images.shape, data.masks.shape, data.num_classes
        ((20, 32, 32, 3), (20, 32, 32), 10)
    """
    if split not in DEFAULT_COUNT:
        raise ValueError(f"split must be 'train' or 'test', got {split!r}")
    n = DEFAULT_COUNT[split] if n is None else n
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    stream = list(DEFAULT_COUNT).index(split)
    entropies = [np.random.SeedSequence([seed, stream, c]) for c in range(-(-n // _CHUNK))]
    with ThreadPoolExecutor(available_cores()) as pool:
        chunks = list(pool.map(_chunk, entropies))
    images, masks, labels = (np.concatenate(parts)[:n] for parts in zip(*chunks, strict=True))
    return Dataset(images, labels, CLASS_NAMES, name="shapes", split=split, masks=masks)


def _chunk(entropy: np.random.SeedSequence) -> tuple[Numpy, Numpy, Numpy]:
    rng = np.random.Generator(np.random.PCG64(entropy))
    labels = rng.permutation(np.arange(_CHUNK) % len(CLASS_NAMES))
    canvas = _background(rng)
    for _ in range(_DISTRACTORS):
        coverage = _dots(rng) if rng.random() < 0.5 else _strokes(rng)
        _paint(canvas, coverage, _colours(rng, _CHUNK)[:, None, None])
    radius = _uniform(rng, 7.0, 11.0, (_CHUNK,))
    u, v = _object_coordinates(rng, radius)
    distance = np.empty((_CHUNK, SIZE, SIZE), np.float32)
    for label, shape in enumerate(_SHAPES):
        mine = labels == label
        distance[mine] = shape(u[mine], v[mine])
    coverage = np.clip(0.5 - distance * radius[:, None, None], 0, 1)  # antialiased over one pixel
    _paint(canvas, coverage, _texture(rng, u, v, canvas))
    canvas += _normal(rng, 0.02, canvas.shape)
    images = np.clip(np.rint(canvas * 255), 0, 255).astype(np.uint8)
    return images, coverage > 0.5, labels.astype(np.int64)


def _uniform(rng: np.random.Generator, low: float, high: float, shape: tuple[int, ...]) -> Numpy:
    return np.float32(low) + np.float32(high - low) * rng.random(shape, np.float32)


def _normal(rng: np.random.Generator, std: float, shape: tuple[int, ...]) -> Numpy:
    return np.float32(std) * rng.standard_normal(shape, np.float32)


def _paint(canvas: Numpy, coverage: Numpy, colour: Numpy) -> None:
    canvas += (colour - canvas) * coverage[..., None]


def _colours(rng: np.random.Generator, count: int) -> Numpy:
    """Random colours `[count, 3]`, from greyish to saturated."""
    grey = _uniform(rng, 0.15, 0.85, (count, 1))
    tint = _normal(rng, 0.22, (count, 3))
    return np.clip(grey + tint, 0.02, 0.98)


def _background(rng: np.random.Generator) -> Numpy:
    """`[chunk, 32, 32, 3]`: noise with amplitude 1/f, mostly of brightness, as in natural scenes."""
    f = np.hypot(np.fft.fftfreq(SIZE)[:, None], np.fft.rfftfreq(SIZE)[None, :])
    f[0, 0] = np.inf  # the mean is the colour
    white = rng.normal(size=(_CHUNK, 3, SIZE, SIZE))
    pink = np.fft.irfft2(np.fft.rfft2(white) / f, s=(SIZE, SIZE))
    pink = (pink / pink.std(axis=(2, 3), keepdims=True)).astype(np.float32)
    brightness, hue1, hue2 = pink[:, 0], pink[:, 1], pink[:, 2]
    contrast = _uniform(rng, 0.06, 0.16, (_CHUNK, 1, 1))
    rgb = np.stack([brightness + 0.4 * hue1, brightness - 0.4 * hue1 + 0.3 * hue2, brightness - 0.5 * hue2], -1)
    background: Numpy = _colours(rng, _CHUNK)[:, None, None] + contrast[..., None] * rgb
    return background


def _grid() -> tuple[Numpy, Numpy]:
    y, x = np.mgrid[:SIZE, :SIZE].astype(np.float32) + np.float32(0.5)
    return y, x


def _dots(rng: np.random.Generator) -> Numpy:
    y, x = _grid()
    cy, cx = _uniform(rng, 0, SIZE, (2, _CHUNK, 1, 1))
    r = _uniform(rng, 1.0, 2.8, (_CHUNK, 1, 1))
    return np.clip(0.5 - (np.hypot(y - cy, x - cx) - r), 0, 1)


def _strokes(rng: np.random.Generator) -> Numpy:
    y, x = _grid()
    cy, cx = _uniform(rng, 0, SIZE, (2, _CHUNK, 1, 1))
    angle = _uniform(rng, 0, np.pi, (_CHUNK, 1, 1))
    length, width = _uniform(rng, 3, 8, (_CHUNK, 1, 1)), _uniform(rng, 0.4, 1.2, (_CHUNK, 1, 1))
    along = (x - cx) * np.cos(angle) + (y - cy) * np.sin(angle)
    across = (y - cy) * np.cos(angle) - (x - cx) * np.sin(angle)
    return np.clip(0.5 - np.maximum(np.abs(along) - length, np.abs(across) - width), 0, 1)


def _object_coordinates(rng: np.random.Generator, radius: Numpy) -> tuple[Numpy, Numpy]:
    """Pixel positions in each object's own frame, where its radius is about 1: two `[chunk, 32, 32]`."""
    y, x = _grid()
    margin = radius * 0.9
    cy, cx = ((margin + (SIZE - 2 * margin) * _uniform(rng, 0, 1, (_CHUNK,)))[:, None, None] for _ in range(2))
    angle = _uniform(rng, -_TILT, _TILT, (_CHUNK, 1, 1))
    scale = radius[:, None, None]
    dx, dy = (x - cx) / scale, (y - cy) / scale
    return dx * np.cos(angle) + dy * np.sin(angle), dy * np.cos(angle) - dx * np.sin(angle)


def _texture(rng: np.random.Generator, u: Numpy, v: Numpy, canvas: Numpy) -> Numpy:
    """Stripes, checks or plain, of two colours; the first keeps a distance from what it is painted over."""
    around = canvas.mean(axis=(1, 2))
    first = _colours(rng, _CHUNK)
    away = first - around
    distance = np.sqrt((away**2).sum(1, keepdims=True))
    first = np.where(distance < 0.45, around + away / np.maximum(distance, 1e-6) * 0.45, first)
    second = np.clip(first + _normal(rng, 0.15, first.shape), 0, 1)
    kind = rng.integers(0, 3, (_CHUNK, 1, 1))
    frequency = _uniform(rng, 4, 8, (_CHUNK, 1, 1))
    stripes, checks = np.sin(frequency * u), np.sin(frequency * u) * np.sin(frequency * v)
    mix = (kind == 1) & (stripes > 0) | (kind == 2) & (checks > 0)
    return np.where(mix[..., None], second[:, None, None], np.clip(first, 0, 1)[:, None, None])


# Signed distance (about: negative inside, in units of the object's radius) of each class in the object's frame.
def _disk(u: Numpy, v: Numpy) -> Numpy:
    return np.hypot(u, v) - 0.9


def _ring(u: Numpy, v: Numpy) -> Numpy:
    return np.abs(np.hypot(u, v) - 0.75) - 0.22


def _box(u: Numpy, v: Numpy, half_u: float, half_v: float) -> Numpy:
    return np.maximum(np.abs(u) - half_u, np.abs(v) - half_v)


def _triangle(u: Numpy, v: Numpy) -> Numpy:
    sides = [np.cos(a) * u + np.sin(a) * v for a in (np.pi / 2, np.pi * 7 / 6, np.pi * 11 / 6)]
    return np.maximum.reduce(sides) - 0.52


def _star(u: Numpy, v: Numpy) -> Numpy:
    sector = 2 * np.pi / 5
    angle = np.abs((np.arctan2(v, u) + sector / 2) % sector - sector / 2)  # folded: from a tip (0) to a notch
    r = np.hypot(u, v)
    tip, notch = 1.1, 0.45
    # The edge from the tip at angle 0 to the notch at angle sector / 2, as a half-plane.
    x0, y0, x1, y1 = tip, 0.0, notch * np.cos(sector / 2), notch * np.sin(sector / 2)
    normal = np.array([y1 - y0, x0 - x1]) / np.hypot(x1 - x0, y1 - y0)
    return (r * np.cos(angle) - x0) * normal[0] + (r * np.sin(angle) - y0) * normal[1]


def _crescent(u: Numpy, v: Numpy) -> Numpy:
    return np.maximum(np.hypot(u, v) - 0.95, 0.75 - np.hypot(u - 0.5, v))


def _corner(u: Numpy, v: Numpy) -> Numpy:
    return np.minimum(_box(u, v + 0.6, 0.85, 0.25), _box(u + 0.6, v, 0.25, 0.85))


def _bowtie(u: Numpy, v: Numpy) -> Numpy:
    return np.maximum((np.abs(v) - 0.85 * np.abs(u)) * 0.76 - 0.04, np.abs(u) - 0.92)


_SHAPES: tuple[Callable[[Numpy, Numpy], Numpy], ...] = (
    _disk,
    _ring,
    lambda u, v: _box(u, v, 0.75, 0.75),
    _triangle,
    lambda u, v: np.minimum(_box(u, v, 0.95, 0.28), _box(u, v, 0.28, 0.95)),
    _star,
    _crescent,
    lambda u, v: _box(u, v, 1.05, 0.3),
    _corner,
    _bowtie,
)
