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
gaussian 1           32        85280        65536         6336        3
gaussian 1          224       326672       496640        28224        3
gaussian 3           32       218816        65536        27712        3
gaussian 3          224       838752       671744       113792        3
gaussian 10          32      1232924       242080          178       18
gaussian 10         224      5700116     15517344          178       18
sobel                32        54912        65536         3216        2
sobel               224       198592       457472        13272        2
maximum 3            32        78056        65536         4656        3
maximum 3           224       288308       457472        18312        3
maximum 3 uint8      32        69576        16384         4656        3
maximum 3 uint8     224       255940       148352        18312        3
maximum 15           32       148504        65536        14968        5
maximum 15          224       533484       535808        55076        5
maximum 41           32        38672       710656            0        0
maximum 41          224       194390      4776576            0        0
removal_mask         32       105255        41216         8810       25
removal_mask        224       425908      1254432        29011       25
removal_mask relu    32       105255        41216        10169       25
removal_mask relu   224       425908      1254432        37263       25
rank_codes 9         32       320189        41216        44472       25
rank_codes 9        224      1351730      1254432       107816       25
rank_codes 9 relu    32       652483        41216        80333       42
rank_codes 9 relu   224      3147280      2057248       248361       42
percentile 8         32       531632        33536        72691       65
percentile 8        224      1713432      3211360       109065       56
removed_fraction     32         5120         8448         2064        3
removed_fraction    224        11776        50208          258        3
pixel_random         32        13952       131072            0        0
pixel_random        224        85456       802816            0        0
philox_normal        32        23168       131328            0        0
philox_normal       224       141904       804384            0        0
block_random         32        13293         8192          544        2
block_random        224        36985        50176           68        2
fill value NCHW      32        29824       205056            0        0
fill value NCHW     224       182672      1255968            0        0
fill value NHWC      32        29824       401664            0        0
fill value NHWC     224       182672      2460192            0        0
fill mean NCHW       32        55552       204800         4272       30
fill mean NCHW      224       202784      2104896          534       30
fill mean NHWC       32        55552       401408         4272       30
fill mean NHWC      224       202784      5427072          534       30
remove value         32       142991       229888         8810       25
remove value        224       624161      2810656        29011       25
remove mean          32       167951       229632        13082       55
remove mean         224       719441      3412000        29545       55
gather NCHW          32        65552       131840          344        1
gather NCHW         224       401506       807520         2107        1
gather NHWC          32        65552       328448          344        1
gather NHWC         224       401506      2011712         2107        1
gather NHWC f16      32        66320       180992          344        1
gather NHWC f16     224       406210      1108544         2107        1
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
