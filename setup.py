"""Builds the extension modules with CMake and Ninja; everything else is in pyproject.toml.

Environment: ROARFAST_CUDA=auto|on|off, ROARFAST_CUDA_ARCHS="80-real;90", ROARFAST_SIMD_LEVELS="v3",
ROARFAST_SIMT=ON (test backend),
CMAKE_ARGS for anything else.
"""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).parent.resolve()
FORWARDED = ("ROARFAST_CUDA", "ROARFAST_CUDA_ARCHS", "ROARFAST_SIMD_LEVELS", "ROARFAST_SIMT", "ROARFAST_SIMT_ASAN")


class CMakeBuild(build_ext):
    """Hands the build to CMake, which knows which modules there are (one per backend)."""

    def run(self):
        in_source_tree = self.editable_mode or self.inplace
        package = ROOT / "roarfast" if in_source_tree else Path(self.build_lib).resolve() / "roarfast"
        build_dir = ROOT / "build" / "cmake" if in_source_tree else Path(self.build_temp).resolve()
        build_dir.mkdir(parents=True, exist_ok=True)
        configure = [
            *("cmake", "-S", str(ROOT), "-B", str(build_dir), "-G", "Ninja"),
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-DROARFAST_OUTPUT_DIR={package}",
            *(f"-D{name}={os.environ[name]}" for name in FORWARDED if os.environ.get(name)),
            *shlex.split(os.environ.get("CMAKE_ARGS", "")),
        ]
        subprocess.run(configure, check=True)
        subprocess.run(["cmake", "--build", str(build_dir)], check=True)

    def get_outputs(self):
        return []

    def get_output_mapping(self):
        return {}


# One extension stands for all: it makes setuptools build a platform wheel and call CMakeBuild.
setup(ext_modules=[Extension("roarfast._cpu_base", sources=[])], cmdclass={"build_ext": CMakeBuild})
