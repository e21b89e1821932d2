"""A study small enough for tests: generated images, a net of a few hundred weights, one epoch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from roarfast.study import Study

TINY = """\
name = "tiny"
trials = 1
[data]
name = "shapes"
train_size = 60
test_size = 40
[model]
name = "convnet"
options = { widths = [4, 4, 4, 4] }
[train]
recipe = "quick"
epochs = 2
batch_size = 20
[explain]
options = { ig_steps = 2, noise_samples = 2 }
[[grid]]
protocols = ["roar", "road"]
estimators = ["grad^2", "sg-sq", "rand", "block"]
postprocess = ["plain", "max(3)"]
drops = [0.3, 0.5]
[run]
examples = 2
"""


def tiny(text: str = TINY, **replacements: object) -> str:
    """The tiny config with other `key = value` lines. A string stands as it is, and may bring lines of its own."""
    for key, value in replacements.items():
        before = [line.split("=")[0].strip() for line in text.splitlines()]
        assert key in before, f"{key} is not in the config"
        new = value if isinstance(value, str) else json.dumps(value)
        lines = [f"{key} = {new}" if name == key else line for name, line in zip(before, text.splitlines())]
        text = "\n".join(lines) + "\n" * text.endswith("\n")
    return text


def write_tiny(folder: Path, text: str = TINY, **replacements: object) -> Path:
    """The tiny config as a file; `replacements` as of `tiny`."""
    text = tiny(text, **replacements)
    path = folder / "study.toml"
    path.write_text(text)
    return path


def run_tiny(folder: Path, text: str = TINY, **replacements: object) -> Study:
    """A study of `write_tiny`, run in `folder / "run"` without a failed cell."""
    from roarfast.study import Study

    study = Study.from_toml(write_tiny(folder, text, **replacements), folder / "run")
    assert study.run(workers=1).failed == []
    return study


def outcome(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Key → everything that must not depend on how the study was run."""
    from roarfast.study.results import load

    return {
        r.key: (
            r.status,
            r.accuracy,
            r.true_class_probability,
            r.removed_fraction,
            r.removed_fraction_train,
            r.tv_map,
            r.tv_mask,
        )
        for r in load(folder)
    }
