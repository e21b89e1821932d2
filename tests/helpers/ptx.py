"""The test backend `ptx`: what nvcc made of the kernels, executed on the host (tests/backends/ptx/README.md)."""

from __future__ import annotations

import contextlib
import json
import os
import re
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from roarfast import _backend
from roarfast.ops import _arrays

ROOT = Path(__file__).resolve().parents[2]


SAMPLE = 8  # of the cases of a test on this backend, one in so many runs in `make test`; all do in `make test-ptx`


@cache
def ptx_missing() -> str:
    """Why there is no `ptx` backend, or an empty text."""
    try:
        _backend.ptx()
    except _backend.BackendError as error:
        return str(error)
    return ""


def ptx_left_out(items: list[pytest.Item], everything: bool) -> set[pytest.Item]:
    """The items not to run: all on `ptx` where it is not built; else, of a test's cases on `ptx`, all but the first and every eighth by name."""
    left_out, seen = set(), set()
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if parameters.get("backend") != "ptx":
            continue
        test = item.nodeid.partition("[")[0]
        skipped = test in seen and zlib.crc32(item.name.encode()) % SAMPLE and not everything
        if skipped or ptx_missing():
            left_out.add(item)
        seen.add(test)
    return left_out


@contextlib.contextmanager
def ptx_backend() -> Iterator[ModuleType]:
    """Host arrays run on the interpreter. Tensors go in as NumPy arrays, so that it knows where they end."""
    module = _backend.ptx()

    def call(self: Any, like: Any, name: str, *args: Any) -> Any:
        arrays = [_as_array(self.torch, x) if isinstance(x, self.torch.Tensor) else x for x in args]
        return getattr(module, name)(*arrays, 0)

    original = _arrays.TorchArrays.call
    _arrays.TorchArrays.call = call  # type: ignore[method-assign]
    try:
        with _backend.use_host_backend("ptx"):
            yield module
    finally:
        _arrays.TorchArrays.call = original  # type: ignore[method-assign]


def _as_array(torch: Any, x: Any) -> np.ndarray:
    return x.detach().view(torch.int16).numpy() if x.dtype == torch.bfloat16 else x.detach().numpy()


@contextlib.contextmanager
def options(**changed: Any) -> Iterator[ModuleType]:
    """Options of the interpreter (Options in machine.h) inside the block."""
    module = _backend.ptx()
    before = module.ptx_get_options()
    module.ptx_set_options(**changed)
    try:
        yield module
    finally:
        module.ptx_set_options(**before)


def counted(op: Any, *args: Any, l1_bytes: int = 20 << 10, **kwargs: Any) -> tuple[Any, list[dict[str, Any]]]:
    """The op's result, and what each of its launches executed and moved (docs: tests/backends/ptx/README.md)."""
    with options(traffic=True, races=False, seed=0, l1_bytes=l1_bytes) as module, ptx_backend():
        module.ptx_take_launches()
        result = op(*args, **kwargs)
        launches = module.ptx_take_launches()
    for launch in launches:
        names = pointer_names()[launch["function"]]
        for array in launch["arrays"]:
            array["name"] = names[array["argument"]]
    return result, launches


@cache
def pointer_names() -> dict[str, list[str]]:
    """The names of the pointer arguments of each function of the C API, in order."""
    header = (ROOT / "csrc" / "include" / "roarfast.h").read_text()
    names = {}
    for function, parameters in re.findall(r"\brf_(\w+)\(([^)]*)\);", header):
        names[function] = [
            p.split()[-1].lstrip("*") for p in parameters.split(",") if "*" in p or p.split()[:1] == ["rf_stream"]
        ]
    return names


def write_coverage(folder: Path) -> None:
    """Which instructions ran in this process, as one file of a folder; `tools/ptx_coverage.py` puts them together."""
    folder.mkdir(parents=True, exist_ok=True)
    kernels = _backend.ptx().ptx_kernels()
    (folder / f"{os.getpid()}.json").write_text(json.dumps(kernels))
