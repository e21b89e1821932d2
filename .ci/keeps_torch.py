"""No install command of README, docs and error messages replaces the torch that is there; run in an environment that has one.

Each command is resolved by pip, but nothing is installed: `pip install --dry-run --report`.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOT_ALONE = ("torch", "torchvision")  # in the sources: advised where there is no torch


def documented() -> list[str]:
    """Commands in backticks and in shell blocks, and those that errors advise."""
    from roarfast._extras import NEED_ONE_TORCH, install_advice

    found = []
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        found += re.findall(r"(?:`|^)(pip install [^`\n#]+)", page.read_text(), re.MULTILINE)
    found.append("pip install '.[torch]'")  # README shortens it to '.[torch]'
    for module in (None, *NEED_ONE_TORCH):
        found += re.findall(r"(pip install .*?)(?: \(|$)", install_advice(module))
    alone = []
    for path in sorted((ROOT / "roarfast").rglob("*.py")):
        alone += re.findall(r"pip install ([a-z][a-z-]+)(?=\W|$)", path.read_text())
    found += [f"pip install {package}" for package in alone if package not in NOT_ALONE]
    commands = {command.strip() for command in found}
    return sorted(c for c in commands if any(not word.startswith("-") for word in shlex.split(c)[2:]))


def replaced(command: str, folder: Path) -> str | None:
    """The version of torch that the command would bring, None if it leaves torch alone."""
    report = folder / "report.json"
    dry = command.replace("pip install", f"pip install --quiet --dry-run --report {shlex.quote(str(report))}", 1)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "PATH": path, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run(["bash", "-c", dry], cwd=ROOT, env=environment, check=True)
    news = {
        item["metadata"]["name"].lower(): item["metadata"]["version"]
        for item in json.loads(report.read_text())["install"]
    }
    return news.get("torch")


def main() -> int:
    """Prints a line per command; 1 if one of them would replace torch."""
    import torch

    wrong = 0
    commands = documented()
    with tempfile.TemporaryDirectory() as folder:
        for command in commands:
            other = replaced(command, Path(folder))
            wrong += other is not None
            print(
                f"torch {torch.__version__} {'stays' if other is None else f'would be replaced by {other}'}: {command}"
            )
    return 1 if wrong or len(commands) < 5 else 0


if __name__ == "__main__":
    sys.exit(main())
