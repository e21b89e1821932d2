"""Launches on devices we do not have: every image size must fit what each device profile allows, whatever ran before."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

import roarfast as rf
from roarfast import _backend

try:
    module = _backend.simt()
except _backend.BackendError as error:
    pytest.skip(str(error), allow_module_level=True)

DEVICES = module.simt_devices().split()
OPS = module.simt_sweep_ops().split()
# Dynamic and static shared memory of impute_linear add up to a little more than 48 KB here.
GAP = [(42, 44), (36, 50), (32, 57), (4, 441), (93, 93), (94, 94), (65, 66)]


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


def check_size(simt: ModuleType, rng: np.random.Generator, device: str, h: int, w: int, dtype: str) -> None:
    """One size as the first call of a process on `device`, against the CPU."""
    assert simt.simt_set_device(device)
    x = rng.random((1, 1, h, w)).astype(dtype)
    mask = rng.random((1, h, w)) < 0.4
    with _backend.use_host_backend("simt"):
        out = rf.impute_linear(x, mask, noise=0)
        codes = rf.rank_codes(x[:, 0], [0.1, 0.5, 0.9])
        removed = rf.removal_mask(x[:, 0], drop=0.3)
    np.testing.assert_allclose(
        out, rf.impute_linear(x, mask, noise=0), rtol=0, atol=2e-3, err_msg=f"{device} {h} x {w} {dtype}"
    )
    np.testing.assert_array_equal(codes, rf.rank_codes(x[:, 0], [0.1, 0.5, 0.9]))
    np.testing.assert_array_equal(removed, rf.removal_mask(x[:, 0], drop=0.3))


@pytest.mark.parametrize(("h", "w"), GAP)
def test_sizes_of_the_gap_below_48_kb_run(simt: ModuleType, rng: np.random.Generator, h: int, w: int) -> None:
    for device, dtype in (("sm_75", "float32"), ("sm_90", "float64")):
        check_size(simt, rng, device, h, w, dtype)


@pytest.mark.slow
def test_500_sizes_run_and_equal_the_cpu(simt: ModuleType, rng: np.random.Generator) -> None:
    sizes = [*GAP, (129, 132), (185, 188), (188, 188), (375, 375)]
    while len(sizes) < 500:
        sizes.append(tuple((2 ** rng.uniform(0, 7.5, 2)).astype(int).tolist()))
    for i, (h, w) in enumerate(sizes):
        check_size(simt, rng, DEVICES[i % len(DEVICES)], h, w, "float32" if i % 3 else "float64")
