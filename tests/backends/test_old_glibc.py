"""tools/old_glibc.py: what is linked with it needs no C library newer than 2.28, and its exceptions still work."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("c++", "cc", "objdump")

pytestmark = pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc" or not all(map(shutil.which, NEEDED)),
    reason=f"needs glibc and {', '.join(NEEDED)}",
)

SOURCE = """
#include <cmath>
#include <random>
#include <stdexcept>
#include <thread>
extern "C" double work(double x) {
  double y = 0;
  std::thread([&] { y = std::exp(x) + std::log(x) + std::pow(x, x); }).join();
  return y;
}
extern "C" unsigned caught() {
  try {
    throw std::runtime_error("thrown");
  } catch (const std::exception&) {
    return std::random_device()() | 1u;
  }
}
"""


def newest_needed(library: Path) -> tuple[int, ...]:
    listing = subprocess.run(["objdump", "-T", str(library)], check=True, capture_output=True, text=True).stdout
    return max(tuple(map(int, v.split("."))) for v in re.findall(r"\*UND\*.*GLIBC_([0-9.]+)", listing))


def test_modules_run_with_older_libraries(tmp_path: Path) -> None:
    (tmp_path / "work.cpp").write_text(SOURCE)
    tool = subprocess.run(
        [sys.executable, ROOT / "tools" / "old_glibc.py", tmp_path / "stubs"],
        check=True,
        capture_output=True,
        text=True,
    )
    library = tmp_path / "work.so"
    flags = [*tool.stdout.split(), "-static-libstdc++", "-static-libgcc"]
    command = ["c++", "-std=c++17", "-O2", "-shared", "-fPIC", *flags, str(tmp_path / "work.cpp"), "-o", str(library)]
    subprocess.run(command, check=True, env={**os.environ, "LC_ALL": "C"})
    assert newest_needed(library) <= (2, 28)
    loaded = ctypes.CDLL(str(library))
    loaded.work.restype, loaded.work.argtypes = ctypes.c_double, [ctypes.c_double]
    assert loaded.work(1.0) == pytest.approx(2.718281828459045 + 0 + 1)
    assert loaded.caught() != 0
