"""Writes constraints.lock: the pins of constraints.txt with the SHA-256 of the file that pip chooses for each here.

    python tools/lock.py            write it (`make lock`); asks the package index, changes nothing that is installed
    python tools/lock.py --check    only say whether every pin is in it, in the same version

`pip install --require-hashes -r constraints.lock` then installs these bytes and no others. Hashes are of one platform:
Linux on x86-64, the Python that runs this.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PINS, LOCK = ROOT / "constraints.txt", ROOT / "constraints.lock"
_HEAD = """\
# Made by `make lock` from constraints.txt: what is installed for development, to the byte (Linux, x86-64, Python {python}).
#   pip install --require-hashes --no-deps -r constraints.lock
"""


def normal(name: str) -> str:
    """A package's name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    """Name → version of `name==version` lines, without the part after "+" that says how it was built."""
    lines = (line.split(" ")[0].strip() for line in text.splitlines())
    found = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {normal(name): version.split("+")[0] for name, version in found}


def entries(report: dict[str, Any]) -> list[str]:
    """Lines of the lock from what `pip install --report` says."""
    lines = []
    for item in sorted(report["install"], key=lambda item: normal(item["metadata"]["name"])):
        hashes = item["download_info"]["archive_info"].get("hashes") or {}
        if "sha256" not in hashes:
            raise SystemExit(f"the index has no SHA-256 for {item['metadata']['name']}")
        name, version = item["metadata"]["name"], item["metadata"]["version"]
        lines.append(f"{name}=={version} --hash=sha256:{hashes['sha256']}")
    return lines


def missing(constraints: str, lock: str) -> list[str]:
    """Pins that the lock does not have, or in another version."""
    locked = pins(lock)
    return [f"{name}=={version}" for name, version in pins(constraints).items() if locked.get(name) != version]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        wrong = missing(PINS.read_text(), LOCK.read_text())
        if wrong:
            raise SystemExit(f"constraints.lock lacks {', '.join(wrong)}: make lock")
        return
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet"]
        subprocess.run([*command, "--report", str(report), "-r", str(PINS)], check=True)
        lines = entries(json.loads(report.read_text()))
    LOCK.write_text(_HEAD.format(python=".".join(map(str, sys.version_info[:2]))) + "\n".join(lines) + "\n")
    print(f"{LOCK.name}: {len(lines)} packages")


if __name__ == "__main__":
    main()
