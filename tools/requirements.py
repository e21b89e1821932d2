"""Prints the requirements of extras of pyproject.toml, the one list of dependencies, for `pip install`.

    python tools/requirements.py build study dev      `build` stands for [build-system].requires

Extras that an extra names (`roarfast[study]` in `dev`) are followed; each requirement comes once.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def requirements(pyproject: dict[str, Any], extras: Sequence[str]) -> list[str]:
    """Requirements of `[project]` and of the extras, in their order."""
    project = pyproject["project"]
    own = re.compile(rf"{re.escape(project['name'])}\[([\w, -]+)\]")

    def of(extra: str) -> Iterator[str]:
        if extra == "build":
            yield from pyproject["build-system"]["requires"]
            return
        for requirement in project["optional-dependencies"][extra]:
            if match := own.fullmatch(requirement):
                for name in match[1].split(","):
                    yield from of(name.strip())
            else:
                yield requirement

    return list(dict.fromkeys([*project["dependencies"], *(r for extra in extras for r in of(extra))]))


if __name__ == "__main__":
    print(*requirements(tomllib.loads((ROOT / "pyproject.toml").read_text()), sys.argv[1:]))
