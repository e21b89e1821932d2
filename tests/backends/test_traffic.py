"""What the CUDA kernels execute and move, held to one line per op: nvcc's PTX, counted on the host.

A change that moves a figure by more than TOLERANCE, for better or worse, edits its line in the same commit:
`make traffic-update`. So the history of every kernel's cost is in git.
"""

from __future__ import annotations

import os

import pytest
from helpers.ptx import options
from helpers.traffic import CASES, measure

from roarfast import _backend

TOLERANCE = 0.05
SLACK = 64  # figures near zero: so much may come and go

# case, size, executed warp instructions, bytes from and to L2, shared-memory wavefronts, barriers per block
EXPECTED = """
total_variation      32         8648        36672            0        0
total_variation     224        34286       206784            0        0
gaussian 1           32        50432        65536         4992        2
gaussian 1          224       213976       496640        27048        2
gaussian 3           32       147648        65536        20608        2
gaussian 3          224       708960       671744       107576        2
gaussian 10          32       179680       131072         7104        5
gaussian 10         224       697060       974848        36792        5
sobel                32        40016        65536         2128        2
sobel               224       155434       457472        12320        2
maximum 3            32        39296        65536         3232        3
maximum 3           224       151060       457472        14042        3
maximum 3 uint8      32        37536        16384         3232        3
maximum 3 uint8     224       144270       148352        14042        3
maximum 15           32        95408        65536        10320        5
maximum 15          224       411124       535808        51009        5
maximum 41           32       174848        65536        27088        7
maximum 41          224       888412       889088       170744        7
removal_mask         32        86474        41216         6004       23
removal_mask        224       268280      1053728        19438       23
removal_mask relu    32        86474        41216         7400       23
removal_mask relu   224       268280      1053728        27663       23
rank_codes 9         32       195931        41216        23320       23
rank_codes 9        224       560132      1053728        60514       23
rank_codes 9 relu    32       592236        41216        64532       40
rank_codes 9 relu   224      2799037      1856544       284872       40
percentile 8         32       202013        33536        30015       21
percentile 8        224       348151       802912        45926       21
removed_fraction     32         6240         8448          128        2
removed_fraction    224         8332        50208           16        2
pixel_random         32        12672        33024            0        0
pixel_random        224        77616       202272            0        0
philox_normal        32        21440        33024            0        0
philox_normal       224       131320       202272            0        0
block_random         32        10005         8448          544        2
block_random        224        23142        50208           68        2
fill value NCHW      32        11712       205056            0        0
fill value NCHW     224        71736      1255968            0        0
fill value NHWC      32        24960       206080            0        0
fill value NHWC     224       152880      1262240            0        0
fill mean NCHW       32        48128       204800         4272       30
fill mean NCHW      224       171904      2104896          534       30
fill mean NHWC       32        48128       401408         4272       30
fill mean NHWC      224       171904      5427072          534       30
remove value         32       122354       229888         6004       23
remove value        224       466685      2609952        19438       23
remove mean          32       152882       229632        10276       53
remove mean         224       544229      3211296        19972       53
gather NCHW          32        30992       131840          344        1
gather NCHW         224       189826       807520         2107        1
gather NHWC          32        30288       131840         1880        2
gather NHWC         224       185514       807520        11515        2
gather NHWC f16      32        31056        82688         1112        2
gather NHWC f16     224       190218       506464         6811        2
impute               32       987528       223744       148049       36
impute              224     10604074     93097376        29376       91
impute               64       789658       221824       131726       37
"""
COLUMNS = ("warp instructions", "bytes of L2", "wavefronts", "barriers")

try:
    _backend.ptx()
except _backend.BackendError as error:
    pytest.skip(str(error), allow_module_level=True)
if os.environ.get("ROARFAST_PTX_ARCH", "80") != "80":
    pytest.skip("the figures are those of sm_80", allow_module_level=True)


def expected() -> dict[tuple[str, int], tuple[int, ...]]:
    lines = {}
    for line in EXPECTED.strip().splitlines():
        *name, size, instructions, l2, wavefronts, barriers = line.split()
        lines[" ".join(name), int(size)] = (int(instructions), int(l2), int(wavefronts), int(barriers))
    return lines


def test_every_case_has_its_line() -> None:
    assert {name for name, _ in expected()} == set(CASES)


@pytest.mark.parametrize(("name", "size"), expected())
def test_figures(name: str, size: int) -> None:
    traffic = measure(name, size)
    got = (traffic.instructions, traffic.l2_bytes, traffic.wavefronts, round(traffic.barriers))
    moved = [
        f"{column}: {a} -> {b} ({(b - a) / a:+.0%})" if a else f"{column}: {a} -> {b}"
        for column, a, b in zip(COLUMNS, expected()[name, size], got, strict=True)
        if abs(b - a) > TOLERANCE * a + (SLACK if column != "barriers" else 0)
    ]
    assert not moved, f"{name} at {size}²: {'; '.join(moved)}. If that is meant: make traffic-update"


def test_counting_does_not_change_results(rng) -> None:
    import numpy as np
    from helpers.ptx import counted, ptx_backend

    import roarfast as rf

    x = rng.standard_normal((2, 21, 40)).astype(np.float32)
    result, launches = counted(rf.maximum_filter, x, 3)
    with options(races=True), ptx_backend():
        np.testing.assert_array_equal(result, rf.maximum_filter(x, 3))
    assert launches
