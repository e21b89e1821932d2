"""Which kernels run: the CPU library of the best SIMD level, the CUDA library, or the CUDA sources on the host (tests)."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

SIMD_LEVELS = ("v3", "base")  # best first; off x86-64 only "base" is built

_explicit_threads: int | None = None
_host_backend = "cpu"  # what runs arrays in host memory; tests switch it to "simt" or "ptx"


class BackendError(RuntimeError):
    """A backend that was asked for is not built or cannot be loaded."""


def _load(module: str) -> ModuleType | None:
    try:
        return importlib.import_module(f"roarfast.{module}")
    except ModuleNotFoundError:
        return None


def built_simd_levels() -> list[str]:
    """The SIMD levels in this build, lowest first. Found without loading: loading one too high can crash."""
    return [level for level in reversed(SIMD_LEVELS) if importlib.util.find_spec(f"roarfast._cpu_{level}")]


def runnable_simd_levels() -> list[str]:
    """The SIMD levels of this build that this processor runs, lowest first."""
    base = _load("_cpu_base")
    usable = SIMD_LEVELS[SIMD_LEVELS.index(base.best_simd_level()) :] if base is not None else ()
    return [level for level in built_simd_levels() if level in usable]


@cache
def cpu() -> ModuleType:
    """The CPU kernels at the best SIMD level this processor runs, or at `ROARFAST_SIMD=base|v3`."""
    base = _load("_cpu_base")
    if base is None:
        raise BackendError(
            "the roarfast CPU kernels are not built; install the package (pip install .) or, in a source tree, run `make build`"
        )
    wanted = os.environ.get("ROARFAST_SIMD", "")
    if wanted and wanted not in SIMD_LEVELS:
        raise BackendError(f"ROARFAST_SIMD must be one of {', '.join(SIMD_LEVELS)}, got {wanted!r}")
    best: str = base.best_simd_level()
    usable = SIMD_LEVELS[SIMD_LEVELS.index(best) :]
    if wanted and wanted not in usable:
        raise BackendError(f"ROARFAST_SIMD={wanted}, but this processor runs only {', '.join(usable)}")
    for level in (wanted,) if wanted else usable:
        module = _load(f"_cpu_{level}")
        if module is not None:
            return module
    raise BackendError(f"ROARFAST_SIMD={wanted}, but that level is not in this build")


@cache
def _cuda_or_reason() -> ModuleType | str:
    """The CUDA kernels, or why there are none."""
    try:
        return importlib.import_module("roarfast._cuda")
    except ModuleNotFoundError:
        why = Path(__file__).with_name("_no_cuda_reason.txt")
        text = why.read_text().strip() if why.exists() else ""
        return f"not built: {text or 'no nvcc when it was built'}"
    except ImportError as error:  # built, but for another Python, libstdc++ or system
        return f"built, but it does not load: {error}"


def cuda() -> ModuleType:
    """The CUDA kernels; an error that says what to do if this build has none."""
    found = _cuda_or_reason()
    if isinstance(found, str):
        raise BackendError(
            f"roarfast has no CUDA kernels ({found}), but got a CUDA tensor. Rebuild where nvcc is on PATH or in CUDA_HOME "
            "(ROARFAST_CUDA=on pip install --no-cache-dir .), or move the tensor to the CPU."
        )
    return found


def why_no_cuda() -> str:
    """Why there are no CUDA kernels; empty if there are."""
    found = _cuda_or_reason()
    return found if isinstance(found, str) else ""


def cuda_is_built() -> bool:
    """Whether this build has CUDA kernels (not: whether there is a device)."""
    return not why_no_cuda()


@cache
def simt() -> ModuleType:
    """The CUDA kernels executed on the host, for tests; `ROARFAST_SIMT_MODULE=_simt_asan` picks the sanitised one."""
    name = os.environ.get("ROARFAST_SIMT_MODULE", "_simt")
    module = _load(name)
    if module is None:
        raise BackendError(f"roarfast.{name} is not built: make build-simt")
    return module


@cache
def ptx() -> ModuleType:
    """What nvcc made of the CUDA kernels, executed on the host, for tests; `ROARFAST_PTX_ARCH=75|80|90` picks for which GPU."""
    name = f"_ptx_{os.environ.get('ROARFAST_PTX_ARCH', '80')}"
    module = _load(name)
    if module is None:
        raise BackendError(f"roarfast.{name} is not built (it needs nvcc): make build-ptx")
    return module


_HOST_BACKENDS = {"cpu": cpu, "simt": simt, "ptx": ptx}


def host() -> ModuleType:
    """The kernels for arrays in host memory."""
    return _HOST_BACKENDS[_host_backend]()


def apply_num_threads() -> None:
    """Tells the CPU kernels how many threads calls from this Python thread may use.

    An op does so once, at its start: asking for a workspace and using it must not see two thread counts.
    """
    if _host_backend == "cpu":
        cpu().set_num_threads(get_num_threads())


@contextlib.contextmanager
def use_host_backend(name: str) -> Iterator[None]:
    """Runs host arrays through `cpu`, `simt` or `ptx` inside the block. For tests: the last two are thousands of times slower."""
    global _host_backend
    if name not in _HOST_BACKENDS:
        raise ValueError(f"name must be one of {', '.join(_HOST_BACKENDS)}, got {name!r}")
    previous, _host_backend = _host_backend, name
    try:
        yield
    finally:
        _host_backend = previous


MAX_THREADS = 1024


def set_num_threads(threads: int | None) -> None:
    """Sets how many CPU threads the kernels use; `None` goes back to the default.

    The default follows `ROARFAST_NUM_THREADS` (as it was at the first call), then `torch.get_num_threads()` if torch is loaded, then the cores
    this process may run on. Results do not depend on it.
    """
    global _explicit_threads
    if threads is not None and (
        isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MAX_THREADS
    ):
        raise ValueError(f"threads must be an int from 1 to {MAX_THREADS} or None, got {threads!r}")
    _explicit_threads = threads


@cache  # reading the environment takes as long as a small call
def _threads_of_environment() -> int | None:
    value = os.environ.get("ROARFAST_NUM_THREADS")
    if not value:
        return None
    if not (value.isascii() and value.isdecimal()) or not 1 <= int(value) <= MAX_THREADS:
        raise ValueError(f"ROARFAST_NUM_THREADS must be an integer from 1 to {MAX_THREADS}, got {value!r}")
    return int(value)


def get_num_threads() -> int:
    """How many CPU threads the kernels use now."""
    if _explicit_threads is not None:
        return _explicit_threads
    from_environment = _threads_of_environment()
    if from_environment is not None:
        return from_environment
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_num_threads"):
        return int(torch.get_num_threads())
    return available_cores()


@cache
def available_cores() -> int:
    """Cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
