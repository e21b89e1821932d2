"""Real images that lie beside the project, where they are."""

from __future__ import annotations

from pathlib import Path

import pytest


def shared_data(name: str) -> Path:
    """A file of real images beside the project; tests that need one skip where it is missing."""
    path = Path(__file__).resolve().parents[2].parent / "shared" / "data" / name
    if not path.exists():
        pytest.skip(f"real images not found: {path}")
    return path
