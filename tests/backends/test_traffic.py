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
gaussian 1           32        70208        65536         6336        3
gaussian 1          224       277672       496640        28224        3
gaussian 3           32       198208        65536        27712        3
gaussian 3          224       773528       671744       113792        3
gaussian 10          32       176096       131072         7104        6
gaussian 10         224       684964       974848        36792        6
sobel                32        42880        65536         3216        2
sobel               224       157016       457472        13272        2
maximum 3            32        63152        65536         4656        3
maximum 3           224       236320       457472        18312        3
maximum 3 uint8      32        57072        16384         4656        3
maximum 3 uint8     224       212352       148352        18312        3
maximum 15           32       117568        65536        14968        5
maximum 15          224       429800       535808        55076        5
maximum 41           32        38672       710656            0        0
maximum 41          224       194390      4776576            0        0
removal_mask         32        85796        41216         6124       24
removal_mask        224       266258      1053728        19453       24
removal_mask relu    32        85796        41216         7520       24
removal_mask relu   224       266258      1053728        27678       24
rank_codes 9         32       231273        41216        26768       24
rank_codes 9        224       782751      1053728        80913       24
rank_codes 9 relu    32       602522        41216        66188       41
rank_codes 9 relu   224      2867538      1856544       294295       41
percentile 8         32       233457        33536        33015       22
percentile 8        224       544731       802912        63083       22
removed_fraction     32         6240         8448          128        2
removed_fraction    224         8332        50208           16        2
pixel_random         32        11904        33024            0        0
pixel_random        224        72912       202272            0        0
philox_normal        32        21440        33024            0        0
philox_normal       224       131320       202272            0        0
block_random         32        10005         8448          544        2
block_random        224        23142        50208           68        2
fill value NCHW      32        12992       205056            0        0
fill value NCHW     224        79576      1255968            0        0
fill value NHWC      32        24960       206080            0        0
fill value NHWC     224       152880      1262240            0        0
fill mean NCHW       32        55552       204800         4272       30
fill mean NCHW      224       202784      2104896          534       30
fill mean NHWC       32        55552       401408         4272       30
fill mean NHWC      224       202784      5427072          534       30
remove value         32       122212       229888         6124       24
remove value        224       472026      2609952        19453       24
remove mean          32       147364       229632        10396       54
remove mean         224       567330      3211296        19987       54
gather NCHW          32        42576       131840          344        1
gather NCHW         224       260778       807520         2107        1
gather NHWC          32        79920       133888         1032        1
gather NHWC         224       489510       820032         6321        1
gather NHWC f16      32        80688        84736         1032        1
gather NHWC f16     224       494214       518976         6321        1
impute               32      2927934       714976       239094       87
impute              224     10828618     94316864        29376       92
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
