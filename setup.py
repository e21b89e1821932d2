"""Builds the extension modules with CMake and Ninja; everything else is in pyproject.toml.

Environment: ROARFAST_CUDA=auto|on|off, ROARFAST_CUDA_ARCHS="80-real;90" or all, TORCH_CUDA_ARCH_LIST, CUDA_HOME, MAX_JOBS,
ROARFAST_SIMD_LEVELS="v3", ROARFAST_SIMT=ON (test backend), CMAKE_ARGS for anything else.
"""

import atexit
import contextlib
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.egg_info import egg_info

ROOT = Path(__file__).parent.resolve()
sys.path.insert(0, str(ROOT / "tools"))

import cuda_toolkit  # noqa: E402

# Passed always, with what CMakeLists.txt has as default: what an earlier build was told must not stay in its cache.
FORWARDED = {"ROARFAST_CUDA": "auto", "ROARFAST_SIMD_LEVELS": "", "ROARFAST_SIMT": "OFF", "ROARFAST_SIMT_ASAN": "OFF"}


def forget_what_is_gone(build_dir: Path, ninja: str, nvcc: str) -> None:
    """Deletes a CMake cache that names another ninja (of a build environment that is gone) or another nvcc."""
    cache = build_dir / "CMakeCache.txt"
    if not cache.exists():
        return
    entries = dict(re.findall(r"^(CMAKE_MAKE_PROGRAM|CMAKE_CUDA_COMPILER):\w+=(.*)$", cache.read_text(), re.MULTILINE))
    same_ninja = Path(entries.get("CMAKE_MAKE_PROGRAM", ninja)) == Path(ninja)
    cached_nvcc = entries.get("CMAKE_CUDA_COMPILER", "NOTFOUND")  # CMakeLists.txt forgets a NOTFOUND itself
    same_nvcc = not nvcc or cached_nvcc in (nvcc, "NOTFOUND")
    if same_ninja and same_nvcc:
        return
    cache.unlink()
    shutil.rmtree(build_dir / "CMakeFiles", ignore_errors=True)


@functools.cache
def scratch() -> str:
    """A folder for everything a build needs and nobody wants to find in the clone afterwards."""
    folder = tempfile.mkdtemp(prefix="roarfast-build-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


class Build(build):
    """`pip install .` leaves nothing in the clone; only an editable install keeps its build there, to build on."""

    def initialize_options(self):
        super().initialize_options()
        self.build_base = scratch()


class EggInfo(egg_info):
    def initialize_options(self):
        super().initialize_options()
        if not {"sdist", "editable_wheel", "develop"} & set(sys.argv):  # they want it beside the sources
            self.egg_base = scratch()


def tell(message: str) -> None:
    """To the log, and to the terminal if there is one: pip shows nothing of a build that takes minutes."""
    print(message, flush=True)
    with contextlib.suppress(OSError), open("/dev/tty", "w") as terminal:
        terminal.write(f"\n  {message}\n")


class CMakeBuild(build_ext):
    """Hands the build to CMake, which knows which modules there are (one per backend)."""

    def run(self):
        if os.name == "nt":
            raise SystemExit(
                "roarfast: Windows compilers cannot build the kernels (they need GCC or Clang). Use WSL: pip install in it works as on Linux."
            )
        in_source_tree = self.editable_mode or self.inplace
        package = ROOT / "roarfast" if in_source_tree else Path(self.build_lib).resolve() / "roarfast"
        build_dir = ROOT / "build" / "cmake" if in_source_tree else Path(self.build_temp).resolve()
        build_dir.mkdir(parents=True, exist_ok=True)
        ninja = shutil.which("ninja")
        if ninja is None:
            raise SystemExit("roarfast: ninja was not found; pip installs it unless --no-build-isolation is given")
        toolkit, architectures = cuda_toolkit.decide()
        nvcc = str(toolkit.nvcc or "")
        forget_what_is_gone(build_dir, ninja, nvcc)
        for message in toolkit.messages:
            print(f"roarfast: {message}", flush=True)
        if not in_source_tree:
            tell(f"roarfast: {cuda_toolkit.announcement(toolkit, architectures)}")
        options = {name: os.environ.get(name) or default for name, default in FORWARDED.items()}
        if not nvcc:
            options["ROARFAST_CUDA"] = "off"
        configure = [
            *("cmake", "-S", str(ROOT), "-B", str(build_dir), "-G", "Ninja"),
            f"-DCMAKE_MAKE_PROGRAM={ninja}",
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-DROARFAST_OUTPUT_DIR={package}",
            f"-DROARFAST_CUDA_ARCHS={';'.join(architectures)}",
            f"-DROARFAST_CUDA_REASON={toolkit.reason}",
            *(f"-D{name}={value}" for name, value in options.items()),
            *shlex.split(os.environ.get("CMAKE_ARGS", "")),
        ]
        environment = {**os.environ, **({"CUDACXX": nvcc} if nvcc else {})}
        environment.pop("CUDAARCHS", None)  # decided above
        jobs = os.environ.get("MAX_JOBS", "")
        if jobs and not jobs.isdigit():
            raise SystemExit(f"roarfast: MAX_JOBS must be a number of processes, got {jobs!r}")
        subprocess.run(configure, check=True, env=environment)
        subprocess.run(["cmake", "--build", str(build_dir), *(["--parallel", jobs] if jobs else [])], check=True)

    def get_outputs(self):
        return []

    def get_output_mapping(self):
        return {}


# One extension stands for all: it makes setuptools build a platform wheel and call CMakeBuild.
setup(
    ext_modules=[Extension("roarfast._cpu_base", sources=[])],
    cmdclass={"build": Build, "build_ext": CMakeBuild, "egg_info": EggInfo},
)
