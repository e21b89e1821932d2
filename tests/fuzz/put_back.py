"""Puts old bugs back into a copy of the package and looks whether the attack finds each within a minute.

    python tests/fuzz/put_back.py [F4 F5 F6 F12]

F4: tensors on `meta` reach a kernel. F5: the index of a batch is checked, then read again. F6: `out` may overlap an input.
F12: radii whose workspace overflows. For F4, F5 and F12 a few kernels are compiled anew (base level, minutes at most).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 60.0
Change = tuple[str, str, str]

BUGS: dict[str, list[Change]] = {
    "F4": [
        (
            "roarfast/ops/_op.py",
            "        if out is None:\n            return self.torch_op(*args)\n",
            '        if self.name == "pixel_random":\n            return self.run(_torch_arrays(), *args, out=out)\n'
            "        if out is None:\n            return self.torch_op(*args)\n",
        ),
        ("roarfast/ops/_arrays.py", 'if kind not in ("cpu", "cuda"):', "if False:"),
        ("roarfast/ops/_arrays.py", "if not pointers[i] and x.numel():", "if False:"),
        (
            "csrc/cpu/pixel_random.cpp",
            '  if (const rf_status bad = rf::check_not_null("pixel_random", {out})) return bad;\n',
            "",
        ),
    ],
    "F5": [
        (
            "csrc/cpu/gather_batch.cpp",
            "const std::vector<int64_t> index(given_index, given_index + b);",
            "const volatile int64_t* index = given_index;",
        ),
    ],
    "F6": [
        (
            "roarfast/ops/_arrays.py",
            "if in_place and not any(a is not None and np.may_share_memory(out, a) for a in (like, *others)):",
            "if in_place and not np.may_share_memory(out, like):",
        ),
        (
            "roarfast/ops/_arrays.py",
            "any(_overlap(first, out.nbytes, a) for a in (like, *others))",
            "_overlap(first, out.nbytes, like)",
        ),
    ],
    "F12": [
        (
            "roarfast/ops/gaussian_filter.py",
            "MAX_RADIUS, MAX_ORDER = 2**20, 64",
            "MAX_RADIUS, MAX_ORDER = 2**63 - 1, 64",
        ),
        ("csrc/cpu/gaussian_filter.cpp", "rf::kMaxRadius", "INT64_MAX"),
    ],
}
"""Per bug: file, what stands there today, and what stood there."""


def copy_of(name: str) -> Path:
    """A copy of the sources with one bug back; only what a change concerns is compiled again (ccache)."""
    copy = ROOT / "build" / "put-back" / name
    shutil.rmtree(copy, ignore_errors=True)
    for folder in ("roarfast", "csrc", "tests/fuzz"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    compiled = False
    for file, today, then in BUGS[name]:
        text = (copy / file).read_text()
        if today not in text:
            raise SystemExit(f"{name}: {file} does not hold {today!r} any more")
        (copy / file).write_text(text.replace(today, then, 1))
        compiled = compiled or file.startswith("csrc")
    if not compiled:
        for library in (ROOT / "roarfast").glob("_cpu_*.so"):
            shutil.copy2(library, copy / "roarfast")
        return copy
    shutil.copy2(ROOT / "CMakeLists.txt", copy)
    command = ["cmake", "-S", str(copy), "-B", str(copy / "build" / "cmake"), "-G", "Ninja", "-DROARFAST_CUDA=off"]
    command += ["-DROARFAST_SIMD_LEVELS=v3", f"-DROARFAST_OUTPUT_DIR={copy / 'roarfast'}"]
    command += [f"-DPython_EXECUTABLE={sys.executable}"]
    if shutil.which("ccache"):
        command += ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"]
    environment = os.environ | {"CCACHE_BASEDIR": str(copy), "CCACHE_NOHASHDIR": "1"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    subprocess.run(["cmake", "--build", str(copy / "build" / "cmake"), "--", "--quiet"], check=True, env=environment)
    return copy


def found(copy: Path, seed: int) -> tuple[float, str]:
    """After how many seconds of processor time (children's included) the attack fails, and how; empty if it does not."""
    environment = os.environ | {"PYTHONPATH": str(copy), "OMP_WAIT_POLICY": "passive"}
    begun = os.times()
    command = [sys.executable, str(copy / "tests/fuzz/fuzz_run.py"), "--seed", str(seed), "--until-failure"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=1200)
    ended = os.times()
    used = ended.children_user + ended.children_system - begun.children_user - begun.children_system
    lines = [line for line in done.stdout.splitlines() if "FAILED" in line]
    return used, lines[0].strip() if lines else ""


def main() -> None:
    missed = []
    for name in sys.argv[1:] or BUGS:
        copy = copy_of(name)
        clock = time.monotonic()
        used, line = found(copy, seed=1)
        well = bool(line) and used <= SECONDS
        print(
            f"{name}: {'found' if line else 'NOT FOUND'} after {used:.0f} s of processor time "
            f"({time.monotonic() - clock:.0f} s on the clock): {line[:200]}",
            flush=True,
        )
        if not well:
            missed.append(name)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
