"""Every example in a docstring runs, and prints what it says; every public function has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest

import roarfast as rf

PACKAGE = Path(rf.__file__).parent
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
WITH_EXAMPLES = [path for path in sorted(PACKAGE.rglob("*.py")) if ">>> " in path.read_text()]
PUBLIC = [f"roarfast.{name}" for name in ("ops", "metrics", "explain", "data", "train", "study", "report", "compat")]
WITHOUT = {"register_torch", "default_root", "epoch_batches", "open_pack", "write_pack"}  # docs/data.md runs the packs


def module_name(path: Path) -> str:
    return ".".join(["roarfast", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=module_name)
def test_examples_run(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(module_name(path))
    # What a reader has imported: the names of the module, NumPy, torch, and the package.
    names = {**vars(module), "np": np, "torch": torch, "rf": rf, "roarfast": rf}
    found, said = 0, []
    for test in doctest.DocTestFinder().find(module, globs=names):
        found += len(test.examples)
        doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.append)
    assert not said, "".join(said)
    assert found >= path.read_text().count(">>> "), "an example that the finder does not see"


@pytest.mark.parametrize("package", PUBLIC)
def test_public_functions_have_an_example(package: str) -> None:
    pytest.importorskip("torch")
    module = importlib.import_module(package)
    functions = {name: getattr(module, name) for name in module.__all__ if inspect.isfunction(getattr(module, name))}
    without = [name for name, function in functions.items() if "Example" not in (function.__doc__ or "")]
    assert set(without) <= WITHOUT, f"{package}: {', '.join(sorted(without))}"
