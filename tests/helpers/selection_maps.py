"""Maps that selection must get right: continuous, tied, constant, extreme."""

from __future__ import annotations

import numpy as np

NAMES = (
    "random",
    "signed",
    "heavy",
    "relu",
    "quantised",
    "constant",
    "zeros_of_both_signs",
    "denormal",
    "infinite",
    "negative",
)


def make(name: str, shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, NAMES.index(name)])
    z = rng.standard_normal(shape)
    maps = {
        "random": lambda: rng.random(shape),
        "signed": lambda: z,
        "heavy": lambda: (z * np.exp(2 * rng.standard_normal(shape))) ** 2,
        "relu": lambda: np.maximum(z - 0.25, 0),
        "quantised": lambda: np.round(z * 2),
        "constant": lambda: np.full(shape, 0.3),
        "zeros_of_both_signs": lambda: np.where(rng.random(shape) < 0.4, -0.0, np.where(z > 0.5, z, 0.0)),
        "denormal": lambda: z * float(np.finfo(dtype if dtype != "uint8" else "float32").tiny) / 4,
        "infinite": lambda: np.where(np.abs(z) > 1, np.sign(z) * np.inf, z),
        "negative": lambda: -np.abs(z) - 1,
    }
    with np.errstate(over="ignore"):
        if dtype == "uint8":
            return np.clip(np.nan_to_num(maps[name]()) * 60 + 100, 0, 255).astype(np.uint8)
        return maps[name]().astype(dtype)
