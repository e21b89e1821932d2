"""One valid call of every op at random, and what it must return according to `roarfast.reference` or SciPy."""

from __future__ import annotations

from collections.abc import Callable

from fuzz_case import Case, Rng
from fuzz_images import IMAGE_OPS
from fuzz_maps import MAP_OPS

OPS: dict[str, Callable[[Rng], Case]] = {make.__name__: make for make in (*MAP_OPS, *IMAGE_OPS)}
