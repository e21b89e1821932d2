"""SciPy's own tests of its filters, run with ours in place: how many calls are fast, and which tests can tell."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import scipy.ndimage

TESTS = Path(scipy.ndimage.__file__).parent / "tests" / "test_filters.py"
# One wants equal bits from gaussian_filter and gaussian_filter1d; the others compare function objects.
TELLS = {"test_multiple_modes_sequentially", "test_filter_invalid_footprint_ndim"}


@pytest.mark.slow
@pytest.mark.skipif(not TESTS.exists(), reason="SciPy is installed without its tests")
def test_scipys_own_suite(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-c",
            "/dev/null",
            "-p",
            "no:cacheprovider",
            "-p",
            "roarfast.compat.pytest_plugin",
            "--roarfast-patch",
            "scipy",
            str(TESTS),
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=600,
    )
    failed = set(re.findall(r"^FAILED .*::(\w+)", done.stdout, re.M))
    assert failed <= TELLS, done.stdout[-4000:]
    fast = sum(map(int, re.findall(r"^  fast +(\d+) ", done.stdout, re.M)))
    passed_on = sum(map(int, re.findall(r"^  passed on +(\d+) ", done.stdout, re.M)))
    assert fast + passed_on > 100
    assert fast >= 0.8 * (fast + passed_on)
