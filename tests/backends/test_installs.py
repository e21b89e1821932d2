"""Installs as users do them, several in one checkout: what one build leaves behind must not break or leak into the next."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CUDA_HOME = next((p for p in (Path("/usr/local/cuda"), Path("/opt/cuda")) if (p / "bin" / "nvcc").exists()), None)
OURS = ("ROARFAST_", "CUDA", "TORCH_CUDA_ARCH_LIST", "MAX_JOBS", "CMAKE_ARGS", "PYTHONPATH")

pytestmark = pytest.mark.slow


class Checkout:
    """A copy of the sources, built with `pip wheel` under a chosen environment."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.tools = folder / "checkout", folder / "tools"
        files = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.split()
        for name in files:
            if name.startswith(("csrc/", "roarfast/", "tools/", "tests/backends/")) or "/" not in name:
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, self.folder / name)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        self.environment["ROARFAST_SIMD_LEVELS"] = "v3"
        if shutil.which("ccache"):
            self.environment["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"

    def wheel(self, **environment: str) -> tuple[set[str], str]:
        """Modules in the wheel, and what the build said. Ninja comes from a folder that is gone afterwards."""
        shutil.rmtree(self.tools, ignore_errors=True)
        self.tools = self.tools.with_name(self.tools.name + "x")
        self.tools.mkdir()
        for program in ("ninja", "cmake"):
            found = shutil.which(program)
            assert found is not None
            (self.tools / program).symlink_to(found)
        out = self.folder.parent / "wheels"
        shutil.rmtree(out, ignore_errors=True)
        path = f"{self.tools}:{os.path.dirname(sys.executable)}:/usr/bin:/bin"
        result = subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "-v", "--no-build-isolation", "--no-deps", "-w", str(out), "."],
            cwd=self.folder,
            env={**self.environment, "PATH": path, **environment},
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, (result.stdout + result.stderr)[-3000:]
        (packed,) = out.glob("*.whl")
        self.packed = packed
        names = zipfile.ZipFile(packed).namelist()
        modules = {Path(n).name.split(".")[0] for n in names if n.endswith(".so")}
        self.reason = zipfile.ZipFile(packed).read("roarfast/_no_cuda_reason.txt").decode().strip()
        return modules, result.stdout + result.stderr


def run_what_a_gpu_owner_runs(checkout: Checkout, folder: Path) -> None:
    """The selftest and the benchmark with nothing but a wheel and the folder `bench`: no sources, no test suite."""
    zipfile.ZipFile(checkout.packed).extractall(folder / "site")
    shutil.copytree(ROOT / "bench", folder / "bench", ignore=shutil.ignore_patterns("__pycache__", "*.json"))
    environment = {**checkout.environment, "PYTHONPATH": str(folder / "site")}
    for command in (
        ["-m", "roarfast", "selftest", "--device", "cpu", "--quick", "--out", "selftest.json"],
        ["bench/run.py", "--device", "cpu", "--tiny", "--out", "bench.json"],
    ):
        done = subprocess.run(
            [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    where = "import roarfast; print(roarfast.__file__)"
    used = subprocess.run([sys.executable, "-c", where], cwd=folder, env=environment, capture_output=True, text=True)
    assert used.stdout.startswith(str(folder / "site")), used.stdout + used.stderr
    assert json.loads((folder / "selftest.json").read_text())["ok"]
    assert json.loads((folder / "bench.json").read_text())["ops"]


def test_builds_one_after_the_other(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    (checkout.folder / "roarfast" / "_cuda.so").write_bytes(b"left by a build in the source tree")
    cpu = {"_cpu_base", "_cpu_v3"}
    assert checkout.wheel(ROARFAST_CUDA="off")[0] == cpu
    assert checkout.reason == "ROARFAST_CUDA=off when it was built"
    assert checkout.wheel(ROARFAST_CUDA="off")[0] == cpu  # the ninja of the first build is gone
    run_what_a_gpu_owner_runs(checkout, tmp_path / "owner")
    # An nvcc that cannot compile: a build without CUDA and a reason, not an error.
    broken = tmp_path / "broken" / "bin" / "nvcc"
    broken.parent.mkdir(parents=True)
    listing = 'case "$1" in --version) echo release 12.8,;; --list-gpu-arch) echo compute_80;; *) exit 1;; esac'
    broken.write_text(f"#!/bin/sh\n{listing}\n")
    broken.chmod(0o755)
    assert checkout.wheel(CUDA_HOME=str(tmp_path / "broken"), MAX_JOBS="2")[0] == cpu
    assert "cannot compile a test program" in checkout.reason
    if CUDA_HOME is None:
        pytest.skip("no CUDA toolkit here: the build with one was not tried")
    # nvcc was not there before; it is in CUDA_HOME only; it does not know the last architecture.
    modules, said = checkout.wheel(CUDA_HOME=str(CUDA_HOME), ROARFAST_CUDA_ARCHS="80-virtual;999", MAX_JOBS="2")
    assert modules == {*cpu, "_cuda"} and checkout.reason == ""
    assert "architecture 999 (ROARFAST_CUDA_ARCHS) left out" in said and "for architectures 80-virtual" in said
    assert checkout.wheel(ROARFAST_CUDA="off")[0] == cpu  # the _cuda of the build before is not packed
