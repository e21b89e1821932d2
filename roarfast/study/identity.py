"""Hashes and seeds: stable over processes, machines and Python versions."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(value: Any) -> str:
    """32 hexadecimal digits of a JSON value; the order of keys does not matter, numbers keep their exact value.

    Example:
        >>> digest({"a": 1, "b": [0.1]}) == digest({"b": [0.1], "a": 1})
        True
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def derive_seed(seed: int, *parts: str | int) -> int:
    """A 31-bit seed for one use: `derive_seed(study_seed, "base", trial)`."""
    return int(digest([seed, *parts])[:8], 16) >> 1
