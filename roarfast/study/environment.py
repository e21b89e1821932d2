"""What a study runs on: devices, versions, hardware."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

import numpy
import torch

from roarfast import info
from roarfast._backend import available_cores
from roarfast._version import __version__
from roarfast.study.config import StudyConfig
from roarfast.study.errors import StudyError


def choose_devices(device: str, workers: int | str, config: StudyConfig) -> list[str]:
    """One device per worker: GPUs in turn, or the CPU as often as its cores allow."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    kind = device.split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise StudyError(f"device must be 'auto', 'cpu', 'cuda' or 'cuda:<number>', got {device!r}")
    if kind == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if not count:
            raise StudyError(f"device {device!r} was asked for, but torch sees no CUDA device here")
        listed = [device] if ":" in device else [f"cuda:{i}" for i in range(count)]
        number = len(listed) if workers == "auto" else int(workers)
        return [listed[i % len(listed)] for i in range(number)]
    number = max(1, available_cores() // config.run.threads) if workers == "auto" else int(workers)
    return ["cpu"] * number


def versions() -> dict[str, str]:
    """Versions of what computes."""
    return {
        "roarfast": __version__,
        "torch": str(torch.__version__),
        "numpy": numpy.__version__,
        "python": platform.python_version(),
    }


def hardware(devices: list[str], threads: int) -> dict[str, Any]:
    """What it runs on."""
    names = {d: torch.cuda.get_device_name(d) if d.startswith("cuda") else _cpu_name() for d in dict.fromkeys(devices)}
    facts = {"workers": len(devices), "threads per worker": threads, "cores": os.cpu_count(), "devices": names}
    return facts | {"simd": info.gather()["cpu"]["simd"]}


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
