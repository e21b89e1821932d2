"""Fixtures of every test. Backends: `cpu`, `simt` and `ptx` run arrays in host memory, `cuda` on a GPU where there is one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from helpers.backends import BACKENDS, Backend, torch
from helpers.no_traceback import watch
from helpers.ptx import ptx_left_out, ptx_missing, write_coverage
from hypothesis import settings

import roarfast as rf
from roarfast import _backend


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--ptx", choices=("sample", "all"), default="sample", help="op tests on the ptx backend: every eighth, or all"
    )
    parser.addoption("--ptx-coverage", type=Path, help="a folder for files with the PTX instructions that ran")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if ptx_missing():
        terminalreporter.write_line(f"no tests on the ptx backend: {ptx_missing()}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = ptx_left_out(items, everything=config.getoption("--ptx") == "all")
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))


def pytest_sessionfinish(session: pytest.Session) -> None:
    path = session.config.getoption("--ptx-coverage")
    if path is not None:
        write_coverage(path)


watch()

# No test is timed: a busy machine is not a bug.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Backend:
    name = request.param
    if name == "simt":
        try:
            _backend.simt()
        except _backend.BackendError as error:
            pytest.skip(str(error))
    if name == "cuda" and (torch is None or not torch.cuda.is_available() or not _backend.cuda_is_built()):
        pytest.skip("no CUDA device, or a build without CUDA")
    return Backend(name)


@pytest.fixture(autouse=True)
def _default_threads() -> Iterator[None]:
    yield
    rf.set_num_threads(None)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
