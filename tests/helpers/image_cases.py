"""Images for the tests of the filters: every shape, dtype and memory layout that a kernel may see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

SHAPES = [(1, 1), (1, 37), (7, 5), (28, 28), (97, 131), (224, 224)]
MODES = ["reflect", "mirror", "nearest", "wrap", "constant"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
LAYOUTS = ["contiguous", "strided"]

# Relative error allowed: of the arithmetic for float32 and float64, of the storage for the others.
TOLERANCE = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-5, "float64": 1e-12}


def make_images(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str, layout: str = "contiguous", signed: bool = True
) -> Any:
    """Random images `[..., H, W]`: normal (or positive, if not `signed`) floats, bytes or masks; bfloat16 is a torch tensor.

    A strided layout is the transpose of every other column of a larger array.
    """
    *batch, h, w = shape
    dense = (*batch, h, w) if layout == "contiguous" else (*batch, w, 2 * h)
    if dtype == "bool":
        a = rng.random(dense) < 0.3
    elif dtype == "uint8":
        a = rng.integers(0, 256, dense, dtype=np.uint8)
    else:
        a = rng.standard_normal(dense) if signed else rng.random(dense) + 0.1
        a = a.astype("float32" if dtype == "bfloat16" else dtype)
    if dtype == "bfloat16":
        torch = pytest.importorskip("torch")
        a = torch.from_numpy(a).bfloat16()
    return a if layout == "contiguous" else a[..., ::2].swapaxes(-1, -2)


def exact(a: Any) -> np.ndarray:
    """The values of an array or tensor as float64."""
    return (a if isinstance(a, np.ndarray) else a.float().numpy()).astype(np.float64)


def assert_close(got: Any, expected: np.ndarray, dtype: str) -> None:
    """Equal shapes and dtype, and values within the tolerance of the dtype, relative to the largest of the expected."""
    assert str(got.dtype).removeprefix("torch.") == dtype
    assert tuple(got.shape) == expected.shape
    scale = np.abs(expected).max(initial=0.0)
    np.testing.assert_allclose(exact(got), expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale)


def same_bits(got: Any, expected: Any) -> bool:
    """Whether two arrays agree in every bit (0.0 and -0.0 count as equal)."""
    return np.array_equal(exact(got), exact(expected))
