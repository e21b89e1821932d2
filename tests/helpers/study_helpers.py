"""A study small enough for tests: generated images, a net of a few hundred weights, one epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def write_tiny(folder: Path, text: str = TINY, **replacements: str) -> Path:
    """The tiny config as a file; `replacements` change `key = value` lines."""
    for key, value in replacements.items():
        lines = [f"{key} = {value}" if line.split("=")[0].strip() == key else line for line in text.splitlines()]
        assert lines != text.splitlines(), f"{key} is not in the config"
        text = "\n".join(lines)
    path = folder / "study.toml"
    path.write_text(text)
    return path


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
