"""The names of nulls that take the masks of other trials' base models. Without imports: reports read them, and wait for no torch."""

from __future__ import annotations

import re

ALL_MODELS = "models"
"""In a config: the nulls of all other trials."""


def model_null(number: int) -> str:
    """The name of the null with the masks of the `number`-th other trial's base model: `model`, `model-2`, …."""
    return "model" if number == 1 else f"model-{number}"


def is_model_null(null: str) -> bool:
    """Whether a null takes the masks of another trial's base model."""
    return re.fullmatch(r"model(-([2-9]|[1-9][0-9]+))?", null) is not None


def model_number(null: str) -> int:
    """1 for `model`, 2 for `model-2`."""
    return int(null.partition("-")[2] or 1)
