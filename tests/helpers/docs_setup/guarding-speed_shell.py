"""What a reader of docs/guarding-speed.md has in the working folder: the page's code in a test file."""

from pathlib import Path

from helpers.docs_pages import ROOT, blocks

Path("test_speed.py").write_text("".join(code for _, code in blocks(ROOT / "docs" / "guarding-speed.md")))
