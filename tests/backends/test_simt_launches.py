"""Launches on devices we do not have: every image size must fit what each device profile allows, whatever ran before."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest
from helpers.sizes import GAP, check_size, sample_of_sizes

from roarfast import _backend

try:
    module = _backend.simt()
except _backend.BackendError as error:
    pytest.skip(str(error), allow_module_level=True)

DEVICES = module.simt_devices().split()
OPS = module.simt_sweep_ops().split()


@pytest.fixture
def simt() -> Iterator[ModuleType]:
    before = module.simt_device()
    yield module
    assert module.simt_set_device(before)


def test_profiles_are_the_architectures_we_name() -> None:
    assert DEVICES == ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"]


@pytest.mark.parametrize("device", DEVICES)
def test_impute_linear_launches_for_every_size(simt: ModuleType, device: str) -> None:
    assert simt.simt_sweep("impute_linear", device, 512) == 512 * 512 * 5


@pytest.mark.parametrize("op", OPS)
def test_ops_launch_for_every_small_size(simt: ModuleType, op: str) -> None:
    for device in DEVICES:
        assert simt.simt_sweep(op, device, 96) % 96**2 == 0


@pytest.mark.slow
@pytest.mark.parametrize("op", [op for op in OPS if op != "impute_linear"])
def test_ops_launch_for_every_size(simt: ModuleType, op: str) -> None:
    for device in DEVICES:
        assert simt.simt_sweep(op, device, 512) % 512**2 == 0


def test_a_sweep_says_what_does_not_launch(simt: ModuleType) -> None:
    with pytest.raises(ValueError, match="no device profile is called sm_1"):
        simt.simt_sweep("fill", "sm_1", 4)
    with pytest.raises(ValueError, match="no sweep is called nonsense"):
        simt.simt_sweep("nonsense", "sm_80", 4)
    with pytest.raises(ValueError, match="side must be 1 to 512"):
        simt.simt_sweep("fill", "sm_80", 513)


@pytest.mark.parametrize(("h", "w"), GAP)
def test_sizes_of_the_gap_below_48_kb_run(simt: ModuleType, rng: np.random.Generator, h: int, w: int) -> None:
    for device, dtype in (("sm_75", "float32"), ("sm_90", "float64")):
        assert simt.simt_set_device(device)
        check_size(rng, "simt", h, w, dtype, device)


@pytest.mark.slow
def test_500_sizes_run_and_equal_the_cpu(simt: ModuleType, rng: np.random.Generator) -> None:
    for i, (h, w) in enumerate(sample_of_sizes(rng)):
        device = DEVICES[i % len(DEVICES)]
        assert simt.simt_set_device(device)
        check_size(rng, "simt", h, w, "float32" if i % 3 else "float64", device)
