"""Headless Chromium for tests of pages."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
NO_BROWSER = "no Chromium on PATH: the page was not opened in a browser"


def dump(page: Path, profile: Path, width: int = 1280, files: bool = False) -> str:
    """The document after its scripts have run; with `files` it may look into frames of other files."""
    command = [
        str(BROWSER),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--window-size={width},900",
        "--virtual-time-budget=10000",
        f"--user-data-dir={profile}",
        *(["--allow-file-access-from-files"] if files else []),
        "--dump-dom",
        page.as_uri(),
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert "<html" in result.stdout, result.stderr[-2000:]
    return result.stdout
