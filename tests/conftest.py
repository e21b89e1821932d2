"""Fixtures of every test. Backends: `cpu` and `simt` run arrays in host memory, `cuda` on a GPU where there is one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from helpers.backends import BACKENDS, Backend, torch

import roarfast as rf
from roarfast import _backend


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
